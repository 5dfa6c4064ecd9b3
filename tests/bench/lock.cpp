// The lock, beside a hand-written state machine over libzookeeper_st ("raw"): all against the same server, in
// alternating rounds; what counts are the counts and the ratios.
//
//     zkasio_bench_lock 127.0.0.1:2181 [rounds] [what...]
//
// `what`, by default all but sessions and the last four:
//     100 1000 10000   so many waiters in one process (above 20000: zkasio alone)
//     cycle            acquire and release, one at a time, uncontended
//     4x25 3x1000      processes x waiters
//     1000s5           so many sessions in one process, with so many waiters each
//     handoff          from session to session
//     100000           for a throw-away server only: the end of that session is a transaction of some 8 MB, which the
//                      server cannot read when it is started again. client_options::ephemeral_budget() is raised for
//                      it; by default, some 8000 waiters of a process have a node, and the others wait locally
//     strand           zkasio's coroutines run on the client's strand in all that follows
//     limit=SECONDS    for one measurement in all that follows (150)
//     peers            go-zk, kazoo and Curator take part in all that follows, up to 1000 waiters, warmed up
//
// Everything is measured in processes of its own, forked from one that never runs a zkasio client. That one conducts:
// it holds the lock with a node of its own until all have queued. "hand-offs/s" counts from the first create to the
// last delete confirmed, "drain/s" from the moment when that holder goes. KiB are those of the heap while all wait, for
// peers of resident memory.

#include "conductor.hpp"
#include "descriptors.hpp"
#include "figure.hpp"
#include "figures.hpp"
#include "raw_session.hpp"
#include "workers.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace bench {
namespace {

struct variant {
    std::string name;
    worker work;
    task what;
};

class bench {
public:
    bench(std::string server, int n) : server_(std::move(server)), rounds_(n), conductor_(server_) {
        // The server's just-in-time compiler has to know what comes.
        task t = plain();
        t.waiters = 1000;
        for (int i = 0; i < 3; ++i) conductor_.measure(raw_local_queue, t, 1, true, limit_);
    }

    void run(const std::string& what) {
        int p = 0, n = 0;
        char rest = 0;
        double seconds = 0;
        if (std::sscanf(what.c_str(), "limit=%lf%c", &seconds, &rest) == 1)
            limit_ = seconds;
        else if (what == "strand")
            on_strand_ = true;
        else if (what == "peers")
            peers_ = peers();
        else if (what == "cycle")
            cycles();
        else if (what == "handoff")
            hand_offs(0), hand_offs(10);
        else if (std::sscanf(what.c_str(), "%dx%d%c", &p, &n, &rest) == 2 && p > 0 && n > 0)
            processes(p, n);
        else if (std::sscanf(what.c_str(), "%ds%d%c", &p, &n, &rest) == 2 && p > 0 && n > 0)
            sessions(p, n);
        else if (std::sscanf(what.c_str(), "%d%c", &n, &rest) == 1 && n > 0)
            one_process(n);
        else
            std::fprintf(stderr, "what is \"%s\"?\n", what.c_str());
    }

private:
    task plain() const {
        task t;
        t.server = server_;
        t.on_strand = on_strand_;
        return t;
    }

    void compare(const char* title, const std::vector<variant>& variants, const std::vector<column>& columns,
                 int processes, bool first_holder) {
        std::printf("\n%s, %d rounds%s\n  %-26s %6s", title, rounds_, on_strand_ ? ", on the strand" : "", "", "round");
        for (const column& c : columns) std::printf("  %*s", width(c), c.title);
        std::printf("\n");
        std::map<std::string, std::vector<outcome>> all;
        std::map<std::string, bool> failed;
        for (int i = 0; i < rounds_; ++i)
            for (const variant& v : variants) {
                if (failed[v.name]) continue;
                const auto o = conductor_.measure(v.work, v.what, processes, first_holder, limit_);
                failed[v.name] = !o;
                if (!o)
                    std::printf("  %-26s %6d  failed, or not done in %.0f s: left out from here on\n", v.name.c_str(),
                                i + 1, limit_);
                if (!o) continue;
                all[v.name].push_back(*o);
                print(v.name, std::to_string(i + 1), columns, [&](const column& c) { return c.value(*o); });
                for (const column& c : columns)
                    figure(std::string(title) + " | " + v.name + " | " + c.title, c.value(*o));
            }
        for (const variant& v : variants)
            if (!all[v.name].empty())
                print(v.name, "median", columns, [&](const column& c) { return median_of(all[v.name], c.value); });
    }
    static void print(const std::string& name, const std::string& round, const std::vector<column>& columns,
                      const std::function<double(const column&)>& value) {
        std::printf("  %-26s %6s", name.c_str(), round.c_str());
        for (const column& c : columns) {
            std::printf("  ");
            std::printf(c.format, value(c));
        }
        std::printf("\n");
        std::fflush(stdout);
    }

