// How long an election is without a leader, beside Curator's LeaderLatch and kazoo's Election.
//
//     zkasio_bench_election 127.0.0.1:2181 [rounds] [peers]
//
// Two processes of one library stand. "resigns": the leader does, and it is measured from its call until the other one
// knows that it leads. "killed": SIGKILL, of which the servers know only when the session has timed out. Two times are
// shown: what is over the session timeout, which depends on when the dead one had last spoken (who speaks seldom is
// found dead early), and may be less than nothing; and what has passed since a session of the bare library has seen the
// dead one's node go (it looks each millisecond): that is what the recipe adds.

#include "figure.hpp"
#include "meter.hpp"
#include "raw_session.hpp"
#include "recipe_process.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace bench {
namespace {

constexpr int session_timeout_ms = 2000;

struct times {
    std::vector<double> all;
    void print(const char* library, const char* what, double minus) {
        std::sort(all.begin(), all.end());
        const auto at = [&](double q) {
            return (all[static_cast<std::size_t>(q * static_cast<double>(all.size() - 1))] - minus) * 1e3;
        };
        std::printf("  %-8s %-8s %4zu times   min %9.2f   median %9.2f   p90 %9.2f   max %9.2f ms\n", library, what,
                    all.size(), at(0), at(0.5), at(0.9), at(1));
        figure(std::string(what) + " | " + library, at(0.5));
        std::fflush(stdout);
    }
};

class election_bench {
public:
    election_bench(std::string server, int rounds) : server_(std::move(server)), rounds_(rounds), session_(server_) {
        root_ = "/zbe" + std::to_string(static_cast<int>(now()) % 100000);
        session_.create(root_, 0);
    }
    ~election_bench() {
        try {
            session_.remove(root_);
        } catch (const std::exception&) {  // nodes of the killed are still there
        }
    }

    void resigns(const std::string& library) {
        const std::string path = directory(library + "-resigns");
        auto leader = begin(library), next = begin(library);
        stand(*leader, path, 1);
        leader->time_of("leads");
        times took;
        for (int i = -warm_up; i < rounds_; ++i) {
            stand(*next, path, 2);
            leader->tell("resign");
            const double led = next->time_of("leads"), resigned = leader->time_of("resigned");
            if (i >= 0) took.all.push_back(led - resigned);
            until(path, 1);
            std::swap(leader, next);
        }
        took.print(library.c_str(), "resigns", 0);
        leader->tell("resign");
        leader->time_of("resigned");
        remove(path);
    }

    void killed(const std::string& library) {
        const std::string path = directory(library + "-killed");
        auto leader = begin(library);
        stand(*leader, path, 1);
        leader->time_of("leads");
        times took, noticed;
        std::uniform_real_distribution<double> phase(0, session_timeout_ms / 2e3);
        for (int i = 0; i < kills; ++i) {
            auto next = begin(library);
            stand(*next, path, 2);
            // At any moment between two words of the leader.
            for (const double until_kill = now() + phase(random_); now() < until_kill;) turn({&session_}, -1, 5);
            const double died = now();
            leader->kill();
            until(path, 1);
            const double gone = now(), led = next->time_of("leads");
            took.all.push_back(led - died);
            noticed.all.push_back(led - gone);
            leader = std::move(next);
        }
        took.print(library.c_str(), "killed", session_timeout_ms / 1e3);
        noticed.print(library.c_str(), "gone", 0);
        leader->tell("resign");
        leader->time_of("resigned");
        remove(path);
    }

private:
    static constexpr int warm_up = 200, kills = 10;
    std::minstd_rand random_{7};

    std::unique_ptr<recipe_process> begin(const std::string& library) const {
        return std::make_unique<recipe_process>(library, server_, session_timeout_ms);
    }
    std::string directory(const std::string& name) {
        session_.create(root_ + "/" + name, 0);
        return root_ + "/" + name;
    }
    void remove(const std::string& path) {
        until(path, 0);
        session_.remove(path);
    }
    // It has queued, and has had the time to watch whom it waits for.
    void stand(recipe_process& who, const std::string& path, int contenders) {
        who.tell("elect " + path);
        until(path, contenders);
        turn({&session_}, -1, 5);
    }
    void until(const std::string& path, int contenders) {
        while (session_.children(path) != contenders) turn({&session_}, -1, 1);
    }

    std::string server_, root_;
    int rounds_;
    raw_session session_;
};

}  // namespace
}  // namespace bench

int main(int argc, char** argv) try {
    if (argc < 2) {
        std::fprintf(stderr, "usage: %s HOST:PORT [rounds] [peers]\n", argv[0]);
        return 2;
    }
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    const int rounds = argc > 2 ? std::atoi(argv[2]) : 500;
    const bool peers = argc > 3 && std::string(argv[3]) == "peers";
    bench::election_bench bench(argv[1], rounds);
    const auto libraries = bench::recipe_libraries(peers);
    std::printf("to the next leader: from a resignation; from a kill, over the session timeout of %d ms; and from the "
                "end of that session\n", bench::session_timeout_ms);
    for (const std::string& library : libraries) bench.resigns(library);
    for (const std::string& library : libraries) bench.killed(library);
} catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
