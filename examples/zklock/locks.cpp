#include "any_change.hpp"
#include "commands.hpp"
#include "exit_code.hpp"
#include "lock_view.hpp"
#include "node_text.hpp"
#include "terminal.hpp"

#include <zkasio/error.hpp>
#include <zkasio/printable.hpp>
#include <zkasio/watch.hpp>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace zklock {
namespace {

using namespace std::chrono_literals;

constexpr const char* clear_screen = "\x1b[H\x1b[2J";

void show(const lock_view& v, const locks_options& o) {
    if (o.json) {
        print(o.watch ? to_json(v).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n"
                      : dump(to_json(v)));
        return;
    }
    const bool screen = o.watch && output_is_terminal();
    print((screen ? clear_screen : "") + to_text(v));
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

}  // namespace

asio::awaitable<int> show_locks(session s, locks_options o) {
    for (;;) {
        std::vector<zkasio::watch> watches;
        if (o.watch) watches = co_await watch_directories(s.zk, o.path);
        const lock_view v = co_await read_lock(s.zk, o.path);
        if (!v.exists && !o.watch) {
            say(zkasio::printable(o.path) + ": no such node, so nobody holds it");
            co_return exit_code::refused;
        }
        show(v, o);
        if (!o.watch) co_return exit_code::ok;
        // A screen shows ages, and data, which nobody watches, anew after a second.
        if (output_is_terminal() && !o.json)
            co_await any_changed_or_expired(watches, 1s);
        else
            co_await any_changed_or_expired(watches);
    }
}

}  // namespace zklock
