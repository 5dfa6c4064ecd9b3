#include "any_change.hpp"
#include "commands.hpp"
#include "exit_code.hpp"
#include "keys.hpp"
#include "lock_view.hpp"
#include "node_text.hpp"
#include "terminal.hpp"

#include <zkasio/coroutines/task_scope.hpp>
#include <zkasio/error.hpp>
#include <zkasio/printable.hpp>
#include <zkasio/watch.hpp>

#include <asio/this_coro.hpp>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace zklock {
namespace {

using namespace std::chrono_literals;

constexpr const char* clear_screen = "\x1b[H\x1b[2J";

void show(const lock_view& v, const locks_options& o, const key_reader& keys) {
    if (o.json)
        print(dump(to_json(v), json_layout::one_line));
    else if (!output_is_terminal())
        print(to_text(v));
    else
        print(clear_screen + to_text(v) + (keys.reads() ? painted(colour::dim, "q ends") + "\n" : ""));
}

// Set before the lock is looked at: what changes behind the look fires.
asio::awaitable<std::vector<zkasio::watch>> watch_directories(zkasio::client zk, std::string path) {
    std::vector<zkasio::watch> watches;
    auto there = co_await zk.exists_and_watch(path);
    watches.push_back(std::move(there.changes));
    if (!there.value) co_return watches;
    const std::vector<std::string> directories{path, path + "/leases", path + "/locks"};
    for (const std::string& directory : directories) {
        try {
            auto listed = co_await zk.children_and_watch(directory);
            watches.push_back(std::move(listed.changes));
        } catch (const zkasio::error& e) {
            if (e.code() != zkasio::zk_errc::no_node) throw;
        }
    }
    co_return watches;
}

// Shows the lock, and every change of it.
asio::awaitable<void> follow(session s, locks_options o, const key_reader& keys) {
    for (;;) {
        const std::vector<zkasio::watch> watches = co_await watch_directories(s.zk, o.path);
        const lock_view v = co_await read_lock(s.zk, o.path);
        show(v, o, keys);
        // A screen shows ages, and data, which nobody watches, anew after a second.
        if (output_is_terminal() && !o.json)
            co_await any_changed_or_expired(watches, 1s);
        else
            co_await any_changed_or_expired(watches);
    }
}

asio::awaitable<void> end_at_key(key_reader& keys, zkasio::task_scope& tasks) {
    co_await keys.quit();
    tasks.cancel();
}

}  // namespace

asio::awaitable<int> show_locks(session s, locks_options o) {
    if (o.watch) {
        key_reader keys(co_await asio::this_coro::executor);
        auto body = [&](zkasio::task_scope& tasks) -> asio::awaitable<void> {
            if (keys.reads()) tasks.spawn(end_at_key(keys, tasks));
            co_await follow(s, o, keys);
        };
        co_await zkasio::with_task_scope(body);
        co_return exit_code::ok;
    }
    const lock_view v = co_await read_lock(s.zk, o.path);
    if (!v.exists) {
        say(zkasio::printable(o.path) + ": no such node, so nobody holds it");
        co_return exit_code::refused;
    }
    print(o.json ? dump(to_json(v)) : to_text(v));
    co_return exit_code::ok;
}

}  // namespace zklock
