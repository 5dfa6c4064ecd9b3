// cohort_mutex beside mutex, against one server.
//
//     zkasio_bench_cohort 127.0.0.1:2181 [what...]
//
// `what`, by default 1000 10000 cycle 4x250:
//     1000      so many coroutines of one client on one thread, which take and release the lock in turn: hand-offs a
//               second, requests for each, and bytes of the heap for each coroutine that waits, without its own frame
//     cycle     acquire and release by one coroutine, uncontended
//     4x250     processes x coroutines, for both locks; the longest time for which a process has waited, too
//     newcomer  how long a `mutex` of another client waits for a place that lingers
//     strand    coroutines run on the client's strand in all that follows
//
// Each measurement runs in processes of its own. A requests count is client::stats(), without what an idle session
// sends.

#include "figure.hpp"
#include "meter.hpp"

#include <zkasio/client.hpp>
#include <zkasio/client_stats.hpp>
#include <zkasio/locks/cohort_mutex.hpp>
#include <zkasio/locks/mutex.hpp>

#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace bench {
namespace {

using asio::awaitable;
using namespace std::chrono_literals;

void rethrow(std::exception_ptr e) {
    if (e) std::rethrow_exception(e);
}

double heap() { return static_cast<double>(mallinfo2().uordblks); }

double requests(const zkasio::client& zk) {
    const zkasio::client_stats all = zk.stats();
    double n = 0;
    for (const zkasio::operation_stats& op : all.operations) n += static_cast<double>(op.succeeded + op.failed);
    return n;
}

std::unique_ptr<zkasio::lockable> make_lock(bool cohort, const zkasio::client& zk, const std::string& path) {
    if (cohort) return std::make_unique<zkasio::cohort_mutex>(zk, path);
    return std::make_unique<zkasio::mutex>(zk, path);
}

struct result {
    double grants = 0, seconds = 0, cpu = 0, requests = 0, bytes = 0, longest = 0;
};

struct job {
    std::string server, path;
    int coroutines = 1;
    double seconds = 2;
    bool cohort = true, on_strand = false;
    int start = -1;  // file descriptor: begins when it is closed
};

// One process: `coroutines` take turns until the time is over.
result run(const job& what) {
    asio::io_context io(1);
    const zkasio::client zk(io.get_executor(), zkasio::client_options(what.server));
    const asio::any_io_executor where = what.on_strand ? zk.get_executor() : asio::any_io_executor(io.get_executor());
    const auto lock = make_lock(what.cohort, zk, what.path);
    result r;
    double begin = 0, end = 0, last = 0;
    int left = what.coroutines;
    const auto round = [&]() -> awaitable<void> {
        for (;;) {
            zkasio::lock_guard guard = co_await lock->acquire();
            const double at = now();
            if (at > end) break;
            r.longest = std::max(r.longest, at - last);
            last = at;
            ++r.grants;
        }
        if (--left > 0) co_return;
        r.seconds = now() - begin;
        r.cpu += cpu_seconds();
        r.requests += requests(zk);
        co_await zk.close();
    };
    const auto start = [&]() -> awaitable<void> {
        co_await zk.connected();
        if (what.start >= 0) {
            char c = 0;
            if (read(what.start, &c, 1) != 0) std::abort();
        }
        std::optional<zkasio::lock_guard> first = co_await lock->acquire();
        r.requests = -requests(zk);
        const double before = heap();
        begin = last = now();
        end = begin + what.seconds;
        for (int i = 0; i < what.coroutines; ++i) asio::co_spawn(where, round(), rethrow);
        asio::steady_timer timer(where, what.cohort ? 50ms : 2s);
        if (what.coroutines > 1 && what.start < 0) co_await timer.async_wait(asio::use_awaitable);
        // co_spawn's own frame and handler, and the frame of round().
        r.bytes = (heap() - before) / what.coroutines;
        begin = last = now();
        r.cpu = -cpu_seconds();
        end = begin + what.seconds;
        first.reset();
    };
    asio::co_spawn(where, start(), rethrow);
    io.run();
    return r;
}

// The heap of a coroutine that waits for something else, to be subtracted.
double own_bytes(int n) {
    asio::io_context io(1);
    asio::steady_timer never(io, asio::steady_timer::time_point::max());
    std::vector<std::shared_ptr<asio::steady_timer>> timers;
    const double before = heap();
    double bytes = 0;
    const auto waits = [&]() -> awaitable<void> {
        zkasio::lock_guard guard;
        co_await never.async_wait(asio::use_awaitable);
    };
    for (int i = 0; i < n; ++i) asio::co_spawn(io, waits(), [](std::exception_ptr) {});
    io.poll();
    bytes = (heap() - before) / n;
    never.cancel();
    io.run();
    return bytes;
}

// In processes of their own, all at once.
std::vector<result> in_processes(const job& what, int processes) {
    int gate[2], back[2];
    if (pipe(gate) || pipe(back)) std::abort();
    std::fflush(stdout);
    for (int i = 0; i < processes; ++i) {
        if (fork() > 0) continue;
        close(gate[1]);
        job mine = what;
        mine.start = processes > 1 ? gate[0] : -1;
        result r;
        try {
            r = run(mine);
        } catch (const std::exception& e) {
            std::fprintf(stderr, "%s\n", e.what());
        }
        if (write(back[1], &r, sizeof r) != sizeof r) std::abort();
        _exit(0);
    }
    close(gate[0]);
    usleep(processes > 1 ? 1'000'000 : 0);
    close(gate[1]);
    std::vector<result> all;
    for (int i = 0; i < processes; ++i) {
        result r;
        if (read(back[0], &r, sizeof r) != sizeof r) std::abort();
        all.push_back(r);
        wait(nullptr);
    }
    close(back[0]), close(back[1]);
    return all;
}

void print(const std::string& title, const std::vector<result>& all, double own = 0) {
    double rate = 0, asked = 0, grants = 0, longest = 0, cpu = 0;
    for (const result& r : all) {
        rate += r.grants / r.seconds;
        grants += r.grants;
        asked += r.requests;
        cpu += r.cpu;
        longest = std::max(longest, r.longest);
    }
    std::printf(
        "%-28s %10.0f grants/s  %10.0f a second of CPU  %8.4f requests each  longest wait of a process %8.2f ms",
        title.c_str(), rate, grants / cpu, asked / grants, longest * 1000);
    if (own > 0) std::printf("  %6.0f bytes/waiter", all.front().bytes - own);
    std::printf("\n");
    figure(title + " | grants/s", rate);
    figure(title + " | grants a second of CPU", grants / cpu);
    figure(title + " | requests", asked / grants);
    figure(title + " | longest wait ms", longest * 1000);
    if (own > 0) figure(title + " | bytes/waiter", all.front().bytes - own);
}

void newcomer(const std::string& server) {
    asio::io_context io(1);
    const zkasio::client one(io.get_executor(), zkasio::client_options(server)),
        two(io.get_executor(), zkasio::client_options(server));
    std::vector<double> times;
    const auto body = [&]() -> awaitable<void> {
        co_await two.connected();
        const zkasio::cohort_mutex lingers(one, "/bench-newcomer");
        const zkasio::mutex comes(two, "/bench-newcomer");
        for (int i = 0; i < 200; ++i) {
            { zkasio::lock_guard guard = co_await lingers.acquire(); }
            asio::steady_timer timer(io, 5ms);
            co_await timer.async_wait(asio::use_awaitable);
            const double begin = now();
            zkasio::lock_guard guard = co_await comes.acquire();
            times.push_back(now() - begin);
            co_await guard.release();
        }
        co_await one.close();
        co_await two.close();
    };
    asio::co_spawn(io, body(), rethrow);
    io.run();
    std::sort(times.begin(), times.end());
    std::printf("%-28s p50 %.2f ms, p99 %.2f ms\n", "newcomer to an idle place", times[times.size() / 2] * 1000,
                times[times.size() * 99 / 100] * 1000);
    figure("newcomer to an idle place | p50 ms", times[times.size() / 2] * 1000);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
    using namespace bench;
    if (argc < 2)
        return std::fprintf(stderr, "usage: %s HOST:PORT [1000|10000|cycle|4x250|newcomer|strand...]\n", *argv), 1;
    std::vector<std::string> all(argv + 2, argv + argc);
    if (all.empty()) all = {"1000", "10000", "cycle", "4x250", "newcomer"};
    bool on_strand = false;
    int number = 0;
    for (const std::string& what : all) {
        job j;
        j.server = argv[1];
        j.on_strand = on_strand;
        j.path = "/bench-cohort-" + std::to_string(getpid()) + '-' + std::to_string(++number);
        int p = 0, n = 0;
        char rest = 0;
        if (what == "strand") {
            on_strand = true;
        } else if (what == "cycle") {
            print("cohort_mutex, uncontended", in_processes(j, 1));
        } else if (what == "newcomer") {
            newcomer(j.server);
        } else if (std::sscanf(what.c_str(), "%dx%d%c", &p, &n, &rest) == 2) {
            for (const bool cohort : {false, true}) {
                j.cohort = cohort;
                j.coroutines = n;
                j.seconds = 5;
                j.path += cohort ? "c" : "m";
                print((cohort ? "cohort_mutex, " : "mutex, ") + what, in_processes(j, p));
            }
        } else if (std::sscanf(what.c_str(), "%d%c", &n, &rest) == 1 && n > 0) {
            for (const bool cohort : {false, true}) {
                j.cohort = cohort;
                j.coroutines = n;
                j.path += cohort ? "c" : "m";
                print((cohort ? "cohort_mutex, " : "mutex, ") + what, in_processes(j, 1), own_bytes(n));
            }
        } else {
            std::fprintf(stderr, "what is \"%s\"?\n", what.c_str());
        }
    }
}
