#include "support/catch.hpp"
#include "support/test_client.hpp"

#include <zkasio/error.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/unfair_mutex.hpp>
#include <zkasio/recipe/receipts.hpp>
#include <zkasio/testing/fake_ensemble.hpp>
#include <zkasio/transact/transact.hpp>

#include <asio/post.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace transact_tests {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

client_options calm() { return client_options("fake").session_timeout(20s).connection_timeout(1h); }

transact_options certain() { return transact_options().receipts("/receipts"); }

using seen = std::optional<node_data>;
using body_function = std::function<asio::awaitable<std::string>(unit&)>;

struct outcome {
    std::optional<std::string> done;
    std::error_code code;
    bool unknown = false;
    std::string what;
};

asio::awaitable<outcome> try_transact(client zk, body_function body, transact_options how = certain()) {
    outcome o;
    try {
        o.done = co_await transact(zk, body, how);
    } catch (const error& e) {
        o.code = e.code();
        o.unknown = e.outcome_unknown();
        o.what = e.what();
    } catch (const std::system_error& e) {
        o.code = e.code();
    }
    co_return o;
}

asio::awaitable<void> pause(std::chrono::milliseconds time) {
    asio::steady_timer timer(co_await asio::this_coro::executor);
    timer.expires_after(time);
    co_await timer.async_wait(asio::use_awaitable);
}

int number_in(const seen& n) { return n ? std::stoi(n->data) : 0; }
int number_at(const fake_ensemble& e, const std::string& path) { return std::stoi(e.data(path).value_or("0")); }

// Moves 1 from /a to /b; each may be missing.
asio::awaitable<std::string> move_one(unit& u) {
    const seen a = co_await u.get("/a");
    const seen b = co_await u.get("/b");
    const auto write = [&](const std::string& path, const seen& before, int n) {
        if (before)
            u.set(path, std::to_string(n));
        else
            u.create(path, std::to_string(n));
    };
    write("/a", a, number_in(a) - 1);
    write("/b", b, number_in(b) + 1);
    co_return std::to_string(number_in(a) + number_in(b));
}

// Runs `body(ensemble, client)`, closes the client, and checks that nothing but the nodes is left.
template <class Body>
void with_ensemble(Body body, std::uint64_t seed = 1) {
    fake_ensemble e(seed);
    const client zk = e.client(calm());
    auto all = [&]() -> asio::awaitable<void> {
        co_await body(e, zk);
        co_await zk.idle();
        CHECK(e.watches() == 0);
        co_await zk.close();
        CHECK(e.children("/receipts").empty());
        CHECK(e.sessions() == 0);
    };
    e.run(all);
}

}  // namespace

TEST_CASE("transact: what is read and written is one transaction, and the body's value is the result") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.create("/a", "10");
        outcome o = co_await try_transact(zk, &move_one);
        CHECK(o.done == "10");
        CHECK(e.data("/a") == "9");
        CHECK(e.data("/b") == "1");
        CHECK(e.stat("/a")->mzxid == e.stat("/b")->czxid);
        const std::size_t before = e.requests(zk);
        o = co_await try_transact(zk, &move_one);
        CHECK(o.done == "10");
        CHECK(e.requests(zk) == before + 3);  // two reads, and the transaction
        CHECK(e.children("/receipts").size() == 1);
        auto nothing = [](unit&) -> asio::awaitable<void> { co_return; };
        const std::size_t still = e.requests(zk);
        co_await transact(zk, nothing);
        CHECK(e.requests(zk) == still);
    });
}

TEST_CASE("transact: the body sees its own writes, and what it has read first") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.create("/a", "old");
        e.create("/gone", "x");
        int runs = 0;
        const auto body = [&](unit& u) -> asio::awaitable<std::string> {
            seen a = co_await u.get("/a");
            CHECK((a && a->data == "old" && a->stat.version == 0));
            if (++runs == 1) e.set("/a", "theirs");
            if (runs == 2) CHECK(false);
            a = co_await u.get("/a");
            CHECK((a && a->data == "old"));
            u.set("/a", "mine");
            u.create("/new", "1");
            u.set("/new", "2");
            u.remove("/gone");
            const std::vector<std::string> paths{"/new", "/a", "/gone", "/nowhere", "/a"};
            const std::vector<seen> all = co_await u.get_all(paths);
            CHECK(all.size() == 5);
            CHECK((all[0] && all[0]->data == "2"));
            CHECK((all[1] && all[1]->data == "mine"));
            CHECK_FALSE(all[2]);
            CHECK_FALSE(all[3]);
            CHECK((all[4] && all[4]->data == "mine"));
            co_return "done";
        };
        const outcome conflict = co_await try_transact(zk, body, certain().tries(1));
        CHECK(conflict.code == zk_errc::bad_version);
        CHECK(e.data("/a") == "theirs");
        CHECK_FALSE(e.exists("/new"));
        CHECK(e.exists("/gone"));
    });
}

