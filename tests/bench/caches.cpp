// What caches ask of their servers once they are ready: for a change, after a cut, when a member joins a large group,
// and when a server is killed that fifty of them are connected to. Beside Curator's CuratorCache and kazoo's TreeCache
// and ChildrenWatch.
//
//     zkasio_bench_caches 127.0.0.1:2181 [nodes] [peers]
//
// All clients are connected through relays (relay.hpp), which cut connections and count what goes through them. Servers
// count the requests. "a watch for each node": zkasio at servers that do not know recursive watches. For the killed
// server it starts three servers of its own; all clients, in one process, are at one of them, which does not lead.
// "current": from the kill until all caches show a node that was created after it, and say that they are current
// (Curator: show that node). "last request": until after that fewer than 100 requests are sent in half a second.

#include "bench_tree.hpp"
#include "figure.hpp"
#include "meter.hpp"
#include "raw_session.hpp"
#include "recipe_process.hpp"
#include "relay.hpp"

#include <zkasio/testing/ensemble.hpp>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <list>
#include <string>
#include <vector>

namespace bench {
namespace {

constexpr int session_timeout_ms = 60000;  // few pings

struct contestant {
    std::string name, library, cache, observe;
    relay::knows servers_know = relay::knows::all;
};

std::vector<contestant> contestants(bool peers) {
    std::vector<contestant> all;
    for (const std::string& library : recipe_libraries(peers)) {
        if (library == "curator")
            all.push_back({"Curator's CuratorCache", library, "curatorcache", "curatorcache"});
        else if (library == "kazoo")
            all.push_back({"kazoo", library, "cache", "observe"});
        else
            for (const bool old : {false, true})
                all.push_back({old ? "zkasio, a watch for each node" : library, library, "cache", "observe",
                               old ? relay::knows::no_one_watch : relay::knows::all});
    }
    return all;
}

struct place {
    std::string server;
    pid_t process;
};
traffic sum_of(const std::vector<place>& all) {
    traffic sum;
    for (const place& p : all) {
        const traffic t = traffic_of(p.server, p.process);
        sum.requests += t.requests;
        sum.bytes += t.bytes;
    }
    return sum;
}

// Waits until at most `few` requests came in `seconds`. Returns when the last of the others came.
double until_quiet(const std::vector<place>& all, double seconds, double few = 0) {
    double last = now(), since = last, requests = sum_of(all).requests;
    while (now() - since < seconds) {
        ::usleep(20'000);
        const double n = sum_of(all).requests;
        if (n < requests || n > requests + few) {
            last = since = now();
            requests = n;
        }
    }
    return last;
}

// ------------------------------------------------------------------------------------------------- one large cache
void live(const bench_tree& all, const std::string& server, const contestant& c) {
    relay through(server, c.servers_know);
    recipe_process process(c.library, through.address(), session_timeout_ms);
    process.tell(c.cache + " " + all.root());
    process.answer("cached");
    const std::vector<place> connection{{server, through.pid()}};
    until_quiet(connection, 1);
    const std::string row = c.name + " | ", newcomer = all.root() + "/0/newcomer";
    raw_session other(server);
    const auto cost = [&](const char* what, auto change) {
        const traffic before = sum_of(connection);
        change();
        until_quiet(connection, 0.5);
        const traffic after = sum_of(connection);
        std::printf("  %-30s %-12s %7.0f requests %8.0f bytes\n", c.name.c_str(), what,
                    after.requests - before.requests, after.bytes - before.bytes);
        figure(row + what + " requests", after.requests - before.requests);
        figure(row + what + " bytes", after.bytes - before.bytes);
    };
    for (int i = 0; i < 3; ++i) {
        cost("new node", [&] { other.create(newcomer, 0); });
        cost("change", [&] { other.set(newcomer, "y"); });
        cost("gone", [&] { other.remove(newcomer); });
    }
    const double watches = watches_at(server), cpu = cpu_seconds(process.pid()), began = now();
    const pid_t servers = process_of(server);
    const double servers_cpu = cpu_seconds(servers);
    through.cut();
    for (const double limit = now() + 30; sum_of(connection).requests == 0 && now() < limit;) ::usleep(20'000);
    const double took = until_quiet(connection, 2) - began;
    const traffic sum = sum_of(connection);
    std::printf("  %-30s %-12s %7.0f requests %8.2f MB, last request after %.2f s, cpu %.2f s, server's %.2f s, "
                "%.0f watches\n",
                c.name.c_str(), "a cut", sum.requests, sum.bytes / 1e6, took, cpu_seconds(process.pid()) - cpu,
                cpu_seconds(servers) - servers_cpu, watches);
    figure(row + "nodes", all.nodes());
    figure(row + "cut requests", sum.requests);
    figure(row + "cut bytes", sum.bytes);
    figure(row + "cut s", took);
    figure(row + "cut server cpu s", cpu_seconds(servers) - servers_cpu);
}

// --------------------------------------------------------------------------------------------------- a large group
void join(const bench_tree& all, const std::string& server, const contestant& c) {
    const relay through(server, c.servers_know);
    recipe_process process(c.library, through.address(), session_timeout_ms);
    const std::string group = all.root() + "/0";
    process.tell(c.observe + " " + group);
    process.answer(c.observe == "observe" ? "observing" : "cached");
    const std::vector<place> connection{{server, through.pid()}};
    until_quiet(connection, 1);
    raw_session other(server);
    for (int i = 0; i < 3; ++i)
        for (const bool joins : {true, false}) {
            const traffic before = sum_of(connection);
            if (joins) other.create(group + "/newcomer", 0);
            else other.remove(group + "/newcomer");
            until_quiet(connection, 0.5);
            const traffic after = sum_of(connection);
            const std::string what = joins ? "joins" : "leaves";
            std::printf("  %-30s a member %-7s %3.0f requests %8.0f bytes\n", c.name.c_str(), what.c_str(),
                        after.requests - before.requests, after.bytes - before.bytes);
            figure("group | " + c.name + " | " + what + " requests", after.requests - before.requests);
            figure("group | " + c.name + " | " + what + " bytes", after.bytes - before.bytes);
        }
}

// --------------------------------------------------------------------------------------------------- a killed server
void create_soon(const std::string& server, const std::string& path) {
    for (const double limit = now() + 60; now() < limit;) try {
            raw_session(server).create(path, 0);
            return;
        } catch (const std::exception&) {  // no leader yet
        }
    throw std::runtime_error("the servers do not write");
}

// The servers have 256 MB each: not enough for a million watches.
void lose_server(zkasio::testing::ensemble& servers, const contestant& c, int clients) {
    const int leader = servers.wait_for_leader(), lost = (leader + 1) % servers.size(),
              left = (leader + 2) % servers.size();
    const bench_tree all(servers.endpoint(leader), 10000);
    std::list<relay> relays;
    std::string list;
    std::vector<place> places, stay;
    for (int i = 0; i < servers.size(); ++i) {
        relay& r = relays.emplace_back(servers.endpoint(i), c.servers_know);
        list += (i > 0 ? "," : "") + r.address();
        places.push_back({servers.endpoint(i), r.pid()});
        if (i != lost) r.refuse(true);
        if (i != lost) stay.push_back(places.back());
    }
    recipe_process process(c.library, list, session_timeout_ms);
    process.tell("fleet " + all.root() + " " + std::to_string(clients));
    double ready = 0;
    process.answer("fleet") >> ready;
    const double begun = traffic_of(places[static_cast<std::size_t>(lost)].server,
                                    places[static_cast<std::size_t>(lost)].process).requests;
    double servers_cpu = 0;
    for (const place& p : stay) servers_cpu -= cpu_seconds(process_of(p.server));
    for (relay& r : relays) r.refuse(false);
    const double killed = now();
    servers.kill(lost);
    create_soon(servers.endpoint(left), all.root() + "/0/after");
    process.tell("current " + all.root() + "/0/after");
    const double current = process.time_of("current") - killed, last = until_quiet(stay, 0.5, 100) - killed;
    for (const place& p : stay) servers_cpu += cpu_seconds(process_of(p.server));
    const double requests = sum_of(stay).requests / clients, bytes = sum_of(stay).bytes / clients;
    std::printf("  %-30s %d caches: ready after %.2f s, %.0f requests each; killed: %.0f requests each, %.2f MB, last "
                "request after %.2f s, current after %.2f s, servers' cpu %.2f s\n",
                c.name.c_str(), clients, ready, begun / clients, requests, bytes / 1e6, last, current, servers_cpu);
    const std::string row = "killed | " + c.name + " | ";
    figure(row + "clients", clients);
    figure(row + "ready s", ready);
    figure(row + "requests each", requests);
    figure(row + "bytes each", bytes);
    figure(row + "last request s", last);
    figure(row + "current s", current);
    figure(row + "server cpu s", servers_cpu);
    process.kill();
    raw_session(servers.endpoint(leader)).remove(all.root() + "/0/after");
    servers.start(lost);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) try {
    if (argc < 2) {
        std::fprintf(stderr, "usage: %s HOST:PORT [nodes] [peers]\n", argv[0]);
        return 2;
    }
    using namespace bench;
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    const std::string server = argv[1];
    const int nodes = argc > 2 ? std::atoi(argv[2]) : 64000;
    const auto all = contestants(argc > 3 && std::string(argv[3]) == "peers");
    {
        const bench_tree tree(server, nodes);
        std::printf("a cache of %.0f nodes\n", tree.nodes());
        for (const contestant& c : all) live(tree, server, c);
    }
    {
        const bench_tree tree(server, 10002, 1, std::string(20, 'x'));
        std::printf("a group of 10 000 members, for each who observes it\n");
        for (const contestant& c : all) join(tree, server, c);
    }
    std::printf("caches of 10 000 nodes, their server killed\n");
    zkasio::testing::ensemble servers(3);
    for (int round = 0; round < 3; ++round)
        for (const contestant& c : all) {
            // Fifty of kazoo's caches take a quarter of an hour, and Curator's some minutes.
            if (c.library == "kazoo" || (c.library == "curator" && round > 0)) continue;
            lose_server(servers, c, c.servers_know == relay::knows::all ? 50 : 10);
        }
} catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
