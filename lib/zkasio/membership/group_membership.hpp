#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/bytes.hpp>
#include <zkasio/export.hpp>
#include <zkasio/membership/persistent_node.hpp>

#include <asio/awaitable.hpp>

#include <string>
#include <utility>

namespace zkasio {

/// We are in a group, until this is destroyed: the node that shows it is made anew whenever it goes, also in a new
/// session. Move-only. Lifetime, threads, and what becomes of one that was moved from: as with persistent_node, which
/// it is made of.
class ZKASIO_EXPORT group_membership {
public:
    group_membership() noexcept = default;
    /// For writers of recipes. @param has_data whether it can be set.
    group_membership(std::string id, bool has_data, persistent_node node) noexcept
        : id_(std::move(id)), has_data_(has_data), node_(std::move(node)) {}
    group_membership(group_membership&&) noexcept = default;
    group_membership& operator=(group_membership&&) noexcept = default;

    const std::string& id() const noexcept { return id_; }
    /// Of the node.
    const std::string& path() const noexcept { return node_.path(); }

    /// For the others to see, see persistent_node::set_data(). *Fails with* errc::invalid_argument in the parties of
    /// kazoo, whose members have none.
    asio::awaitable<void> set_data(bytes data) const;

    /// persistent_node_state::standing: the others see us, as far as we know.
    persistent_node_state state() const noexcept { return node_.state(); }
    /// See persistent_node::state_after().
    asio::awaitable<persistent_node_state> state_after(persistent_node_state known) const {
        return node_.state_after(known);
    }
    /// See persistent_node::ended().
    asio::awaitable<void> ended() const { return node_.ended(); }

    /// From the call on we are in the group no more. *Completes when* a server has confirmed it; see
    /// persistent_node::leave().
    asio::awaitable<void> leave() const { return node_.leave(); }

private:
    std::string id_;
    bool has_data_ = true;
    persistent_node node_;
};

}  // namespace zkasio