TEST_CASE("transact: get_all() is one flight, and repeats what a lost connection has cost") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        std::vector<std::string> paths;
        for (int i = 0; i < 50; ++i) {
            paths.push_back("/n" + std::to_string(i));
            if (i % 5 != 0) e.create(paths.back(), std::to_string(i));
        }
        const auto body = [&](unit& u) -> asio::awaitable<std::string> {
            const std::vector<seen> all = co_await u.get_all(paths);
            int sum = 0;
            for (const seen& n : all) sum += number_in(n);
            CHECK(all.size() == 50);
            co_return std::to_string(sum);
        };
        const std::size_t before = e.requests(zk);
        outcome o = co_await try_transact(zk, body);
        CHECK(o.done == "1000");
        CHECK(e.requests(zk) == before + 51);
        e.lose_answer(zk, "get /n7");
        o = co_await try_transact(zk, body);
        CHECK(o.done == "1000");
        e.refuse("/n8", zk_errc::no_auth);
        o = co_await try_transact(zk, body);
        CHECK(o.code == zk_errc::no_auth);
        e.accept("/n8");
        const auto bad = [&](unit& u) -> asio::awaitable<std::string> {
            const std::vector<std::string> wrong{"/a", "no/slash"};
            co_await u.get_all(wrong);
            co_return "";
        };
        o = co_await try_transact(zk, bad);
        CHECK(o.code == errc::invalid_path);
    });
}

TEST_CASE("transact: after a conflict the body runs again, and reads what is there now") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.lag();
        e.create("/a", "10");
        e.create("/b", "0");
        std::vector<std::string> seen_by_runs;
        std::function<void()> beside;
        const auto body = [&](unit& u) -> asio::awaitable<std::string> {
            const std::string sum = co_await move_one(u);
            seen_by_runs.push_back(sum);
            if (beside) std::exchange(beside, nullptr)();
            co_return sum;
        };
        beside = [&] { e.set("/b", "5"); };
        outcome o = co_await try_transact(zk, body);
        CHECK(o.done == "15");
        CHECK(e.data("/b") == "6");
        CHECK(seen_by_runs.back() == "15");
        beside = [&] { e.remove("/a"); };
        o = co_await try_transact(zk, body);
        CHECK(o.done == "6");
        CHECK(e.data("/a") == "-1");
        CHECK(e.data("/b") == "7");
        e.remove("/a");
        beside = [&] { e.create("/a", "100"); };
        o = co_await try_transact(zk, body);
        CHECK(o.done == "107");
        CHECK(e.data("/a") == "99");
    });
}

TEST_CASE("transact: after a conflict, all that was read is asked for in one flight") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.create("/a", "1");
        e.create("/b", "2");
        std::vector<std::size_t> requests;
        const auto body = [&](unit& u) -> asio::awaitable<std::string> {
            co_await pause(10ms);
            requests.push_back(e.requests(zk));
            std::string text;
            for (const char* path : {"/a", "/b", "/missing"}) {
                const seen n = co_await u.get(path);
                text += n ? n->data : "-";
            }
            requests.push_back(e.requests(zk));
            if (requests.size() == 2) e.set("/a", "3");
            co_return text;
        };
        co_await zk.sync();
        const std::size_t before = e.requests(zk);
        const outcome o = co_await try_transact(zk, body, transact_options());
        CHECK(o.done == "32-");
        CHECK(requests == std::vector<std::size_t>{before, before + 3, before + 8, before + 8});
    });
}

TEST_CASE("transact: a body that only reads is told one moment's state") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.create("/a", "1");
        e.create("/b", "1");
        int runs = 0;
        const auto body = [&](unit& u) -> asio::awaitable<std::string> {
            const seen a = co_await u.get("/a");
            if (++runs == 1) {
                e.set("/a", "0");
                e.set("/b", "2");
            }
            const seen b = co_await u.get("/b");
            co_return std::to_string(number_in(a) + number_in(b));
        };
        outcome o = co_await try_transact(zk, body);
        CHECK(o.done == "2");
        CHECK(runs == 2);
        CHECK(e.children("/receipts").empty());
        CHECK(e.stat("/a")->version == 1);
        // Nothing is uncertain about it.
        for (int i = 0; i < 3; ++i) e.lose_answer(zk, "multi");
        o = co_await try_transact(zk, body, transact_options());
        CHECK(o.done == "2");
    });
}

