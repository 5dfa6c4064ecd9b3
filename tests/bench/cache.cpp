// How long a cache of a large tree takes until it is ready, and what it costs, beside Curator's TreeCache and
// CuratorCache and kazoo's TreeCache; and what one cache does with very many changes and readers.
//
//     zkasio_bench_cache 127.0.0.1:2181 [nodes] [peers]
//
// Each cache is in a process of its own. "a watch for each node": zkasio at a server that does not know recursive
// watches, as those before ZooKeeper 3.6 (relay.hpp). "heap" is what the library's own allocator says is in use more
// than before (Curator: the heap after a collection; kazoo: resident memory), by node, beyond its data and its path.
// Needs the server's commands "cons" and "mntr", and the server's process on this machine.

#include "bench_tree.hpp"
#include "figure.hpp"
#include "meter.hpp"
#include "raw_session.hpp"
#include "recipe_process.hpp"
#include "relay.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

namespace bench {
namespace {

constexpr int session_timeout_ms = 20000;

constexpr const char* by_each = "zkasio, a watch for each node";

std::string name_of(const std::string& library, const std::string& command, const relay* through) {
    if (library == "zkasio") return through ? by_each : library;
    if (library == "kazoo") return "kazoo's TreeCache";
    return command == "cache" ? "Curator's TreeCache" : "Curator's CuratorCache";
}

// @param through a server that does not know recursive watches
void read(const bench_tree& all, const std::string& server, const std::string& library, const std::string& command,
          const relay* through = nullptr) {
    recipe_process process(library, through ? through->address() : server, session_timeout_ms);
    const pid_t servers = process_of(server), connected = through ? through->pid() : process.pid();
    const double watches = watches_at(server), cpu = cpu_seconds(process.pid()), servers_cpu = cpu_seconds(servers);
    const traffic before = traffic_of(server, connected);
    const double resident = resident_memory(process.pid());
    process.tell(command + " " + all.root());
    auto words = process.answer("cached");
    double seconds = 0, nodes = 0, heap = 0;
    words >> seconds >> nodes >> heap;
    const double spent = cpu_seconds(process.pid()) - cpu, servers_spent = cpu_seconds(servers) - servers_cpu;
    traffic sum = traffic_of(server, connected);
    if (!through) {  // the connection that is refused is over
        sum.requests -= before.requests;
        sum.bytes -= before.bytes;
    }
    const double left = watches_at(server) - watches, own = all.bytes_of_paths_and_data();
    const std::string name = name_of(library, command, through);
    std::printf("  %-30s %7.0f nodes  ready %7.2f s  cpu %6.2f s  server's %6.2f s  requests %7.0f  watches %7.0f  "
                "%6.2f MB  heap %6.0f  resident %6.0f B\n",
                name.c_str(), nodes, seconds, spent, servers_spent, sum.requests, left, sum.bytes / 1e6,
                (heap - own) / nodes, (resident_memory(process.pid()) - resident - own) / nodes);
    const std::string row = name + " | ";
    figure(row + "nodes", nodes);
    figure(row + "ready s", seconds);
    figure(row + "cpu s", spent);
    figure(row + "server cpu s", servers_spent);
    figure(row + "requests", sum.requests);
    figure(row + "watches", left);
    figure(row + "bytes", sum.bytes);
    figure(row + "heap B", (heap - own) / nodes);
    if (library == "zkasio") {
        process.tell("alone");
        double alone = 0;
        process.answer("alone") >> alone;
        std::printf("  %-30s without its client: heap %.0f B\n", "", (alone - own) / nodes);
        figure(row + "alone B", (alone - own) / nodes);
    }
    std::fflush(stdout);
}

void change(const std::string& server, int readers, double rate, double seconds) {
    constexpr int nodes = 1000;
    const bench_tree small(server, nodes + 1 + nodes / bench_tree::in_a_directory);
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
        const bench::relay old(server, bench::relay::knows::no_one_watch);
        const bench::bench_tree all(server, nodes);
        std::printf("a tree of %.0f nodes of 100 bytes; memory by node, beyond its path and data\n", all.nodes());
        for (int round = 0; round < 3; ++round)
            for (const std::string& library : libraries) {
                bench::read(all, server, library, "cache");
                if (library == "zkasio") bench::read(all, server, library, "cache", &old);
                if (library == "curator") bench::read(all, server, library, "curatorcache");
            }
    }
    std::printf("one cache, many changes\n");
    for (const int readers : {1, 1000}) bench::change(server, readers, 10000, 5);
} catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
