// What becomes of additions and items while connections break, beside Curator's and kazoo's.
//
//     zkasio_bench_cuts 127.0.0.1:2181 [peers]
//
// Processes of one library reach the server through a proxy, which cuts all their connections ten times a second, fifty
// times. First they add to one number, until the cuts are over; what the number is afterwards is shown beside what it
// should be. Then they empty a queue that was filled before. Whatever fails is tried again, as a careful user does.
// Items that nobody got, or several, are counted; an item that nobody was given for ten seconds after the cuts is left.

#include "figure.hpp"
#include "meter.hpp"
#include "raw_session.hpp"
#include "recipe_process.hpp"

#include <zkasio/testing/proxy.hpp>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace bench {
namespace {

constexpr int session_timeout_ms = 20000, cuts = 50, answer_limit_s = 60;

// Cuts all connections ten times a second, until it has done so fifty times.
class cutter {
public:
    explicit cutter(zkasio::testing::proxy& network)
        : thread_([&network, this] {
              for (; made_ < cuts && !over_; ++made_) {
                  std::this_thread::sleep_for(std::chrono::milliseconds(100));
                  network.cut_all();
              }
              over_ = true;
          }) {}
    cutter(const cutter&) = delete;
    cutter& operator=(const cutter&) = delete;
    ~cutter() { stop(); }

    bool over() const noexcept { return over_; }
    int stop() {
        over_ = true;
        if (thread_.joinable()) thread_.join();
        return made_;
    }

private:
    std::atomic<bool> over_{false};
    std::atomic<int> made_{0};
    std::thread thread_;
};

using team = std::vector<std::unique_ptr<recipe_process>>;

team processes_of(const std::string& library, const std::string& server, int n) {
    team all;
    for (int i = 0; i < n; ++i) {
        all.push_back(std::make_unique<recipe_process>(library, server, session_timeout_ms));
        all.back()->give_up_after(answer_limit_s);
    }
    return all;
}

void count(const std::string& library, const std::string& server, const std::string& path) {
    constexpr int processes = 10, adders = 20;
    zkasio::testing::proxy network(server);
    team all = processes_of(library, network.address(), processes);
    const int times = library == "zkasio" ? 20 : 1;  // the others take long for what is nothing to ours
    double expected = 0, sum = 0;
    const double began = now();
    cutter cutting(network);
    while (!cutting.over()) {
        for (const auto& p : all) p->tell("add " + path + " " + std::to_string(adders) + " " + std::to_string(times));
        for (const auto& p : all) {
            double took = 0, seen = 0;
            p->answer("added") >> took >> seen;
            sum = std::max(sum, seen);
        }
        expected += processes * adders * times;
    }
    const int made = cutting.stop();
    std::printf("  %-8s %9.0f additions a second over %d cuts: the number is %.0f of %.0f, %+.0f\n", library.c_str(),
                expected / (now() - began), made, sum, expected, sum - expected);
    figure("additions wrong | " + library, sum > expected ? sum - expected : expected - sum);
}

struct queue_kind {
    const char *library, *kind, *items_below;
};
// What the items' nodes stand below is where the end is seen.
constexpr queue_kind queue_kinds[] = {{"zkasio", "take", "/entries"},   {"zkasio", "receive", "/entries"},
                                      {"curator", "plain", ""},         {"curator", "locked", ""},
                                      {"kazoo", "queue", ""},           {"kazoo", "locking", "/entries"}};

void empty_a_queue(const queue_kind& of, const std::string& server, const std::string& path) {
    constexpr int items = 4000, processes = 4, consumers = 10;
    zkasio::testing::proxy network(server);
    raw_session session(server);
    const std::string what = std::string(of.kind) + " " + path + " ";
    const team filler = processes_of(of.library, server, 1);
    filler.front()->tell("fill " + what + std::to_string(items));
    filler.front()->answer("filled");
    team all = processes_of(of.library, network.address(), processes);
    const double began = now();
    for (const auto& p : all) p->tell("consume " + what + std::to_string(consumers));
    cutter cutting(network);
    int left = items;
    double changed = now();
    while (left > 0 && (!cutting.over() || now() - changed < 10)) {
        turn({&session}, -1, 5);
        const int there = session.children(path + of.items_below);
        if (there != left) changed = now();
        left = there;
    }
    const double took = changed - began;
    const int made = cutting.stop();
    std::vector<int> seen(items);
    int silent = 0;
    for (const auto& p : all) {
        try {
            p->tell("stop");
            std::istringstream got = p->answer("consumed");
            for (std::size_t i = 0; got >> i;) ++seen.at(i);
        } catch (const std::exception&) {
            ++silent;
        }
    }
    const auto lost = std::count(seen.begin(), seen.end(), 0) - left;
    const auto doubled = std::count_if(seen.begin(), seen.end(), [](int n) { return n > 1; });
    std::printf("  %-8s %-8s %7.0f items a second over %d cuts; lost %ld, doubled %ld, left behind %d", of.library,
                of.kind, (items - left) / took, made, static_cast<long>(lost), static_cast<long>(doubled), left);
    std::printf(silent > 0 ? "; %d processes did not answer\n" : "\n", silent);
    const std::string row = std::string(of.library) + " " + of.kind + " | ";
    figure(row + "lost", static_cast<double>(lost));
    figure(row + "doubled", static_cast<double>(doubled));
    figure(row + "left behind", left);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) try {
    if (argc < 2) {
        std::fprintf(stderr, "usage: %s HOST:PORT [peers]\n", argv[0]);
        return 2;
    }
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    const std::string server = argv[1], root = "/zbc" + std::to_string(::getpid());
    const std::vector<std::string> libraries = bench::recipe_libraries(argc > 2 && std::string(argv[2]) == "peers");
    std::printf("10 processes with 20 adders each\n");
    for (const std::string& library : libraries) bench::count(library, server, root + library);
    std::printf("4000 items, 4 processes with 10 consumers each\n");
    for (const bench::queue_kind& of : bench::queue_kinds)
        if (std::count(libraries.begin(), libraries.end(), of.library) > 0)
            bench::empty_a_queue(of, server, root + of.library + of.kind);
} catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
