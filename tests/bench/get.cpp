// CPU of the client per `get`, and at depth 1 per `set` and `create`, beside a hand-written poll loop over libzookeeper_st: the least that any client built on
// that library can cost. Both against the same server, in alternating rounds; what counts is the ratio.
//
//     zkasio_bench_get 127.0.0.1:2181 [rounds] [seconds per measurement] [HOST:SECURE_PORT CA CERTIFICATE KEY]
//
// The last columns: how much more it costs while a client_observer looks at each request; and through TLS, where the
// server has a port for that.

#include "figure.hpp"

#include <zkasio/client.hpp>
#include <zkasio/client_observer.hpp>
#ifdef ZKASIO_BENCH_TLS
#include <zkasio/tls/tls_options.hpp>
#endif

#include <zookeeper/zookeeper.h>

#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>

#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

using clock_type = std::chrono::steady_clock;

double cpu_seconds() {
    rusage u{};
    ::getrusage(RUSAGE_SELF, &u);
    const auto seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
    };
    return seconds(u.ru_utime) + seconds(u.ru_stime);
}

struct result {
    double cpu_us = 0, per_second = 0;
};

constexpr const char* node = "/zkasio-bench";
const std::string data(32, 'x'), child = std::string(node) + "/n-";

enum class kind { get, set, create };  // create: of ephemeral nodes with a number

// ---------------------------------------------------------------------------------------------------- the floor
struct raw_run {
    zhandle_t* zh = nullptr;
    kind what = kind::get;
    bool go_on = true;
    long done = 0;
    int outstanding = 0;

    static void on_data(int rc, const char*, int, const Stat*, const void* run) { on_end(rc, run); }
    static void on_stat(int rc, const Stat*, const void* run) { on_end(rc, run); }
    static void on_string(int rc, const char*, const void* run) { on_end(rc, run); }
    static void on_end(int rc, const void* run) {
        auto* self = static_cast<raw_run*>(const_cast<void*>(run));
        if (rc != ZOK) std::abort();
        ++self->done;
        --self->outstanding;
        if (self->go_on) self->issue();
    }
    void issue() {
        ++outstanding;
        if (start() != ZOK) std::abort();
    }
    int start() {
        const int length = static_cast<int>(data.size());
        switch (what) {
            case kind::get: return zoo_aget(zh, node, 0, &on_data, this);
            case kind::set: return zoo_aset(zh, node, data.data(), length, -1, &on_stat, this);
            case kind::create: break;
        }
        return zoo_acreate(zh, child.c_str(), data.data(), length, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL | ZOO_SEQUENCE,
                           &on_string, this);
    }
    void turn() {
        int fd = -1, events = 0;
        timeval tv{};
        if (zookeeper_interest(zh, &fd, &events, &tv) != ZOK) return;
        pollfd p{
            fd,
            static_cast<short>(((events & ZOOKEEPER_READ) ? POLLIN : 0) | ((events & ZOOKEEPER_WRITE) ? POLLOUT : 0)),
            0};
        ::poll(&p, 1, static_cast<int>(tv.tv_sec * 1000 + tv.tv_usec / 1000));
        if (p.revents & POLLOUT) zookeeper_process(zh, ZOOKEEPER_WRITE);
        if (p.revents & POLLIN)
            while (zookeeper_process(zh, ZOOKEEPER_READ) == ZOK && outstanding > 0) {
            }
    }
};

result raw(const std::string& servers, kind what, int depth, std::chrono::milliseconds time) {
    raw_run run;
    run.what = what;
    run.zh = zookeeper_init(servers.c_str(), nullptr, 10000, nullptr, nullptr, ZOO_NO_LOG_CLIENTENV);
    zoo_set_servers_resolution_delay(run.zh, -1);
    while (zoo_state(run.zh) != ZOO_CONNECTED_STATE) run.turn();
    const auto end = clock_type::now() + time;
    const double before = cpu_seconds();
    for (int i = 0; i < depth; ++i) run.issue();
    while (run.outstanding > 0) {
        run.turn();
        if (run.go_on && clock_type::now() >= end) run.go_on = false;
    }
    const double cpu = cpu_seconds() - before;
    zookeeper_close(run.zh);
    const auto n = static_cast<double>(run.done);
    return {cpu * 1e6 / n, n / std::chrono::duration<double>(time).count()};
}

// ---------------------------------------------------------------------------------------------------- the client
struct adding_up final : zkasio::client_observer {
    void operation(const zkasio::operation_report& r) override { on_the_wire += r.on_the_wire(); }
    std::chrono::nanoseconds on_the_wire{0};
};

enum class way { any_executor, strand, observed };

result ours(zkasio::client_options options, kind what, int depth, std::chrono::milliseconds time, way how) {
    asio::io_context io(1);
    if (how == way::observed) options.observer(std::make_shared<adding_up>());
    const zkasio::client zk(io.get_executor(), options);
    long done = 0;
    int running = depth;
    double before = 0, cpu = 0;
    clock_type::time_point end;
    const auto numbered = zkasio::create_options().mode(zkasio::create_mode::ephemeral_sequential);
    auto reader = [&]() -> asio::awaitable<void> {
        while (clock_type::now() < end) {
            if (what == kind::get) co_await zk.get(node);
            else if (what == kind::set) co_await zk.set(node, data);
            else co_await zk.create(child, data, numbered);
            ++done;
        }
        if (--running == 0) {
            cpu = cpu_seconds() - before;
            co_await zk.close();
        }
    };
    auto start = [&]() -> asio::awaitable<void> {
        co_await zk.connected();
        before = cpu_seconds();
        end = clock_type::now() + time;
        const asio::any_io_executor where =
            how == way::strand ? zk.get_executor() : asio::any_io_executor(io.get_executor());
        for (int i = 0; i < depth; ++i)
            asio::co_spawn(where, reader(), [](std::exception_ptr e) {
                if (e) std::rethrow_exception(e);
            });
    };
    asio::co_spawn(io, start(), [](std::exception_ptr e) {
        if (e) std::rethrow_exception(e);
    });
    io.run();
    const auto n = static_cast<double>(done);
    return {cpu * 1e6 / n, n / std::chrono::duration<double>(time).count()};
}

