// Users of a recipe that are not alike: one far away, one whose connection breaks again and again, and one that falls
// silent, beside healthy ones. Nobody waits longer than the headers say.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/barriers/double_barrier.hpp>
#include <zkasio/config/config_format.hpp>
#include <zkasio/config/config_value.hpp>
#include <zkasio/coroutines/result.hpp>
#include <zkasio/counters/atomic_counter.hpp>
#include <zkasio/counters/id_allocator.hpp>
#include <zkasio/election/candidate.hpp>
#include <zkasio/election/leader_election.hpp>
#include <zkasio/locks/cohort_mutex.hpp>
#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/slots.hpp>
#include <zkasio/locks/unfair_mutex.hpp>
#include <zkasio/membership/partitioner.hpp>
#include <zkasio/modify.hpp>
#include <zkasio/queues/work_queue.hpp>
#include <zkasio/testing/fake_ensemble.hpp>
#include <zkasio/transact/transact.hpp>

#include <asio/awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace unequal_partners_tests {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

constexpr std::uint64_t seeds = 1;  // all pass with 3, and take three times as long
using time_span = std::chrono::nanoseconds;
using lock_pointer = std::shared_ptr<const lockable>;

struct fair_lock {
    std::string name;
    std::function<lock_pointer(const client&)> make;
};

const std::vector<fair_lock>& fair_locks() {
    static const std::vector<fair_lock> all{
        {"mutex", [](const client& zk) { return std::make_shared<mutex>(zk, "/l"); }},
        {"shared_mutex, writers", [](const client& zk) { return std::make_shared<shared_mutex>(zk, "/l"); }},
        {"semaphore",
         [](const client& zk) {
             return std::make_shared<permit_request>(semaphore(zk, "/l", permits::fixed(1)).request());
         }},
        {"multi_mutex",
         [](const client& zk) {
             multi_mutex both(zk);
             both.add(mutex(zk, "/l/a")).add(mutex(zk, "/l/b"));
             return std::make_shared<multi_mutex>(both);
         }},
    };
    return all;
}

enum class ailment {
    is_far,        // it hears from the servers, and is heard, once in 20 ms
    is_cut_often,  // its connection breaks every 100 ms
};

// Until `over`.
asio::awaitable<void> ail(fake_ensemble& e, client zk, ailment how, const bool& over) {
    while (!over) {
        if (how == ailment::is_cut_often) {
            co_await sleep_for(100ms);
            e.cut(zk);
            continue;
        }
        e.silence(zk);
        co_await sleep_for(20ms);
        e.let_in(zk);
        co_await sleep_for(1ms);
    }
    e.let_in(zk);
}

struct user_of_lock {
    int grants = 0;
    time_span longest{0};
};

// Until `over`, acquires, holds the lock for a millisecond, releases it, and pauses.
asio::awaitable<void> use_lock(fake_ensemble& e, lock_pointer lock, user_of_lock& user, const bool& over,
                               time_span pause = time_span(0)) {
    while (!over) {
        const auto begin = e.now();
        lock_guard guard = co_await lock->acquire();
        user.longest = std::max(user.longest, e.now() - begin);
        ++user.grants;
        co_await sleep_for(1ms);
        co_await guard.release();
        if (pause > 0ms) co_await sleep_for(pause);
    }
}

asio::awaitable<void> use_once(lock_pointer lock) {
    lock_guard guard = co_await lock->acquire();
    co_await guard.release();
}

asio::awaitable<void> add_one_to_n(unit& u) {
    const std::optional<node_data> now = co_await u.get("/n");
    u.set("/n", std::to_string(std::stoi(now->data) + 1));
}

config_format<std::int64_t> as_text() {
    return {[](std::string_view text) { return std::int64_t{std::stoi(std::string(text))}; },
            [](std::int64_t n) { return std::to_string(n); }};
}

void stop_all(fake_ensemble& e, bool& over, const std::vector<std::unique_ptr<running>>& tasks) {
    over = true;
    for (const auto& one : tasks) {
        const std::error_code failed = e.run(one->code());
        CHECK_FALSE(failed);
    }
}

}  // namespace

TEST_CASE(
    "fair locks: a far partner, and one whose connection breaks again and again, get their turns, and others theirs",
    "[partners]") {
    for (const fair_lock& kind : fair_locks())
        for (const ailment how : {ailment::is_far, ailment::is_cut_often})
            for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
                fake_ensemble e(seed);
                std::vector<client> all;
                std::vector<user_of_lock> users(4);
                std::vector<std::unique_ptr<running>> tasks;
                bool over = false;
                for (std::size_t i = 0; i < users.size(); ++i) all.push_back(e.client(calm()));
                for (const client& zk : all) e.run(zk.connected());
                for (std::size_t i = 0; i < users.size(); ++i)
                    tasks.push_back(
                        std::make_unique<running>(e.get_executor(), use_lock(e, kind.make(all[i]), users[i], over)));
                tasks.push_back(std::make_unique<running>(e.get_executor(), ail(e, all[0], how, over)));
                e.run_for(1s);
                stop_all(e, over, tasks);
                INFO(kind.name << (how == ailment::is_far ? ", far" : ", cut often") << ", seed " << seed);
                for (std::size_t i = 0; i < users.size(); ++i) {
                    INFO((i == 0 ? "the ailing one: " : "a healthy one: ")
                         << users[i].grants << " grants, longest wait " << users[i].longest.count() / 1'000'000
                         << " ms");
                    // Some round trips of the ailing one, or pauses of its client_options::retry() after a lost answer.
                    CHECK(users[i].longest < 1s);
                    CHECK(users[i].grants > 5);
                }
                for (const client& zk : all) e.run(zk.close());
                e.run_dry();
            }
}

