// cost: what stands at a path and below, what the servers tell of themselves, and what that means.
#include "commands.hpp"
#include "exit_code.hpp"
#include "findings.hpp"
#include "four_letters.hpp"
#include "node_text.hpp"
#include "tree_cost.hpp"

#include <zkasio/printable.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace zklock {
namespace {

using nlohmann::ordered_json;
using zkasio::printable;
using namespace std::chrono_literals;

// docs/limits.md and docs/cost.md have the reasons.
constexpr std::size_t many_children = 10'000;
constexpr std::size_t longest_answer = 1'048'575;   // jute.maxbuffer, which other libraries keep to
constexpr std::size_t large_end = 256 * 1024;
constexpr std::size_t longest_end = 2'097'150;      // servers do not start again with a longer one
constexpr std::size_t many_nodes = 1'000'000;
constexpr std::size_t many_bytes = 256 * 1024 * 1024;
constexpr std::size_t large_node = 100 * 1024;
constexpr std::size_t shown = 10;  // of the largest ones

std::string in_bytes(std::size_t n) {
    if (n < 10'000) return std::to_string(n) + " B";
    return n < 10'000'000 ? std::to_string(n / 1000) + " kB" : std::to_string(n / 1'000'000) + " MB";
}

std::string counted(std::size_t n, const char* one, const char* many) {
    return std::to_string(n) + " " + (n == 1 ? one : many);
}

std::string chroot_of(const std::string& servers) {
    const std::size_t slash = servers.find('/');
    return slash == std::string::npos ? std::string() : servers.substr(slash);
}

void judge_nodes(const tree_cost& t, const std::string& path, findings& f) {
    f.add(t.nodes > many_nodes ? severity::warning : severity::fact, "nodes",
          counted(t.nodes, "node", "nodes") + " at " + printable(path) + " and below, " +
              std::to_string(t.ephemerals) + " of them ephemeral" +
              (t.nodes > many_nodes ? ": each server has all in memory, and in each snapshot" : ""));
    const bool large = t.data_bytes > many_bytes || t.largest_node_bytes > large_node;
    std::string text = in_bytes(t.data_bytes) + " of data";
    if (t.largest_node_bytes > 0)
        text += ", the most at " + printable(t.largest_node) + ": " + in_bytes(t.largest_node_bytes);
    f.add(large ? severity::warning : severity::fact, "data",
          text + (large ? "; data that pass through belong in another store" : ""));
    for (const std::string& one : t.unreadable)
        f.add(severity::fact, "unreadable", printable(one) + ": not for us to read");
}

ordered_json judge_directories(const tree_cost& t, findings& f) {
    ordered_json largest = ordered_json::array();
    for (const directory_cost& d : t.directories) {
        if (largest.size() < shown) {
            ordered_json one;
            one["path"] = d.path;
            one["children"] = d.children;
            one["list_bytes"] = d.list_bytes;
            largest.push_back(std::move(one));
        }
        if (d.children <= many_children && d.list_bytes <= longest_answer) continue;
        const std::string text = printable(d.path) + ": " + std::to_string(d.children) + " children, " +
                                 in_bytes(d.list_bytes) + " for each listing";
        if (d.list_bytes > longest_answer)
            f.add(severity::problem, "directory",
                  text + ": more than jute.maxbuffer, with which other libraries cannot list it");
        else
            f.add(severity::warning, "directory", text + "; each contender of a lock lists it once");
    }
    return largest;
}

ordered_json judge_sessions(const tree_cost& t, findings& f) {
    std::vector<std::pair<std::int64_t, session_cost>> all(t.sessions.begin(), t.sessions.end());
    const auto larger = [](const auto& a, const auto& b) { return a.second.end_bytes > b.second.end_bytes; };
    std::stable_sort(all.begin(), all.end(), larger);
    const std::size_t writes = (4 * all.size() + 9) / 10;
    f.add(severity::fact, "sessions",
          counted(all.size(), "session has", "sessions have") + " ephemeral nodes here" +
              (all.empty() ? std::string()
                           : ": if each holds a lock, with 10 s as its timeout, up to " + std::to_string(writes) +
                                 (writes == 1 ? " write a second" : " writes a second")));
    ordered_json largest = ordered_json::array();
    for (const auto& [id, s] : all) {
        const bool is_too_long = s.end_bytes > longest_end, is_long = s.end_bytes > large_end;
        if (largest.size() < shown) {
            ordered_json one;
            one["session"] = hex(id);
            one["ephemerals"] = s.ephemerals;
            one["end_bytes"] = s.end_bytes;
            largest.push_back(std::move(one));
        }
        if (largest.size() > 1 && !is_long) continue;
        f.add(is_too_long ? severity::problem : is_long ? severity::warning : severity::fact, "session",
              hex(id) + " has " + counted(s.ephemerals, "node", "nodes") + ", its end is a transaction of " +
                  in_bytes(s.end_bytes) +
                  (is_too_long ? ": servers do not start again after it, unless jute.maxbuffer is larger"
                               : is_long ? ": servers read back at most 2 MB" : ""));
    }
    return largest;
}

// What a server tells, or nothing.
std::optional<std::uint64_t> number_in(std::string_view answer, std::string_view key) {
    const std::string text = value_of(answer, key);
    const std::size_t first = text.find_first_of("0123456789");
    if (first == std::string::npos || text.find_first_not_of(" \t") != first) return std::nullopt;
    return std::strtoull(text.c_str() + first, nullptr, 10);
}

asio::awaitable<std::string> answer_of(server_name server, std::string four_letters) {
    std::string answer;
    try {
        answer = co_await ask_server(std::move(server), std::move(four_letters), 2s);
    } catch (const std::system_error&) {  // `srvr` says why
    }
    co_return answer;
}

// Only `srvr` is allowed unless 4lw.commands.whitelist says more.
asio::awaitable<ordered_json> look_at_server(server_name server, findings& f) {
    ordered_json one;
    one["server"] = server.text();
    std::string srvr, failed;
    try {
        srvr = co_await ask_server(server, "srvr", 2s);
    } catch (const std::system_error& e) {
        failed = e.what();
    }
    if (!failed.empty()) {
        f.add(severity::problem, "server", server.text() + " does not answer: " + failed);
        co_return one;
    }
    const std::string mntr = co_await answer_of(server, "mntr");
    std::string wchs;
    if (!number_in(mntr, "zk_watch_count")) wchs = co_await answer_of(server, "wchs");
    std::string text = server.text();
    const auto tell = [&](const char* name, std::optional<std::uint64_t> number, const char* words) {
        if (!number) return;
        one[name] = *number;
        text += (one.size() == 2 ? ": " : ", ") + std::to_string(*number) + words;
    };
    tell("connections", number_in(srvr, "Connections:"), " connections");
    tell("nodes", number_in(srvr, "Node count:"), " nodes");
    std::optional<std::uint64_t> watches = number_in(mntr, "zk_watch_count");
    if (!watches) watches = number_in(wchs, "Total watches:");
    tell("watches", watches, " watches");
    tell("ephemerals", number_in(mntr, "zk_ephemerals_count"), " ephemeral nodes");
    tell("data_bytes", number_in(mntr, "zk_approximate_data_size"), " bytes with paths");
    tell("requests_waiting", number_in(srvr, "Outstanding:"), " requests wait");
    if (one.size() == 1)
        text += " tells nothing (4lw.commands.whitelist)";
    else if (!watches)
        text += "; it does not tell its watches (4lw.commands.whitelist: mntr or wchs)";
    f.add(severity::fact, "server", text);
    co_return one;
}

}  // namespace

asio::awaitable<int> show_cost(session s, cost_options o, connection_options c) {
    findings f(o.json);
    const tree_cost t = co_await cost_of_tree(s.zk, o.path, chroot_of(c.servers));
    judge_nodes(t, o.path, f);
    ordered_json directories = judge_directories(t, f), sessions = judge_sessions(t, f);
    ordered_json servers = ordered_json::array();
    // Four-letter words are asked in the clear.
    if (through_tls(c)) {
        f.add(severity::fact, "server", "servers are not asked through TLS");
    } else {
        const std::vector<server_name> all = split_servers(c.servers);
        for (const server_name& server : all) {
            ordered_json one = co_await look_at_server(server, f);
            servers.push_back(std::move(one));
        }
    }
    ordered_json j;
    j["path"] = o.path;
    j["nodes"] = t.nodes;
    j["ephemerals"] = t.ephemerals;
    j["data_bytes"] = t.data_bytes;
    j["sessions"] = t.sessions.size();
    j["largest_sessions"] = std::move(sessions);
    j["largest_directories"] = std::move(directories);
    j["unreadable"] = t.unreadable;
    j["servers"] = std::move(servers);
    co_return f.finish(std::move(j)) ? exit_code::ok : exit_code::refused;
}

}  // namespace zklock
