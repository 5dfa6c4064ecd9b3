#include "commands.hpp"
#include "exit_code.hpp"
#include "find_locks.hpp"
#include "keys.hpp"
#include "lock_table.hpp"
#include "lock_view.hpp"
#include "lock_watch.hpp"
#include "node_text.hpp"
#include "terminal.hpp"

#include <zkasio/coroutines/task_scope.hpp>
#include <zkasio/printable.hpp>

#include <asio/this_coro.hpp>

#include <string>
#include <utility>

namespace zklock {
namespace {

using zkasio::printable;

asio::awaitable<void> end_at_key(key_reader& keys, zkasio::task_scope& tasks) {
    co_await keys.quit();
    tasks.cancel();
}

asio::awaitable<int> watch(session s, locks_options o) {
    key_reader keys(co_await asio::this_coro::executor);
    lock_watch locks(s, o, keys);
    auto body = [&](zkasio::task_scope& tasks) -> asio::awaitable<void> {
        if (keys.reads()) tasks.spawn(end_at_key(keys, tasks));
        co_await locks.run();
        tasks.cancel();
    };
    co_await zkasio::with_task_scope(body);
    co_return exit_code::ok;
}

int nobody_holds(const std::string& path) {
    say(printable(path) + ": no such node, so nobody holds it");
    return exit_code::refused;
}

nlohmann::ordered_json to_json(const lock_search& found) {
    nlohmann::ordered_json j;
    j["locks"] = nlohmann::ordered_json::array();
    for (const lock_view& v : found.locks) j["locks"].push_back(zklock::to_json(v));
    j["unreadable"] = found.unreadable;
    j["ephemeral"] = found.ephemeral;
    return j;
}

// What an operator might miss in the list.
void say_what_is_left_out(const lock_search& found, const std::string& path) {
    for (const std::string& node : found.unreadable)
        say(printable(node) + ": not for us to read, and left out: see `zklock acl` and --auth-file");
    const std::string nodes = std::to_string(found.ephemeral) + (found.ephemeral == 1 ? " node" : " nodes");
    if (found.ephemeral > 0)
        say(nodes + " outside of lock directories may be locks on one node: `zklock locks NODE` shows each");
    if (found.locks.empty()) say("nobody holds a lock at " + printable(path) + " or below, or waits for one");
}

asio::awaitable<int> list_tree(session s, locks_options o) {
    const lock_search found = co_await find_locks(s.zk, o.path);
    if (!found.exists) co_return nobody_holds(o.path);
    print(o.json ? dump(to_json(found)) : lines_of_locks(found.locks));
    if (!o.json) say_what_is_left_out(found, o.path);
    co_return exit_code::ok;
}

}  // namespace

asio::awaitable<int> show_locks(session s, locks_options o) {
    if (o.watch) co_return co_await watch(std::move(s), std::move(o));
    if (o.recursive) co_return co_await list_tree(std::move(s), std::move(o));
    const lock_view v = co_await read_lock(s.zk, o.path);
    if (!v.exists) co_return nobody_holds(o.path);
    print(o.json ? dump(zklock::to_json(v)) : to_text(v));
    co_return exit_code::ok;
}

}  // namespace zklock