TEST_CASE("fair locks: a partner that falls silent holds others up for its session timeout, once", "[partners]") {
    for (const fair_lock& kind : fair_locks())
        for (const bool holds : {false, true}) {
            fake_ensemble e;
            std::vector<client> all;
            std::vector<user_of_lock> users(3);
            bool over = false;
            for (std::size_t i = 0; i < users.size(); ++i) all.push_back(e.client(sessions_of_ten_seconds()));
            for (const client& zk : all) e.run(zk.connected());
            std::optional<lock_guard> held = e.run(kind.make(all[holds ? 0 : 1])->acquire());
            std::optional<lock_guard> late;
            std::vector<std::unique_ptr<running>> tasks, silent_tasks;
            const auto wait_in_line = [&]() -> asio::awaitable<void> {
                const lock_pointer lock = kind.make(all[0]);
                late = co_await lock->try_acquire_for(1min);
            };
            if (!holds) silent_tasks.push_back(std::make_unique<running>(e.get_executor(), wait_in_line()));
            e.run_for(1s);
            for (std::size_t i = 1; i < users.size(); ++i)
                tasks.push_back(
                    std::make_unique<running>(e.get_executor(), use_lock(e, kind.make(all[i]), users[i], over, 50ms)));
            e.run_for(1s);
            e.silence(all[0]);
            e.run_for(1s);
            if (!holds) held.reset();
            e.run_for(14s);
            stop_all(e, over, tasks);
            INFO(kind.name << (holds ? ", it holds the lock" : ", it waits"));
            for (std::size_t i = 1; i < users.size(); ++i) {
                INFO(users[i].grants << " grants, longest wait " << users[i].longest.count() / 1'000'000 << " ms");
                CHECK(users[i].longest < 14s);
                CHECK(users[i].grants > 20);
            }
            // The news that it was its turn may have come with the last bytes of the connection.
            if (late) CHECK_FALSE(late->held());
            if (holds) CHECK_FALSE(held->held());
            e.let_in(all[0]);
            for (const auto& one : silent_tasks) e.run(one->end());
            held.reset();
            late.reset();
            for (const client& zk : all) e.run(zk.close());
        }
}

TEST_CASE("multi_mutex: who falls silent while it waits for a later lock keeps earlier ones for its session timeout",
          "[partners]") {
    fake_ensemble e;
    client silent = e.client(sessions_of_ten_seconds()), healthy = e.client(sessions_of_ten_seconds());
    const fair_lock& both = fair_locks().back();
    std::optional<lock_guard> later = e.run(mutex(healthy, "/l/b").acquire()), first;
    const running waits(e.get_executor(), use_once(both.make(silent)));
    e.run_for(1s);
    CHECK_FALSE(e.run(mutex(healthy, "/l/a").try_acquire()));
    e.silence(silent);
    e.run_for(1s);
    later.reset();
    const auto begin = e.now();
    lock_guard guard = e.run(both.make(healthy)->acquire(), 20s);
    CHECK(e.now() - begin > 5s);
    CHECK(e.now() - begin < 11s);
    e.run(guard.release());
    e.let_in(silent);
    const std::error_code ended = e.run(waits.code());
    CHECK((!ended || ended == errc::session_expired));
    for (client* zk : {&silent, &healthy}) e.run(zk->close());
    e.run_dry();
}