TEST_CASE("transact: a node that was read as missing has to be missing at the end") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.create("/dir");
        int runs = 0, beside_at = 0;
        std::string beside;
        const auto body = [&](unit& u) -> asio::awaitable<std::string> {
            const seen one = co_await u.get("/dir/one");
            const seen deep = co_await u.get("/missing/deep/two");
            if (++runs == beside_at) e.create(beside, "theirs");
            u.create("/result", std::to_string(runs));
            co_return (one ? one->data : "none") + (deep ? deep->data : "none");
        };
        outcome o = co_await try_transact(zk, body);
        CHECK(o.done == "nonenone");
        CHECK(e.data("/result") == "2");  // the first run did not know that the parents are missing as well
        CHECK_FALSE(e.exists("/missing"));
        CHECK_FALSE(e.exists("/dir/one"));

        struct disturbance {
            const char* creates;
            int at;
            const char* expected;
            const char* run;
        };
        for (const disturbance d :
             {disturbance{"/dir/one", 1, "theirsnone", "3"}, disturbance{"/dir/one", 2, "theirsnone", "3"},
              disturbance{"/missing/deep/two", 1, "nonetheirs", "2"},
              disturbance{"/missing/deep/two", 2, "nonetheirs", "3"},
              disturbance{"/missing/deep", 1, "nonenone", "1"},  // it may be there
              disturbance{"/missing/deep", 2, "nonenone", "3"}, disturbance{"/missing", 2, "nonenone", "3"}}) {
            INFO(d.creates << " is created during run " << d.at);
            e.remove("/result");
            for (const char* p : {"/dir/one", "/missing/deep/two", "/missing/deep", "/missing"})
                if (e.exists(p)) e.remove(p);
            beside = d.creates;
            beside_at = d.at;
            runs = 0;
            o = co_await try_transact(zk, body);
            CHECK(o.done == d.expected);
            CHECK(e.data("/result") == d.run);
        }
        // The body that makes the parents itself.
        const auto makes = [](unit& u) -> asio::awaitable<std::string> {
            const seen n = co_await u.get("/x/y");
            u.create("/x");
            u.create("/x/y", "1");
            co_return n ? n->data : "none";
        };
        o = co_await try_transact(zk, makes);
        CHECK(o.done == "none");
        CHECK(e.data("/x/y") == "1");
    });
}

TEST_CASE("transact: without its chroot nothing can be missing for certain, and that is an error") {
    fake_ensemble e;
    const client zk = e.client(client_options("fake/not/there").session_timeout(20s));
    auto all = [&]() -> asio::awaitable<void> {
        const auto body = [](unit& u) -> asio::awaitable<std::string> {
            co_await u.get("/a/b");
            co_return "";
        };
        const outcome o = co_await try_transact(zk, body, transact_options());
        CHECK(o.code == zk_errc::no_node);
        co_await zk.close();
    };
    e.run(all);
}

TEST_CASE("transact: a write that is not possible is the caller's error, if what was read holds") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.create("/a", "1");
        e.create("/a/child", "1");
        int runs = 0;
        const auto failing = [&](std::function<void(unit&)> write) {
            runs = 0;
            return [&, write = std::move(write)](unit& u) -> asio::awaitable<std::string> {
                ++runs;
                u.create("/never", "");
                write(u);
                co_return "";
            };
        };
        const auto check = [&](const body_function& body, std::error_code code,
                               std::string text) -> asio::awaitable<void> {
            const outcome o = co_await try_transact(zk, body);
            INFO(o.what);
            CHECK(o.code == code);
            CHECK_FALSE(o.unknown);
            CHECK(o.what.find(text) == 0);
            CHECK(runs == 1);
            CHECK_FALSE(e.exists("/never"));
        };
        const body_function blind_set = failing([](unit& u) { u.set("/missing", "x"); });
        co_await check(blind_set, zk_errc::no_node, "transact /missing: no such node (step 2, set)");
        const body_function blind_create = failing([](unit& u) { u.create("/a", "x"); });
        co_await check(blind_create, zk_errc::node_exists, "transact /a: node exists (step 2, create)");
        const body_function orphan = failing([](unit& u) { u.create("/no/parent", "x"); });
        co_await check(orphan, zk_errc::no_node, "transact /no/parent: no such node (step 2, create");
        const body_function not_empty = failing([](unit& u) { u.remove("/a"); });
        co_await check(not_empty, zk_errc::not_empty, "transact /a: ");
        const body_function twice = failing([](unit& u) {
            u.remove("/a/child");
            u.remove("/a/child");
        });
        co_await check(twice, zk_errc::no_node, "remove /a/child: no such node");
        CHECK(e.exists("/a/child"));
        const body_function large = failing([](unit& u) { u.set("/a", std::string(2000000, 'x')); });
        co_await check(large, errc::too_large, "transact ");
        const body_function container =
            failing([](unit& u) { u.create("/c", "", create_options().mode(create_mode::container)); });
        co_await check(container, errc::invalid_argument, "transact (step 2) /c: ");
        const body_function bad = failing([](unit& u) { u.set("no/slash", ""); });
        co_await check(bad, errc::invalid_path, "set no/slash: ");
    });
}

