#pragma once

#include <zkasio/recipe/pending.hpp>
#include <zkasio/session.hpp>

#include <asio/awaitable.hpp>

#include <optional>
#include <string>

namespace zkasio::lock_detail {

/// An ephemeral-sequential node of ours, from the moment its create is sent. Whatever happens to its owner, the node is
/// removed in the end, unless it was kept.
class owned_node {
public:
    /// Sends the create of `<directory>/_c_<uuid>-<name><sequence>`.
    owned_node(session on, std::string directory, const std::string& name, std::string data, acl entries);
    owned_node(owned_node&& other) noexcept;
    owned_node& operator=(owned_node&&) = delete;
    ~owned_node();

    /// *Completes when* the node is known to exist, or not to: false. *Fails with* what create() fails with.
    asio::awaitable<bool> created();

    const std::string& path() const noexcept { return node_.path; }
    std::int64_t czxid() const noexcept { return node_.stat.czxid; }

    /// From now on somebody else removes it.
    void keep() noexcept { node_.path.clear(); }

private:
    session on_;
    std::string directory_, id_;
    std::optional<pending_create> creating_;  // its outcome is not known yet
    zkasio::created node_;                    // no path: there is none
};

}  // namespace zkasio::lock_detail
