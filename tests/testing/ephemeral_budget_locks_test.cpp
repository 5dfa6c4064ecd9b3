// client_options::ephemeral_budget() and each kind of lock, and each end of a wait for room.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/coroutines/result.hpp>
#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/election/candidate.hpp>
#include <zkasio/error.hpp>
#include <zkasio/locks/cohort_mutex.hpp>
#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/membership/group.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace ephemeral_budget_locks_tests {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

client_options with_budget(std::size_t bytes) {
    return calm().ephemeral_budget(bytes);
}

// What has become of users that each acquire once.
struct outcome {
    int got = 0, too_many = 0, other = 0, inside = 0, most_inside = 0;
};

asio::awaitable<void> use(std::function<asio::awaitable<lock_guard>()> acquire, std::chrono::milliseconds held_for,
                          outcome& o) {
    std::error_code failed;
    try {
        const lock_guard g = co_await acquire();
        ++o.got;
        o.most_inside = std::max(o.most_inside, ++o.inside);
        co_await sleep_for(held_for);
        --o.inside;
    } catch (const error& x) {
        failed = x.code();
    }
    if (failed) ++(failed == errc::too_many_ephemerals ? o.too_many : o.other);
}

class users {
public:
    users(fake_ensemble& e, int n, std::function<asio::awaitable<lock_guard>()> acquire, outcome& o,
          std::chrono::milliseconds held_for = 1ms) {
        for (int i = 0; i < n; ++i) all_.emplace_back(e.get_executor(), use(acquire, held_for, o));
    }
    asio::awaitable<void> end() {
        for (running& r : all_) co_await r.end();
    }
    void cancel() {
        for (running& r : all_) r.cancel();
    }

private:
    std::vector<running> all_;
};

}  // namespace

TEST_CASE("ephemeral budget: readers beyond it wait while those inside may leave, and all get in") {
    fake_ensemble e;
    const client zk = e.client(with_budget(8000)), other = e.client(with_budget(8000));
    auto body = [&]() -> asio::awaitable<void> {
        const shared_mutex theirs(other, "/lock"), m(zk, "/lock");
        lock_guard first = co_await theirs.acquire();
        outcome o;
        users readers(e, 300, [&] { return m.acquire_shared(); }, o);
        co_await sleep_for(1s);
        CHECK(e.children("/lock").size() < 130);
        CHECK(o.too_many == 0);
        co_await first.release();
        co_await readers.end();
        // Once all that fills the budget is held, those that wait would wait for readers of their own session.
        CHECK(o.got + o.too_many == 300);
        CHECK(o.got >= 90);
        CHECK(o.other == 0);
        co_await zk.close();
        co_await other.close();
    };
    e.run(body);
}