TEST_CASE("transact: a write that contradicts what was read is refused only if that still holds") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        int runs = 0;
        bool beside = false;
        const auto body = [&](unit& u) -> asio::awaitable<std::string> {
            ++runs;
            const seen n = co_await u.get("/dir/n");
            if (std::exchange(beside, false)) e.create("/dir/n", "theirs");
            u.set("/dir/n", "mine");
            co_return n ? n->data : "none";
        };
        for (const char* directory : {"", "/dir"}) {
            if (*directory) e.create(directory);
            runs = 0;
            const outcome refused = co_await try_transact(zk, body);
            CHECK(refused.code == zk_errc::no_node);
            CHECK(refused.what == "set /dir/n: no such node (the body sees no node there)");
            CHECK(runs == (*directory ? 1 : 2));
            CHECK_FALSE(e.exists("/dir/n"));
        }
        beside = true;
        const outcome o = co_await try_transact(zk, body);
        CHECK(o.done == "theirs");
        CHECK(e.data("/dir/n") == "mine");
    });
}

TEST_CASE("transact: what the body throws is passed on, and nothing is written") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.create("/a", "1");
        int runs = 0;
        for (const std::error_code code :
             {make_error_code(errc::session_expired), make_error_code(zk_errc::bad_version),
              make_error_code(zk_errc::connection_loss)}) {
            const auto thrower = [&](unit& u) -> asio::awaitable<std::string> {
                ++runs;
                co_await move_one(u);
                throw error(code, "mine", "/a");
            };
            const outcome o = co_await try_transact(zk, thrower);
            CHECK(o.code == code);
            CHECK(o.what.find("mine /a: ") == 0);
        }
        CHECK(runs == 3);
        CHECK(e.data("/a") == "1");
        CHECK_FALSE(e.exists("/b"));
        bool caught = false;
        auto other = [](unit&) -> asio::awaitable<int> {
            throw 42;
            co_return 1;
        };
        try {
            co_await transact(zk, other);
        } catch (int n) {
            caught = n == 42;
        }
        CHECK(caught);
        body_function empty;
        const outcome refused = co_await try_transact(zk, empty);
        CHECK(refused.code == errc::invalid_argument);
    });
}

TEST_CASE("transact: a unit ends with its body") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.create("/a", "1");
        std::optional<unit> kept;
        std::optional<running> late;
        std::error_code late_code;
        const auto read_later = [&](unit u) -> asio::awaitable<void> { late_code = co_await code_of(u.get("/b")); };
        const auto body = [&](unit& u) -> asio::awaitable<std::string> {
            kept = u;
            co_await u.get("/a");
            late.emplace(e.get_executor(), read_later(u));
            co_await asio::post(e.get_executor(), asio::use_awaitable);
            co_return "";
        };
        const outcome o = co_await try_transact(zk, body);
        CHECK(o.done);
        co_await late->end();
        CHECK(late_code == errc::invalid_argument);
        std::error_code code = co_await code_of(kept->get("/a"));
        CHECK(code == errc::invalid_argument);
        const std::vector<std::string> paths{"/a"};
        code = co_await code_of(kept->get_all(paths));
        CHECK(code == errc::invalid_argument);
        CHECK_THROWS_AS(kept->set("/a", "x"), error);
        const unit moved = std::move(*kept);
        code = co_await code_of(kept->get("/a"));
        CHECK(code == errc::invalid_argument);
        CHECK_THROWS_AS(kept->remove("/a"), error);
        CHECK(e.data("/a") == "1");
    });
}

