#include "commands.hpp"
#include "exit_code.hpp"
#include "node_text.hpp"
#include "terminal.hpp"

#include <zkasio/clock.hpp>
#include <zkasio/coroutines/task_scope.hpp>
#include <zkasio/create_options.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/path.hpp>

#include <asio/this_coro.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

namespace zklock {
namespace {

using zkasio::boot_clock;

// The durations of what was done, by all who did it.
using samples = std::vector<boot_clock::duration>;

struct figures {
    std::string what;
    double per_second = 0, median_ms = 0, slow_ms = 0;
};

figures evaluate(std::string what, samples all, boot_clock::duration took) {
    figures f;
    f.what = std::move(what);
    if (all.empty()) return f;
    std::sort(all.begin(), all.end());
    const auto ms = [](boot_clock::duration d) { return std::chrono::duration<double, std::milli>(d).count(); };
    f.per_second = static_cast<double>(all.size()) / std::chrono::duration<double>(took).count();
    f.median_ms = ms(all[all.size() / 2]);
    f.slow_ms = ms(all[all.size() * 99 / 100]);
    return f;
}

asio::awaitable<void> read_until(zkasio::client zk, std::string path, boot_clock::time_point end, samples& times) {
    for (auto begin = boot_clock::now(); begin < end;) {
        co_await zk.get(path);
        times.push_back(boot_clock::now() - begin);
        begin = boot_clock::now();
    }
}

asio::awaitable<void> lock_until(zkasio::mutex lock, boot_clock::time_point end, samples& times) {
    for (auto begin = boot_clock::now(); begin < end;) {
        zkasio::lock_guard guard = co_await lock.acquire();
        times.push_back(boot_clock::now() - begin);
        co_await guard.release();
        begin = boot_clock::now();
    }
}

// Everybody works until the time is over.
class bench_run {
public:
    bench_run(std::vector<zkasio::client> clients, std::string path, std::chrono::milliseconds duration)
        : clients_(std::move(clients)), path_(std::move(path)), duration_(duration) {}

    asio::awaitable<figures> reads() {
        const auto begin = boot_clock::now();
        samples times;
        co_await read_until(clients_.front(), path_, begin + duration_, times);
        co_return evaluate("get, one after another", std::move(times), boot_clock::now() - begin);
    }

    /// `workers` of the first `clients` sessions, on as many locks as `locks`.
    asio::awaitable<figures> locks(std::string what, std::size_t workers, std::size_t clients, std::size_t locks) {
        const auto begin = boot_clock::now();
        std::vector<samples> times(workers);
        auto body = [&](zkasio::task_scope& tasks) -> asio::awaitable<void> {
            for (std::size_t i = 0; i < workers; ++i) {
                const std::string path = zkasio::join_path(path_, "lock-" + std::to_string(i % locks));
                const zkasio::mutex lock(clients_[i % clients], path);
                tasks.spawn(lock_until(lock, begin + duration_, times[i]));
            }
            co_return;
        };
        co_await zkasio::with_task_scope(body);
        const auto took = boot_clock::now() - begin;
        samples all;
        for (const samples& s : times) all.insert(all.end(), s.begin(), s.end());
        co_return evaluate(std::move(what), std::move(all), took);
    }

private:
    std::vector<zkasio::client> clients_;
    std::string path_;
    std::chrono::milliseconds duration_;
};

void show(const std::vector<figures>& all, bool json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const figures& f : all) {
        nlohmann::ordered_json one;
        one["what"] = f.what;
        one["per_second"] = f.per_second;
        one["median_ms"] = f.median_ms;
        one["p99_ms"] = f.slow_ms;
        list.push_back(std::move(one));
        char text[96];
        std::snprintf(text, sizeof(text), "%9.0f / s   median %8.2f ms   99 %% %8.2f ms\n", f.per_second, f.median_ms,
                      f.slow_ms);
        if (!json) print(padded(f.what, 44) + text);
    }
    if (json) print(dump(list));
}

asio::awaitable<std::vector<zkasio::client>> connect(const connection_options& c, int count) {
    const asio::any_io_executor executor = co_await asio::this_coro::executor;
    std::vector<zkasio::client> clients;
    for (int i = 0; i < count; ++i) clients.emplace_back(executor, client_options_of(c));
    for (const zkasio::client& zk : clients) co_await zk.connected();
    co_return clients;
}

}  // namespace

asio::awaitable<int> bench(session s, bench_options o, connection_options c) {
    const std::string path = zkasio::join_path(o.path, "zklock-bench-" + std::to_string(::getpid()));
    // A container: servers remove it when it is empty, should we not come to that.
    zkasio::create_options how;
    how.mode(zkasio::create_mode::container);
    co_await s.zk.create(path, "some data, as much as there is in most", how);
    const std::vector<zkasio::client> clients = co_await connect(c, o.clients);
    bench_run run(clients, path, o.duration);
    const auto n = static_cast<std::size_t>(o.clients);
    const std::string number = std::to_string(n);
    std::vector<figures> all;
    all.push_back(co_await run.reads());
    all.push_back(co_await run.locks("a free lock, taken and released", 1, 1, 1));
    all.push_back(co_await run.locks(number + " sessions, a lock each", n, n, n));
    all.push_back(co_await run.locks(number + " sessions, one lock: handed over", n, n, 1));
    all.push_back(co_await run.locks(number + " coroutines of one session, one lock", n, 1, 1));
    show(all, o.json);
    for (const zkasio::client& zk : clients) co_await zk.close();
    co_await s.zk.remove_recursive(path);
    co_return exit_code::ok;
}

}  // namespace zklock