// Among processes the first has the number; within a process, the line decides.
TEST_CASE("slots: coroutines of a far client, or one whose connection breaks, get numbers in their order",
          "[partners]") {
    for (const bool rests : {false, true})
        for (const ailment how : {ailment::is_far, ailment::is_cut_often})
            for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
                fake_ensemble e(seed);
                std::vector<client> all;
                std::vector<user_of_lock> ailing(5), healthy(2);
                std::vector<std::unique_ptr<running>> tasks;
                bool over = false;
                for (std::size_t i = 0; i <= healthy.size(); ++i) all.push_back(e.client(calm()));
                for (const client& zk : all) e.run(zk.connected());
                const auto use = [&](std::size_t of, user_of_lock& user) {
                    auto lock = std::make_shared<slots>(all[of], "/l", 2, slots_options().quiet(rests ? 2ms : 0ms));
                    tasks.push_back(
                        std::make_unique<running>(e.get_executor(), use_lock(e, std::move(lock), user, over, 20ms)));
                };
                for (user_of_lock& user : ailing) use(0, user);
                for (std::size_t i = 0; i < healthy.size(); ++i) use(1 + i, healthy[i]);
                tasks.push_back(std::make_unique<running>(e.get_executor(), ail(e, all[0], how, over)));
                e.run_for(4s);
                stop_all(e, over, tasks);
                INFO((rests ? "numbers rest, " : "")
                     << (how == ailment::is_far ? "far" : "cut often") << ", seed " << seed);
                for (const user_of_lock& user : healthy) {
                    INFO("a healthy one: " << user.grants << " grants, longest wait "
                                           << user.longest.count() / 1'000'000 << " ms");
                    CHECK(user.longest < 1s);
                    CHECK(user.grants > 20);
                }
                const auto [least, most] = std::minmax_element(
                    ailing.begin(), ailing.end(),
                    [](const user_of_lock& a, const user_of_lock& b) { return a.grants < b.grants; });
                INFO("the ailing ones: " << least->grants << " to " << most->grants << " grants");
                CHECK(least->grants > 2);
                CHECK(most->grants <= least->grants + least->grants / 10 + 3);  // a lost answer costs a pause
                for (const client& zk : all) e.run(zk.close());
                e.run_dry();
            }
}

TEST_CASE("slots: a client that falls silent keeps its numbers from others for its session timeout", "[partners]") {
    fake_ensemble e;
    client silent = e.client(sessions_of_ten_seconds()), healthy = e.client(sessions_of_ten_seconds());
    const slots ours(silent, "/l", 2), theirs(healthy, "/l", 2);
    std::optional<lock_guard> one = e.run(ours.acquire()), two = e.run(theirs.acquire());
    std::vector<std::unique_ptr<running>> waits;
    for (int i = 0; i < 3; ++i)
        waits.push_back(std::make_unique<running>(e.get_executor(), use_once(std::make_shared<slots>(ours))));
    e.run_for(1s);
    e.silence(silent);
    two.reset();
    e.run(healthy.idle());
    two = e.run(theirs.try_acquire());
    CHECK(two);  // whoever waits without a connection keeps nobody out
    const auto began = e.now();
    std::optional<lock_guard> other = e.run(theirs.acquire());
    CHECK(e.now() - began < 11s);
    CHECK_FALSE(one->held());
    e.let_in(silent);
    other.reset();
    two.reset();
    for (const auto& wait : waits) {
        const std::error_code ended = e.run(wait->code());
        CHECK((!ended || ended == errc::session_expired));
    }
    one.reset();
    for (client* zk : {&silent, &healthy}) e.run(zk->close());
    e.run_dry();
}

TEST_CASE("shared_mutex: an ailing writer beside readers that come all the time has its turns, and a reader its",
          "[partners]") {
    for (const lock_kind kind : {lock_kind::exclusive, lock_kind::shared})
        for (const ailment how : {ailment::is_far, ailment::is_cut_often})
            for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
                fake_ensemble e(seed);
                std::vector<client> all;
                std::vector<user_of_lock> users(4);
                std::vector<std::unique_ptr<running>> tasks;
                bool over = false;
                for (std::size_t i = 0; i < users.size(); ++i) all.push_back(e.client(calm()));
                for (const client& zk : all) e.run(zk.connected());
                for (std::size_t i = 0; i < users.size(); ++i) {
                    const bool writes = (i == 0) == (kind == lock_kind::exclusive);
                    const shared_mutex lock(all[i], "/l");
                    const auto side =
                        std::make_shared<shared_mutex_side>(lock.as(writes ? lock_kind::exclusive : lock_kind::shared));
                    tasks.push_back(std::make_unique<running>(e.get_executor(), use_lock(e, side, users[i], over)));
                }
                tasks.push_back(std::make_unique<running>(e.get_executor(), ail(e, all[0], how, over)));
                e.run_for(1s);
                stop_all(e, over, tasks);
                INFO((kind == lock_kind::exclusive ? "writer" : "reader")
                     << (how == ailment::is_far ? ", far" : ", cut often") << ", seed " << seed);
                for (std::size_t i = 0; i < users.size(); ++i) {
                    INFO((i == 0 ? "the ailing one: " : "another one: ")
                         << users[i].grants << " grants, longest wait " << users[i].longest.count() / 1'000'000
                         << " ms");
                    CHECK(users[i].longest < 1s);
                    CHECK(users[i].grants > 5);
                }
                for (const client& zk : all) e.run(zk.close());
                e.run_dry();
            }
}

