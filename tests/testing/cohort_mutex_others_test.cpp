// cohort_mutex over a fake_ensemble: beside contenders that try, ask for the lock back, or delete its node.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/cohort_mutex_scene.hpp"
#include "testing/steps.hpp"

#include <zkasio/error.hpp>
#include <zkasio/locks/cohort_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/revocation.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cohort_mutex_others_tests {

using namespace zkasio;
using namespace zkasio::test;
using namespace zkasio::test::cohort;

namespace {

client_options ten_seconds() { return sessions_of_ten_seconds().connection_timeout(1h); }

/// Coroutines that take turns of a millisecond until they are told to stop.
class workers {
public:
    workers(fake_ensemble& e, const cohort_mutex& lock, int n, std::chrono::nanoseconds rest = 0s) {
        for (int i = 0; i < n; ++i) tasks_.emplace_back(e.get_executor(), work(e, lock, rest, *this));
    }
    asio::awaitable<void> stop() {
        over_ = true;
        for (running& task : tasks_) {
            const std::exception_ptr failed = co_await task.end();
            CHECK_FALSE(failed);
        }
    }
    int done() const { return done_; }
    /// When the last turn began whose guard was held().
    fake_ensemble::duration last() const { return last_; }

private:
    static asio::awaitable<void> work(fake_ensemble& e, const cohort_mutex& lock, std::chrono::nanoseconds rest,
                                      workers& self) {
        const acquire_options how = acquire_options().survive_expiry();
        while (!self.over_) {
            {
                const lock_guard guard = co_await lock.acquire(how);
                if (guard.held()) {
                    ++self.done_;
                    self.last_ = e.now();
                }
                co_await pause(e, 1ms);
            }
            if (rest > 0s) co_await pause(e, rest);
        }
    }
    bool over_ = false;
    int done_ = 0;
    fake_ensemble::duration last_{0};
    std::vector<running> tasks_;
};

/// The only node of the lock; "" if there is none.
std::string place(const fake_ensemble& e) {
    const std::vector<std::string> nodes = e.children(path);
    return nodes.empty() ? std::string() : path + '/' + nodes.front();
}

}  // namespace

