// Cancellation signals that live longer than the event loop of the coroutines that they cancel.

#include "support/catch.hpp"
#include "testing/steps.hpp"

#include <zkasio/barriers/barrier.hpp>
#include <zkasio/barriers/double_barrier.hpp>
#include <zkasio/cache/node_cache.hpp>
#include <zkasio/cache/streams.hpp>
#include <zkasio/client_observer.hpp>
#include <zkasio/coroutines/task_scope.hpp>
#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/election/leader_election.hpp>
#include <zkasio/locks/cohort_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/slots.hpp>
#include <zkasio/locks/unfair_mutex.hpp>
#include <zkasio/queues/work_queue.hpp>
#include <zkasio/transact/transact.hpp>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace signal_outlives_loop_tests {

using namespace zkasio;
using namespace zkasio::test;
using namespace std::chrono_literals;
using zkasio::testing::fake_ensemble;

namespace {

using waiting_function = asio::awaitable<void> (*)(client zk);

struct waiting_operation {
    const char* name;
    waiting_function wait;
    bool connected = true;
};

asio::awaitable<void> sleep_under(lock_guard&) { co_await sleep_for(24h); }

template <class Lock>
asio::awaitable<void> acquire_twice(Lock lock) {
    const lock_guard first = co_await lock.acquire();
    const lock_guard second = co_await lock.acquire();
}

const waiting_operation operations_that_wait[] = {
    {"connected", [](client zk) -> asio::awaitable<void> { co_await zk.connected(); }, false},
    {"exists", [](client zk) -> asio::awaitable<void> { co_await zk.exists("/"); }, false},
    {"session end",
     [](client zk) -> asio::awaitable<void> {
         const session on = co_await zk.current_session();
         co_await on.ended();
     }},
    {"lease",
     [](client zk) -> asio::awaitable<void> {
         const session on = co_await zk.current_session();
         co_await on.lease_extended(boot_clock::now() + 24h);
     }},
    {"session events",
     [](client zk) -> asio::awaitable<void> {
         session_events events = zk.events();
         for (;;) co_await events.next();
     }},
    {"watch",
     [](client zk) -> asio::awaitable<void> {
         const auto seen = co_await zk.exists_and_watch("/a");
         co_await seen.changes.changed();
     }},
    {"mutex", [](client zk) { return acquire_twice(mutex(zk, "/m")); }},
    {"cohort_mutex", [](client zk) { return acquire_twice(cohort_mutex(zk, "/m")); }},
    {"semaphore", [](client zk) { return acquire_twice(semaphore(zk, "/s", permits::fixed(1))); }},
    {"slots", [](client zk) { return acquire_twice(slots(zk, "/n", 1)); }},
    {"unfair_mutex", [](client zk) { return acquire_twice(unfair_mutex(zk, "/u")); }},
    {"timeout",
     [](client zk) -> asio::awaitable<void> { co_await timeout(24h, acquire_twice(mutex(zk, "/m"))); }},
    {"task_scope",
     [](client zk) -> asio::awaitable<void> {
         auto body = [&zk](task_scope& tasks) -> asio::awaitable<void> {
             tasks.spawn(acquire_twice(mutex(zk, "/m")));
             co_await acquire_twice(mutex(zk, "/n"));
         };
         co_await with_task_scope(body);
     }},
    {"lost",
     [](client zk) -> asio::awaitable<void> {
         const lock_guard guard = co_await mutex(zk, "/m").acquire();
         co_await guard.lost();
     }},
    {"lease of a guard",
     [](client zk) -> asio::awaitable<void> {
         const lock_guard guard = co_await mutex(zk, "/m").acquire();
         co_await guard.lease_extended(boot_clock::now() + 24h);
     }},
    {"revoke_requested",
     [](client zk) -> asio::awaitable<void> {
         const lock_guard guard = co_await mutex(zk, "/m").acquire();
         co_await guard.revoke_requested();
     }},
    {"with_lock", [](client zk) -> asio::awaitable<void> { co_await mutex(zk, "/m").with_lock(sleep_under); }},
    {"receive", [](client zk) -> asio::awaitable<void> { co_await work_queue(zk, "/q").receive(); }},
    {"barrier",
     [](client zk) -> asio::awaitable<void> {
         const barrier gate(zk, "/b");
         co_await gate.set();
         co_await gate.wait();
     }},
    {"double_barrier", [](client zk) -> asio::awaitable<void> { co_await double_barrier(zk, "/d", 2).enter(); }},
    {"value_stream",
     [](client zk) -> asio::awaitable<void> {
         const value_stream states = watch_value(zk, "/v");
         for (;;) co_await states.next();
     }},
    {"cache",
     [](client zk) -> asio::awaitable<void> {
         const node_cache cache(zk, "/v");
         auto changes = cache.changes();
         for (;;) co_await changes.next();
     }},
    {"campaign",
     [](client zk) -> asio::awaitable<void> {
         const leadership first = co_await leader_election(zk, "/e").campaign();
         const leadership second = co_await leader_election(zk, "/e").campaign();
     }},
    {"leader_observer",
     [](client zk) -> asio::awaitable<void> {
         auto observer = leader_election(zk, "/e").observe();
         for (;;) co_await observer.next();
     }},
    {"transact",
     [](client zk) -> asio::awaitable<void> {
         auto body = [](unit& u) -> asio::awaitable<void> {
             co_await u.get("/a");
             co_await sleep_for(24h);
         };
         co_await transact(zk, body);
     }},
};

// Lets `what` wait for an hour, and destroys the loop. The client's observer lives as long as the client's inside.
std::weak_ptr<client_observer> wait_until_loop_ends(const waiting_operation& what, asio::cancellation_signal& stop) {
    fake_ensemble e;
    const auto observer = std::make_shared<client_observer>();
    const client zk = e.client(calm().observer(observer));
    if (!what.connected) e.hold_down(zk);
    bool ended = false;
    auto note_end = [&ended](const std::exception_ptr&) { ended = true; };
    asio::co_spawn(e.context(), what.wait(zk), asio::bind_cancellation_slot(stop.slot(), note_end));
    e.run_for(what.connected ? 1h : 10s);
    CHECK_FALSE(ended);
    return observer;
}

}  // namespace

TEST_CASE("a cancellation signal that outlives the event loop keeps nothing of the client", "[testing]") {
    for (const waiting_operation& what : operations_that_wait) {
        INFO(what.name);
        asio::cancellation_signal stop;
        const std::weak_ptr<client_observer> inside = wait_until_loop_ends(what, stop);
        CHECK(inside.expired());
    }
}

}  // namespace signal_outlives_loop_tests