// A cohort waits for one tenure of each other one, for the turn that ends the tenure, and for its own round trips.
TEST_CASE("cohort_mutex: a far cohort beside near ones that are always busy has its tenures", "[partners]") {
    for (const ailment how : {ailment::is_far, ailment::is_cut_often})
        for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
            fake_ensemble e(seed);
            constexpr std::size_t cohorts = 3, members = 3;
            std::vector<client> all;
            std::vector<user_of_lock> users(cohorts * members);
            std::vector<std::unique_ptr<running>> tasks;
            bool over = false;
            for (std::size_t i = 0; i < cohorts; ++i) all.push_back(e.client(calm()));
            for (const client& zk : all) e.run(zk.connected());
            for (std::size_t i = 0; i < users.size(); ++i) {
                auto lock = std::make_shared<cohort_mutex>(all[i / members], "/l");
                tasks.push_back(
                    std::make_unique<running>(e.get_executor(), use_lock(e, std::move(lock), users[i], over)));
            }
            tasks.push_back(std::make_unique<running>(e.get_executor(), ail(e, all[0], how, over)));
            e.run_for(2s);
            stop_all(e, over, tasks);
            INFO((how == ailment::is_far ? "far" : "cut often") << ", seed " << seed);
            for (std::size_t i = 0; i < users.size(); ++i) {
                INFO((i < members ? "of the ailing one: " : "of a healthy one: ")
                     << users[i].grants << " grants, longest wait " << users[i].longest.count() / 1'000'000 << " ms");
                CHECK(users[i].longest < 100ms);
                CHECK(users[i].grants > 20);
            }
            for (const client& zk : all) e.run(zk.close());
            e.run_dry();
        }
}

TEST_CASE("candidate: a far one, and one whose connection breaks again and again, lead in their turns", "[partners]") {
    for (const ailment how : {ailment::is_far, ailment::is_cut_often})
        for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
            fake_ensemble e(seed);
            std::vector<client> all;
            std::vector<std::unique_ptr<candidate>> standing;
            std::vector<int> terms(3);
            std::vector<time_span> longest(3), last(3);
            std::vector<std::unique_ptr<running>> tasks;
            bool over = false;
            for (std::size_t i = 0; i < terms.size(); ++i) {
                all.push_back(e.client(calm()));
                e.run(all[i].connected());
                standing.push_back(std::make_unique<candidate>(all[i], "/election"));
            }
            const auto lead_briefly = [&](std::size_t i) -> asio::awaitable<void> {
                while (!over) {
                    co_await sleep_for(1ms);
                    if (!standing[i]->leads()) continue;
                    ++terms[i];
                    longest[i] = std::max(longest[i], e.now() - last[i]);
                    last[i] = e.now();
                    co_await sleep_for(5ms);
                    co_await standing[i]->step_down();
                }
            };
            for (std::size_t i = 0; i < terms.size(); ++i)
                tasks.push_back(std::make_unique<running>(e.get_executor(), lead_briefly(i)));
            tasks.push_back(std::make_unique<running>(e.get_executor(), ail(e, all[0], how, over)));
            e.run_for(1s);
            stop_all(e, over, tasks);
            INFO((how == ailment::is_far ? "far" : "cut often") << ", seed " << seed);
            for (std::size_t i = 0; i < terms.size(); ++i) {
                INFO((i == 0 ? "the ailing one: " : "a healthy one: ")
                     << terms[i] << " terms, longest time between two " << longest[i].count() / 1'000'000 << " ms");
                CHECK(terms[i] > 5);
                CHECK(longest[i] < 1s);
            }
            standing.clear();
            for (const client& zk : all) e.run(zk.close());
            e.run_dry();
        }
}

TEST_CASE("promote_to(): a far client writes beside near ones that write all the time", "[partners]") {
    for (const bool transacts : {false, true})
        for (const ailment how : {ailment::is_far, ailment::is_cut_often})
            for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
                fake_ensemble e(seed);
                std::vector<client> all;
                std::vector<int> made(3);
                std::vector<time_span> longest(3);
                std::vector<std::unique_ptr<running>> tasks;
                bool over = false;
                e.create("/n", "0");
                for (std::size_t i = 0; i < made.size(); ++i) {
                    all.push_back(e.client(calm()));
                    e.run(all[i].connected());
                }
                const auto add_all_the_time = [&](std::size_t i) -> asio::awaitable<void> {
                    const atomic_counter n(all[i], "/n", counter_options().format(as_text()).promote_to("/turns"));
                    while (!over) {
                        const auto begin = e.now();
                        if (transacts)
                            co_await transact(all[i], &add_one_to_n,
                                              transact_options().receipts("/receipts").promote_to("/turns"));
                        else
                            co_await n.add(1);
                        longest[i] = std::max(longest[i], e.now() - begin);
                        ++made[i];
                    }
                };
                for (std::size_t i = 0; i < made.size(); ++i)
                    tasks.push_back(std::make_unique<running>(e.get_executor(), add_all_the_time(i)));
                tasks.push_back(std::make_unique<running>(e.get_executor(), ail(e, all[0], how, over)));
                e.run_for(1s);
                stop_all(e, over, tasks);
                INFO((transacts ? "transact(), " : "atomic_counter, ")
                     << (how == ailment::is_far ? "far" : "cut often") << ", seed " << seed);
                for (std::size_t i = 0; i < made.size(); ++i) {
                    INFO((i == 0 ? "the ailing one: " : "a healthy one: ")
                         << made[i] << " additions, the longest took " << longest[i].count() / 1'000'000 << " ms");
                    CHECK(made[i] > 5);
                    CHECK(longest[i] < 1s);
                }
                CHECK(e.data("/n") == std::to_string(made[0] + made[1] + made[2]));
                for (const client& zk : all) e.run(zk.close());
                e.run_dry();
            }
}

