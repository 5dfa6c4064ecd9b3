// docs/in-your-server.md: from start to stop.
#include "guide.hpp"

#include <zkasio/locks/mutex.hpp>

#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/redirect_error.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <iostream>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

using namespace std::chrono_literals;

namespace starting_page {
namespace {

// ------------------------------------------------------------------------------------------ run() and its return

// [start]
asio::awaitable<void> print_children(zkasio::client zk) {
    const zkasio::node_children root = co_await zk.children("/");
    for (const std::string& name : root.names) std::cout << "/" << name << "\n";
}

void start_and_stop(std::string servers) {
    asio::io_context io;
    std::optional<zkasio::client> zk;
    zk.emplace(io.get_executor(), zkasio::client_options(servers).session_timeout(10s));
    asio::co_spawn(io, print_children(*zk), [&](std::exception_ptr failed) {
        zk.reset();  // the last handle: without this, run() would not return
        rethrow(failed);
    });
    io.run();  // returns when the session has been ended
}
// [/start]

// [stop]
asio::awaitable<void> until_told_to_stop(zkasio::client zk) {
    asio::signal_set signals(co_await asio::this_coro::executor, SIGINT, SIGTERM);
    co_await signals.async_wait(asio::use_awaitable);
    const zkasio::close_result how = co_await zk.close();
    if (how == zkasio::close_result::session_left_to_expire)
        std::cerr << "no server could be told: our locks stay taken until the session has timed out\n";
}

asio::awaitable<void> serve(zkasio::mutex lock) {
    try {
        const zkasio::lock_guard guard = co_await lock.acquire();
        co_await guard.lost();  // close() ends every wait
    } catch (const zkasio::error& e) {
        if (e.code() != zkasio::errc::client_closed) throw;
    }
}

void run_until_told_to_stop(std::string servers) {
    asio::io_context io;
    const zkasio::client zk(io.get_executor(), zkasio::client_options(servers).session_timeout(10s));
    asio::co_spawn(io, until_told_to_stop(zk), rethrow);
    asio::co_spawn(io, serve(zkasio::mutex(zk, "/guide/serve")), rethrow);
    io.run();  // returns although zk lives: a closed client has no work
}
// [/stop]

void stop(std::string servers) {
    const auto child = ::fork();
    if (child == 0) {
        int result = 1;
        try {
            run_until_told_to_stop(servers);
            result = 0;
        } catch (const std::exception& e) {
            std::cerr << e.what() << "\n";
        }
        ::_exit(result);
    }
    asio::io_context io;
    const zkasio::client zk(io.get_executor(), zkasio::client_options(servers).session_timeout(10s));
    auto tell = [&]() -> asio::awaitable<void> {
        for (;;) {  // until it holds the lock
            auto there = co_await zk.exists_and_watch("/guide/serve");
            if (there.value && there.value->num_children != 0) break;
            if (there.value) {
                auto children = co_await zk.children_and_watch("/guide/serve");
                if (!children.value.names.empty()) break;
                co_await children.changes.changed();
            } else {
                co_await there.changes.changed();
            }
        }
        ::kill(child, SIGTERM);
        co_await zk.close();
    };
    asio::co_spawn(io, tell(), rethrow);
    io.run();
    int status = 0;
    ::waitpid(child, &status, 0);
    expect(status == 0, "a server that is told to stop ends");
}

// [drain]
// Told to stop, it begins no job any more; a job that has begun is finished, for as long as its lock is held.
class jobs {
public:
    jobs(zkasio::client zk, std::string path) : zk_(zk), lock_(zk, std::move(path)), all_ended_(zk.get_executor()) {}

    asio::awaitable<void> work() {
        while (!stops_) {
            zkasio::lock_guard guard = co_await lock_.acquire();
            if (stops_) co_return;  // the guard gives the lock to a process that goes on
            ++under_way_;
            for (int part = 0; part < 5 && guard.held(); ++part) co_await do_part();
            if (--under_way_ == 0) all_ended_.cancel();
            co_await guard.release();
        }
    }

    asio::awaitable<void> drain(std::chrono::seconds patience) {
        stops_ = true;  // say so to a load balancer as well
        all_ended_.expires_after(patience);
        std::error_code ended;
        if (under_way_ > 0) co_await all_ended_.async_wait(asio::redirect_error(asio::use_awaitable, ended));
        co_await zk_.close();  // ends those that still wait for the lock, and jobs that take too long
    }
    // [/drain]
    int done = 0;

private:
    asio::awaitable<void> do_part() {
        co_await zk_.exists("/");
        ++done;
        if (done == 1) std::raise(SIGTERM);
    }

