#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/cost.hpp"
#include "testing/steps.hpp"

#include <zkasio/error.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/log_record.hpp>
#include <zkasio/path.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/awaitable.hpp>
#include <asio/post.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace ephemeral_budget_tests {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

client_options with_budget(std::size_t bytes) { return calm().ephemeral_budget(bytes); }

create_options ephemeral() {
    create_options how;
    how.mode(create_mode::ephemeral);
    return how;
}

// What a server lists in the transaction that ends the session, for each node.
std::size_t bytes_below(const fake_ensemble& e, const std::string& directory) {
    std::size_t bytes = 0;
    for (const std::string& name : e.children(directory)) bytes += join_path(directory, name).size() + 4;
    return bytes;
}

constexpr std::size_t contender_bytes = 6 + 36 + 2 + 5 + 10;  // "_c-<id>-lock-<number>", with "/"

}  // namespace

TEST_CASE("ephemeral budget: the fake ends no session whose nodes real servers could not read back") {
    fake_ensemble e;
    const client zk = e.client(with_budget(100'000'000));
    auto body = [&]() -> asio::awaitable<void> {
        const std::string long_name(1000, 'n');
        const create_options how = ephemeral();
        for (int i = 0; i < 2100; ++i) co_await zk.create("/" + std::to_string(i) + long_name, "", how);
        CHECK_THROWS_AS(e.expire(zk), std::logic_error);
        for (int i = 0; i < 100; ++i) co_await zk.remove("/" + std::to_string(i) + long_name);
        co_await zk.close();
        CHECK(e.sessions() == 0);
    };
    e.run(body);
}

