// Many nodes at once: created, read and removed by zkasio, beside raw pipelining over the same C library.
//
//     zkasio_bench_bulk 127.0.0.1:2181 [rounds] [nodes]
//
// Creates and gets are of `under_way` coroutines; raw sends the next request for each answer. The removal is
// remove_recursive() of one directory; raw knows all names. Each measurement is from the first request to the last
// answer; rounds alternate.

#include "figure.hpp"
#include "meter.hpp"
#include "raw_session.hpp"

#include <zkasio/client.hpp>

#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <utility>

namespace bench {
namespace {

using asio::awaitable;

constexpr int under_way = 256;
const std::string data(32, 'x');

enum class kind { create, get, remove };
constexpr kind kinds[] = {kind::create, kind::get, kind::remove};
const char* name_of(kind k) { return k == kind::create ? "create" : k == kind::get ? "get" : "remove"; }

struct cost {
    double seconds = 0, cpu = 0;
};
void print(kind k, const char* who, const cost& c, int nodes) {
    std::printf("  %-8s %-8s %6.3f s  %6.1f us of CPU a node\n", name_of(k), who, c.seconds, c.cpu * 1e6 / nodes);
    figure(std::string(name_of(k)) + " | " + who + " | s", c.seconds);
    figure(std::string(name_of(k)) + " | " + who + " | CPU us", c.cpu * 1e6 / nodes);
}

std::string node(const std::string& directory, int i) { return directory + "/node-" + std::to_string(i); }

class raw_pipeline {
public:
    raw_pipeline(const std::string& server, std::string directory, int nodes)
        : session_(server), directory_(std::move(directory)), nodes_(nodes) {}

    cost run(kind what) {
        what_ = what;
        next_ = 0;
        const double began = now(), cpu = cpu_seconds();
        if (what == kind::create) session_.create(directory_, 0);
        while (next_ < nodes_ && pending_ < under_way) start();
        while (pending_ > 0) turn({&session_}, -1, 1000);
        if (what == kind::remove) session_.remove(directory_);
        return {now() - began, cpu_seconds() - cpu};
    }

private:
    static void on_void(int rc, const void* self) { end(rc, self); }
    static void on_data(int rc, const char*, int, const Stat*, const void* self) { end(rc, self); }
    static void on_string(int rc, const char*, const void* self) { end(rc, self); }
    static void end(int rc, const void* data_of_call) {
        check(rc);
        auto& self = *static_cast<raw_pipeline*>(const_cast<void*>(data_of_call));
        --self.pending_;
        if (self.next_ < self.nodes_) self.start();
    }
    void start() {
        const std::string path = node(directory_, next_++);
        ++pending_;
        switch (what_) {
            case kind::create:
                return check(zoo_acreate(session_.handle(), path.c_str(), data.data(), static_cast<int>(data.size()),
                                         &ZOO_OPEN_ACL_UNSAFE, 0, &on_string, this));
            case kind::get: return check(zoo_aget(session_.handle(), path.c_str(), 0, &on_data, this));
            case kind::remove: return check(zoo_adelete(session_.handle(), path.c_str(), -1, &on_void, this));
        }
    }

    raw_session session_;
    std::string directory_;
    int nodes_, next_ = 0, pending_ = 0;
    kind what_ = kind::create;
};

class ours {
public:
    ours(const std::string& server, std::string directory, int nodes)
        : zk_(io_.get_executor(), zkasio::client_options(server)), directory_(std::move(directory)), nodes_(nodes) {
        run(zk_.connected());
    }
    ~ours() { run(close()); }

    cost run(kind what) {
        const double began = now(), cpu = cpu_seconds();
        if (what == kind::create) run(make_directory());
        next_ = 0;
        if (what == kind::remove) start(zk_.remove_recursive(directory_));
        else
            for (int i = 0; i < under_way; ++i) start(some(what));
        finish();
        return {now() - began, cpu_seconds() - cpu};
    }

private:
    void start(awaitable<void> one) {
        ++running_;
        asio::co_spawn(io_, std::move(one), [this](std::exception_ptr e) {
            if (e) std::rethrow_exception(e);
            --running_;
        });
    }
    void finish() {
        io_.restart();
        while (running_ > 0 && io_.run_one() > 0) {
        }
    }
    void run(awaitable<void> one) {
        start(std::move(one));
        finish();
    }
    awaitable<void> make_directory() { co_await zk_.create(directory_); }
    awaitable<void> close() { co_await zk_.close(); }
    awaitable<void> some(kind what) {
        while (next_ < nodes_) {
            const std::string path = node(directory_, next_++);
            if (what == kind::create) co_await zk_.create(path, data);
            else co_await zk_.get(path);
        }
    }

    asio::io_context io_{1};
    zkasio::client zk_;
    std::string directory_;
    int nodes_, next_ = 0, running_ = 0;
};

}  // namespace
}  // namespace bench

int main(int argc, char** argv) try {
    if (argc < 2) {
        std::fprintf(stderr, "usage: %s HOST:PORT [rounds] [nodes]\n", argv[0]);
        return 2;
    }
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    const int rounds = argc > 2 ? std::atoi(argv[2]) : 5, nodes = argc > 3 ? std::atoi(argv[3]) : 20000;
    const std::string root = "/zbb" + std::to_string(::getpid());
    std::printf("%d nodes, %d requests under way\n", nodes, bench::under_way);
    for (int round = 0; round < rounds; ++round) {
        bench::raw_pipeline raw(argv[1], root + "r", nodes);
        bench::ours our(argv[1], root + "z", nodes);
        for (const bench::kind k : bench::kinds) {
            bench::print(k, "raw", raw.run(k), nodes);
            bench::print(k, "zkasio", our.run(k), nodes);
        }
    }
} catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