TEST_CASE("cohort_mutex: no new turn once the place's node has not been seen for more than 5/16 of the timeout",
          "[cohort]") {
    const auto often = GENERATE(lease_renewal::quarter, lease_renewal::half);
    const auto most = 10'000ms / static_cast<int>(often) + 10'000ms / 16;
    fake_ensemble::duration longest{0};
    for (std::uint64_t seed = 1; seed <= 10; ++seed)
        for (const auto before : {100ms, 1234ms, 9000ms}) {
            INFO("seed " << seed << ", cut off after " << before.count() << " ms");
            fake_ensemble e(seed);
            const client one = e.client(ten_seconds().lease_renewal(often)), two = e.client(ten_seconds());
            auto body = [&]() -> asio::awaitable<void> {
                co_await one.connected();
                co_await two.connected();
                const cohort_mutex lock(one, path);
                const mutex other(two, path);
                workers all(e, lock, 4);
                co_await pause(e, before);
                e.silence(one);
                const auto silent = e.now();
                co_await pause(e, 200ms);
                e.remove(place(e));
                const lock_guard theirs = co_await other.acquire();
                co_await pause(e, 12s);
                CHECK(theirs.held());
                CHECK(all.last() > silent + 100ms);
                CHECK(all.last() <= silent + most);
                longest = std::max<fake_ensemble::duration>(longest, all.last() - silent);
                e.let_in(one);
                co_await pause(e, 30s);
                co_await two.close();
                co_await all.stop();
                co_await one.close();
            };
            e.run(body);
            e.run_dry();
        }
    CHECK(longest > most - 10'000ms / 8);
}

TEST_CASE("cohort_mutex: turns go on when the place's node is seen again, and never pause while it is", "[cohort]") {
    for (const bool writes : {false, true}) {
        INFO((writes ? "a session that writes" : "a session that sends nothing else"));
        fake_ensemble e;
        const client zk = e.client(ten_seconds());
        auto body = [&]() -> asio::awaitable<void> {
            co_await zk.connected();
            const cohort_mutex lock(zk, path);
            workers all(e, lock, 2);
            co_await zk.create("/other", "");
            const int before = all.done();
            for (int i = 0; i < 300; ++i) {  // writes, which delay the heartbeats
                co_await pause(e, 100ms);
                if (writes) co_await zk.set("/other", "x");
            }
            CHECK(all.done() > before + 29'000);
            e.silence(zk);
            co_await pause(e, 4s);
            const int paused = all.done();
            co_await pause(e, 500ms);
            CHECK(all.done() == paused);
            e.let_in(zk);
            co_await pause(e, 6s);
            CHECK(all.done() > paused + 2000);
            co_await all.stop();
            co_await zk.close();
        };
        e.run(body);
        e.run_dry();
    }
}

TEST_CASE("cohort_mutex: a try_acquire that an idle place has refused is not refused by the next one (T6)",
          "[cohort]") {
    using factory = std::function<std::shared_ptr<const lockable>(const client&, const client&)>;
    const auto boxed = [](auto lock) {
        return std::shared_ptr<const lockable>(std::make_shared<decltype(lock)>(std::move(lock)));
    };
    const std::vector<std::pair<std::string, factory>> all{
        {"mutex of another client", [&](auto&, auto& two) { return boxed(mutex(two, path)); }},
        {"cohort_mutex of another client", [&](auto&, auto& two) { return boxed(cohort_mutex(two, path)); }},
        {"mutex of the same client", [&](auto& one, auto&) { return boxed(mutex(one, path)); }},
        {"another cohort of the same client",
         [&](auto& one, auto&) { return boxed(cohort_mutex(one, path, cohort_mutex_options().turns(10))); }},
    };
    for (const auto& [name, make] : all)
        for (std::uint64_t seed = 1; seed <= 3; ++seed) {
            INFO(name << ", seed " << seed);
            fake_ensemble e(seed);
            const client one = e.client(calm()), two = e.client(calm());
            auto body = [&]() -> asio::awaitable<void> {
                const cohort_mutex lock(one, path);
                workers busy(e, lock, 1, 300ms);
                co_await pause(e, 5s);
                const auto other = make(one, two);
                int got = 0;
                for (int i = 0; i < 50; ++i) {
                    {
                        const std::optional<lock_guard> guard = co_await other->try_acquire();
                        got += bool(guard);
                    }
                    co_await pause(e, 1s);
                }
                CHECK(got >= 25);  // a try may meet a turn; beside an idle place that stays, none would succeed
                co_await pause(e, 70s);  // nobody tries any more: the place is kept again
                const std::size_t before = e.requests(one);
                const int turns_before = busy.done();
                co_await pause(e, 10s);
                CHECK(busy.done() > turns_before + 25);
                CHECK(e.requests(one) < before + 15);
                co_await busy.stop();
                co_await one.close();
                co_await two.close();
            };
            e.run(body);
            e.run_dry();
        }
}

// A try whose node is there for some round trips after its verdict.
TEST_CASE("cohort_mutex: a far client that only tries gets the lock now and then (T6)", "[cohort]") {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        INFO("seed " << seed);
        fake_ensemble e(seed);
        const client one = e.client(calm()), two = e.client(calm());
        auto body = [&]() -> asio::awaitable<void> {
            const cohort_mutex lock(one, path);
            workers busy(e, lock, 1, 50ms);
            co_await pause(e, 5s);
            int got = 0;
            const auto sequential = create_options().mode(create_mode::ephemeral_sequential);
            for (int i = 0; i < 200; ++i) {
                const created node = co_await two.create(path + "/_c_far-lock-", "", sequential);
                const node_children there = co_await two.children(path);
                got += there.names.size() == 1;
                co_await pause(e, 20ms);
                co_await two.remove(node.path);
                co_await pause(e, 980ms);
            }
            CHECK(got >= 10);
            co_await busy.stop();
            co_await one.close();
            co_await two.close();
        };
        e.run(body);
        e.run_dry();
    }
}

TEST_CASE("cohort_mutex: idle places leave half of the room for watches to others", "[cohort]") {
    fake_ensemble e;
    e.step_time(1us);
    const client one = e.client(calm()), two = e.client(calm());
    const std::string base = "/" + std::string(900, 'x');
    auto body = [&]() -> asio::awaitable<void> {
        const mutex theirs(two, base + "-another");
        const lock_guard held = co_await theirs.acquire();
        for (int i = 0; i < 1500; ++i) {
            const cohort_mutex lock(one, base + std::to_string(i), cohort_mutex_options().linger(1h));
            const lock_guard guard = co_await lock.acquire();
        }
        co_await pause(e, 6s);
        std::size_t idle = 0;
        for (int i = 0; i < 1500; ++i) idle += e.children(base + std::to_string(i)).size();
        CHECK(idle > 100);  // as many as there is room for
        CHECK(idle < 1500);
        const auto own = co_await one.exists_and_watch(base + "-own");
        CHECK_FALSE(own.value);
        const mutex mine(one, base + "-another");
        const auto none = co_await mine.try_acquire_for(1s);
        CHECK_FALSE(none);
        co_await one.close();
        co_await two.close();
    };
    e.run(body);
    e.run_dry();
}

TEST_CASE("cohort_mutex: a place that is asked back goes, whether or not a holder looks", "[cohort]") {
    for (const holder_data data : {holder_data::replaced, holder_data::kept})
        for (const bool idle : {false, true})
            for (const std::chrono::milliseconds after : {10ms, 12000ms}) {
                INFO((data == holder_data::kept ? "kept, " : "replaced, ") << (idle ? "idle, " : "busy, ")
                                                                          << after.count() << " ms after its grant");
                fake_ensemble e;
                const client one = e.client(ten_seconds()), two = e.client(ten_seconds());
                auto body = [&]() -> asio::awaitable<void> {
                    co_await two.connected();
                    const cohort_mutex lock(one, path, cohort_mutex_options().linger(1h));
                    std::optional<workers> busy;
                    if (idle) {
                        const lock_guard guard = co_await lock.acquire();
                    } else {
                        busy.emplace(e, lock, 4);
                    }
                    co_await pause(e, after);
                    const std::string before = place(e);
                    REQUIRE_FALSE(before.empty());
                    co_await revoke(two, before, data);
                    co_await pause(e, 2600ms);  // a quarter of the session timeout
                    CHECK_FALSE(e.exists(before));
                    CHECK(place(e).empty() == idle);
                    if (busy) co_await busy->stop();
                    co_await one.close();
                    co_await two.close();
                };
                e.run(body);
                e.run_dry();
            }
}

}  // namespace cohort_mutex_others_tests
