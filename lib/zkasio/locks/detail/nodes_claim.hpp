#pragma once

#include <zkasio/locks/lock_claim.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/recipe/pending.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/session.hpp>
#include <zkasio/session_local.hpp>

#include <asio/awaitable.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

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

/// The permits below one directory that a session has lost and given back while bodies still run under them. Only this
/// session's requests count these permits as taken: other clients may acquire them. On the strand, but for now().
class unfinished_permits final : public session_local {
public:
    explicit unfinished_permits(session on) : on_(std::move(on)), fewer_(toolbox(on_).make_one_shot_event()) {}

    static std::shared_ptr<unfinished_permits> of(const session& on, const std::string& directory);
    void add(std::size_t n) { count_ += n; }
    void subtract(std::size_t n);

    struct reading {
        reading(std::size_t n, one_shot_event f) : count(n), fewer(std::move(f)) {}
        std::size_t count;
        one_shot_event fewer;  ///< fired when `count` has become smaller
    };
    /// From any executor.
    static asio::awaitable<reading> now(session on, std::string directory);

    void session_over(std::error_code) noexcept override { fewer_.fire(); }

private:
    session on_;
    std::size_t count_ = 0;
    one_shot_event fewer_;
};

/// The name of a semaphore permit's node, in front of the sequence number.
inline constexpr const char* permit_marker = "lease-";

/// A claim that consists only of the nodes of permits. The nodes are removed as soon as the claim is given up or lost.
class nodes_claim final : public lock_claim {
public:
    /// @param paths of nodes that this session owns; at least one. The claim removes these nodes in the end.
    /// @param lock the lock's path, for reports. @param asked when the wait for the permits began.
    nodes_claim(session on, std::vector<std::string> paths, std::int64_t token, std::string lock,
                boot_clock::time_point asked);
    nodes_claim(const nodes_claim&) = delete;
    nodes_claim& operator=(const nodes_claim&) = delete;
    ~nodes_claim() override { give_up(); }

    const session_hold& hold() const noexcept override;
    const std::vector<std::string>& paths() const noexcept override;
    const session& on() const noexcept override;
    std::int64_t token() const noexcept override { return token_; }
    std::optional<std::int32_t> sequence() const noexcept override;
    void body_begins(asio::any_io_executor executor) override;
    void body_ends(asio::any_io_executor executor) noexcept override;
    void give_up() noexcept override;
    asio::awaitable<void> gone() override;

private:
    struct state;
    std::shared_ptr<state> state_;
    std::int64_t token_;
};

}  // namespace zkasio::lock_detail