TEST_CASE("promote_to(): a writer that falls silent in its turn holds up the others for its session timeout, once",
          "[partners]") {
    for (const bool transacts : {false, true}) {
        INFO((transacts ? "transact()" : "atomic_counter"));
        fake_ensemble e;
        e.create("/n", "0");
        std::vector<client> all;
        std::vector<time_span> longest(3);
        std::vector<int> made(3);
        for (std::size_t i = 0; i < made.size(); ++i) all.push_back(e.client(sessions_of_ten_seconds()));
        for (const client& zk : all) e.run(zk.connected());
        bool over = false;
        int runs = 0;
        const auto add_in_a_turn = [&]() -> asio::awaitable<void> {
            const atomic_counter n(all[0], "/n",
                                   counter_options().format(as_text()).promote_to("/turns").tries(0));
            auto body = [&](unit& u) -> asio::awaitable<void> {
                co_await add_one_to_n(u);
                if (runs++ == 0) e.set("/n", *e.data("/n"));
            };
            if (transacts)
                co_await transact(all[0], body, transact_options().promote_to("/turns").tries(1));
            else
                co_await n.add(1);
        };
        const auto add_all_the_time = [&](std::size_t i) -> asio::awaitable<void> {
            const atomic_counter n(all[i], "/n", counter_options().format(as_text()).promote_to("/turns"));
            while (!over) {
                const auto begin = e.now();
                if (transacts)
                    co_await transact(all[i], &add_one_to_n,
                                      transact_options().receipts("/receipts").promote_to("/turns"));
                else
                    co_await n.add(1);
                longest[i] = std::max(longest[i], e.now() - begin);
                ++made[i];
                co_await sleep_for(20ms);
            }
        };
        const running in_its_turn(e.get_executor(), add_in_a_turn());
        while (e.children("/turns").empty()) e.run_for(100us);
        e.silence(all[0]);
        std::vector<std::unique_ptr<running>> tasks;
        for (std::size_t i = 1; i < made.size(); ++i)
            tasks.push_back(std::make_unique<running>(e.get_executor(), add_all_the_time(i)));
        e.run_for(5s);
        CHECK(made[1] + made[2] <= (transacts ? 0 : 4));  // by writes that were under way
        e.run_for(15s);
        stop_all(e, over, tasks);
        for (std::size_t i = 1; i < made.size(); ++i) {
            INFO(made[i] << " additions, the longest took " << longest[i].count() / 1'000'000 << " ms");
            CHECK(longest[i] < 11s);
            CHECK(made[i] > 100);
        }
        e.let_in(all[0]);
        e.run(in_its_turn.end());
        for (const client& zk : all) e.run(zk.close());
        e.run_dry();
    }
}

TEST_CASE("work_queue: a far consumer, and one whose connection breaks again and again, get items and lose none",
          "[partners]") {
    for (const ailment how : {ailment::is_far, ailment::is_cut_often})
        for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
            fake_ensemble e(seed);
            std::vector<client> all;
            std::vector<int> got(3);
            std::vector<std::unique_ptr<running>> consumers, tasks;
            bool over = false;
            for (std::size_t i = 0; i < got.size(); ++i) {
                all.push_back(e.client(calm()));
                e.run(all[i].connected());
            }
            const work_queue q(all[1], "/q");
            e.run(q.create());
            const auto consume = [&](std::size_t i) -> asio::awaitable<void> {
                const work_queue from(all[i], "/q");
                auto body = [&, i](delivery&) -> asio::awaitable<void> {
                    co_await sleep_for(30ms);
                    ++got[i];
                };
                co_await from.consume(body);
            };
            for (std::size_t i = 0; i < got.size(); ++i)
                consumers.push_back(std::make_unique<running>(e.get_executor(), consume(i)));
            tasks.push_back(std::make_unique<running>(e.get_executor(), ail(e, all[0], how, over)));
            constexpr int items = 300;
            for (int i = 0; i < items; ++i) {
                e.run(q.put("x"));
                e.run_for(12ms);
            }
            e.run_for(10s);
            INFO((how == ailment::is_far ? "far" : "cut often") << ", seed " << seed << ": the ailing one " << got[0]
                                                                << ", the others " << got[1] << " and " << got[2]);
            CHECK(got[0] + got[1] + got[2] == items);
            CHECK(e.children("/q/entries").empty());
            for (const int g : got) CHECK(g >= items / 15);
            stop_all(e, over, tasks);
            for (const auto& one : consumers) one->cancel();
            for (const auto& one : consumers) e.run(one->end());
            for (const client& zk : all) e.run(zk.close());
        }
}

