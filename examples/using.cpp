// The snippets of docs/using.md, compiled and run: using 127.0.0.1:2181
//
// What stands between "// [name]" and "// [/name]" is what the page shows; a test compares them.
#include "expect.hpp"

#include <zkasio/client_observer.hpp>
#include <zkasio/client_stats.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/printable.hpp>

#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <asio/strand.hpp>
#include <asio/this_coro.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/use_future.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <future>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

using namespace std::chrono_literals;

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
    asio::co_spawn(io, serve(zkasio::mutex(zk, "/using/serve")), rethrow);
    io.run();  // returns although zk lives: a closed client does nothing any more
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
            auto there = co_await zk.exists_and_watch("/using/serve");
            if (there.value && there.value->num_children != 0) break;
            if (there.value) {
                auto children = co_await zk.children_and_watch("/using/serve");
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

// ------------------------------------------------------------------------------------------ order of destruction

// [order]
class service {
public:
    explicit service(std::string servers)
        : zk_(io_.get_executor(), zkasio::client_options(servers).session_timeout(10s)), lock_(zk_, "/using/order") {}

    void run() {
        asio::co_spawn(io_, work(), rethrow);
        io_.run();
    }

private:
    asio::awaitable<void> work() {
        guard_ = co_await lock_.acquire();
        co_await zk_.close();
    }

    asio::io_context io_;  // before all that uses it: members are destroyed from the last to the first
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

// ------------------------------------------------------------------------------------------ threads

// [threads]
asio::awaitable<void> worker(zkasio::mutex lock) {
    const zkasio::lock_guard guard = co_await lock.acquire();
    // here: this coroutine's strand, one thread at a time, and only one worker of all processes
}

void on_four_threads(std::string servers) {
    asio::thread_pool threads(4);
    const zkasio::client zk(threads.get_executor(), zkasio::client_options(servers).session_timeout(10s));
    std::vector<std::future<void>> workers;
    for (int i = 0; i < 8; ++i)
        workers.push_back(
            asio::co_spawn(asio::make_strand(threads), worker(zkasio::mutex(zk, "/using/threads")), asio::use_future));
    for (std::future<void>& w : workers) w.get();
    asio::co_spawn(threads, zk.close(), asio::use_future).get();
    threads.join();
}
// [/threads]

// ------------------------------------------------------------------------------------------ a loop that is stopped

// [stopped]
void stopped_with_a_lock(std::string servers) {
    asio::io_context io;
    const zkasio::client zk(io.get_executor(), zkasio::client_options(servers).session_timeout(4s));
    auto task = [&]() -> asio::awaitable<void> {
        const zkasio::lock_guard guard = co_await zkasio::mutex(zk, "/using/stopped").acquire();
        io.stop();
        co_await guard.lost();
    };
    asio::co_spawn(io, task(), rethrow);
    io.run();
}  // nothing ran that could release the lock or end the session: both last until the session times out
// [/stopped]

asio::awaitable<void> after_a_loop_was_stopped(zkasio::client zk) {
    const zkasio::mutex lock(zk, "/using/stopped");
    const auto at_once = co_await lock.try_acquire();
    expect(!at_once, "the lock of a stopped loop stays taken");
    const auto later = co_await lock.try_acquire_for(30s);
    expect(later.has_value(), "and is free when the session has timed out");
}

// ------------------------------------------------------------------------------------------ nodes that do not exist

// [missing]
asio::awaitable<std::string> settings(zkasio::client zk) {
    for (;;) {
        const auto there = co_await zk.exists_and_watch("/using/settings");
        if (there.value) break;
        co_await there.changes.changed();  // created
    }
    const zkasio::node_data read = co_await zk.get("/using/settings");
    co_return read.data;
}
// [/missing]

// [missing_throws]
asio::awaitable<std::optional<std::string>> settings_if_any(zkasio::client zk) {
    try {
        const auto read = co_await zk.get_and_watch("/using/no-settings");
        co_return read.value.data;
    } catch (const zkasio::error& e) {
        if (e.code() != zkasio::zk_errc::no_node) throw;
    }
    co_return std::nullopt;  // and there is no watch
}
// [/missing_throws]

// ------------------------------------------------------------------------------------------ outages

// [outage]
asio::awaitable<zkasio::lock_guard> acquire_in_the_end(zkasio::mutex lock) {
    const auto how = zkasio::acquire_options().survive_expiry();  // queues again with each session
    for (;;) {
        try {
            co_return co_await lock.acquire(how);
        } catch (const zkasio::error& e) {
            if (e.code() != zkasio::errc::not_connected) throw;
        }
    }
}
// [/outage]

// [events]
asio::awaitable<void> log_outages(zkasio::client zk) {
    const zkasio::session_events events = zk.events();
    for (;;) {
        const zkasio::session_event e = co_await events.next();
        std::cout << to_string(e.state) << " " << e.reason << "\n";
        if (e.state == zkasio::session_state::closed) break;
    }
}
// [/events]

// [observe]
class slow_locks final : public zkasio::client_observer {
    void lock_wait(const zkasio::lock_wait_report& w) override {
        if (w.ended - w.asked > 1s)
            std::cout << zkasio::printable(w.path) << " took long, behind " << w.queue_length << " others\n";
    }
};

void print_rates(const zkasio::client& zk) {
    const zkasio::client_stats now = zk.stats();
    for (const zkasio::operation_stats& o : now.operations)
        std::cout << o.operation << ": " << o.succeeded << ", half of them within "
                  << std::chrono::duration_cast<std::chrono::microseconds>(o.on_the_wire.quantile(0.5)).count()
                  << " us\n";
    std::cout << now.locks.granted << " locks, " << now.locks.held << " held now\n";
}

zkasio::client_options observed(std::string servers) {
    const auto log = [](const zkasio::log_record& r) { std::cerr << to_string(r.level()) << ": " << r.text() << "\n"; };
    return zkasio::client_options(servers)
        .log(log, zkasio::log_level::warning)
        .observer(std::make_shared<slow_locks>());
}
// [/observe]

asio::awaitable<void> in_coroutines(zkasio::client zk) {
    const auto none = co_await settings_if_any(zk);
    expect(!none, "there is nothing at /using/no-settings");
    zkasio::create_options with_parents;
    with_parents.parents(zkasio::missing_parents::create_persistent);
    const auto before = co_await zk.exists("/using/settings");
    if (!before) co_await zk.create("/using/settings", "verbose", with_parents);
    const std::string now = co_await settings(zk);
    expect(!now.empty(), "there are settings");
    const zkasio::mutex lock(zk, "/using/lock");
    {
        const zkasio::lock_guard guard = co_await acquire_in_the_end(lock);
    }
    co_await after_a_loop_was_stopped(zk);
    print_rates(zk);
    co_await zk.close();
}

void all(std::string servers) {
    // What forks comes before what makes threads.
    expect(two_processes(servers) == 0, "both processes have their session");
    stop(servers);
    start_and_stop(servers);
    the_service(servers).run();
    on_four_threads(servers);
    stopped_with_a_lock(servers);

    asio::io_context io;
    const zkasio::client zk(io.get_executor(), observed(servers).session_timeout(10s));
    asio::co_spawn(io, log_outages(zk), rethrow);
    asio::co_spawn(io, in_coroutines(zk), rethrow);
    io.run();
}

}  // namespace

int main(int argc, char** argv) { return run_example(argc, argv, all); }
