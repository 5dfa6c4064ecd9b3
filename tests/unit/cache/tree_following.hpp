#pragma once

#include "support/catch.hpp"
#include "unit/cache/tree_servers.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace zkasio::test {

using known_nodes = std::map<std::string, std::pair<std::string, std::int64_t>>;  // path to data and mzxid

inline known_nodes known(const cache_detail::tree_sync& of) {
    known_nodes all;
    of.tree().for_each(of.tree().root_path(), [&](const std::string& path, const cache_detail::tree_node& node) {
        if (node.value) all[path] = {node.value->data, node.value->stat.mzxid};
    });
    return all;
}

// What a reader knows who hears of nothing but the changes.
inline void tell(known_nodes& to, const std::vector<cache_detail::tree_delta>& changes) {
    for (const cache_detail::tree_delta& d : changes) {
        CHECK((d.before ? to.contains(d.path) && to.at(d.path).second == d.before->stat.mzxid : !to.contains(d.path)));
        if (d.after)
            to[d.path] = {d.after->data, d.after->stat.mzxid};
        else
            to.erase(d.path);
    }
}

/// A cache's decisions, servers that it follows, and what a reader of its changes knows.
struct following {
    explicit following(std::string root = "/r", cache_detail::tree_scope scope = {})
        : sync(std::move(root), std::move(scope)) {}
    cache_detail::tree_sync sync;
    tree_servers servers{sync};
    known_nodes told;

    void settle() {
        servers.settle();
        tell(told, sync.take_deltas());
        CHECK(sync.current());
        CHECK(told == known(sync));
        CHECK(sync.tree().size() == told.size());
        std::size_t watches = 0;
        sync.for_each_watch([&](node_read what, const std::string& path) {
            ++watches;
            CHECK(servers.watched(what, path));
            CHECK(sync.watches(what, path));
        });
        CHECK(servers.watches() == watches);
        CHECK(servers.not_named == 0);
        CHECK(servers.not_set == 0);
    }
    std::string data(const std::string& path) const {
        const auto n = told.find(path);
        return n == told.end() ? "nothing" : n->second.first;
    }
};

}  // namespace zkasio::test