namespace {

/// Clients that use something again and again, the first of them far away or cut often.
class unequal_users {
public:
    unequal_users(std::size_t n, ailment how, std::uint64_t seed) : e(seed), users(n), how_(how) {
        for (std::size_t i = 0; i < n; ++i) all.push_back(e.client(calm()));
        for (const client& zk : all) e.run(zk.connected());
    }
    ~unequal_users() {
        for (const client& zk : all) e.run(zk.close());
        e.run_dry();
    }
    unequal_users(const unequal_users&) = delete;
    unequal_users& operator=(const unequal_users&) = delete;

    using use = std::function<asio::awaitable<void>(std::size_t user)>;
    /// For this time, or until each client has used it so often. Each use that has begun ends: how long that takes from
    /// then on is returned. The ailment lasts until the end.
    time_span run(time_span time, const use& once, int times = std::numeric_limits<int>::max()) {
        bool over = false, well = false;
        std::vector<std::unique_ptr<running>> tasks, ailing;
        for (std::size_t i = 0; i < all.size(); ++i)
            tasks.push_back(std::make_unique<running>(e.get_executor(), use_again(e, once, i, users[i], times, over)));
        ailing.push_back(std::make_unique<running>(e.get_executor(), ail(e, all[0], how_, well)));
        e.run_for(time);
        const auto begin = e.now();
        stop_all(e, over, tasks);
        const auto took = e.now() - begin;
        stop_all(e, well, ailing);
        return took;
    }
    std::string summary() const {
        std::string text = how_ == ailment::is_far ? "far:" : "cut often:";
        for (const user_of_lock& u : users)
            text += " " + std::to_string(u.grants) + " times, at most " +
                    std::to_string(u.longest.count() / 1'000'000) + " ms;";
        return text;
    }
    void check_healthy(int at_least) const {
        for (std::size_t i = 1; i < users.size(); ++i) CHECK(users[i].grants > at_least);
    }
    void check_all(int at_least, time_span longest) const {
        for (const user_of_lock& u : users) {
            CHECK(u.grants > at_least);
            CHECK(u.longest < longest);
        }
    }

    fake_ensemble e;
    std::vector<client> all;
    std::vector<user_of_lock> users;

private:
    static asio::awaitable<void> use_again(fake_ensemble& e, use once, std::size_t i, user_of_lock& user, int times,
                                           const bool& over) {
        while (!over && user.grants < times) {
            const auto begin = e.now();
            co_await once(i);
            user.longest = std::max(user.longest, e.now() - begin);
            ++user.grants;
            co_await sleep_for(1ms);
        }
    }

    const ailment how_;
};

void with_unequal_users(std::size_t n, std::uint64_t how_many_seeds,
                        const std::function<void(unequal_users&, ailment)>& test) {
    for (const ailment how : {ailment::is_far, ailment::is_cut_often})
        for (std::uint64_t seed = 1; seed <= how_many_seeds; ++seed) {
            INFO("seed " << seed);
            unequal_users u(n, how, seed);
            test(u, how);
        }
}

std::optional<std::string> one_more(std::optional<node_data> now) {
    return std::to_string(now ? std::stoi(now->data) + 1 : 1);
}

}  // namespace

TEST_CASE("campaign(): a far candidate, and one whose connection breaks, lead in their turns", "[partners]") {
    with_unequal_users(4, seeds, [](unequal_users& u, ailment) {
        std::vector<leader_election> elections;
        for (const client& zk : u.all) elections.emplace_back(zk, "/election");
        u.run(1s, [&](std::size_t i) -> asio::awaitable<void> {
            leadership leader = co_await elections[i].campaign();
            co_await sleep_for(1ms);
            co_await leader.resign();
        });
        INFO(u.summary());
        u.check_all(5, 1s);
    });
}

// Luck decides, also for ever: what is promised is that one at a time has the lock, and that nobody holds up others.
TEST_CASE("unfair_mutex: near clients go on beside a far one, which has the lock when they stop", "[partners]") {
    with_unequal_users(4, seeds, [](unequal_users& u, ailment) {
        std::vector<unfair_mutex> locks;
        for (const client& zk : u.all) locks.emplace_back(zk, "/l");
        int inside = 0, most = 0;
        const time_span rest = u.run(2s, [&](std::size_t i) -> asio::awaitable<void> {
            lock_guard guard = co_await locks[i].acquire();
            most = std::max(most, ++inside);
            co_await sleep_for(1ms);
            --inside;
            co_await guard.release();
        });
        INFO(u.summary() << " then " << rest.count() / 1'000'000 << " ms");
        CHECK(most == 1);
        u.check_healthy(20);
        CHECK(rest < 2s);  // four waits of unfair_mutex_options::back_off() in a row, at most
    });
}

// Between processes the first has the number.
TEST_CASE("slots: near processes go on beside a far one, which has a number when they stop", "[partners]") {
    with_unequal_users(4, seeds, [](unequal_users& u, ailment) {
        std::vector<slots> numbers;
        for (const client& zk : u.all) numbers.emplace_back(zk, "/l", 2);
        std::set<std::uint32_t> held;
        bool twice = false;
        const time_span rest = u.run(1s, [&](std::size_t i) -> asio::awaitable<void> {
            lock_guard guard = co_await numbers[i].acquire();
            const std::uint32_t number = *guard.slot();
            twice = !held.insert(number).second || twice;
            co_await sleep_for(1ms);
            held.erase(number);
            co_await guard.release();
        });
        INFO(u.summary() << " then " << rest.count() / 1'000'000 << " ms");
        CHECK_FALSE(twice);
        u.check_healthy(20);
        CHECK(rest < 1s);
    });
}

