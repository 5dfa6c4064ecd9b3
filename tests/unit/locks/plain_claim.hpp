#pragma once

#include <zkasio/locks/lock_claim.hpp>

#include <string>
#include <utility>
#include <vector>

namespace zkasio::test {

/// Of no lock at all, but with nodes that a hold watches over.
class plain_claim final : public lock_claim {
public:
    plain_claim(session on, std::vector<std::string> paths)
        : on_(std::move(on)), paths_(std::move(paths)), hold_(on_.hold(paths_)) {}

    const session_hold& hold() const noexcept override { return hold_; }
    const std::vector<std::string>& paths() const noexcept override { return paths_; }
    const session& on() const noexcept override { return on_; }
    std::int64_t token() const noexcept override { return 1; }
    void give_up() noexcept override { hold_.end(); }
    asio::awaitable<void> gone() override { co_return; }

private:
    session on_;
    std::vector<std::string> paths_;
    session_hold hold_;
};

}  // namespace zkasio::test
