#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/bytes.hpp>
#include <zkasio/export.hpp>
#include <zkasio/membership/persistent_node.hpp>

#include <asio/awaitable.hpp>

#include <string>
#include <utility>

namespace zkasio {

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

}  // namespace zkasio
