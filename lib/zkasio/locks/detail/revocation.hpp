#pragma once

#include <zkasio/locks/lock_claim.hpp>
#include <zkasio/recipe/one_shot_event.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <memory>

namespace zkasio::lock_detail {

/// What Curator's Revoker writes into the node of whoever shall give way.
inline constexpr const char* revoke_message = "__REVOKE__";

/// Watches for that, for as long as this lives: the nodes of a lock, and in an election, where no node is to be written
/// to, the data of the directory as well (see directory_note). When it finds a node gone, the lock is lost at once.
class revocation_watch {
public:
    explicit revocation_watch(std::shared_ptr<lock_claim> claim);
    revocation_watch(const revocation_watch&) = delete;
    revocation_watch& operator=(const revocation_watch&) = delete;
    ~revocation_watch();

    /// *Completes when* it was written. *Fails with* errc::lock_lost when a node goes, and what else reading fails
    /// with.
    asio::awaitable<void> asked() const;

    /// Fired `grace` after it was written; never when a node goes first.
    one_shot_event stop_after(std::chrono::nanoseconds grace) const;
    /// Whether that has been fired. From any thread.
    bool stopped() const noexcept;

private:
    struct state;
    static asio::awaitable<void> until_asked(std::shared_ptr<state> s);

    std::shared_ptr<state> state_;
};

}  // namespace zkasio::lock_detail
