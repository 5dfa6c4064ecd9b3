#pragma once

#include <zkasio/acl.hpp>
#include <zkasio/asio_version.hpp>
#include <zkasio/bytes.hpp>
#include <zkasio/client.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/export.hpp>
#include <zkasio/membership/persistent_node.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zkasio {

/// How the members of a group are represented by nodes. All programs that share a group use the same.
enum class group_names {
    curator,              ///< `<id>` with data of the member's own: Curator's GroupMember
    kazoo_party,          ///< `<32 hex digits>__party__`, whose data is the id: kazoo's Party
    kazoo_shallow_party,  ///< `<32 hex digits>-<id>`: kazoo's ShallowParty
    /// As kazoo_shallow_party, with data of the member's own, which kazoo does not read: the members of a partitioner.
    /// The data of kazoo's own members are their ids.
    kazoo_shallow_party_with_data,
};

/// Whether members have data that the others see; otherwise, data are refused.
constexpr bool has_member_data(group_names names) noexcept {
    return names == group_names::curator || names == group_names::kazoo_shallow_party_with_data;
}

class group_options {
public:
    group_options() {}
    /// group_names::curator by default.
    group_options& names(group_names n) { names_ = n; return *this; }
    /// The ACL of the member's node and of directories created for it (client_options::default_acl()). It must let the
    /// other members read it.
    group_options& acl(zkasio::acl a) { acl_ = std::move(a); return *this; }

    group_names names() const noexcept { return names_; }
    const zkasio::acl& acl() const noexcept { return acl_; }

private:
    group_names names_ = group_names::curator;
    zkasio::acl acl_ = default_acl();
};

/// A member of a group.
struct member_info {
    std::string id;
    std::string data;  ///< none in the parties of kazoo, see has_member_data()
    std::string path;  ///< the member's node

    friend bool operator==(const member_info&, const member_info&) = default;
};

/// The members of a group, as a client knows them.
struct ZKASIO_EXPORT group_view {
    /// Sorted by id. In the parties of kazoo, several members may have the same id.
    std::vector<member_info> members;
    /// False: there is no connection, or not every node was read again since there is one. Then the view is what was
    /// known last.
    bool current = false;
    /// False: the directory exists, but its ACL does not let this client list it. Then `members` is empty.
    bool readable = true;

    /// The first member with this id; null when there is none.
    const member_info* find(std::string_view id) const noexcept;
    bool contains(std::string_view id) const noexcept { return find(id) != nullptr; }

    friend bool operator==(const group_view&, const group_view&) = default;
};

/// Follows the members of a group, on a children_cache: what children_cache says of sessions, lifetimes and watches
/// applies here.
///
/// *Lifetime*: move-only; ends when destroyed. A call that is still awaited then fails with errc::client_closed.
class ZKASIO_EXPORT group_observer {
public:
    /// As group::observe(). Throws errc::invalid_path.
    group_observer(client zk, std::string path, group_names names = group_names::curator);
    group_observer(group_observer&&) noexcept = default;
    group_observer& operator=(group_observer&&) noexcept = default;

    /// *Completes when* the members were read once; also when there is no group.
    /// *Fails with* what cache::ready() fails with.
    asio::awaitable<void> ready() const;

    /// The members known at this moment; none, and not current, before ready(). On any thread. A moved-from observer
    /// shows no members.
    group_view members() const;

    /// *Completes when* the view differs from the last one that next() has returned, with the newest view; the first
    /// time when the observer is ready(). If the view is no longer current, this is such a change, too.
    /// *Fails with* what cache_changes::next() fails with; errc::invalid_argument when another coroutine awaits next().
    /// *Cancellation*: ends the wait; the next call tells what this one has not told.
    asio::awaitable<group_view> next() const;

    /// As next(), but completes when the members have not changed for the time `quiet`, or `at_most` after the first
    /// change: many members that start are one change. If the members have become what they were before, the view may
    /// equal the last one. A view that is not current is told when there was no connection for `quiet`; a connection
    /// that is back, with the same members, begins nothing anew.
    /// *Fails with* what next() fails with; errc::invalid_argument for a negative time.
    asio::awaitable<group_view> settled(any_duration quiet,
                                        any_duration at_most = std::chrono::nanoseconds::max()) const;

private:
    struct reader;
    struct state;
    std::shared_ptr<state> state_;
};

/// The membership of this client in a group, until this object is destroyed: the node that shows the membership is
/// re-created whenever it goes, also in a new session. Move-only. Lifetime, threads, and the moved-from state are those
/// of persistent_node, which a membership is made of.
class ZKASIO_EXPORT group_membership {
public:
    group_membership() noexcept = default;
    /// For writers of recipes. @param has_data whether set_data() is possible.
    group_membership(std::string id, bool has_data, persistent_node node) noexcept
        : id_(std::move(id)), has_data_(has_data), node_(std::move(node)) {}
    group_membership(group_membership&&) noexcept = default;
    group_membership& operator=(group_membership&&) noexcept = default;

    const std::string& id() const noexcept { return id_; }
    /// The member's node.
    const std::string& path() const noexcept { return node_.path(); }

    /// Sets the data that the other members see, see persistent_node::set_data().
    /// *Fails with* errc::invalid_argument where members have no data, see has_member_data().
    asio::awaitable<void> set_data(bytes data) const;

    /// persistent_node_state::standing: the other members see this one, as far as this client knows.
    persistent_node_state state() const noexcept { return node_.state(); }
    /// See persistent_node::state_after().
    asio::awaitable<persistent_node_state> state_after(persistent_node_state known) const {
        return node_.state_after(known);
    }
    /// See persistent_node::ended().
    asio::awaitable<void> ended() const { return node_.ended(); }

    /// Leaves the group: from the call on, this client is not in it.
    /// *Completes when* a server has confirmed that; see persistent_node::leave().
    asio::awaitable<void> leave() const { return node_.leave(); }

private:
    std::string id_;
    bool has_data_ = true;
    persistent_node node_;
};

/// A group: tells which members are there, among all processes that name the same `path`. Java and Python programs can
/// share it, see group_names.
///
/// The coroutines of a group keep what they need: the object may be destroyed before they are awaited, and while they
/// run. One object may be used by any number of coroutines concurrently, on any executors. A moved-from object refuses
/// everything with errc::invalid_argument. Copies name the same group.
class ZKASIO_EXPORT group {
public:
    /// @param path a directory for this group only; created when it is missing: as a container, in the parties of kazoo
    /// as a node that stays. Throws errc::invalid_path.
    group(client zk, std::string path, group_options options = group_options());

    /// *Completes when* this client is in the group. If another session is in the group with this id, join() waits
    /// until that session has left or expired; it may be the session of a process that has crashed and was started
    /// again. In the parties of kazoo, several members may have the same id.
    /// *Fails with* what persistent_node::created() fails with; errc::invalid_argument for an id that is no name of a
    /// node, in any group_names, when this client is in the group with this id already, and for `data` where members
    /// have none, see has_member_data().
    /// *Cancellation*: leaves in the background; the error's hint as that of persistent_node::created().
    asio::awaitable<group_membership> join(std::string id, bytes data = bytes()) const;

    /// Reads the members once.
    /// *Fails with* zk_errc::no_auth when the directory's ACL does not let this client list it; else as cache::ready():
    /// members() waits for a connection.
    asio::awaitable<group_view> members() const;

    /// Follows the members from now on.
    group_observer observe() const;

    const std::string& path() const noexcept { return path_; }

private:
    client zk_;
    std::string path_;
    group_options options_;
};

}  // namespace zkasio
