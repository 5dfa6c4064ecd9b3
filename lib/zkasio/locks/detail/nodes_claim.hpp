#pragma once

#include <zkasio/locks/detail/lock_reports.hpp>
#include <zkasio/locks/lock_claim.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace zkasio::lock_detail {

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