    zkasio::client zk_;
    zkasio::mutex lock_;
    asio::steady_timer all_ended_;
    bool stops_ = false;
    int under_way_ = 0;
};

// [drain-main]
asio::awaitable<void> drain_when_told(jobs& all) {
    asio::signal_set signals(co_await asio::this_coro::executor, SIGINT, SIGTERM);
    co_await signals.async_wait(asio::use_awaitable);
    co_await all.drain(20s);  // less than the supervisor waits before it kills
}
// [/drain-main]

void drain(std::string servers) {
    asio::io_context io;
    const zkasio::client zk(io.get_executor(), zkasio::client_options(servers).session_timeout(10s));
    jobs all(zk, "/guide/jobs");
    int closed = 0;
    const auto ended = [&](std::exception_ptr failed) {
        try {
            rethrow(failed);
        } catch (const zkasio::error& e) {
            if (e.code() != zkasio::errc::client_closed) throw;
            ++closed;
        }
    };
    asio::co_spawn(io, drain_when_told(all), rethrow);
    for (int i = 0; i < 3; ++i) asio::co_spawn(io, all.work(), ended);
    io.run();
    expect(all.done == 5, "the job that has begun is finished, and no other one is begun");
    expect(closed <= 2, "who waited for the lock is told that the client is closed");
}

// ------------------------------------------------------------------------------------------ order of destruction

// [order]
class service {
public:
    explicit service(std::string servers)
        : zk_(io_.get_executor(), zkasio::client_options(servers).session_timeout(10s)), lock_(zk_, "/guide/order") {}

    void run() {
        asio::co_spawn(io_, work(), rethrow);
        io_.run();
    }

private:
    asio::awaitable<void> work() {
        guard_ = co_await lock_.acquire();
        co_await zk_.close();
    }

    asio::io_context io_;  // before its users: members are destroyed from the last to the first
    zkasio::client zk_;
    zkasio::mutex lock_;
    std::optional<zkasio::lock_guard> guard_;
};
// [/order]

// [static]
service& the_service(std::string servers) {
    static service only(servers);  // one static with everything in it, and not one for each part
    return only;
}
// [/static]

// ------------------------------------------------------------------------------------------ fork

// [fork]
void in_a_process_of_its_own(std::string servers) {
    asio::io_context io;  // each process has its own loop, and its own session
    const zkasio::client zk(io.get_executor(), zkasio::client_options(servers).session_timeout(10s));
    auto task = [&]() -> asio::awaitable<void> {
        co_await print_children(zk);
        co_await zk.close();
    };
    asio::co_spawn(io, task(), rethrow);
    io.run();
}

int two_processes(std::string servers) {
    const pid_t child = ::fork();  // before there is a client, and before there are threads
    in_a_process_of_its_own(servers);
    if (child == 0) ::_exit(0);
    int status = 0;
    ::waitpid(child, &status, 0);
    return status;
}
// [/fork]

// ------------------------------------------------------------------------------------------ a loop that is stopped

// [stopped]
void stopped_with_a_lock(std::string servers) {
    asio::io_context io;
    const zkasio::client zk(io.get_executor(), zkasio::client_options(servers).session_timeout(4s));
    auto task = [&]() -> asio::awaitable<void> {
        const zkasio::lock_guard guard = co_await zkasio::mutex(zk, "/guide/stopped").acquire();
        io.stop();
        co_await guard.lost();
    };
    asio::co_spawn(io, task(), rethrow);
    io.run();
}  // nothing ran that could release the lock or end the session: both last until the session times out
// [/stopped]

asio::awaitable<void> after_a_loop_was_stopped(zkasio::client zk) {
    const zkasio::mutex lock(zk, "/guide/stopped");
    const auto at_once = co_await lock.try_acquire();
    expect(!at_once, "the lock of a stopped loop stays taken");
    const auto later = co_await lock.try_acquire_for(30s);
    expect(later.has_value(), "and is free when the session has timed out");
}

void stop_loop_and_wait(std::string servers) {
    stopped_with_a_lock(servers);
    asio::io_context io;
    const zkasio::client zk(io.get_executor(), zkasio::client_options(servers).session_timeout(10s));
    asio::co_spawn(io, after_a_loop_was_stopped(zk), [&](std::exception_ptr failed) {
        rethrow(failed);
        asio::co_spawn(io, zk.close(), [](std::exception_ptr e, zkasio::close_result) { rethrow(e); });
    });
    io.run();
}

}  // namespace
}  // namespace starting_page

void guide_starting(std::string servers) {
    using namespace starting_page;
    expect(two_processes(servers) == 0, "both processes have their session");
    stop(servers);
    drain(servers);
    start_and_stop(servers);
    the_service(servers).run();
    stop_loop_and_wait(servers);
}
