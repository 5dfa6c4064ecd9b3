#pragma once

#include <zkasio/locks/detail/lock_reports.hpp>
#include <zkasio/locks/lock_claim.hpp>

#include <optional>
#include <string>
#include <vector>

namespace zkasio::lock_detail {

/// What the nodes of a semaphore's permits are called, in front of their sequence number.
inline constexpr const char* permit_marker = "lease-";

/// A claim that consists of nodes, and of nothing else: those of permits.
class nodes_claim final : public lock_claim {
public:
    /// @param paths of nodes that this session owns; at least one. They are removed in the end.
    /// @param lock for reports. @param asked when the wait for them began.
    nodes_claim(session on, std::vector<std::string> paths, std::int64_t token, std::string lock,
                boot_clock::time_point asked);
    nodes_claim(const nodes_claim&) = delete;
    nodes_claim& operator=(const nodes_claim&) = delete;
    ~nodes_claim() override { give_up(); }

    const session_hold& hold() const noexcept override { return hold_; }
    const std::vector<std::string>& paths() const noexcept override { return paths_; }
    const session& on() const noexcept override { return on_; }
    std::int64_t token() const noexcept override { return token_; }
    std::optional<std::int32_t> sequence() const noexcept override;
    void give_up() noexcept override;
    asio::awaitable<void> gone() override;

private:
    session on_;
    std::vector<std::string> paths_;
    session_hold hold_;
    std::int64_t token_;
    reported_hold report_;
    bool given_up_ = false;
    std::vector<pending_removal> removals_;
};

}  // namespace zkasio::lock_detail
