#pragma once

#include <zkasio/recipe/pending.hpp>
#include <zkasio/session.hpp>

#include <asio/awaitable.hpp>

#include <optional>
#include <string>

namespace zkasio::lock_detail {

/// An ephemeral-sequential node of this session, from the moment its create is sent. The destructor has the node
/// removed, also while the create is under way, unless keep() was called.
class owned_node {
public:
    /// Sends the create of `<directory>/_c_<uuid>-<name><sequence>`.
    owned_node(session on, std::string directory, const std::string& name, std::string data, acl entries);
    owned_node(owned_node&& other) noexcept;
    owned_node& operator=(owned_node&&) = delete;
    ~owned_node();

    /// *Completes when* the node is known to exist (true) or not to exist (false).
    /// *Fails with* the errors of create().
    asio::awaitable<bool> created();

    const std::string& path() const noexcept { return node_.path; }
    std::int64_t czxid() const noexcept { return node_.stat.czxid; }

    /// From now on the caller removes the node.
    void keep() noexcept { node_.path.clear(); }

private:
    session on_;
    std::string directory_, id_;
    std::optional<pending_create> creating_;  // the create whose outcome is not known yet
    zkasio::created node_;                    // without a path: there is no node
};

}  // namespace zkasio::lock_detail
