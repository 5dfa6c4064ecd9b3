#pragma once

#include <zkasio/clock.hpp>
#include <zkasio/locks/detail/local_slots.hpp>
#include <zkasio/locks/lock_claim.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace zkasio::lock_detail {

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
