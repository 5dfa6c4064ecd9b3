#pragma once

#include <zkasio/cache/detail/tree_store.hpp>
#include <zkasio/cache/streams.hpp>
#include <zkasio/recipe/node_feed.hpp>

#include <cstddef>
#include <deque>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace zkasio::cache_detail {

/// The nodes and the data that a cache reads.
struct tree_scope {
    std::size_t depth = std::numeric_limits<std::size_t>::max();  ///< levels below the root; 0: the root alone
    bool root_data = true, data = true;                           ///< read the data: of the root, below the root
    std::function<bool(const std::string& path)> filter;          ///< null: all nodes
    std::function<bool(const std::string& path)> filter_below;    ///< null: the children of all nodes
    node_parser parse;                                            ///< null: data are not parsed
};

/// A node was added, has changed its data, or was removed.
struct tree_delta {
    std::string path;
    value_ptr before, after;  ///< null before: the node was added; null after: the node was removed
};

/// Decides what a cache does next: which nodes are read when which watches fire, and what follows from the answers.
/// Pure: the caller sends the reads, and reports the connection, the watches and the answers in the order in which they
/// come.
///
/// Rules, based on a guarantee of ZooKeeper for one connection: a change is told before any answer that shows it.
/// - C1: a node is read with a watch; when the watch fires, the node is read again. So every change is followed by a
///   read.
/// - C2: if a node changes while a read is under way, the node is read again: the answer may be older than the change.
/// - C3: the known state of a node is compared by czxid, mzxid and aversion, and the names of its children (C5) by the
///   names: nothing relies on pzxid. Another czxid is another node of the same name: the old node counts as removed,
///   with all nodes below it that are older than the new node, and the new node as added. (`version` begins again, and
///   may look the same.) Nodes below that are younger than the new node were read before the new node, and stay.
/// - C4: without a connection, no change of a watched node is reported. With the next connection all nodes are looked
///   at again, from the root downwards; until then snapshots say that they are not current.
/// - C5: the names of the children are read with a watch of their own, unless the node is ephemeral or at the depth
///   limit. A child that is no longer listed is removed, with all nodes below it.
/// - C6: a missing root is watched for its creation.
/// - C7: data that an ACL denies this client are no failure: the node exists, and is not readable. Children whose names
///   are denied do not exist for the cache, and their parent is not readable. A change of an ACL fires no watch, and
///   servers do not report changes of a node that the client may not read. So the node is read again whenever there is
///   a reason: its data or its parent's children change, there is another connection, or a server has accepted a
///   credential. These reads ask for the data, because the stat need not tell whether the data may be read. Known data
///   are forgotten when a server refuses them later.
/// - C8: the first look of a connection is at the nodes that existed when the connection began: the root, and the nodes
///   named by the first listing of each of them. When all of them were read once, the known state counts as current,
///   even if some of these nodes are being read again, and even if nodes that were added later were not read yet: these
///   are changes like all later ones. Otherwise a tree that changes faster than it is read would never become current.
///   The reads of the first look go before all others.
/// - C9: as long as servers refuse some nodes (C7), these are read again from time to time, see look_at_refused(). So
///   they are found when their ACL permits it, even if nothing else gives a reason to read them.
/// - C10: on a connection with one recursive watch of the root, reads set no watches, and the watch tells of every node
///   at or below the root that is created, changed or removed, as often as that happens. Names are then listed once for
///   each node, in the first look, and only if its stat says that it has children; a created node is added to its
///   parent if the parent's children are known. (The fields of the parent's stat that count children are those of its
///   last read.) A change of an unknown node counts as its creation: servers tell nothing of a node that the client may
///   not read (C7), so this may be the first that is heard of it.
class tree_sync {
public:
    tree_sync(std::string root, tree_scope scope) : tree_(std::move(root)), scope_(std::move(scope)) {}

    struct read {
        node_read what;
        std::string path;
        bool first_look = false;  ///< belongs to the first look of the connection (C8)
    };

    // ---------------------------------------------------------------------------------------------- what has happened
    /// @param by_one_watch the root has a recursive watch on this connection (C10).
    void connected(bool by_one_watch = false);
    bool by_one_watch() const noexcept { return by_one_watch_; }
    /// Whether the node is below the depth limit: nothing of it is wanted.
    bool is_too_deep(std::string_view path) const noexcept { return tree_.depth(path) > scope_.depth; }
    void disconnected();
    void changed(node_change what, const std::string& path);
    void answered(node_read what, const std::string& path, std::error_code code, node_answer&& answer);
    /// Servers may permit more reads from now on (C7).
    void authenticated();
    /// Some time has passed (C9): asks again for up to `most` of the refused nodes, and in the next call for others.
    /// True: all of them had their turn, and the next call begins again.
    bool look_at_refused(std::size_t most);

