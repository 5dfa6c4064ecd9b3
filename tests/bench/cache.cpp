// How long a cache of a large tree takes until it is ready, and what it costs, beside Curator's TreeCache and
// CuratorCache and kazoo's TreeCache; and what one cache does with very many changes and readers.
//
//     zkasio_bench_cache 127.0.0.1:2181 [nodes] [peers]
//
// Each cache is in a process of its own. "heap" is what the library's own allocator says is in use more than before
// (Curator: the heap after a collection; kazoo: resident memory), by node, beyond its data and its path. Needs the
// server's "cons" command.

#include "figure.hpp"
#include "meter.hpp"
#include "raw_session.hpp"
#include "recipe_process.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace bench {
namespace {

constexpr int session_timeout_ms = 20000, in_a_directory = 100;
const std::string data = "0123456789abcdef";

void on_created(int rc, const char*, const void* pending) {
    check(rc == ZNODEEXISTS ? ZOK : rc);
    --*static_cast<int*>(const_cast<void*>(pending));
}
void on_removed(int rc, const void* pending) {
    check(rc);
    --*static_cast<int*>(const_cast<void*>(pending));
}

// A root, directories, and nodes in them.
class tree {
public:
    tree(std::string server, int nodes) : server_(std::move(server)), root_("/zbc" + std::to_string(::getpid())) {
        const int directories = std::max(1, nodes / in_a_directory);
        paths_.push_back(root_);
        for (int d = 0; d < directories; ++d) paths_.push_back(root_ + "/" + std::to_string(d));
        for (int i = 0; static_cast<int>(paths_.size()) < nodes; ++i)
            paths_.push_back(root_ + "/" + std::to_string(i % directories) + "/node-" + std::to_string(i));
        each([this](const raw_session& on, const std::string& path) {
            return zoo_acreate(on.handle(), path.c_str(), data.data(), static_cast<int>(data.size()),
                               &ZOO_OPEN_ACL_UNSAFE, 0, &on_created, &pending_);
        });
    }
    ~tree() {
        std::reverse(paths_.begin(), paths_.end());
        each([this](const raw_session& on, const std::string& path) {
            return zoo_adelete(on.handle(), path.c_str(), -1, &on_removed, &pending_);
        });
    }
    tree(const tree&) = delete;
    tree& operator=(const tree&) = delete;

    const std::string& root() const { return root_; }
    double nodes() const { return static_cast<double>(paths_.size()); }
    double bytes_of_paths_and_data() const {
        double sum = 0;
        for (const std::string& path : paths_) sum += static_cast<double>(path.size() + data.size());
        return sum;
    }

private:
    // In a session for that alone: nobody looks after it while others are measured.
    template <class Start>
    void each(Start start) {
        raw_session on(server_);
        for (const std::string& path : paths_) {
            ++pending_;
            check(start(on, path));
            while (pending_ >= 500) turn({&on}, -1, 100);
        }
        while (pending_ > 0) turn({&on}, -1, 100);
    }

    std::string server_, root_;
    std::vector<std::string> paths_;
    int pending_ = 0;
};

std::string name_of(const std::string& library, const std::string& command) {
    if (library == "zkasio") return library;
    if (library == "kazoo") return "kazoo's TreeCache";
    return command == "cache" ? "Curator's TreeCache" : "Curator's CuratorCache";
}

void read(const tree& all, const std::string& server, const std::string& library, const std::string& command) {
    recipe_process process(library, server, session_timeout_ms);
    meter m(server, process.pid());
    m.start();
    const double resident = resident_memory(process.pid());
    process.tell(command + " " + all.root());
    auto words = process.answer("cached");
    double seconds = 0, nodes = 0, heap = 0;
    words >> seconds >> nodes >> heap;
    m.all_wait();
    report r;
    m.stop(r, 0);
    const double own = all.bytes_of_paths_and_data();
    std::printf("  %-8s %-9s %7.0f nodes  ready %7.2f s  cpu %6.2f s  requests %5.2f  heap %6.0f  resident %6.0f B\n",
                library.c_str(), command.c_str(), nodes, seconds, r.cpu, r.requests / nodes, (heap - own) / nodes,
                (resident_memory(process.pid()) - resident - own) / nodes);
    const std::string row = name_of(library, command) + " | ";
    figure(row + "nodes", nodes);
    figure(row + "ready s", seconds);
    figure(row + "cpu s", r.cpu);
    figure(row + "heap B", (heap - own) / nodes);
    if (library == "zkasio") {
        process.tell("alone");
        double alone = 0;
        process.answer("alone") >> alone;
        std::printf("  %-8s without the C library's tables of watches: heap %.0f B\n", "", (alone - own) / nodes);
        figure(row + "alone B", (alone - own) / nodes);
    }
    std::fflush(stdout);
}

void change(const std::string& server, int readers, double rate, double seconds) {
    constexpr int nodes = 1000;
    const tree small(server, nodes + 1 + nodes / in_a_directory);
    recipe_process cache("zkasio", server, session_timeout_ms), writer("zkasio", server, session_timeout_ms);
    cache.tell("follow " + small.root() + " " + std::to_string(readers));
    cache.answer("following");
    writer.tell("write " + small.root() + " " + std::to_string(nodes) + " " + std::to_string(rate) + " " +
                std::to_string(seconds));
    double wrote_at = 0, count = 0, took = 0, seen_at = 0, updates = 0, deltas = 0, cpu = 0;
    writer.answer("wrote") >> wrote_at >> count >> took;
    cache.tell("until x");
    cache.answer("seen") >> seen_at >> updates >> deltas >> cpu;
    std::printf("  %d readers, %.0f changes in %.2f s (%.0f/s): the last is seen by all %.1f ms after it was written; "
                "%.0f updates, %.0f changes told, cpu %.2f s\n",
                readers, count, took, count / took, (seen_at - wrote_at) * 1e3, updates, deltas, cpu);
    raw_session(server).remove(small.root() + "/end");
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) try {
    if (argc < 2) {
        std::fprintf(stderr, "usage: %s HOST:PORT [nodes] [peers]\n", argv[0]);
        return 2;
    }
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    const std::string server = argv[1];
    const int nodes = argc > 2 ? std::atoi(argv[2]) : 64000;
    const bool peers = argc > 3 && std::string(argv[3]) == "peers";
    const auto libraries = bench::recipe_libraries(peers);
    {
        const bench::tree all(server, nodes);
        std::printf("a tree of %.0f nodes; by node: requests, and bytes beyond its path and data\n", all.nodes());
        for (int round = 0; round < 3; ++round)
            for (const std::string& library : libraries) {
                bench::read(all, server, library, "cache");
                if (library == "curator") bench::read(all, server, library, "curatorcache");
            }
    }
    std::printf("one cache, many changes\n");
    for (const int readers : {1, 1000}) bench::change(server, readers, 10000, 5);
} catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