std::vector<zkasio::client_options> through_tls([[maybe_unused]] char** arguments) {
    std::vector<zkasio::client_options> one;
#ifdef ZKASIO_BENCH_TLS
    const auto files = zkasio::tls_files().ca(arguments[1]).certificate(arguments[2], arguments[3]);
    one.push_back(zkasio::client_options(arguments[0]).tls(files));
#endif
    return one;
}

double median(std::vector<double> v) {
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: %s SERVER [ROUNDS] [SECONDS]\n", argv[0]);
        return 2;
    }
    const std::string servers = argv[1];
    const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
    const auto time = std::chrono::milliseconds(static_cast<int>((argc > 3 ? std::atof(argv[3]) : 1.5) * 1000));
    zoo_set_debug_level(ZOO_LOG_LEVEL_WARN);
    {
        asio::io_context io;
        const zkasio::client zk(io.get_executor(), zkasio::client_options(servers));
        auto prepare = [&]() -> asio::awaitable<void> {
            co_await zk.remove_recursive(node);
            co_await zk.create(node, data);
            co_await zk.close();
        };
        asio::co_spawn(io, prepare(), [](std::exception_ptr e) {
            if (e) std::rethrow_exception(e);
        });
        io.run();
    }
    std::printf("get of 32 bytes, medians of %d alternating rounds\n", rounds);
    std::printf("%6s  %22s  %34s  %34s  %15s  %s\n", "depth", "raw", "zkasio, any executor",
                "zkasio, on the client's strand", "while observed", argc > 7 ? "through TLS" : "");
    const std::vector<zkasio::client_options> tls =
        argc > 7 ? through_tls(argv + 4) : std::vector<zkasio::client_options>();
    for (const int depth : {1, 16, 64, 256}) {
        std::vector<double> raw_cpu, raw_rate, any_ratio, any_rate, strand_ratio, strand_rate, any_cpu, strand_cpu;
        std::vector<double> observed, tls_cpu, tls_ratio;
        for (int i = 0; i < rounds; ++i) {
            const result r = raw(servers, kind::get, depth, time);
            const result a = ours(servers, kind::get, depth, time, way::any_executor);
            const result s = ours(servers, kind::get, depth, time, way::strand);
            observed.push_back(ours(servers, kind::get, depth, time, way::observed).cpu_us / a.cpu_us);
            for (const zkasio::client_options& o : tls) {
                tls_cpu.push_back(ours(o, kind::get, depth, time, way::any_executor).cpu_us);
                tls_ratio.push_back(tls_cpu.back() / a.cpu_us);
            }
            raw_cpu.push_back(r.cpu_us);
            raw_rate.push_back(r.per_second);
            any_cpu.push_back(a.cpu_us);
            any_ratio.push_back(a.cpu_us / r.cpu_us);
            any_rate.push_back(a.per_second);
            strand_cpu.push_back(s.cpu_us);
            strand_ratio.push_back(s.cpu_us / r.cpu_us);
            strand_rate.push_back(s.per_second);
        }
        std::printf("%6d  %6.1f us %8.0f/s  %6.1f us = %4.2f x raw %8.0f/s  %6.1f us = %4.2f x raw %8.0f/s  %6.2f x",
                    depth, median(raw_cpu), median(raw_rate), median(any_cpu), median(any_ratio), median(any_rate),
                    median(strand_cpu), median(strand_ratio), median(strand_rate), median(observed));
        if (!tls_cpu.empty()) std::printf("         %6.1f us = %4.2f x", median(tls_cpu), median(tls_ratio));
        std::printf("\n");
        const std::string row = std::to_string(depth) + " | ";
        for (std::size_t i = 0; i < raw_cpu.size(); ++i) {
            bench::figure("CPU us | " + row + "raw", raw_cpu[i]);
            bench::figure("CPU us | " + row + "zkasio", any_cpu[i]);
            bench::figure("CPU us | " + row + "zkasio, on the client's strand", strand_cpu[i]);
            bench::figure("per second | " + row + "raw", raw_rate[i]);
            bench::figure("per second | " + row + "zkasio", any_rate[i]);
        }
    }
    for (const auto& [what, name] : {std::pair(kind::set, "set"), std::pair(kind::create, "create")})
        for (int i = 0; i < rounds; ++i) {
            const result r = raw(servers, what, 1, time), o = ours(servers, what, 1, time, way::any_executor);
            std::printf("%6s  %6.1f us %8.0f/s  %6.1f us %8.0f/s\n", name, r.cpu_us, r.per_second, o.cpu_us,
                        o.per_second);
            const std::string row = std::string(" | ") + name + " | ";
            bench::figure("CPU us" + row + "raw", r.cpu_us);
            bench::figure("CPU us" + row + "zkasio", o.cpu_us);
            bench::figure("per second" + row + "raw", r.per_second);
            bench::figure("per second" + row + "zkasio", o.per_second);
        }
    return 0;
}