TEST_CASE("modify(): near clients go on beside a far one, which writes when they stop, and no change is lost",
          "[partners]") {
    with_unequal_users(3, 3, [](unequal_users& u, ailment how) {
        modify_options options;
        if (how == ailment::is_cut_often) options.receipts("/receipts");  // else a lost answer ends the call
        u.e.create("/n", "0");
        const time_span rest = u.run(1s, [&](std::size_t i) -> asio::awaitable<void> {
            co_await modify(u.all[i], "/n", &one_more, options);
        });
        INFO(u.summary() << " then " << rest.count() / 1'000'000 << " ms");
        u.check_healthy(20);
        CHECK(rest < 1s);
        CHECK(u.e.data("/n") == std::to_string(u.users[0].grants + u.users[1].grants + u.users[2].grants));
    });
}

TEST_CASE("config_value: update() of near clients goes on beside a far one's, and no change is lost", "[partners]") {
    with_unequal_users(3, seeds, [](unequal_users& u, ailment how) {
        u.e.create("/n", "0");
        std::vector<config_value<std::int64_t>> values;
        for (const client& zk : u.all) values.emplace_back(zk, "/n", as_text());
        int failed = 0, unknown = 0;
        const time_span rest = u.run(1s, [&](std::size_t i) -> asio::awaitable<void> {
            const auto done = co_await as_result(values[i].update([](std::int64_t n) { return n + 1; }));
            if (done.has_value()) co_return;
            ++failed;
            unknown += done.error().code() == zk_errc::connection_loss;
        });
        INFO(u.summary() << " then " << rest.count() / 1'000'000 << " ms, " << failed << " have failed");
        u.check_healthy(20);
        CHECK(rest < 1s);
        CHECK(failed == unknown);
        if (how == ailment::is_far) CHECK(failed == 0);
        const int made = u.users[0].grants + u.users[1].grants + u.users[2].grants;
        const int applied = std::stoi(*u.e.data("/n"));
        CHECK(applied <= made);
        CHECK(applied >= made - unknown);
    });
}

// Of several processes that wait for room, whoever asks first after room has come puts its items.
TEST_CASE("work_queue: near producers of a full queue go on beside a far one, which puts when they stop",
          "[partners]") {
    with_unequal_users(3, seeds, [](unequal_users& u, ailment) {
        const client other = u.e.client(calm());
        std::vector<work_queue> queues;
        for (const client& zk : u.all) queues.emplace_back(zk, "/q", work_queue_options().most_items(4));
        std::size_t most = 0;
        bool over = false;
        int taken = 0;
        const auto take_items = [&]() -> asio::awaitable<void> {
            const work_queue from(other, "/q");
            while (!over) {
                most = std::max(most, u.e.children("/q/entries").size());
                const std::optional<std::string> item = co_await from.try_take();
                taken += item.has_value();
                if (!item) co_await sleep_for(5ms);
            }
        };
        const running takes(u.e.get_executor(), take_items());
        const time_span rest = u.run(10s, [&](std::size_t i) -> asio::awaitable<void> { co_await queues[i].put("x"); });
        u.e.run_for(1s);
        over = true;
        u.e.run(takes.end());
        INFO(u.summary() << " then " << rest.count() / 1'000'000 << " ms; at most " << most << " items");
        u.check_healthy(20);
        CHECK(rest < 3s);  // a pause of two seconds at last, and some round trips
        CHECK(most <= 4 + u.all.size());
        CHECK(taken == u.users[0].grants + u.users[1].grants + u.users[2].grants);
        u.e.run(other.close());
    });
}

TEST_CASE("id_allocator: a far process, and one whose connection breaks, wait for nobody", "[partners]") {
    with_unequal_users(4, 3, [](unequal_users& u, ailment) {
        std::vector<id_allocator> ids;
        for (const client& zk : u.all) ids.emplace_back(zk, "/ids", id_options().block(4));
        std::set<std::uint64_t> given;
        bool twice = false;
        u.run(1s, [&](std::size_t i) -> asio::awaitable<void> {
            const std::uint64_t id = co_await ids[i].next();
            twice = !given.insert(id).second || twice;
        });
        INFO(u.summary());
        CHECK_FALSE(twice);
        u.check_healthy(200);
        u.check_all(50, 500ms);  // round trips of its own
    });
}