TEST_CASE("ephemeral budget: a cohort_mutex needs one node, for any number of coroutines") {
    fake_ensemble e;
    const client zk = e.client(with_budget(200));
    auto body = [&]() -> asio::awaitable<void> {
        const cohort_mutex m(zk, "/lock");
        outcome o;
        users all(e, 1000, [&] { return m.acquire(); }, o);
        co_await all.end();
        CHECK(o.got == 1000);
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("ephemeral budget: acquires of a multi_mutex beyond it fail and leave nothing, the others get all locks") {
    fake_ensemble e;
    const client zk = e.client(with_budget(8000));
    auto body = [&]() -> asio::awaitable<void> {
        multi_mutex both(zk);
        both.add(mutex(zk, "/a")).add(mutex(zk, "/b"));
        outcome o;
        users all(e, 200, [&] { return both.acquire(); }, o);
        co_await all.end();
        CHECK(o.got + o.too_many == 200);
        CHECK(o.got > 50);
        CHECK(o.other == 0);
        co_await zk.idle();
        CHECK(e.children("/a").empty());
        CHECK(e.children("/b").empty());
        outcome again;
        users few(e, 50, [&] { return both.acquire(); }, again);
        co_await few.end();
        CHECK(again.got == 50);
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("ephemeral budget: permits are held: who asks beyond them is refused, and gets one when one is back") {
    fake_ensemble e;
    const client zk = e.client(with_budget(2000));
    auto body = [&]() -> asio::awaitable<void> {
        const semaphore s(zk, "/permits", permits::fixed(1000));
        std::vector<lock_guard> held;
        std::error_code code;
        for (int i = 0; i < 100 && !code; ++i) {
            try {
                lock_guard g = co_await s.acquire();
                held.push_back(std::move(g));
            } catch (const error& x) {
                code = x.code();
            }
        }
        CHECK(code == errc::too_many_ephemerals);
        CHECK(held.size() > 10);
        co_await held.back().release();
        held.pop_back();
        lock_guard g = co_await s.acquire();
        CHECK(g.held());
        co_await g.release();
        held.clear();
        co_await zk.close();
        CHECK(e.sessions() == 0);
    };
    e.run(body);
}

TEST_CASE("ephemeral budget: acquires that survive the session's end wait for room in the next one") {
    fake_ensemble e;
    const client zk = e.client(with_budget(4000)), other = e.client(with_budget(4000));
    auto body = [&]() -> asio::awaitable<void> {
        const mutex theirs(other, "/lock"), m(zk, "/lock");
        lock_guard first = co_await theirs.acquire();
        outcome o;
        users all(e, 200, [&] { return m.acquire(acquire_options().survive_expiry()); }, o);
        co_await sleep_for(1s);
        const std::size_t nodes = e.children("/lock").size();
        for (int i = 0; i < 3; ++i) {
            e.expire(zk);
            co_await sleep_for(1s);
            CHECK(e.children("/lock").size() == nodes);  // the budget of each session starts empty
        }
        co_await first.release();
        co_await all.end();
        CHECK(o.got == 200);
        CHECK(o.most_inside == 1);
        co_await zk.close();
        co_await other.close();
    };
    e.run(body);
}

TEST_CASE("ephemeral budget: acquires that are cancelled while they wait for room leave nothing behind") {
    fake_ensemble e;
    const client zk = e.client(with_budget(4000)), other = e.client(with_budget(4000));
    auto body = [&]() -> asio::awaitable<void> {
        const mutex theirs(other, "/lock"), m(zk, "/lock");
        lock_guard first = co_await theirs.acquire();
        outcome o, later;
        users all(e, 200, [&] { return m.acquire(); }, o);
        co_await sleep_for(1s);
        all.cancel();
        co_await all.end();
        co_await zk.idle();
        CHECK(o.got == 0);
        CHECK(o.too_many == 0);
        CHECK(e.children("/lock").size() == 1);
        users others(e, 200, [&] { return m.acquire(); }, later);
        co_await sleep_for(1s);
        co_await first.release();
        co_await others.end();
        CHECK(later.got == 200);
        co_await zk.close();
        co_await other.close();
    };
    e.run(body);
}

// Locks that wait over the end of the session come first in the new one, and leave members no room.
TEST_CASE("ephemeral budget: who has stood waits for room in the next session", "[numbers]") {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        INFO("seed " << seed);
        fake_ensemble e(seed);
        std::vector<std::string> lines;
        const client other = e.client(calm());
        const client zk = e.client(with_budget(10'000).log([&](std::string_view line) { lines.emplace_back(line); },
                                                           log_level::warning));
        constexpr int members = 120, candidates = 30, locks = 40, waiters = 320;  // 8 at each lock ask at once
        auto body = [&]() -> asio::awaitable<void> {
            std::vector<mutex> ours;
            std::vector<lock_guard> held;
            for (int i = 0; i < locks; ++i) {
                const mutex theirs(other, "/locks/" + std::to_string(100 + i));
                held.push_back(co_await theirs.acquire());
                ours.emplace_back(zk, "/locks/" + std::to_string(100 + i));
            }
            const group all(zk, "/groups/g");
            std::vector<group_membership> joined;
            for (int i = 0; i < members; ++i)
                joined.push_back(co_await all.join("member-" + std::to_string(10'000 + i)));
            std::vector<candidate> standing;
            for (int i = 0; i < candidates; ++i) standing.emplace_back(zk, "/elections/" + std::to_string(1000 + i));
            const auto lead = [&] {
                return std::count_if(standing.begin(), standing.end(), [](const candidate& c) { return c.leads(); });
            };
            while (lead() < candidates) co_await sleep_for(10ms);
            outcome o;
            std::size_t next = 0;
            const auto acquire = [&] { return ours[next++ % locks].acquire(acquire_options().survive_expiry()); };
            users waiting(e, waiters, acquire, o);
            co_await sleep_for(1s);
            e.expire(zk);
            co_await sleep_for(20s);
            held.clear();
            co_await waiting.end();
            CHECK(o.got == waiters);
            for (int i = 0; i < 600 && (lead() < candidates || e.children("/groups/g").size() < members); ++i)
                co_await sleep_for(100ms);
            CHECK(lead() == candidates);
            CHECK(e.children("/groups/g").size() == members);
            CHECK(std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
                return line.find("waits for room to stand again") != line.npos;
            }));
            standing.clear();
            joined.clear();
            co_await zk.close();
            co_await other.close();
        };
        e.run(body);
    }
}

TEST_CASE("ephemeral budget: a candidate or a member that has never stood fails, and does not wait for room") {
    fake_ensemble e;
    const client zk = e.client(with_budget(1000));
    auto body = [&]() -> asio::awaitable<void> {
        create_options ephemeral;
        ephemeral.mode(create_mode::ephemeral);
        std::error_code full;
        for (int i = 0; !full; ++i) {
            const auto made = co_await as_result(zk.create("/held-" + std::to_string(i), "", ephemeral));
            if (!made.has_value()) full = made.error().code();
        }
        CHECK(full == errc::too_many_ephemerals);
        const candidate stands(zk, "/elections/one");
        auto lead = [](const leadership&) -> asio::awaitable<void> { co_return; };
        const auto ended = co_await as_result(timeout(1min, stands.run(lead)));
        REQUIRE_FALSE(ended.has_value());
        CHECK(ended.error().code() == errc::too_many_ephemerals);
        const auto joined = co_await as_result(timeout(1min, group(zk, "/groups/g").join("me")));
        REQUIRE_FALSE(joined.has_value());
        CHECK(joined.error().code() == errc::too_many_ephemerals);
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("ephemeral budget: idle places of cohorts leave half of it to others") {
    fake_ensemble e;
    const client zk = e.client(with_budget(4000));
    auto body = [&]() -> asio::awaitable<void> {
        const auto lock_of = [&](int i) {
            return cohort_mutex(zk, "/orders/" + std::to_string(1000 + i), cohort_mutex_options().linger(1h));
        };
        for (int i = 0; i < 100; ++i) {
            const cohort_mutex lock = lock_of(i);
            const lock_guard guard = co_await lock.acquire();
        }
        co_await sleep_for(1s);
        std::size_t idle = 0, bytes = 0;
        for (int i = 0; i < 100; ++i)
            for (const std::string& name : e.children("/orders/" + std::to_string(1000 + i))) {
                ++idle;
                bytes += std::string("/orders/1000/").size() + name.size() + 4;
            }
        CHECK(idle > 20);
        CHECK(bytes <= 2000 + 100);
        const mutex lock(zk, "/another");
        const lock_guard guard = co_await lock.acquire();
        create_options ephemeral;
        ephemeral.mode(create_mode::ephemeral);
        for (int i = 0; i < 20; ++i) co_await zk.create("/ephemeral-" + std::to_string(i), "", ephemeral);
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("ephemeral budget: who waits for a shared lock of which its client has a reader is not kept out by waiters") {
    for (const bool nested : {false, true}) {
        INFO(nested);
        fake_ensemble e;
        const client zk = e.client(with_budget(6000));
        auto body = [&]() -> asio::awaitable<void> {
            const mutex first(zk, "/locks/a");
            const shared_mutex second(zk, "/locks/b");
            const multi_mutex both = multi_mutex(zk).add(first).add_shared(second);
            lock_guard reader = co_await second.acquire_shared();
            int done = 0;
            const auto use_both = [&]() -> asio::awaitable<void> {
                if (nested) {
                    const lock_guard one = co_await first.acquire();
                    const lock_guard other = co_await second.acquire_shared();
                    co_await sleep_for(1ms);
                } else {
                    const lock_guard guard = co_await both.acquire();
                    co_await sleep_for(1ms);
                }
                ++done;
            };
            std::vector<running> all;
            for (int i = 0; i < 300; ++i) all.emplace_back(e.get_executor(), use_both());
            for (const running& one : all) {
                const std::error_code code = co_await one.code();
                CHECK_FALSE(code);
            }
            CHECK(done == 300);
            co_await reader.release();
            co_await zk.close();
        };
        e.run(body, 10min);
    }
}

}  // namespace ephemeral_budget_locks_tests
