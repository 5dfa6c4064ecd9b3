#pragma once

#include "simulation/tree_history.hpp"

#include <zkasio/cache/cache.hpp>
#include <zkasio/cache/tree_view.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>

namespace zkasio::test {

/// What a cache is to show.
struct cache_scope {
    std::string root;
    std::size_t depth = std::numeric_limits<std::size_t>::max();  ///< below the root
    bool root_data = true, data = true;
    std::string left_out;  ///< nodes of this name, and all below them; empty: none

    bool covers(const std::string& path) const;
    bool has_data(const std::string& path) const { return path == root ? root_data : data; }
    bool has_children(const std::string& path) const { return level(path) < depth; }

private:
    std::size_t level(const std::string& path) const;  // below the root
};

/// Looks at the views of a cache, one after another, or at the updates of one reader, and compares them with what the
/// tree has been. Throws `violation`.
///
/// No node is shown in an older state than before; one that is shown as current, in no state that was over when the
/// connection began. Updates lead from what was known to what is shown now, and look_again is only said to who has
/// missed more than is remembered.
class cache_witness {
public:
    cache_witness(const tree_history& history, cache_scope scope, std::string who)
        : history_(history), scope_(std::move(scope)), who_(std::move(who)), told_(history, who_) {}

    /// @param connected_at the zxid from which on a view that is current has to be.
    void sees(const tree_view& now, std::int64_t connected_at);
    /// @param remembered how many changes the cache remembers.
    void hears(const cache_update& update, std::size_t remembered, std::int64_t connected_at);
    /// Nothing is under way, and there is a connection.
    /// @param stats a change of nothing but the children is no change of a node, of which readers would be told.
    enum class also_stats {
        no,
        yes
    };
    void check_equal(const tree_view& now, const sim_tree& tree, also_stats stats) const;

private:
    using nodes = std::map<std::string, cached_node>;
    nodes nodes_in(const tree_view& view) const;
    void look_at(const tree_view& view, const nodes& shown, std::int64_t connected_at);
    void apply(const node_delta& change);
    [[noreturn]] void fail(const std::string& what) const;

    const tree_history& history_;
    cache_scope scope_;
    std::string who_;
    told_history told_;
    std::uint64_t version_ = 0;
    bool has_heard_ = false;
    nodes known_;  // to a reader
};

}  // namespace zkasio::test
