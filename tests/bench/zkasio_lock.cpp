// The same lock, as a user of zkasio writes it: public headers only.

#include "workers.hpp"

#include <zkasio/client.hpp>
#include <zkasio/locks/mutex.hpp>

#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>

#include <array>
#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace bench {
namespace {

using asio::awaitable;

void rethrow(std::exception_ptr e) {
    if (e) std::rethrow_exception(e);
}

/// One thread, one io_context.
struct loop {
    asio::io_context io{1};

    // All waiters are to have a node, also 100 000 of them, which no production ensemble survives: see lock.cpp.
    zkasio::client connect(const task& what) {
        return {io.get_executor(), zkasio::client_options(what.server).ephemeral_budget(64 * 1024 * 1024)};
    }
    asio::any_io_executor executor(const task& what, const zkasio::client& zk) {
        return what.on_strand ? zk.get_executor() : asio::any_io_executor(io.get_executor());
    }
};

awaitable<int> children(zkasio::client zk, std::string directory) {
    const auto stat = co_await zk.exists(directory);
    co_return stat ? stat->num_children : 0;
}

}  // namespace

void zkasio_queue(const task& what, const conductor_link& conductor) {
    loop here;
    const zkasio::client zk = here.connect(what);
    const asio::any_io_executor where = here.executor(what, zk);
    const zkasio::mutex lock(zk, what.directory);
    report r;
    meter m(what.server);
    int finished = 0, own_exists = 0, last = -1;

    auto wind_up = [&]() -> awaitable<void> {
        if (!what.await_release) {  // the deletes are on their way: what comes after them tells that they have arrived
            const bool others = what.waiters + 1 < what.contenders;
            int left = 0;
            do {
                ++own_exists;
                left = co_await children(zk, what.directory);
            } while (left > 0 && !others);
        }
        r.end = now();
        m.stop(r, own_exists);
        r.operations = finished;
        co_await zk.close();
    };
    auto waiter = [&]() -> awaitable<void> {
        {
            zkasio::lock_guard guard = co_await lock.acquire();
            const std::string path = guard.path();
            const int number = std::stoi(path.substr(path.size() - 10));
            r.crossings += number != std::exchange(last, number) + 1;
            if (what.await_release) co_await guard.release();
        }
        if (++finished == what.waiters) asio::co_spawn(where, wind_up(), rethrow);
    };
    auto start = [&]() -> awaitable<void> {
        co_await zk.connected();
        m.start();
        conductor.ready();
        r.begin = now();
        for (int i = 0; i < what.waiters; ++i) asio::co_spawn(where, waiter(), rethrow);
        int queued = 0;
        do {
            ++own_exists;
            queued = co_await children(zk, what.directory);
        } while (queued < what.contenders);
        m.all_wait();
        conductor.queued();
    };
    asio::co_spawn(where, start(), rethrow);
    here.io.run();
    conductor.done(r);
}

void zkasio_sessions_queue(const task& what, const conductor_link& conductor) {
    loop here;
    std::vector<zkasio::client> clients;
    for (int i = 0; i < what.sessions; ++i) clients.push_back(here.connect(what));
    report r;
    meter m(what.server);
    int own_exists = 0;
    const int all = what.sessions * what.waiters;

    auto wind_up = [&]() -> awaitable<void> {
        r.end = now();
        m.stop(r, own_exists);
        for (const zkasio::client& zk : clients) co_await zk.close();
    };
    auto waiter = [&](const zkasio::client& zk) -> awaitable<void> {
        {
            zkasio::lock_guard guard = co_await zkasio::mutex(zk, what.directory).acquire();
            co_await guard.release();
        }
        if (++r.operations == all) asio::co_spawn(here.io, wind_up(), rethrow);
    };
    auto start = [&]() -> awaitable<void> {
        for (const zkasio::client& zk : clients) co_await zk.connected();
        m.start();
        conductor.ready();
        r.begin = now();
        for (const zkasio::client& zk : clients)
            for (int i = 0; i < what.waiters; ++i) asio::co_spawn(here.io, waiter(zk), rethrow);
        int queued = 0;
        do {
            ++own_exists;
            queued = co_await children(clients.front(), what.directory);
        } while (queued < what.contenders);
        m.all_wait();
        conductor.queued();
    };
    asio::co_spawn(here.io, start(), rethrow);
    here.io.run();
    conductor.done(r);
}

void zkasio_cycles(const task& what, const conductor_link& conductor) {
    loop here;
    const zkasio::client zk = here.connect(what);
    const zkasio::mutex lock(zk, what.directory);
    report r;
    meter m(what.server);

    auto cycles = [&]() -> awaitable<void> {
        co_await zk.connected();
        m.start();
        conductor.ready();
        r.begin = now();
        while (now() < r.begin + what.seconds) {
            zkasio::lock_guard guard = co_await lock.acquire();
            if (what.await_release) co_await guard.release();
            ++r.operations;
        }
        co_await zk.exists(what.directory);  // the last release has arrived
        r.end = now();
        m.stop(r, 1);
        co_await zk.close();
    };
    asio::co_spawn(here.executor(what, zk), cycles(), rethrow);
    here.io.run();
    conductor.done(r);
}

void zkasio_hand_offs(const task& what, const conductor_link& conductor) {
    loop here;
    const std::array<zkasio::client, 2> clients{here.connect(what), here.connect(what)};
    const std::array<zkasio::mutex, 2> locks{zkasio::mutex(clients[0], what.directory),
                                             zkasio::mutex(clients[1], what.directory)};
    std::array<std::optional<zkasio::lock_guard>, 2> guards;
    asio::steady_timer granted(here.io, asio::steady_timer::time_point::max()), idle(here.io);
    double granted_at = 0;
    report r;
    meter m(what.server);
    latencies took;

    auto take = [&](std::size_t who) -> awaitable<void> {
        zkasio::lock_guard guard = co_await locks[who].acquire();
        granted_at = now();
        guards[who].emplace(std::move(guard));
        granted.cancel();
    };
    auto pass_on = [&]() -> awaitable<void> {
        co_await clients[0].connected();
        co_await clients[1].connected();
        m.start();
        conductor.ready();
        r.begin = now();
        std::size_t holder = 0;
        co_await take(holder);
        int own_exists = 0;
        for (int i = 0; i < what.hand_offs; ++i) {
            const std::size_t waiter = 1 - holder;
            asio::co_spawn(here.executor(what, clients[waiter]), take(waiter), rethrow);
            // Its session's requests are answered in order, so after some round trips the waiter has listed and
            // watches.
            int queued = 0;
            for (int k = 0; k < settling_round_trips || queued < 2; ++k, ++own_exists)
                queued = co_await children(clients[waiter], what.directory);
            if (what.idle_ms > 0) {
                idle.expires_after(std::chrono::milliseconds(what.idle_ms));
                co_await idle.async_wait(asio::use_awaitable);
            }
            const double start = now();
            co_await guards[holder]->release();
            guards[holder].reset();
            while (!guards[waiter]) {
                std::error_code cancelled;
                co_await granted.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
            }
            took.add(granted_at - start);
            holder = waiter;
        }
        r.end = now();
        r.operations = what.hand_offs;
        m.stop(r, own_exists);
        co_await guards[holder]->release();
        guards[holder].reset();
        co_await clients[0].close();
        co_await clients[1].close();
    };
    asio::co_spawn(here.executor(what, clients[0]), pass_on(), rethrow);
    here.io.run();
    took.write_to(r);
    conductor.done(r);
}

}  // namespace bench