    // ---------------------------------------------------------------------------------------------- what is to be done
    /// The next read to be sent. From now on this read counts as under way.
    std::optional<read> next_read();
    std::size_t under_way() const noexcept { return under_way_.size(); }
    /// Watches that are set and have become useless since the last call.
    std::vector<read> take_left();
    /// A read has failed and can be repeated: the next read has to wait until resume().
    bool put_off() const noexcept { return put_off_; }
    void resume() noexcept { put_off_ = false; }
    /// Whether look_at_refused() is to be called some time. May be true although no node is refused any longer.
    bool has_refused() const noexcept { return !refused_.empty(); }
    /// Whether a node that was readable has been refused since the last call, or the other way round: there may be
    /// more of these, so look_at_refused() is to be called soon.
    bool take_other_permissions() noexcept { return std::exchange(other_permissions_, false); }

    // ------------------------------------------------------------------------------------------------ what is known
    const tree_store& tree() const noexcept { return tree_; }
    /// All nodes have been looked at since the connection began (C8); later changes are shown as they happen.
    bool current() const noexcept { return current_; }
    /// The changes since the last call.
    std::vector<tree_delta> take_deltas() { return std::exchange(deltas_, {}); }
    /// Whether something has changed since the last call of take_dirty(), if only in a stat.
    bool dirty() const noexcept { return dirty_; }
    bool take_dirty() noexcept { return std::exchange(dirty_, false); }

    bool watches(node_read what, std::string_view path) const noexcept;
    /// Each watch that is set, and some that may not be: a node that is to be read again may or may not be watched.
    void for_each_watch(const std::function<void(node_read, const std::string&)>& f) const;

private:
    bool wants_data(std::string_view path) const noexcept {
        return tree_.is_root(path) ? scope_.root_data : scope_.data;
    }
    bool wants_children(const std::string& path, const node_stat& stat) const noexcept {
        return !stat.is_ephemeral() && tree_.depth(path) < scope_.depth && wanted_below(path);
    }
    bool wanted_below(const std::string& path) const noexcept;
    bool wanted(const std::string& path) const noexcept;
    bool is_known(node_read what, std::string_view path) const noexcept;
    read_state& state_of(node_read what, tree_node* node) const noexcept;

    void ask(node_read what, const std::string& path);
    void ask_again(const std::string& path);
    void unknown_changed(const std::string& path);
    static bool is_refused(const tree_node& node) noexcept;
    void look_at(const std::string& path);
    void look_below(const std::string& path, bool has_none = false);
    tree_node& node_of(const std::string& path, const node_stat& stat);
    void forget_old(const std::string& path, std::int64_t czxid);
    void data_answered(const std::string& path, node_answer&& answer);
    void stat_answered(const std::string& path, const node_stat& stat);
    void children_answered(const std::string& path, node_answer&& answer);
    void children_listed(const std::string& path, const std::vector<std::string>& names);
    static bool is_followed(const tree_node& node) noexcept;
    void missing(node_read what, const std::string& path);
    void refused(node_read what, const std::string& path);
    void root_changed(node_change what);
    void set(const std::string& path, value_ptr value);
    void set_readable(const std::string& path, bool readable);
    void update_stat(const std::string& path, const node_stat& stat);
    void remove(const std::string& path);
    void leave_below(const std::string& path);
    void leave(const std::string& path);
    bool take_first_look(node_read what, std::string_view path);
    bool is_under_way(node_read what, std::string_view path) const noexcept;
    void settle() noexcept;

    tree_store tree_;
    tree_scope scope_;
    mutable read_state root_state_ = read_state::none;  // of a missing root: whether its creation is watched
    std::deque<read> first_looks_, queue_;
    std::deque<read> under_way_;  // in the order in which they were sent
    std::set<std::string> refused_;  // C9: nodes that were refused, and perhaps still are
    std::string last_refused_;       // the last one that look_at_refused() has asked for
    bool other_permissions_ = false;
    bool some_are_lost_ = false;  // nodes that reads under way were sent for may have been removed
    bool up_ = false, current_ = false, put_off_ = false, dirty_ = false;
    bool by_one_watch_ = false;  // C10
    bool first_look_ = false;  // C8: reads that are queued now belong to the first look
    std::vector<tree_delta> deltas_;
    std::vector<read> left_;
};

}  // namespace zkasio::cache_detail