TEST_CASE("transact: a lost answer is told without receipts, and found out with them") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.create("/a", "0");
        e.create("/b", "0");
        e.lose_answer(zk, "multi");
        const outcome told = co_await try_transact(zk, &move_one, transact_options());
        CHECK(told.code == zk_errc::connection_loss);
        CHECK(told.unknown);
        int moved = 1;
        CHECK(number_at(e, "/b") == moved);
        for (const char* request : {"get", "create", "multi", "multi", "sync", "multi"}) {
            e.lose_answer(zk, request);
            const outcome o = co_await try_transact(zk, &move_one);
            CHECK(o.done == "0");
            CHECK(number_at(e, "/b") == ++moved);
            CHECK(number_at(e, "/a") == -moved);
        }
    });
}

TEST_CASE("transact: servers that are busy are asked again, also without receipts") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.create("/a", "0");
        e.create("/b", "0");
        e.throttle(30);
        for (int i = 1; i <= 20; ++i) {
            transact_options how;
            if (i % 2 == 0) how = certain();
            const outcome o = co_await try_transact(zk, &move_one, how);
            CHECK(o.done);
            CHECK(number_at(e, "/b") == i);
        }
        e.throttle(0);
    });
}

TEST_CASE("transact: a cut at any step neither loses nor doubles a transfer") {
    std::size_t steps = 0;
    const auto play = [&](std::size_t first, std::size_t second, std::uint64_t seed) {
        INFO("cuts after " << first << " and " << second << " steps, seed " << seed);
        fake_ensemble e(seed);
        e.lag(seed % 2 == 0);
        e.create("/a", "0");
        const client one = e.client(calm()), two = e.client(calm());
        std::size_t step = 0;
        auto body = [&]() -> asio::awaitable<void> {
            e.on_step([&](std::string_view) {
                if (step == first || step == first + second)
                    asio::post(e.context(), [&, who = step == first] { e.cut(who ? one : two); });
                ++step;
            });
            int done = 0;
            const auto move_some = [&](const client& zk) -> asio::awaitable<void> {
                for (int i = 0; i < 2; ++i) {
                    const outcome o = co_await try_transact(zk, &move_one);
                    CHECK(o.done == "0");
                    done += o.done.has_value();
                }
            };
            running a(e.get_executor(), move_some(one)), b(e.get_executor(), move_some(two));
            co_await a.end();
            co_await b.end();
            e.on_step(nullptr);
            CHECK(done == 4);
            CHECK(number_at(e, "/a") == -4);
            CHECK(number_at(e, "/b") == 4);
            co_await one.close();
            co_await two.close();
        };
        e.run(body);
        return step;
    };
    steps = play(1000, 0, 1);
    REQUIRE(steps > 10);
    for (std::size_t first = 0; first < steps; ++first)
        for (std::size_t second = 0; second < 6; ++second) play(first, second, 1 + (first + second) % 4);
}

TEST_CASE("transact: the end of the session at any step begins again, or is unknown") {
    int unknown = 0, next_session = 0;
    std::size_t steps = 0;
    for (std::size_t at = 0; at <= steps; ++at) {
        for (std::uint64_t seed = 1; seed <= 3; ++seed) {
            INFO("expires after " << at << " steps, seed " << seed);
            const auto body = [&](fake_ensemble& e, client zk) -> asio::awaitable<void> {
                e.create("/a", "0");
                co_await try_transact(zk, &move_one);
                const std::int64_t session = e.session_id(zk);
                std::size_t step = 0;
                e.on_step([&](std::string_view) {
                    if (step++ == at) asio::post(e.context(), [&] { e.expire(zk); });
                });
                const outcome o = co_await try_transact(zk, &move_one);
                e.on_step(nullptr);
                steps = std::max(steps, step);
                const int moved = number_at(e, "/b");
                CHECK(number_at(e, "/a") == -moved);
                if (o.done) {
                    CHECK(o.done == "0");
                    CHECK(moved == 2);
                    next_session += e.session_id(zk) != session;
                } else {
                    CHECK(o.code == errc::session_expired);
                    CHECK(o.unknown);
                    CHECK((moved == 1 || moved == 2));
                    ++unknown;
                }
            };
            with_ensemble(body, seed);
        }
    }
    CHECK(unknown > 0);
    CHECK(next_session > 0);
}

