#pragma once

#include <zkasio/detail/seam/backend.hpp>
#include <zkasio/testing/detail/sim/sim_acl.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zkasio::testing_detail {

struct sim_node {
    std::string data;
    node_stat stat;
    zkasio::acl acl;  ///< empty: all permissions for every connection
    create_mode mode = create_mode::persistent;
    std::uint32_t created_children = 0;  ///< gives the next sequence number; removals do not reduce it

    std::chrono::milliseconds ttl{0};  ///< 0: no time to live. Not part of `stat`: its ephemeral_owner is 0
};

/// One change of one node.
struct sim_change {
    enum class kind {
        created,
        removed,
        data_set,
        acl_set,
    };
    kind what;
    std::string path;
    sim_node node;  ///< after the change; of a removed node: before
};

/// A committed transaction, which every server applies. Without changes, the transaction has failed, or only checked.
struct sim_txn {
    std::int64_t zxid = 0;
    std::int64_t time = 0;     ///< node_stat::ctime and mtime of what it writes
    std::int64_t session = 0;  ///< that asked for it; 0: an operator, or the servers themselves
    bool ends_session = false;
    std::vector<sim_change> changes;
};

/// A tree of nodes with ZooKeeper's rules. No input, no output.
class sim_tree {
public:
    sim_tree();

    const sim_node* find(const std::string& path) const;
    void for_each_child(const std::string& path,
                        const std::function<void(std::string name, const sim_node& child)>& f) const;
    std::vector<std::string> children(const std::string& path) const;  ///< sorted
    /// As a server lists them: as a Java HashSet of names is iterated, by buckets, of each the oldest child first.
    std::vector<std::string> children_as_listed(const std::string& path) const;
    const std::map<std::string, sim_node>& nodes() const noexcept { return nodes_; }
    std::vector<std::string> ephemerals_of(std::int64_t session) const;

    /// Checks the operation, applies it, and adds its changes to `txn`.
    /// @param who null: an operator, to whom no ACL applies
    detail::multi_result perform(const detail::multi_op& op, sim_txn& txn, const identities* who = nullptr);
    /// All operations or none. The code is that of the operation that failed.
    std::error_code perform(const std::vector<detail::multi_op>& ops, sim_txn& txn,
                            std::vector<detail::multi_result>& results, const identities* who = nullptr);
    detail::multi_result set_acl(const detail::set_acl_request& r, sim_txn& txn, const identities* who);
    /// Acts as a change of the ACLs of this node, and of all nodes below it.
    void touch_acls(const std::string& path, sim_txn& txn);

    /// Applies a change of another tree.
    void apply(const sim_change& c, std::int64_t zxid);

    /// Gives this number to the next sequential child.
    void set_next_sequence(const std::string& path, std::int32_t next);

private:
    detail::multi_result create(const detail::create_request& r, sim_txn& txn, const identities* who);
    detail::multi_result set(const detail::set_request& r, sim_txn& txn, const identities* who);
    detail::multi_result remove(const detail::remove_request& r, sim_txn& txn, const identities* who);
    detail::multi_result check(const detail::check_op& r, const identities* who) const;
    std::error_code refusal(const std::string& path, permission wanted, const identities* who) const;
    void change_acl(const std::string& path, zkasio::acl kept, sim_txn& txn);
    void parent_changed(const std::string& path, std::int64_t zxid, bool created);
    void record(sim_change::kind what, const std::string& path, sim_node node, sim_txn& txn);
    void keep(const std::string& path);

    std::map<std::string, sim_node> nodes_;
    bool undoable_ = false;
    std::vector<std::pair<std::string, std::optional<sim_node>>> before_;  // nodes before the undoable transaction
};

}  // namespace zkasio::testing_detail