    void add_peers(std::vector<variant>& variants, worker work, task what) const {
        for (const std::string& name : peers_) {
            what.peer = name;
            variants.push_back({name, work, what});
        }
    }
    void one_process(int n) {
        const bool zkasio_alone = n > 20000;
        task t = plain();
        t.waiters = n;
        std::vector<variant> variants;
        if (!zkasio_alone) variants.push_back({"raw local0", raw_local_queue, t});
        if (n <= 1000) variants.push_back({"raw standard", raw_standard_queue, t});
        variants.push_back({"zkasio", zkasio_queue, t});
        t.await_release = false;
        if (!zkasio_alone) variants.push_back({"zkasio, guard destroyed", zkasio_queue, t});
        if (n <= most_for_peers) add_peers(variants, peer_queue, t);
        compare((std::to_string(n) + " waiters in one process, per waiter").c_str(), variants, queue_columns, 1, true);
    }

    void processes(int p, int n) {
        task t = plain();
        t.waiters = n;
        std::vector<variant> variants{
            {"raw local0", raw_local_queue, t}, {"raw standard", raw_standard_queue, t}, {"zkasio", zkasio_queue, t}};
        if (p * n > most_for_peers) std::erase_if(variants, [](const variant& v) { return v.name == "raw standard"; });
        if (p * n <= most_for_peers) add_peers(variants, peer_queue, t);
        compare((std::to_string(p) + " processes with " + std::to_string(n) + " waiters each, per waiter").c_str(),
                variants, crossing_columns, p, true);
    }

    void sessions(int s, int n) {
        raise_descriptor_limit();  // a descriptor or two for each session
        task t = plain();
        t.sessions = s;
        t.waiters = n;
        compare((std::to_string(s) + " sessions with " + std::to_string(n) + " waiters each, per waiter").c_str(),
                {{"raw local0", raw_sessions_queue, t}, {"zkasio", zkasio_sessions_queue, t}}, queue_columns, 1, true);
    }

    void cycles() {
        task awaited = plain(), not_awaited = plain();
        not_awaited.await_release = false;
        std::vector<variant> variants{{"raw, awaited", raw_cycles, awaited},
                                      {"zkasio, awaited", zkasio_cycles, awaited},
                                      {"raw, not awaited", raw_cycles, not_awaited},
                                      {"zkasio, not awaited", zkasio_cycles, not_awaited}};
        add_peers(variants, peer_cycles, awaited);
        compare("uncontended acquire + release, per cycle", variants, cycle_columns, 1, false);
    }

    void hand_offs(int idle_ms) {
        task t = plain();
        t.idle_ms = idle_ms;
        t.hand_offs = idle_ms > 0 ? 100 : 500;
        const std::string how = idle_ms > 0 ? "after " + std::to_string(idle_ms) + " ms idle" : "back to back";
        std::vector<variant> variants{{"raw", raw_hand_offs, t}, {"zkasio", zkasio_hand_offs, t}};
        add_peers(variants, peer_hand_offs, t);
        compare(("hand-off from session to session, " + how).c_str(), variants, latency_columns, 1, false);
    }

    static constexpr int most_for_peers = 1000;  // in all: it is a thread each for some of them

    const std::string server_;
    const int rounds_;
    conductor conductor_;
    bool on_strand_ = false;
    double limit_ = 150;
    std::vector<std::string> peers_;
};

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fprintf(stderr,
                     "usage: %s ADDRESS:PORT [ROUNDS] [N|PxN|SsN|cycle|handoff|strand|limit=SECONDS|peers...]\n",
                     argv[0]);
        return 2;
    }
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    try {
        bench::bench b(argv[1], argc > 2 ? std::max(1, std::atoi(argv[2])) : 5);
        std::vector<std::string> what(argv + std::min(argc, 3), argv + argc);
        const auto measures_nothing = [](const std::string& w) {
            return w == "strand" || w == "peers" || w.starts_with("limit=");
        };
        if (std::all_of(what.begin(), what.end(), measures_nothing))
            what.insert(what.end(), {"100", "1000", "10000", "cycle", "4x25", "3x1000", "handoff"});
        for (const std::string& w : what) b.run(w);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
    return 0;
}