TEST_CASE("transact: a read that ends with the session begins again, also if the body goes on") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.create("/a", "1");
        int runs = 0;
        enum class then {
            throws,
            writes,
            does_nothing
        };
        for (const then what : {then::throws, then::writes, then::does_nothing}) {
            runs = 0;
            const auto body = [&](unit& u) -> asio::awaitable<std::string> {
                if (++runs == 1) e.expire(zk);
                seen a;
                try {
                    a = co_await u.get("/a");
                } catch (const error&) {
                    if (what == then::throws) throw;
                }
                if (what != then::does_nothing) u.set("/a", "2");
                co_return a ? "read" : "not read";
            };
            const outcome o = co_await try_transact(zk, body);
            CHECK(o.done == "read");
            CHECK(runs == 2);
        }
        e.set("/a", "1");
        // The body's own failure is its own, even beside the end of the session.
        runs = 0;
        const auto replaces = [&](unit& u) -> asio::awaitable<std::string> {
            if (++runs == 1) e.expire(zk);
            const std::error_code code = co_await code_of(u.get("/a"));
            if (code) throw error(errc::timed_out, "mine");
            co_return "";
        };
        const outcome o = co_await try_transact(zk, replaces);
        CHECK(o.code == errc::timed_out);
        CHECK(runs == 1);
    });
}

TEST_CASE("transact: a cancellation at any step writes nothing, or says that it may have written") {
    for (const transact_options& how : {transact_options(), certain()}) {
        int nothing = 0, unknown = 0;
        std::size_t steps = 0;
        for (std::size_t at = 0; at <= steps; ++at) {
            INFO("cancelled after " << at << " steps");
            with_ensemble([&](fake_ensemble& e, client zk) -> asio::awaitable<void> {
                e.create("/a", "0");
                e.create("/b", "0");
                const client other = e.client(calm());
                co_await try_transact(zk, &move_one, how);
                std::size_t step = 0;
                int runs = 0;
                outcome o;
                const auto disturbed = [&](unit& u) -> asio::awaitable<std::string> {
                    std::string sum = co_await move_one(u);
                    if (++runs == 1) e.set("/a", e.data("/a").value());
                    co_return sum;
                };
                const auto one = [&]() -> asio::awaitable<void> { o = co_await try_transact(zk, disturbed, how); };
                running cancelled(e.get_executor(), one());
                e.on_step([&](std::string_view) {
                    if (step++ == at) asio::post(e.context(), [&] { cancelled.cancel(); });
                });
                co_await cancelled.end();
                e.on_step(nullptr);
                steps = std::max(steps, step);
                co_await zk.idle();
                co_await zk.sync();
                const int moved = number_at(e, "/b");
                CHECK(number_at(e, "/a") == -moved);
                if (o.done) CHECK(moved == 2);
                if (!o.done) CHECK(o.code == condition::cancelled);
                if (!o.done && !o.unknown) CHECK(moved == 1);
                nothing += !o.done && !o.unknown;
                unknown += o.unknown;
                co_await other.close();
            });
        }
        CHECK(nothing > 0);
        CHECK(unknown > 0);
    }
}

TEST_CASE("transact: the client's close ends it at any step") {
    std::size_t steps = 0;
    for (std::size_t at = 0; at <= steps; ++at) {
        INFO("closed after " << at << " steps");
        fake_ensemble e;
        e.create("/a", "0");
        const client zk = e.client(calm());
        auto body = [&]() -> asio::awaitable<void> {
            std::size_t step = 0;
            std::optional<running> closes;
            const auto close = [&]() -> asio::awaitable<void> { co_await zk.close(); };
            e.on_step([&](std::string_view) {
                if (step++ == at) asio::post(e.context(), [&] { closes.emplace(e.get_executor(), close()); });
            });
            const outcome o = co_await try_transact(zk, &move_one);
            if (!o.done) CHECK(o.code == errc::client_closed);
            steps = std::max(steps, at == 0 ? 20 : step);
            e.on_step(nullptr);
            if (closes)
                co_await closes->end();
            else
                co_await zk.close();
            const int moved = number_at(e, "/b");
            CHECK(number_at(e, "/a") == -moved);
            if (o.done) CHECK(moved == 1);
            if (!o.done && !o.unknown) CHECK(moved == 0);
        };
        e.run(body);
    }
}

// ------------------------------------------------------------------------------------------------- under a lock