TEST_CASE("ephemeral budget: nodes of 256 kB are worth one line in the log") {
    fake_ensemble e;
    std::vector<std::string> warnings;
    const client zk = e.client(calm().log([&](const log_record& r) {
        if (r.level() == log_level::warning) warnings.push_back(r.text());
    }));
    auto body = [&]() -> asio::awaitable<void> {
        const std::string long_name(1000, 'n');
        const create_options how = ephemeral();
        for (int i = 100; i < 400; ++i) {
            if (i < 350) CHECK(warnings.empty());
            co_await zk.create("/" + std::to_string(i) + long_name, "", how);
        }
        REQUIRE(warnings.size() == 1);
        CHECK(warnings[0] ==
              "the whole paths of this session's ephemeral nodes, with 4 bytes for each node, have 263088 bytes: the "
              "servers remove all of them in one transaction, see docs/limits.md");
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("ephemeral budget: the largest closeSession of a session is half of what servers read back") {
    fake_ensemble e;
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        co_await zk.create("/many", "");
        const std::string long_name(995, 'n');
        const create_options how = ephemeral();
        std::error_code refused;
        for (int i = 1000; !refused; ++i)
            refused = co_await code_of(zk.create("/many/" + std::to_string(i) + long_name, "", how));
        CHECK(refused == errc::too_many_ephemerals);
        const std::size_t header = 32, count = 4, digest = 12;
        const std::size_t close_session = header + count + bytes_below(e, "/many") + digest;
        CHECK(close_session <= 1'048'576 + 48);
        CHECK(close_session > 1'048'576 - 1009);
        e.expire(zk);
        co_await sleep_for(1s);
        CHECK(e.children("/many").empty());
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("ephemeral budget: a create beyond it is refused, a removal makes room, a new session begins empty") {
    fake_ensemble e;
    const client zk = e.client(with_budget(1000));
    auto body = [&]() -> asio::awaitable<void> {
        const create_options how = ephemeral();
        const std::string name(96 - 3, 'n');  // 100 bytes each, with "/", two digits, and 4 for the length
        const auto path = [&](int i) { return "/" + std::to_string(i) + name; };
        for (int i = 10; i < 20; ++i) co_await zk.create(path(i), "", how);
        std::string said;
        try {
            co_await zk.create("/x", "", how);
        } catch (const error& x) {
            CHECK(x.code() == errc::too_many_ephemerals);
            CHECK_FALSE(x.outcome_unknown());
            said = x.what();
        }
        CHECK(said.find("create /x: too many ephemeral nodes in one session") == 0);
        CHECK(said.find("(the whole paths of this session's ephemeral nodes, with 4 bytes for each node, have 1000 "
                        "bytes, of at most 1000 (client_options::ephemeral_budget())") != said.npos);
        co_await zk.create("/persistent", "");
        co_await zk.remove(path(10));
        co_await zk.create(path(10), "", how);
        // Removed by others: any answer tells.
        e.remove(path(11));
        const auto found = co_await zk.exists(path(11));
        CHECK_FALSE(found);
        co_await zk.create(path(11), "", how);
        // In one transaction, a removal makes room for a create.
        co_await zk.multi(transaction().create(path(21), "", how).remove(path(12)));
        const std::error_code code = co_await code_of(zk.create("/x", "", how));
        CHECK(code == errc::too_many_ephemerals);
        // A refused create gives its bytes back.
        co_await zk.remove(path(13));
        const std::error_code refused = co_await code_of(zk.create("/missing/x", "", how));
        CHECK(refused == zk_errc::no_node);
        co_await zk.create(path(13), "", how);
        e.expire(zk);
        co_await sleep_for(1s);
        co_await zk.current_session();
        for (int i = 10; i < 20; ++i) {
            const std::error_code again = co_await code_of(zk.create(path(i), "", how));
            CHECK_FALSE(again);
        }
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("ephemeral budget: the chroot counts, as it does for the servers") {
    fake_ensemble e;
    e.create("/a");
    e.create("/a/chroot");
    const client zk = e.client(client_options("fake/a/chroot").ephemeral_budget(100));
    auto body = [&]() -> asio::awaitable<void> {
        const create_options how = ephemeral();
        co_await zk.create("/" + std::string(82, 'n'), "", how);  // 9 + 83 + 4
        const std::error_code code = co_await code_of(zk.create("/x", "", how));
        CHECK(code == errc::too_many_ephemerals);
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("ephemeral budget: a create whose answer is lost counts until an answer tells") {
    fake_ensemble e;
    e.create("/d");
    const client zk = e.client(with_budget(1000));
    auto body = [&]() -> asio::awaitable<void> {
        create_options numbered;
        numbered.mode(create_mode::ephemeral_sequential);
        const std::string path = "/d/" + std::string(500, 'n');
        e.lose_answer(zk, "create");
        const std::error_code lost = co_await code_of(zk.create(path, "", numbered));
        CHECK(lost == condition::outcome_unknown);
        co_await zk.sync();
        const std::error_code full = co_await code_of(zk.create(path, "", numbered));
        CHECK(full == errc::too_many_ephemerals);
        const node_children there = co_await zk.children("/d");
        REQUIRE(there.names.size() == 1);
        const std::error_code still = co_await code_of(zk.create(path, "", numbered));
        CHECK(still == errc::too_many_ephemerals);
        co_await zk.remove("/d/" + there.names.at(0));
        co_await zk.create(path, "", numbered);
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("ephemeral budget: room that other clients make is found, for a few requests a node") {
    for (const std::string how : {"removed", "removed with its parent", "made in a transaction"}) {
        INFO(how);
        constexpr std::size_t n = 1000;
        fake_ensemble e;
        const client zk = e.client(with_budget(6000)), other = e.client(calm());
        auto body = [&]() -> asio::awaitable<void> {
            create_options below;
            below.mode(create_mode::ephemeral).parents(missing_parents::create_persistent);
            const auto make = [&](std::string path) -> asio::awaitable<void> {
                if (how == "made in a transaction") {
                    transaction t;
                    t.create(path, "", ephemeral());
                    co_await other.create_unless_exists("/requests");
                    co_await zk.multi(t);
                } else {
                    co_await zk.create(path, "", below);
                }
            };
            const cost_meter meter(e);
            for (std::size_t i = 0; i < n; ++i) {
                const std::string path = "/requests/request-of-a-customer-" + std::to_string(i);
                co_await make(path);
                if (how == "removed with its parent")
                    co_await other.remove_recursive("/requests");
                else
                    co_await other.remove(path);
            }
            const cost all = meter.read();
            INFO(all);
            CHECK(all.requests <= n * (how == "removed" ? 6 : 12));
            const lock_guard g = co_await mutex(zk, "/locks/m").acquire();
            co_await other.close();
            co_await zk.close();
        };
        e.run(body);
    }
}

TEST_CASE("ephemeral budget: room is found a minute after it was full, also where requests are throttled") {
    for (const bool throttled : {false, true}) {
        fake_ensemble e;
        const client zk = e.client(with_budget(6000));
        auto body = [&]() -> asio::awaitable<void> {
            const create_options how = ephemeral();
            const auto path = [](int i) { return "/a-node-of-many-" + std::to_string(1000 + i); };
            int n = 0;
            for (std::error_code full; !full; ++n) full = co_await code_of(zk.create(path(n), "", how));
            CHECK(n == 6000 / 24 + 1);
            for (const std::string& name : e.children("/")) e.remove("/" + name);
            if (throttled) e.throttle(3);
            const cost_meter meter(e);
            int refused = 0;
            for (;; ++refused) {
                const std::error_code code = co_await code_of(zk.create("/x", "", how));
                if (!code) break;
                REQUIRE(refused < 200);
                co_await sleep_for(1s);
            }
            CHECK(refused <= 121);
            CHECK(meter.read().requests <= 2 * static_cast<std::size_t>(n) + 10);
            co_await zk.close();
        };
        e.run(body);
    }
}

TEST_CASE("ephemeral budget: an acquire that is cancelled after its create was lost leaves nothing behind") {
    // Also where the directory does not exist, as nothing was created.
    for (const bool exists : {false, true}) {
        fake_ensemble e;
        if (exists) e.create("/lock");
        const client zk = e.client(with_budget(6000));
        e.run(zk.connected());
        for (int i = 0; i < 200; ++i) {
            bool armed = true;
            std::optional<running> acquire;
            e.on_step([&](std::string_view step) {
                if (!armed || step.find("apply 0: create") == step.npos) return;
                armed = false;
                e.cut(zk);
                asio::post(e.context(), [&] { acquire->cancel(); });
            });
            auto take = [&]() -> asio::awaitable<void> { const lock_guard g = co_await mutex(zk, "/lock").acquire(); };
            acquire.emplace(zk.get_executor(), take());
            e.run_for(1s);
            REQUIRE(acquire->ended());
            const std::error_code code = e.run(acquire->code());
            CHECK(code == condition::cancelled);
            REQUIRE_FALSE(armed);
        }
        e.on_step(nullptr);
        auto body = [&]() -> asio::awaitable<void> {
            co_await zk.create("/" + std::string(5900, 'n'), "", ephemeral());
            co_await zk.close();
        };
        e.run(body);
    }
}

TEST_CASE("ephemeral budget: sequential nodes whose creates were lost are searched for when it is short") {
    fake_ensemble e;
    e.create("/d");
    const client zk = e.client(with_budget(1000));
    auto body = [&]() -> asio::awaitable<void> {
        create_options numbered;
        numbered.mode(create_mode::ephemeral_sequential);
        bool cut = false;
        e.on_step([&](std::string_view step) {
            if (step.find("apply 0: create") == step.npos || std::exchange(cut, true)) return;
            e.cut(zk);
        });
        for (int i = 0; i < 20; ++i) {
            cut = false;
            const std::error_code lost = co_await code_of(zk.create("/d/" + std::string(100, 'n'), "", numbered));
            CHECK(lost == condition::outcome_unknown);
            co_await sleep_for(1s);
            for (const std::string& applied : e.children("/d")) co_await zk.remove("/d/" + applied);
        }
        e.on_step(nullptr);
        co_await zk.create("/d/" + std::string(900, 'n'), "", numbered);
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("ephemeral budget: a node counts until it is certain that it is gone, after a lost answer too") {
    fake_ensemble e;
    const client zk = e.client(with_budget(1000));
    auto body = [&]() -> asio::awaitable<void> {
        const create_options how = ephemeral();
        const std::string name(500, 'n');
        const auto is_full = [&]() -> asio::awaitable<bool> {
            const std::error_code code = co_await code_of(zk.create("/y" + name, "", how));
            if (!code) co_await zk.remove("/y" + name);
            co_return code == errc::too_many_ephemerals;
        };
        // A removal that was applied.
        co_await zk.create("/x" + name, "", how);
        e.lose_answer(zk, "remove");
        const std::error_code removed = co_await code_of(zk.remove("/x" + name));
        CHECK(removed == condition::outcome_unknown);
        co_await sleep_for(1s);
        CHECK_FALSE(co_await is_full());
        // A create that found another session's node.
        e.create("/x" + name);
        e.lose_answer(zk, "create");
        const std::error_code existed = co_await code_of(zk.create("/x" + name, "", how));
        CHECK(existed == condition::outcome_unknown);
        co_await sleep_for(1s);
        CHECK_FALSE(co_await is_full());
        e.remove("/x" + name);
        // A create that was applied.
        e.lose_answer(zk, "create");
        const std::error_code made = co_await code_of(zk.create("/x" + name, "", how));
        CHECK(made == condition::outcome_unknown);
        co_await sleep_for(1s);
        CHECK(co_await is_full());
        // The same path again, in one transaction.
        co_await zk.multi(transaction().remove("/x" + name).create("/x" + name, "", how));
        CHECK(co_await is_full());
        co_await zk.multi(transaction().remove("/x" + name).create("/x" + name, "", how).remove("/x" + name));
        CHECK_FALSE(co_await is_full());
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("ephemeral budget: without a limit") {
    fake_ensemble e;
    const client zk = e.client(with_budget(std::numeric_limits<std::size_t>::max()));
    auto body = [&]() -> asio::awaitable<void> {
        const create_options how = ephemeral();
        co_await zk.create("/x", "", how);
        const std::vector<step_result> done = co_await zk.multi(transaction().remove("/x").create("/y", "", how));
        CHECK(done.size() == 2);
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("ephemeral budget: the nodes of contenders that an operator deletes do not count") {
    fake_ensemble e;
    const client zk = e.client(with_budget(8000)), other = e.client(with_budget(8000));
    auto body = [&]() -> asio::awaitable<void> {
        const mutex theirs(other, "/lock"), m(zk, "/lock");
        lock_guard first = co_await theirs.acquire();
        int got = 0;
        const auto one = [&]() -> asio::awaitable<void> {
            const lock_guard g = co_await m.acquire();
            ++got;
        };
        std::vector<running> all;
        for (int i = 0; i < 20; ++i) all.emplace_back(e.get_executor(), one());
        for (int round = 0; round < 20; ++round) {
            co_await sleep_for(1s);
            for (const std::string& name : e.children("/lock"))
                if (join_path("/lock", name) != first.path()) e.remove(join_path("/lock", name));
        }
        co_await sleep_for(1s);
        CHECK(e.children("/lock").size() == 21);
        const std::string long_name(4000, 'n');
        const std::error_code code = co_await code_of(zk.create("/" + long_name, "", ephemeral()));
        CHECK_FALSE(code);
        co_await first.release();
        for (running& r : all) co_await r.end();
        CHECK(got == 20);
        co_await zk.close();
        co_await other.close();
    };
    e.run(body);
}

TEST_CASE("ephemeral budget: contenders beyond it wait, also when the connection breaks before any answer") {
    fake_ensemble e;
    const client zk = e.client(with_budget(8000)), other = e.client(with_budget(8000));
    auto body = [&]() -> asio::awaitable<void> {
        const mutex theirs(other, "/lock"), m(zk, "/lock");
        lock_guard first = co_await theirs.acquire();
        co_await zk.connected();
        int got = 0;
        const auto one = [&]() -> asio::awaitable<void> {
            const lock_guard g = co_await m.acquire();
            ++got;
        };
        e.lose_answer(zk, "create");  // the first one
        std::vector<running> all;
        for (int i = 0; i < 300; ++i) all.emplace_back(e.get_executor(), one());
        co_await sleep_for(5s);
        CHECK(bytes_below(e, "/lock") <= 6000 + contender_bytes + 10);
        co_await first.release();
        for (running& r : all) {
            const std::exception_ptr failed = co_await r.end();
            CHECK_FALSE(failed);
        }
        CHECK(got == 300);
        co_await zk.close();
        co_await other.close();
    };
    e.run(body);
}

TEST_CASE("ephemeral budget: contenders of a mutex beyond it wait for room, in order, and all get the lock") {
    fake_ensemble e;
    const std::size_t budget = 8000;
    const client zk = e.client(with_budget(budget));
    auto body = [&]() -> asio::awaitable<void> {
        constexpr int many = 2000;
        const mutex m(zk, "/lock");
        std::vector<int> got;
        std::size_t most = 0;
        const auto one = [&](int i) -> asio::awaitable<void> {
            const lock_guard g = co_await m.acquire();
            got.push_back(i);
            if (i % 50 == 0) most = std::max(most, bytes_below(e, "/lock"));
        };
        std::vector<running> all;
        for (int i = 0; i < many; ++i) all.emplace_back(e.get_executor(), one(i));
        for (running& r : all) {
            const std::exception_ptr failed = co_await r.end();
            CHECK_FALSE(failed);
        }
        CHECK(got.size() == many);
        const auto late = std::is_sorted_until(got.begin(), got.end());
        INFO((late == got.end() ? 0 : *late) << " came as number " << late - got.begin());
        CHECK(late == got.end());
        CHECK(most <= budget / 4 * 3);
        CHECK(most > budget / 2);
        co_await zk.idle();
        CHECK(e.children("/lock").empty());
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("ephemeral budget: who holds locks that fill it and asks for another is refused") {
    fake_ensemble e;
    const client zk = e.client(with_budget(20 * (contender_bytes + 8)));
    auto body = [&]() -> asio::awaitable<void> {
        std::vector<lock_guard> held;
        std::error_code code;
        for (int i = 10; i < 60 && !code; ++i) {
            const mutex m(zk, "/l" + std::to_string(i));
            try {
                lock_guard g = co_await m.acquire();
                held.push_back(std::move(g));
            } catch (const error& x) {
                code = x.code();
            }
        }
        CHECK(code == errc::too_many_ephemerals);
        CHECK(held.size() > 15);
        co_await held.back().release();
        held.pop_back();
        const mutex again(zk, "/l99");
        lock_guard g = co_await again.acquire();
        CHECK(g.held());
        held.clear();
        co_await g.release();
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("ephemeral budget: the holder of a lock for which all others wait gets another lock") {
    fake_ensemble e;
    const client zk = e.client(with_budget(8000));
    auto body = [&]() -> asio::awaitable<void> {
        constexpr int many = 300;
        const mutex outer(zk, "/outer"), inner(zk, "/inner");
        int both = 0;
        const auto one = [&]() -> asio::awaitable<void> {
            const lock_guard a = co_await outer.acquire();
            const lock_guard b = co_await inner.acquire();
            ++both;
        };
        std::vector<running> all;
        for (int i = 0; i < many; ++i) all.emplace_back(e.get_executor(), one());
        for (running& r : all) co_await r.end();
        CHECK(both == many);
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("ephemeral budget: waiters of a lock that another client holds leave room for other locks and nodes") {
    fake_ensemble e;
    const client zk = e.client(with_budget(8000)), other = e.client(with_budget(8000));
    auto body = [&]() -> asio::awaitable<void> {
        const mutex theirs(other, "/lock"), m(zk, "/lock"), elsewhere(zk, "/elsewhere");
        lock_guard first = co_await theirs.acquire();
        int got = 0;
        const auto one = [&]() -> asio::awaitable<void> {
            const lock_guard g = co_await m.acquire();
            ++got;
        };
        std::vector<running> all;
        for (int i = 0; i < 500; ++i) all.emplace_back(e.get_executor(), one());
        co_await sleep_for(1s);
        CHECK(bytes_below(e, "/lock") <= 6000 + contender_bytes + 10);
        const std::optional<lock_guard> refused = co_await m.try_acquire();
        CHECK_FALSE(refused);
        const lock_guard g = co_await elsewhere.acquire();
        CHECK(g.held());
        co_await zk.create("/node", "", ephemeral());
        // Some give up while they wait for room: they leave nothing, and the others go on.
        for (std::size_t i = 0; i < all.size(); i += 3) all[i].cancel();
        co_await first.release();
        for (running& r : all) co_await r.end();
        CHECK(got == 500 - 167);
        co_await zk.close();
        co_await other.close();
        CHECK(e.sessions() == 0);
        CHECK(e.children("/lock").empty());
    };
    e.run(body);
}

TEST_CASE("ephemeral budget: the end of the session, or of the client, ends the wait for room") {
    for (const bool close : {false, true}) {
        fake_ensemble e;
        const client zk = e.client(with_budget(4000)), other = e.client(with_budget(4000));
        auto body = [&]() -> asio::awaitable<void> {
            const mutex theirs(other, "/lock"), m(zk, "/lock");
            const lock_guard first = co_await theirs.acquire();
            std::size_t told = 0;
            const auto one = [&]() -> asio::awaitable<void> {
                std::error_code code = co_await code_of(m.acquire());
                told += code == (close ? errc::client_closed : errc::session_expired);
            };
            std::vector<running> all;
            for (int i = 0; i < 200; ++i) all.emplace_back(e.get_executor(), one());
            co_await sleep_for(1s);
            if (close)
                co_await zk.close();
            else
                e.expire(zk);
            for (running& r : all) co_await r.end();
            CHECK(told == 200);
            co_await zk.close();
            co_await other.close();
        };
        e.run(body);
    }
}

TEST_CASE("ephemeral budget: a semaphore's waiters beyond it wait, and get their permits") {
    fake_ensemble e;
    const client zk = e.client(with_budget(8000));
    auto body = [&]() -> asio::awaitable<void> {
        const semaphore s(zk, "/permits", permits::fixed(3));
        int got = 0;
        const auto one = [&]() -> asio::awaitable<void> {
            const lock_guard g = co_await s.acquire();
            ++got;
        };
        std::vector<running> all;
        for (int i = 0; i < 400; ++i) all.emplace_back(e.get_executor(), one());
        for (running& r : all) {
            const std::exception_ptr failed = co_await r.end();
            CHECK_FALSE(failed);
        }
        CHECK(got == 400);
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("ephemeral budget: a session that was resumed has a quarter, the next one all of it") {
    fake_ensemble e;
    const client first = e.client(with_budget(4000));
    auto body = [&]() -> asio::awaitable<void> {
        const create_options how = ephemeral();
        const std::string name(200 - 7, 'n');  // 200 bytes each, with "/", two digits, and 4 for the length
        const auto fill = [&](client zk) -> asio::awaitable<int> {
            for (int i = 10;; ++i) {
                const std::error_code code = co_await code_of(zk.create("/" + std::to_string(i) + name, "", how));
                if (code == zk_errc::node_exists) continue;
                if (code) co_return i - 10;
            }
        };
        const int all = co_await fill(first);
        CHECK(all == 20);
        const session_credentials left = co_await first.hand_over();
        const client heir = e.client(with_budget(4000).resume(left));
        co_await heir.connected();
        const int again = co_await fill(heir);
        CHECK(again == 20 + 5);
        e.expire(heir);
        co_await sleep_for(1s);
        const int next = co_await fill(heir);
        CHECK(next == 20);
        co_await heir.close();
    };
    e.run(body);
}

}  // namespace ephemeral_budget_tests
