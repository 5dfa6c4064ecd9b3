#include "worker.hpp"

#include <zkasio/cache/tree_cache.hpp>
#include <zkasio/error.hpp>
#include <zkasio/membership/group.hpp>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

namespace soak {
namespace {

using namespace std::chrono_literals;

const std::string tree = root + "/tree";

std::string some_node(worker& w) {
    std::string path = tree + "/" + std::to_string(w.random() % 5);
    if (!w.one_in(5)) path += "/" + std::to_string(w.random() % 10);
    return path;
}

awaitable<void> change(worker& w) {
    while (!w.stopping) {
        co_await w.think(300ms);
        const std::string path = some_node(w);
        try {
            if (w.one_in(4)) co_await w.zk.remove_recursive(path);
            else if (w.one_in(2)) co_await w.zk.create_or_set(path, std::to_string(w.random()));
            else co_await w.zk.set(path, std::to_string(w.random()));
        } catch (const zkasio::error&) {  // also: no node, no parent
        }
    }
}

// A cache never goes back to an older state of a node.
awaitable<void> watch_order(worker& w) {
    const zkasio::cache_changes changes = w.seen->nodes.changes();
    std::map<std::string, std::int64_t> last;
    const auto look = [&](const std::string& path, const zkasio::cached_node& node, bool same) {
        std::int64_t& known = last[path];
        if (node.stat().mzxid < known || (!same && node.stat().mzxid == known))
            w.log.note("bad 0 the cache shows " + path + " of " + std::to_string(node.stat().mzxid) + " after " +
                       std::to_string(known));
        known = node.stat().mzxid;
    };
    try {
        for (;;) {
            const zkasio::cache_update update = co_await changes.next();
            if (update.look_again)
                update.now.for_each([&](const std::string& p, const zkasio::cached_node& n) { look(p, n, true); });
            for (const zkasio::node_delta& d : update.changes)
                if (d.after) look(d.path, d.after, false);
        }
    } catch (const std::exception&) {  // the client was closed
    }
}

using contents = std::map<std::string, std::string>;

std::string text_of(const std::string& data, const zkasio::node_stat& stat) {
    return data + " " + std::to_string(stat.czxid) + " " + std::to_string(stat.mzxid);
}

contents in_cache(const worker& w) {
    contents all;
    w.seen->nodes.snapshot().for_each([&](const std::string& path, const zkasio::cached_node& node) {
        all[path] = text_of(node.data(), node.stat());
    });
    return all;
}

awaitable<void> read_all(zkasio::client zk, std::string path, contents& all) {
    const zkasio::node_data node = co_await zk.get(path);
    all[path] = text_of(node.data, node.stat);
    const zkasio::node_children children = co_await zk.children(path);
    for (const std::string& name : children.names) co_await read_all(zk, path + "/" + name, all);
}

awaitable<void> join(worker& w) {
    // The id of the process that was killed before is free when its session has expired.
    while (!w.stopping) {
        try {
            zkasio::group_membership mine = co_await w.seen->group.join(w.name.substr(0, w.name.find('.')));
            w.seen->mine.emplace(std::move(mine));
            co_return;
        } catch (const zkasio::error&) {
        }
        co_await w.pause(500ms);
    }
}

}  // namespace

view::view(const zkasio::client& zk) : nodes(zk, tree), group(zk, root + "/group"), members(group.observe()) {}

void start_views(worker& w) {
    w.seen = std::make_shared<view>(w.zk);
    w.start(change(w));
    w.start(join(w));
    asio::co_spawn(w.io, watch_order(w), asio::detached);
}

awaitable<std::string> what_is_seen(worker& w) {
    contents cached, read;
    for (int i = 0; i < 100; ++i) {
        try {
            co_await w.zk.sync(root);
            read.clear();
            co_await read_all(w.zk, tree, read);
        } catch (const zkasio::error&) {
        }
        cached = in_cache(w);
        if (w.seen->nodes.snapshot().current() && cached == read) break;
        co_await w.pause(300ms);
    }
    if (cached != read) {
        w.log.note("bad 0 the cache has other nodes than the servers");
        for (const auto& [path, text] : read)
            if (cached[path] != text) w.log.note("bad 0 " + path + ": " + cached[path] + " instead of " + text);
    }
    std::string all;
    for (const auto& [path, text] : cached) all += path + " " + text + "\n";
    std::string seen = std::to_string(cached.size()) + " " + std::to_string(std::hash<std::string>()(all));
    const zkasio::group_view members = w.seen->members.members();
    for (const zkasio::member_info& m : members.members) seen += " " + m.id;
    co_return seen;
}

}  // namespace soak