TEST_CASE("transact: under a lock it is applied only while the lock is held") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.create("/a", "0");
        const mutex orders(zk, "/locks/orders");
        for (const bool reads_only : {false, true}) {
            lock_guard guard = co_await orders.acquire();
            transact_options how = certain().under(guard);
            int runs = 0;
            std::function<void()> beside;
            const auto body = [&](unit& u) -> asio::awaitable<std::string> {
                ++runs;
                std::string sum;
                if (reads_only) {
                    const seen a = co_await u.get("/a");
                    sum = a ? a->data : "";
                } else {
                    sum = co_await move_one(u);
                }
                if (beside) std::exchange(beside, nullptr)();
                co_return sum;
            };
            const int before = number_at(e, "/a");
            outcome o = co_await try_transact(zk, body, how);
            CHECK(o.done);
            beside = [&] { e.set("/a", e.data("/a").value()); };  // an ordinary conflict
            o = co_await try_transact(zk, body, how);
            CHECK(o.done);
            CHECK(runs == 3);
            CHECK(number_at(e, "/a") == (reads_only ? before : before - 2));

            const std::string node = guard.path();
            beside = [&] { e.remove(node); };
            runs = 0;
            o = co_await try_transact(zk, body, how);
            CHECK(o.code == errc::lock_lost);
            CHECK_FALSE(o.unknown);
            CHECK(o.what.find("transact " + node + ": ") == 0);
            CHECK(runs == 1);
            CHECK_FALSE(guard.held());
            CHECK(guard.reason() == loss_reason::node_deleted);
            CHECK(number_at(e, "/a") == (reads_only ? before : before - 2));
            o = co_await try_transact(zk, body, how);  // not even begun
            CHECK(o.code == errc::lock_lost);
            CHECK(runs == 1);
        }
    });
}

TEST_CASE("transact: under a lock the end of the session is the loss of the lock") {
    int lost = 0;
    std::size_t steps = 0;
    for (std::size_t at = 0; at <= steps; ++at) {
        INFO("expires after " << at << " steps");
        with_ensemble([&](fake_ensemble& e, client zk) -> asio::awaitable<void> {
            e.create("/a", "0");
            const mutex orders(zk, "/locks/orders");
            const lock_guard guard = co_await orders.acquire();
            co_await try_transact(zk, &move_one, certain().under(guard));
            std::size_t step = 0;
            e.on_step([&](std::string_view) {
                if (step++ == at) asio::post(e.context(), [&] { e.expire(zk); });
            });
            const outcome o = co_await try_transact(zk, &move_one, certain().under(guard));
            e.on_step(nullptr);
            steps = std::max(steps, step);
            const int moved = number_at(e, "/b");
            CHECK(number_at(e, "/a") == -moved);
            if (o.done) {
                CHECK(moved == 2);
            } else {
                CHECK(o.code == errc::lock_lost);
                if (!o.unknown) CHECK(moved == 1);
                ++lost;
            }
        });
    }
    CHECK(lost > 0);
}

TEST_CASE("transact: guards that prove nothing, and options that make no sense, are refused") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.create("/a", "0");
        CHECK_THROWS_AS(transact_options().receipts("no/slash"), error);
        CHECK_THROWS_AS(transact_options().promote_to("no/slash"), error);
        CHECK_THROWS_AS(transact_options().tries(0), error);
        CHECK_THROWS_AS(transact_options().under(lock_guard()), error);
        const mutex orders(zk, "/locks/orders");
        lock_guard guard = co_await orders.acquire();
        const transact_options how = transact_options().under(guard);
        co_await guard.release();
        CHECK_THROWS_AS(transact_options().under(guard), error);
        outcome o = co_await try_transact(zk, &move_one, how);
        CHECK(o.code == errc::lock_released);
        const unfair_mutex flag(zk, "/locks/flag");
        const lock_guard proves_nothing = co_await flag.acquire();
        o = co_await try_transact(zk, &move_one, transact_options().under(proves_nothing));
        CHECK(o.code == errc::invalid_argument);
        CHECK(e.data("/a") == "0");
    });
}

// --------------------------------------------------------------------------------------------------- many writers

TEST_CASE("transact: tries() are bounded, and the last conflict is told") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.create("/a", "0");
        int runs = 0;
        const auto body = [&](unit& u) -> asio::awaitable<std::string> {
            ++runs;
            const std::string sum = co_await move_one(u);
            e.set("/a", "0");
            co_return sum;
        };
        const outcome o = co_await try_transact(zk, body, certain().tries(4));
        CHECK(o.code == zk_errc::bad_version);
        CHECK_FALSE(o.unknown);
        CHECK(runs == 4);
        CHECK_FALSE(e.exists("/b"));
    });
}

