#pragma once

#include <zkasio/clock.hpp>
#include <zkasio/locks/detail/local_slots.hpp>
#include <zkasio/locks/lock_claim.hpp>
#include <zkasio/session.hpp>

#include <asio/awaitable.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// Nodes whose name all contenders share. If such a node exists, it need not be ours: an operator may have
/// deleted ours, or the answer to a request was lost. So nodes are told apart by their czxid.
namespace zkasio::lock_detail {

/// Removes the node with this czxid, and no other of the same name. @param on patient, as in all functions here.
asio::awaitable<void> remove_fixed_node(session on, std::string path, std::int64_t czxid);

/// An attempt to create the node. If its outcome is unknown at the end, a node that turns out to be ours is removed.
class fixed_node_attempt {
public:
    /// @param sole_right kept by this attempt, and then by the claim of the node: as long as it exists, this session
    /// makes no other attempt. So a node that this session owns was created by this attempt, or is an orphan, see
    /// toolbox::orphan_at().
    /// @param remove removes the node with this czxid, see remove_fixed_node().
    fixed_node_attempt(session on, std::string path, std::shared_ptr<const void> sole_right,
                       std::function<asio::awaitable<void>(std::int64_t)> remove);
    fixed_node_attempt(const fixed_node_attempt&) = delete;
    fixed_node_attempt& operator=(const fixed_node_attempt&) = delete;
    ~fixed_node_attempt();

    /// Creates the node with `create()`, a coroutine that returns the czxid, and that may be run more than once.
    /// *Completes with* the czxid; nothing when there is a node of another client.
    /// *Fails with* the other errors of `create`, except those after which it is run again.
    asio::awaitable<std::optional<std::int64_t>> created(std::function<asio::awaitable<std::int64_t>()> create);

private:
    static asio::awaitable<void> clean_up(session on, std::string path, std::shared_ptr<const void> sole_right,
                                          std::function<asio::awaitable<void>(std::int64_t)> remove,
                                          std::optional<std::int64_t> orphan);

    const session on_;
    const std::string path_;
    const std::shared_ptr<const void> sole_right_;
    const std::function<asio::awaitable<void>(std::int64_t)> remove_;
    bool uncertain_ = false;
    std::optional<std::int64_t> orphan_;  // czxid
};

/// A claim of a node with a fixed name. One contender of a session at a time has the right to create that node. The
/// claim releases the right when the node is certain to be gone and the bodies under the lost claim have ended.
class fixed_node_claim final : public lock_claim {
public:
    struct grant {
        std::string lock;  ///< its path, for reports
        std::string node;  ///< its path
        std::int64_t czxid = 0;
        std::optional<std::uint32_t> slot;
        boot_clock::time_point asked;  ///< when the wait began
        /// Removes the node, unless the node is another client's by then. Repeats the removal until its outcome is
        /// certain.
        std::function<asio::awaitable<void>()> remove;
    };
    fixed_node_claim(session on, grant granted, std::shared_ptr<local_slots::right> right);
    fixed_node_claim(const fixed_node_claim&) = delete;
    fixed_node_claim& operator=(const fixed_node_claim&) = delete;
    ~fixed_node_claim() override { give_up(); }

    const session_hold& hold() const noexcept override;
    const std::vector<std::string>& paths() const noexcept override;
    const session& on() const noexcept override;
    std::int64_t token() const noexcept override;
    std::optional<std::uint32_t> slot() const noexcept override;
    bool proves() const noexcept override { return false; }
    void body_begins(asio::any_io_executor executor) override;
    void body_ends(asio::any_io_executor executor) noexcept override;
    void give_up() noexcept override;
    asio::awaitable<void> gone() override;

private:
    struct state;
    std::shared_ptr<state> state_;
    bool given_up_ = false;
};

}  // namespace zkasio::lock_detail
