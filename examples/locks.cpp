// Every kind of lock, each in a few lines: locks 127.0.0.1:2181
#include <zkasio/locks/cohort_mutex.hpp>
#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/unfair_mutex.hpp>

#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

using namespace std::chrono_literals;
using zkasio::lock_guard;

// [readers_and_writers]
// Readers share, a writer is alone and can go on as a reader.
asio::awaitable<void> readers_and_writers(zkasio::client zk) {
    const zkasio::shared_mutex prices(zk, "/locks-example/prices");
    {
        const lock_guard one = co_await prices.acquire_shared();
        const lock_guard two = co_await prices.acquire_shared();
        const auto writer = co_await prices.try_acquire();
        std::cout << "two readers, " << (writer ? "and a writer?" : "no writer") << "\n";
    }
    lock_guard writing = co_await prices.acquire();
    const lock_guard reading = co_await prices.downgrade(std::move(writing));
    std::cout << "still in, as a reader: " << reading.path() << "\n";
}
// [/readers_and_writers]

// [permits]
// At most three at a time, two of them for us.
asio::awaitable<void> permits(zkasio::client zk) {
    const zkasio::semaphore connections(zk, "/locks-example/connections", zkasio::permits::fixed(3));
    const lock_guard two = co_await connections.acquire(2);
    const auto too_many = co_await connections.try_acquire(2);
    std::cout << "two permits, " << (too_many ? "and two more?" : "but not two more") << "\n";
}
// [/permits]

// [several]
// Both accounts or none, in whatever order other programs name them.
asio::awaitable<void> several(zkasio::client zk) {
    zkasio::multi_mutex transfer(zk);
    transfer.add(zkasio::mutex(zk, "/locks-example/account-b")).add(zkasio::mutex(zk, "/locks-example/account-a"));
    const auto both = co_await transfer.try_acquire_for(5s);
    if (both) std::cout << "both accounts are locked\n";
}
// [/several]

// [again]
// A function that takes a lock which its caller may hold already.
asio::awaitable<void> log_order(zkasio::mutex orders, zkasio::lock_owner me) {
    zkasio::acquire_options as_me;
    as_me.owner(me);
    const lock_guard guard = co_await orders.acquire(as_me);
    std::cout << "the same lock once more\n";
}

asio::awaitable<void> again(zkasio::client zk) {
    const zkasio::mutex orders(zk, "/locks-example/orders");
    const zkasio::lock_owner me;
    zkasio::acquire_options as_me;
    as_me.owner(me);
    const lock_guard guard = co_await orders.acquire(as_me);
    co_await log_order(orders, me);
}
// [/again]

// [revoke]
// A holder that gives way when it is asked to, and is cancelled when it does not.
asio::awaitable<void> asked_back(zkasio::client zk) {
    const zkasio::mutex report(zk, "/locks-example/report");
    auto body = [&](lock_guard& guard) -> asio::awaitable<void> {
        co_await zkasio::revoke(zk, guard.path());  // an operator would do this, from somewhere else
        co_await guard.revoke_requested();
        std::cout << "asked back, and given back\n";
    };
    co_await report.with_lock(body, zkasio::revocation_policy::cancel_after(5s));
}
// [/revoke]

// [margin]
// Stops before another client can have the lock, also when the servers are out of reach.
asio::awaitable<void> billed(zkasio::client zk) {
    const zkasio::mutex billing(zk, "/locks-example/billing");
    auto body = [](lock_guard& guard) -> asio::awaitable<void> {
        // The next step needs two seconds: if the lease ends before that, the step waits for a longer one.
        const auto enough = zkasio::boot_clock::now() + 2s;
        if (guard.held_until() < enough) co_await guard.lease_extended(enough);
        std::cout << "billing, with token " << guard.token().value() << "\n";
    };
    zkasio::with_lock_options how;
    how.stop_margin(1s);  // a body whose lease is not renewed is cancelled a second before its end
    how.time_limit(5s);   // errc::timed_out if the lock is not acquired in time
    how.acquire(zkasio::acquire_options().data("request 4711"));  // for operators, in the lock's node
    co_await billing.with_lock(body, how);
}
// [/margin]

// [turns]
// Many coroutines of this process take turns under one node, and no turn needs a request.
asio::awaitable<void> turns(zkasio::client zk) {
    const zkasio::cohort_mutex stock(zk, "/locks-example/stock");
    std::int64_t first = 0;
    for (int i = 0; i < 1000; ++i) {
        const lock_guard guard = co_await stock.acquire();
        if (i == 0) first = guard.token().value();
        if (i == 999 && guard.token().value() == first) std::cout << "turn " << guard.token().turn() << "\n";
    }
}
// [/turns]

// [flag]
// The simple lock: one node, no queue.
asio::awaitable<void> flag(zkasio::client zk) {
    zkasio::unfair_mutex_options name;
    name.data("host-7");
    const zkasio::unfair_mutex leader(zk, "/locks-example/leader", name);
    const lock_guard mine = co_await leader.acquire();
    const auto who = co_await leader.holder();
    if (who) std::cout << "the leader is " << who->data << "\n";
}
// [/flag]

asio::awaitable<void> all(std::string servers) {
    const zkasio::client zk(co_await asio::this_coro::executor, zkasio::client_options(servers).session_timeout(10s));
    co_await readers_and_writers(zk);
    co_await permits(zk);
    co_await several(zk);
    co_await again(zk);
    co_await asked_back(zk);
    co_await billed(zk);
    co_await turns(zk);
    co_await flag(zk);
    co_await zk.close();
}

int main(int argc, char** argv) {
    asio::io_context io;
    asio::co_spawn(io, all(argc > 1 ? argv[1] : "127.0.0.1:2181"), [](std::exception_ptr failed) {
        try {
            if (failed) std::rethrow_exception(failed);
        } catch (const std::exception& e) {
            std::cerr << e.what() << "\n";
            std::exit(1);
        }
    });
    io.run();
}