TEST_CASE("transact: after its tries it takes the mutex, and gives the mutex back") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.create("/a", "0");
        int runs = 0;
        std::vector<std::size_t> queue;
        const auto body = [&](unit& u) -> asio::awaitable<std::string> {
            queue.push_back(e.children("/turns").size());
            const std::string sum = co_await move_one(u);
            if (++runs < 6) e.set("/a", "0");
            co_return sum;
        };
        const outcome o = co_await try_transact(zk, body, certain().promote_to("/turns").tries(2));
        CHECK(o.done);
        CHECK(queue == std::vector<std::size_t>{0, 0, 1, 1, 1, 1});
        co_await zk.idle();
        CHECK(e.children("/turns").empty());
    });
}

TEST_CASE("transact: writers of several clients that take turns, over cuts and expiries") {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        INFO("seed " << seed);
        fake_ensemble e(seed);
        e.create("/a", "0");
        std::vector<client> clients;
        for (int i = 0; i < 4; ++i) clients.push_back(e.client(calm()));
        auto all = [&]() -> asio::awaitable<void> {
            int done = 0, unknown = 0;
            std::size_t step = 0;
            e.on_step([&](std::string_view) {
                if (++step % 40 == 0) e.cut(clients[step / 40 % 4]);
                if (step % 230 == 0) e.expire(clients[step / 230 % 4]);
            });
            const auto move_some = [&](client zk) -> asio::awaitable<void> {
                const transact_options how = certain().promote_to("/turns").tries(1);
                for (int i = 0; i < 5; ++i) {
                    const outcome o = co_await try_transact(zk, &move_one, how);
                    INFO(o.what);
                    CHECK((o.done == "0" || o.unknown));
                    done += o.done.has_value();
                    unknown += o.unknown;
                }
            };
            std::vector<running> tasks;
            for (const client& zk : clients) tasks.emplace_back(e.get_executor(), move_some(zk));
            for (running& r : tasks) co_await r.end();
            e.on_step(nullptr);
            const int moved = number_at(e, "/b");
            CHECK(number_at(e, "/a") == -moved);
            CHECK(moved >= done);
            CHECK(moved <= done + unknown);
            for (const client& zk : clients) co_await zk.close();
        };
        e.run(all);
    }
}

TEST_CASE("transact: sequential nodes, and what several bodies put into a queue") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.create("/a", "2");
        e.create("/items");
        const auto take_and_order = [](unit& u) -> asio::awaitable<bool> {
            const seen stock = co_await u.get("/a");
            if (number_in(stock) == 0) co_return false;
            u.set("/a", std::to_string(number_in(stock) - 1));
            u.create("/items/order-", "x", create_options().mode(create_mode::persistent_sequential));
            co_return true;
        };
        int sold = 0;
        const auto buy = [&]() -> asio::awaitable<void> {
            const bool bought = co_await transact(zk, take_and_order, certain());
            sold += bought;
        };
        std::vector<running> buyers;
        for (int i = 0; i < 6; ++i) buyers.emplace_back(e.get_executor(), buy());
        for (running& r : buyers) co_await r.end();
        CHECK(sold == 2);
        CHECK(e.data("/a") == "0");
        CHECK(e.children("/items").size() == 2);
    });
}

TEST_CASE("receipts: keep() holds them until the session ends, and not longer") {
    fake_ensemble e;
    const client zk = e.client(calm());  // not closed: its loop ends before it
    auto body = [&]() -> asio::awaitable<void> {
        e.create("/a", "0");
        co_await try_transact(zk, &move_one);
        const std::vector<std::string> first = e.children("/receipts");
        CHECK(first.size() == 1);
        co_await zk.idle();
        co_await try_transact(zk, &move_one);
        CHECK(e.children("/receipts") == first);
        e.expire(zk);
        co_await try_transact(zk, &move_one);
        CHECK(e.children("/receipts").size() == 1);
        CHECK(e.children("/receipts") != first);
        // Of a session that is over, nobody would let go of them.
        const session over = co_await zk.current_session();
        e.expire(zk);
        co_await over.ended();
        const receipts late(over, "/receipts");
        late.keep();
        const std::error_code code = co_await code_of(late.apply(transaction()));
        CHECK(code == errc::session_expired);
        receipts gone(over, "/receipts");
        const receipts moved = std::move(gone);
        CHECK_THROWS_AS(gone.keep(), error);
    };
    e.run(body);
}

}  // namespace transact_tests
