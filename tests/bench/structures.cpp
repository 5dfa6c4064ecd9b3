// How fast counters count and ids are given, beside Curator's DistributedAtomicLong and kazoo's Counter.
//
//     zkasio_bench_structures 127.0.0.1:2181 [peers]
//
// Ten processes of one library, each with 100 threads or coroutines, add to one number at the same time; what the number
// is afterwards is shown beside what it should be. Rounds alternate.

#include "meter.hpp"
#include "raw_session.hpp"
#include "recipe_process.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace bench {
namespace {

constexpr int session_timeout_ms = 20000, processes = 10, adders = 100, rounds = 5;

using team = std::vector<std::unique_ptr<recipe_process>>;

// Additions in a second.
double add(team& all, raw_session& session, const std::string& path, int times, double& sum) {
    const double began = now();
    for (const auto& p : all) p->tell("add " + path + " " + std::to_string(adders) + " " + std::to_string(times));
    double most = 0;
    for (const auto& p : all) {
        double took = 0, seen = 0;
        p->answer("added") >> took >> seen;
        most = std::max(most, seen);
    }
    sum = most;
    const double took = now() - began;
    for (const char* const with : {"", "-lock"}) {
        try {
            session.remove(path + with);
        } catch (const std::exception&) {  // not all have a lock
        }
    }
    return processes * adders * times / took;
}

void count(const std::string& server, bool peers) {
    raw_session session(server);
    const std::string root = "/zbn" + std::to_string(::getpid());
    std::map<std::string, team> teams;
    std::map<std::string, std::vector<double>> rates;
    for (const std::string& library : recipe_libraries(peers))
        for (int i = 0; i < processes; ++i)
            teams[library].push_back(std::make_unique<recipe_process>(library, server, session_timeout_ms));
    std::printf("%d processes with %d adders each\n", processes, adders);
    for (int round = 0; round < rounds; ++round)
        for (auto& [library, all] : teams) {
            // The others take long for what is nothing to ours.
            const int times = library == "zkasio" ? 20 : 1;
            double sum = 0;
            const double rate = add(all, session, root + library + std::to_string(round), times, sum);
            rates[library].push_back(rate);
            std::printf("  %-8s %10.0f additions a second, the number is %.0f of %d\n", library.c_str(), rate, sum,
                        processes * adders * times);
            std::fflush(stdout);
        }
    const auto median = [](std::vector<double> v) {
        std::sort(v.begin(), v.end());
        return v[v.size() / 2];
    };
    for (auto& [library, all] : rates)
        std::printf("  %-8s median %10.0f  zkasio to it %.1f\n", library.c_str(), median(all),
                    median(rates.at("zkasio")) / median(all));
}

void give_ids(const std::string& server) {
    raw_session session(server);
    const std::string path = "/zbi" + std::to_string(::getpid());
    recipe_process worker("zkasio", server, session_timeout_ms);
    std::printf("ids, one process, 4 coroutines, blocks of 100000\n");
    for (int round = 0; round < rounds; ++round) {
        worker.tell("ids " + path + " 4 1000000");
        std::printf("  %-8s %10.0f ids a second\n", "zkasio", 4e6 / worker.time_of("taken"));
    }
    session.remove(path);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) try {
    if (argc < 2) {
        std::fprintf(stderr, "usage: %s HOST:PORT [peers]\n", argv[0]);
        return 2;
    }
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    const bool peers = argc > 2 && std::string(argv[2]) == "peers";
    bench::count(argv[1], peers);
    bench::give_ids(argv[1]);
} catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