TEST_CASE("double_barrier: a far member, and one whose connection breaks, hold up a round for their own time only",
          "[partners]") {
    with_unequal_users(3, 3, [](unequal_users& u, ailment) {
        std::vector<double_barrier> barriers;
        for (const client& zk : u.all) barriers.emplace_back(zk, "/b", u.all.size());
        std::vector<int> entering(3), leaving(3);
        bool early = false;
        u.run(20s, [&](std::size_t i) -> asio::awaitable<void> {
            const int round = ++entering[i];
            barrier_entry entry = co_await barriers[i].enter();
            for (const int other : entering) early = early || other < round;
            if (i == 1) co_await sleep_for(100ms);  // is slow
            ++leaving[i];
            co_await entry.leave();
            for (const int other : leaving) early = early || other < round;
        }, 10);
        INFO(u.summary());
        CHECK_FALSE(early);
        u.check_all(9, 1s);
    });
}

TEST_CASE("double_barrier: a member that falls silent inside holds up the others for its session timeout",
          "[partners]") {
    fake_ensemble e;
    const client silent = e.client(sessions_of_ten_seconds()), healthy = e.client(sessions_of_ten_seconds());
    const double_barrier ours(silent, "/b", 2), theirs(healthy, "/b", 2);
    std::optional<barrier_entry> one, two;
    const auto enter = [](double_barrier into, std::optional<barrier_entry>& to) -> asio::awaitable<void> {
        barrier_entry entry = co_await into.enter();
        to.emplace(std::move(entry));
    };
    {
        const running first(e.get_executor(), enter(ours, one)), second(e.get_executor(), enter(theirs, two));
        e.run_for(1s);
    }
    REQUIRE(one);
    REQUIRE(two);
    e.silence(silent);
    const auto begin = e.now();
    e.run(two->leave(), 20s);
    CHECK(e.now() - begin > 5s);
    CHECK(e.now() - begin < 11s);
    CHECK_FALSE(one->held());
    e.let_in(silent);
    one.reset();
    for (const client* zk : {&silent, &healthy}) e.run(zk->close());
    e.run_dry();
}

TEST_CASE("candidate: a leader that falls silent is followed after its session timeout", "[partners]") {
    fake_ensemble e;
    const client silent = e.client(sessions_of_ten_seconds()), healthy = e.client(sessions_of_ten_seconds());
    {
        const candidate ours(silent, "/election");
        e.run_for(1s);
        const candidate next(healthy, "/election");
        e.run_for(1s);
        REQUIRE(ours.leads());
        e.silence(silent);
        const auto begin = e.now();
        while (!next.leads() && e.now() - begin < 20s) e.run_for(10ms);
        CHECK(e.now() - begin > 5s);
        CHECK(e.now() - begin < 11s);
        CHECK_FALSE(ours.leads());
        e.let_in(silent);
        e.run_for(20s);
        CHECK(next.leads());  // the other one stands behind it again
    }
    for (const client* zk : {&silent, &healthy}) e.run(zk->close());
    e.run_dry();
}

TEST_CASE("partitioner: a far member, and one whose connection does not last, hold up only what they give up",
          "[partners]") {
    for (const ailment how : {ailment::is_far, ailment::is_cut_often})
        for (std::uint64_t seed = 1; seed <= 3; ++seed) {
            fake_ensemble e(seed);
            std::vector<client> all;
            std::vector<partitioner> members;
            std::vector<std::unique_ptr<running>> runs, ailing;
            bool well = false;
            const auto work = [](partitioner p) -> asio::awaitable<void> {
                const auto body = [](held_partition&) -> asio::awaitable<void> { co_await sleep_for(24h); };
                co_await p.run(body);
            };
            const auto join = [&] {
                const std::string id(1, static_cast<char>('a' + members.size()));
                all.push_back(e.client(calm()));
                e.run(all.back().connected());
                members.emplace_back(all.back(), "/work", std::vector<std::string>{"1", "2", "3", "4", "5", "6"},
                                     partitioner_options().id(id).settle(1s));
                runs.push_back(std::make_unique<running>(e.get_executor(), work(members.back())));
            };
            const bool is_far = how == ailment::is_far;
            INFO((is_far ? "far" : "cut often") << ", seed " << seed);
            join();
            ailing.push_back(std::make_unique<running>(e.get_executor(), ail(e, all[0], how, well)));
            join();
            e.run_for(5s);
            CHECK(members[0].owned().size() == 3);
            CHECK(members[1].owned().size() == 3);
            join();
            time_span incomplete{0};
            for (const auto begin = e.now(); e.now() - begin < 5s; e.run_for(10ms)) {
                std::size_t owned = 0;
                for (const partitioner& p : members) owned += p.owned().size();
                if (owned < 6) incomplete += 10ms;
            }
            INFO("without an owner for " << incomplete.count() / 1'000'000 << " ms");
            CHECK(incomplete < 1s);
            CHECK(members[1].owned().size() == 2);
            CHECK(members[2].owned().size() == 2);
            stop_all(e, well, ailing);
            e.run_for(3s);  // settle(), and some round trips
            CHECK(members[0].owned().size() == 2);
            for (const auto& one : runs) one->cancel();
            for (const auto& one : runs) e.run(one->end());
            for (const client& zk : all) e.run(zk.close());
        }
}

}  // namespace unequal_partners_tests
