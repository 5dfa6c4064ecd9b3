#include "acl_text.hpp"
#include "commands.hpp"
#include "duration.hpp"
#include "exit_code.hpp"
#include "findings.hpp"
#include "four_letters.hpp"
#include "lock_view.hpp"
#include "node_text.hpp"

#include <zkasio/clock.hpp>
#include <zkasio/error.hpp>
#include <zkasio/path.hpp>
#include <zkasio/printable.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <set>
#include <string>
#include <system_error>
#include <vector>

namespace zklock {
namespace {

using zkasio::boot_clock;
using zkasio::printable;
using namespace std::chrono_literals;

std::string in_ms(boot_clock::duration d) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.2f ms", std::chrono::duration<double, std::milli>(d).count());
    return text;
}

// A lock survives round trips of 15 % of the session timeout, see docs/architecture.md, "The lease".
severity judge(boot_clock::duration slowest, std::chrono::milliseconds session_timeout) {
    return slowest * 100 > session_timeout * 15 ? severity::problem
                                                : slowest * 100 > session_timeout * 5 ? severity::warning
                                                                                      : severity::fact;
}

// Reads are answered by the server that we are connected to, sync() by the leader.
asio::awaitable<void> measure(session s, bool leader, findings& f) {
    std::vector<boot_clock::duration> times;
    for (int i = 0; i < 21; ++i) {
        const auto begin = boot_clock::now();
        if (leader)
            co_await s.zk.sync("/");
        else
            co_await s.zk.exists("/");
        times.push_back(boot_clock::now() - begin);
    }
    std::sort(times.begin(), times.end());
    const auto timeout = s.zk.session_now().timeout();
    f.add(judge(times.back(), timeout), leader ? "leader" : "round trip",
          "median " + in_ms(times[times.size() / 2]) + ", slowest of " + std::to_string(times.size()) + " " +
              in_ms(times.back()));
}

void look_at_session(const session& s, boot_clock::duration connecting, const connection_options& c, findings& f) {
    const zkasio::session now = s.zk.session_now();
    f.add(severity::fact, "session", hex(now.id()) + ", opened in " + in_ms(connecting));
    const bool other = now.timeout() != c.session_timeout;
    f.add(other ? severity::warning : severity::fact, "timeout",
          to_text(now.timeout()) + (other ? " granted, where " + to_text(c.session_timeout) + " were asked for" : ""));
}

// "3.4.13". A text that is no version is not judged.
bool is_too_old(const std::string& version) {
    int major = 0, minor = 0;
    if (std::sscanf(version.c_str(), "%d.%d", &major, &minor) != 2) return false;
    return major < 3 || (major == 3 && minor < 5);
}

asio::awaitable<void> look_at_servers(std::string servers, findings& f) {
    std::set<std::string> versions;
    const std::vector<server_name> all = split_servers(servers);
    for (const server_name& server : all) {
        std::string answer, failed;
        try {
            answer = co_await ask_server(server, "srvr", 2s);
        } catch (const std::system_error& e) {
            failed = e.what();
        }
        const std::string version = value_of(answer, "Zookeeper version:");
        if (!failed.empty()) {
            f.add(severity::problem, "server", server.text() + " does not answer: " + failed);
        } else if (version.empty()) {
            f.add(severity::fact, "server", server.text() + " does not tell its version (4lw.commands.whitelist)");
        } else {
            versions.insert(version.substr(0, version.find('-')));
            const std::string short_version = version.substr(0, version.find_first_of("-,"));
            const std::string mode = value_of(answer, "Mode:");
            f.add(severity::fact, "server", server.text() + " " + printable(short_version) + ", " + printable(mode));
            if (is_too_old(short_version))
                f.add(severity::problem, "server",
                      server.text() + " is too old for locks, elections, groups and caches: they need ZooKeeper 3.5");
        }
    }
    if (versions.size() > 1) f.add(severity::warning, "server", "the servers are of different versions");
}

asio::awaitable<void> look_at_acl(session s, std::string path, findings& f) {
    try {
        const auto found = co_await s.zk.get_acl(path);
        if (open_to_the_world(found.acl))
            f.add(severity::warning, "acl", printable(path) + ": anybody who reaches the servers may change it");
    } catch (const zkasio::error& e) {
        if (e.code() != zkasio::zk_errc::no_node && e.code() != zkasio::zk_errc::no_auth) throw;
        if (e.code() == zkasio::zk_errc::no_auth)
            f.add(severity::fact, "acl", printable(path) + ": not for us to read");
    }
}

asio::awaitable<void> look_at_lock(session s, std::string path, std::chrono::milliseconds stuck, findings& f) {
    const lock_view v = co_await read_lock(s.zk, path);
    if (v.contenders.empty()) co_return;
    f.add(severity::fact, "lock", printable(path) + ": " + std::string(name_of(v.kind)) + ", " +
                                      std::to_string(v.holders().size()) + " of " +
                                      std::to_string(v.contenders.size()) + " hold it");
    for (const std::string& name : v.foreign)
        f.add(severity::problem, "foreign", printable(zkasio::join_path(path, name)) +
                                                " is no contender; libraries refuse the lock, or wait for ever");
    for (const contender& c : v.contenders) {
        if (c.session_id == 0)
            f.add(severity::problem, "orphan", printable(c.path) + " is not ephemeral: it never goes by itself");
        else if (c.holds && age_of(c.created_ms) >= stuck)
            f.add(severity::warning, "stuck",
                  printable(c.path) + " has been there for " + to_text(age_of(c.created_ms)) + ": " + describe(c));
    }
}

asio::awaitable<std::vector<std::string>> with_children(session s, std::string path, findings& f) {
    std::vector<std::string> paths{path};
    try {
        zkasio::node_children found = co_await s.zk.children(path);
        std::sort(found.names.begin(), found.names.end());
        for (const std::string& name : found.names)
            if (path != "/" || name != "zookeeper") paths.push_back(zkasio::join_path(path, name));
    } catch (const zkasio::error& e) {
        if (e.code() != zkasio::zk_errc::no_node && e.code() != zkasio::zk_errc::no_auth) throw;
        const bool missing = e.code() == zkasio::zk_errc::no_node;
        if (missing) paths.clear();
        const std::string why = missing ? "there is no such node" : "not for us to read";
        f.add(missing ? severity::problem : severity::fact, "path", printable(path) + ": " + why);
    }
    constexpr std::size_t most = 1000;
    if (paths.size() > most) {
        f.add(severity::fact, "path", printable(path) + ": only the first " + std::to_string(most) + " are looked at");
        paths.resize(most);
    }
    co_return paths;
}

}  // namespace

asio::awaitable<int> examine(session s, doctor_options o, connection_options c) {
    findings f(o.json);
    const auto begin = boot_clock::now();
    co_await s.zk.connected();
    look_at_session(s, boot_clock::now() - begin, c, f);
    co_await measure(s, false, f);
    co_await measure(s, true, f);
    // Four-letter words are asked in the clear.
    if (through_tls(c))
        f.add(severity::fact, "server", "versions are not asked for through TLS");
    else
        co_await look_at_servers(c.servers, f);
    const std::vector<std::string> paths = co_await with_children(s, o.path, f);
    for (const std::string& path : paths) {
        co_await look_at_acl(s, path, f);
        try {
            co_await look_at_lock(s, path, o.stuck, f);
        } catch (const zkasio::error& e) {
            if (e.code() != zkasio::zk_errc::no_auth) throw;
            f.add(severity::fact, "lock", e.what());
        }
    }
    co_return f.finish() ? exit_code::ok : exit_code::refused;
}

}  // namespace zklock
