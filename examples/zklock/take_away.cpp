// break and revoke: somebody else's lock.
#include "commands.hpp"
#include "duration.hpp"
#include "exit_code.hpp"
#include "lock_view.hpp"
#include "node_text.hpp"
#include "question.hpp"
#include "terminal.hpp"

#include <zkasio/error.hpp>
#include <zkasio/locks/revocation.hpp>
#include <zkasio/path.hpp>
#include <zkasio/printable.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace zklock {
namespace {

using zkasio::printable;

// The contenders that are meant: the one that was named, else who holds it.
std::vector<contender> chosen(const lock_view& v, const locks_options& o) {
    if (o.node.empty()) return v.holders();
    for (const contender& c : v.contenders)
        if (c.path == o.node || zkasio::node_name(c.path) == o.node) return {c};
    return {};
}

std::string line_about(const contender& c) {
    return describe(c) + ", " + to_text(age_of(c.created_ms)) + ", " + printable(zkasio::node_name(c.path));
}

// None: said so.
asio::awaitable<std::vector<contender>> find(session s, locks_options o) {
    const lock_view v = co_await read_lock(s.zk, o.path);
    std::vector<contender> found = chosen(v, o);
    const std::string nobody = o.node.empty() ? "nobody holds it" : "there is no contender " + printable(o.node);
    if (found.empty()) say(printable(o.path) + ": " + nobody);
    co_return found;
}

}  // namespace

asio::awaitable<int> break_lock(session s, locks_options o) {
    const std::vector<contender> found = co_await find(s, o);
    if (found.empty()) co_return exit_code::refused;
    if (found.size() > 1) {
        say("several hold it; say which with --node:");
        for (const contender& c : found) say("  " + line_about(c));
        co_return exit_code::usage;
    }
    const contender victim = found.front();
    if (!o.yes) {
        const std::string question = "Take " + printable(o.path) + " away from " + line_about(victim) + "?";
        const answer a = co_await ask(question);
        if (a != answer::yes) co_return a == answer::no ? exit_code::refused : exit_code::usage;
    }
    bool gone = false;
    try {
        co_await s.zk.remove(victim.path);
    } catch (const zkasio::error& e) {
        if (e.code() != zkasio::zk_errc::no_node) throw;
        gone = true;
    }
    print(gone ? "It had gone by itself.\n" : "Taken away: " + line_about(victim) + "\n");
    co_return exit_code::ok;
}

asio::awaitable<int> revoke_lock(session s, locks_options o) {
    const std::vector<contender> found = co_await find(s, o);
    if (found.empty()) co_return exit_code::refused;
    const auto data = o.keep_data ? zkasio::holder_data::kept : zkasio::holder_data::replaced;
    for (const contender& c : found) {
        co_await zkasio::revoke(s.zk, c.path, data);
        print("Asked: " + line_about(c) + "\n");
    }
    co_return exit_code::ok;
}

}  // namespace zklock
