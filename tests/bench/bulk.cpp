// Many nodes at once: created, read and removed, beside a pipeline over libzookeeper_st ("raw").
//
//     zkasio_bench_bulk 127.0.0.1:2181 [nodes, 20000] [rounds, 3]
//
// Both have 500 requests under way; remove_recursive() has as many as it likes.

#include "meter.hpp"
#include "raw_session.hpp"
#include "verdict.hpp"

#include <zkasio/client.hpp>
#include <zkasio/coroutines/task_scope.hpp>

#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace bench {
namespace {

constexpr int under_way = 500;
const std::string root = "/bench-bulk";

std::string path_of(int i) { return root + "/" + std::to_string(i); }

struct cost {
    double seconds, cpu;
};

class stopwatch {
public:
    cost so_far() const { return {now() - begin_, cpu_seconds() - cpu_}; }

private:
    double begin_ = now(), cpu_ = cpu_seconds();
};

class raw_pipeline {
public:
    explicit raw_pipeline(const std::string& server) : session_(server) {}

    template <class Start>
    cost run(int nodes, Start start) {
        const stopwatch watch;
        for (int i = 0; i < nodes; ++i) {
            ++pending_;
            check(start(session_.handle(), path_of(i), this));
            while (pending_ >= under_way) turn({&session_});
        }
        while (pending_ > 0) turn({&session_});
        return watch.so_far();
    }
    static void ended(int rc, const void* self) {
        check(rc);
        --static_cast<raw_pipeline*>(const_cast<void*>(self))->pending_;
    }
    static void created(int rc, const char*, const void* self) { ended(rc, self); }
    static void read(int rc, const char*, int, const Stat*, const void* self) { ended(rc, self); }

    raw_session& session() { return session_; }

private:
    raw_session session_;
    int pending_ = 0;
};

std::map<std::string, cost> raw(const std::string& server, int nodes) {
    std::map<std::string, cost> all;
    raw_pipeline pipeline(server);
    pipeline.session().create(root, 0);
    all["create"] = pipeline.run(nodes, [](zhandle_t* on, const std::string& path, const void* self) {
        return zoo_acreate(on, path.c_str(), "x", 1, &ZOO_OPEN_ACL_UNSAFE, 0, &raw_pipeline::created, self);
    });
    all["get"] = pipeline.run(nodes, [](zhandle_t* on, const std::string& path, const void* self) {
        return zoo_aget(on, path.c_str(), 0, &raw_pipeline::read, self);
    });
    all["remove"] = pipeline.run(nodes, [](zhandle_t* on, const std::string& path, const void* self) {
        return zoo_adelete(on, path.c_str(), -1, &raw_pipeline::ended, self);
    });
    pipeline.session().remove(root);
    return all;
}

// `under_way` coroutines, each with one request after another.
asio::awaitable<void> each(int nodes, std::function<asio::awaitable<void>(std::string)> work) {
    int next = 0;
    auto body = [&](zkasio::task_scope& tasks) -> asio::awaitable<void> {
        for (int i = 0; i < under_way; ++i)
            tasks.spawn([&]() -> asio::awaitable<void> {
                while (next < nodes) {
                    const int mine = next++;
                    co_await work(path_of(mine));
                }
            });
        co_return;
    };
    co_await zkasio::with_task_scope(body);
}

std::map<std::string, cost> ours(const std::string& server, int nodes) {
    std::map<std::string, cost> all;
    asio::io_context io(1);
    const zkasio::client zk(io, zkasio::client_options(server));
    const auto steps = [&]() -> asio::awaitable<void> {
        co_await zk.create(root);
        const std::function<asio::awaitable<void>(std::string)> create =
            [&](std::string path) -> asio::awaitable<void> { co_await zk.create(path, "x"); };
        const stopwatch creating;
        co_await each(nodes, create);
        all["create"] = creating.so_far();
        const std::function<asio::awaitable<void>(std::string)> get =
            [&](std::string path) -> asio::awaitable<void> { co_await zk.get(path); };
        const stopwatch reading;
        co_await each(nodes, get);
        all["get"] = reading.so_far();
        const stopwatch removing;
        co_await zk.remove_recursive(root);
        all["remove"] = removing.so_far();
        co_await zk.close();
    };
    std::exception_ptr failed;
    asio::co_spawn(io, steps(), [&](std::exception_ptr e) { failed = e; });
    io.run();
    if (failed) std::rethrow_exception(failed);
    return all;
}

double median(std::vector<double> all) {
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) try {
    using namespace bench;
    if (argc < 2) return std::fprintf(stderr, "usage: %s HOST:PORT [nodes] [rounds]\n", *argv), 2;
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    const int nodes = argc > 2 ? std::atoi(argv[2]) : 20000, rounds = argc > 3 ? std::atoi(argv[3]) : 3;
    raw(argv[1], nodes);  // the server's just-in-time compiler has to know what comes
    std::map<std::string, std::vector<double>> time, cpu;
    std::printf("%d nodes\n", nodes);
    for (int i = 0; i < rounds; ++i) {
        const auto theirs = raw(argv[1], nodes), mine = ours(argv[1], nodes);
        for (const auto& [what, c] : mine) {
            const cost floor = theirs.at(what);
            std::printf("  %-7s raw %6.3f s, cpu %6.3f s   zkasio %6.3f s, cpu %6.3f s\n", what.c_str(), floor.seconds,
                        floor.cpu, c.seconds, c.cpu);
            time[what].push_back(c.seconds / floor.seconds);
            cpu[what].push_back(c.cpu / floor.cpu);
        }
    }
    for (const auto& [what, all] : time) {
        ratio("bulk_" + what + "_time_vs_raw", median(all), limit::at_most, 1.2);
        ratio("bulk_" + what + "_cpu_vs_raw", median(cpu[what]));
    }
} catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
