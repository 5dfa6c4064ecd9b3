#pragma once

#include <zkasio/cache/detail/tree_store.hpp>
#include <zkasio/recipe/node_feed.hpp>

#include <cstddef>
#include <deque>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace zkasio::cache_detail {

/// What a cache is to know.
struct tree_scope {
    std::size_t depth = std::numeric_limits<std::size_t>::max();  ///< how far below the root; 0: the root alone
    bool root_data = true, data = true;                           ///< of the root, and of what is below it
    std::function<bool(const std::string& path)> filter;          ///< null: everything
};

/// A node has come, has changed its data, or has gone.
struct tree_delta {
    std::string path;
    value_ptr before, after;  ///< null: there was none; there is none any more
};

/// What a cache does next: which nodes are read when which watches fire, and what follows from the answers. Pure: the
/// caller sends the reads, and tells of the connection, the watches and the answers in the order in which they come.
///
/// Rules. They rely on what ZooKeeper promises of one connection: a change is told before any answer that shows it.
/// - C1: a node is read with a watch; when that fires, it is read again. So behind every change there is a read.
/// - C2: what changes while a read is under way is read again: the answer may be older than the change.
/// - C3: what is known of a node is compared by czxid, mzxid and pzxid. Another czxid is another node of the same name:
///   it counts as removed, with all below it that is older than the new one, and added. (`version` begins anew, and may
///   look the same.) What is younger was read first, and stays.
/// - C4: without a connection nothing is known of what is watched. With the next one everything is looked at again from
///   the root downwards; until then snapshots say that they are not current.
/// - C5: the names of the children are read with a watch of their own, unless the node is ephemeral or at the depth
///   limit. A name that is not listed any more is gone, with all below it.
/// - C6: a root that is missing is watched for its creation.
/// - C7: data that an ACL keeps from us is no failure: the node is there, and not readable. Children whose names are
///   kept from us are not there, and their parent is not readable. A change of an ACL fires no watch, and servers do
///   not tell of changes of a node that one may not read, so we ask again whenever there is a reason to: its data or
///   its parent's children change, there is another connection, or a server has accepted a credential. Then the data
///   are read: the stat need not tell that they may be. Data that were known are forgotten when a server refuses them
///   since.
/// - C8: the first look of a connection is at the nodes that were there when it began: the root, and what the first
///   listing of each of them names. When all of them were read once, what is known counts as current, even if some of
///   it is being read again, and even if nodes that came later were not read yet: these are changes as any that comes
///   from then on. Else a tree that changes faster than it is read would never become current. The reads of the first
///   look go before all others.
class tree_sync {
public:
    tree_sync(std::string root, tree_scope scope) : tree_(std::move(root)), scope_(std::move(scope)) {}

    struct read {
        node_read what;
        std::string path;
        bool first_look = false;  ///< C8
    };

    // ---------------------------------------------------------------------------------------------- what has happened
    void connected();
    void disconnected();
    void changed(node_change what, const std::string& path);
    void answered(node_read what, const std::string& path, std::error_code code, node_answer&& answer);
    /// Servers may permit more from now on (C7).
    void authenticated();

    // ---------------------------------------------------------------------------------------------- what is to be done
    /// The next read. It counts as under way from now on.
    std::optional<read> next_read();
    std::size_t under_way() const noexcept { return under_way_.size(); }
    /// Watches that stand and are of no use any more, since the last call.
    std::vector<read> take_left() { return std::exchange(left_, {}); }
    /// A server has put us off: the next read has to wait until resume().
    bool put_off() const noexcept { return put_off_; }
    void resume() noexcept { put_off_ = false; }

    // ------------------------------------------------------------------------------------------------ what is known
    const tree_store& tree() const noexcept { return tree_; }
    /// Everything has been looked at since the connection stands (C8); what changes from now on comes as it happens.
    bool current() const noexcept { return current_; }
    /// What has changed since the last call.
    std::vector<tree_delta> take_deltas() { return std::exchange(deltas_, {}); }
    /// Something has changed since the last call, if only in a stat.
    bool take_dirty() noexcept { return std::exchange(dirty_, false); }

    bool watches(node_read what, std::string_view path) const noexcept;
    /// Each that stands, and some that do not: a node that is to be read again may be watched, or not any more.
    void for_each_watch(const std::function<void(node_read, const std::string&)>& f) const;

private:
    bool wants_data(std::string_view path) const noexcept {
        return tree_.is_root(path) ? scope_.root_data : scope_.data;
    }
    bool wants_children(std::string_view path, const node_stat& stat) const noexcept {
        return stat.ephemeral_owner == 0 && tree_.depth(path) < scope_.depth;
    }
    bool wanted(const std::string& path) const noexcept;
    bool is_known(node_read what, std::string_view path) const noexcept;
    read_state& state_of(node_read what, tree_node* node) const noexcept;

    void ask(node_read what, const std::string& path);
    void look_at(const std::string& path);
    void look_below(const std::string& path);
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
    mutable read_state root_state_ = read_state::none;  // of a root that is missing: whether its creation is watched
    std::deque<read> first_looks_, queue_;
    std::deque<read> under_way_;  // in the order in which they were sent
    bool some_are_lost_ = false;  // of those under way: nodes that they were sent for may have been removed
    bool up_ = false, current_ = false, put_off_ = false, dirty_ = false;
    bool first_look_ = false;  // C8: what is asked for now belongs to the first look
    std::vector<tree_delta> deltas_;
    std::vector<read> left_;
};

}  // namespace zkasio::cache_detail
