// How fast counters count, ids are given and queues are emptied, beside Curator's and kazoo's.
//
//     zkasio_bench_structures 127.0.0.1:2181 [peers]
//
// Ten processes of one library, each with 100 threads or coroutines, add to one number at the same time; what the
// number is afterwards is shown beside what it should be. Then 10 000 items go through a queue that is full to begin
// with, to four processes of 50 consumers each; items that nobody got, or several, are counted. What takes too long is
// stopped at its limit, and what was done until then is counted. Rounds alternate.

#include "figure.hpp"
#include "meter.hpp"
#include "raw_session.hpp"
#include "recipe_process.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <sstream>
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
            figure("additions/s | " + library, rate);
            figure("additions missed | " + library, processes * adders * times - sum);
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

constexpr int items = 10000, consuming = 4, consumers = 50;

struct queue_kind {
    const char *library, *kind, *items_below;
    int limit;  // seconds
};
// What the items' nodes stand below is where the end is seen.
constexpr queue_kind queue_kinds[] = {
    {"zkasio", "take", "/entries", 120}, {"zkasio", "receive", "/entries", 120}, {"curator", "plain", "", 120},
    {"curator", "locked", "", 120},      {"kazoo", "queue", "", 120},            {"kazoo", "locking", "/entries", 30}};

void empty_a_queue(const std::string& server, team& all, const queue_kind& of, const std::string& path) {
    raw_session session(server);
    const std::string what = std::string(of.kind) + " " + path + " ";
    all[0]->tell("fill " + what + std::to_string(items));
    const double filled = all[0]->time_of("filled");
    std::vector<meter> meters;
    for (const auto& p : all) meters.emplace_back(server, p->pid()).start();
    const double began = now();
    for (const auto& p : all) p->tell("consume " + what + std::to_string(consumers));
    int left = items;
    while ((left = session.children(path + of.items_below)) > 0 && now() - began < of.limit) turn({&session}, -1, 5);
    const double took = now() - began;
    double requests = 0, cpu = 0;
    for (meter& m : meters) {
        report r;
        m.stop(r, 0);
        requests += r.requests;
        cpu += r.cpu;
    }
    std::vector<int> seen(items);
    for (const auto& p : all) {
        p->tell("stop");
        std::istringstream got = p->answer("consumed");
        for (std::size_t i = 0; got >> i;) ++seen.at(i);
    }
    // Items that were in the hands of consumers when the time was over are not among those that are left.
    const long missing = std::max(0L, static_cast<long>(std::count(seen.begin(), seen.end(), 0)) - left);
    const int done = std::max(1, items - left);
    std::printf("  %-8s %-8s filled in %6.2f s, %d items in %6.2f s: %7.0f items a second, %5.2f requests an item, cpu "
                "%.2f s; lost %ld, doubled %ld\n",
                of.library, of.kind, filled, done, took, done / took, requests / done, cpu, missing,
                static_cast<long>(std::count_if(seen.begin(), seen.end(), [](int n) { return n > 1; })));
    const std::string row = std::string(of.library) + " " + of.kind + " | ";
    figure(row + "items/s", done / took);
    figure(row + "requests", requests / done);
    figure(row + "cpu s", cpu);
    figure(row + "lost", static_cast<double>(missing));
}

void empty_queues(const std::string& server, bool peers, int times) {
    std::printf("%d items, %d processes with %d consumers each\n", items, consuming, consumers);
    const auto libraries = recipe_libraries(peers);
    std::map<std::string, team> teams;
    for (const std::string& library : libraries)
        for (int i = 0; i < consuming; ++i)
            teams[library].push_back(std::make_unique<recipe_process>(library, server, session_timeout_ms));
    for (int round = 0; round < times; ++round)
        for (const queue_kind& of : queue_kinds)
            if (teams.count(of.library) > 0)
                empty_a_queue(server, teams.at(of.library), of,
                              "/zbq" + std::to_string(::getpid()) + of.library + of.kind + std::to_string(round));
}

void give_ids(const std::string& server) {
    raw_session session(server);
    const std::string path = "/zbi" + std::to_string(::getpid());
    recipe_process worker("zkasio", server, session_timeout_ms);
    std::printf("ids, one process, 4 coroutines, blocks of 100000\n");
    for (int round = 0; round < rounds; ++round) {
        worker.tell("ids " + path + " 4 1000000");
        const double rate = 4e6 / worker.time_of("taken");
        std::printf("  %-8s %10.0f ids a second\n", "zkasio", rate);
        figure("ids/s | zkasio", rate);
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
    bench::empty_queues(argv[1], peers, 3);
} catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
