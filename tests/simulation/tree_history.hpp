#pragma once

#include "simulation/sim_names.hpp"

#include <zkasio/cache/tree_view.hpp>
#include <zkasio/types.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace zkasio::test {

/// What became of each node of a sim_tree: of its data, change by change; of its children, transaction by transaction.
class tree_history {
public:
    struct state {
        std::int64_t since = 0;  ///< zxid
        bool there = false;
        std::int64_t czxid = 0, mzxid = 0;
        std::string data;
    };
    struct listing {
        std::int64_t since = 0;  ///< zxid
        bool there = false;
        std::int64_t czxid = 0, pzxid = 0;
        std::vector<std::string> names;
    };
    using states = std::vector<state>;
    using listings = std::vector<listing>;

    /// @param after the tree as this transaction has left it.
    void committed(const sim_txn& txn, const sim_tree& after);

    /// In order; the first is that of the beginning, when there was the root only.
    const states& states_of(const std::string& path) const;
    const listings& listings_of(const std::string& path) const;
    /// The paths of all nodes that have ever been there, but the root.
    const std::map<std::string, states>& nodes() const noexcept { return states_; }

private:
    std::map<std::string, states> states_;
    std::map<std::string, listings> listings_;
};

/// How far somebody is who is told what a tree was, and never an older state after a newer one. Throws `violation` when
/// he is told what has never been, or is over.
class told_history {
public:
    told_history(const tree_history& history, std::string who) : history_(&history), who_(std::move(who)) {}

    /// @param node empty: there is none. @param floor a zxid: what was over by then counts no more.
    void shows(const std::string& path, const cached_node& node, bool with_data, std::int64_t floor = 0);
    /// The same, and it is another state than the one that was told before.
    void tells(const std::string& path, const std::optional<node_data>& value, std::int64_t floor);
    void tells(const std::string& path, const std::optional<node_children>& children, std::int64_t floor);

private:
    template <class States, class Fits>
    void advance(const States& states, const std::string& path, std::int64_t floor, bool is_news, Fits fits);

    const tree_history* history_;
    std::string who_;
    std::map<std::string, std::size_t> at_;  // in the history of the path: what was told last
};

}  // namespace zkasio::test
