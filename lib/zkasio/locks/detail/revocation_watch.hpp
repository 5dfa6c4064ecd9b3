#pragma once

#include <zkasio/locks/lock_claim.hpp>
#include <zkasio/recipe/events.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <memory>
#include <string_view>

namespace zkasio::lock_detail {

/// The request that Curator's Revoker writes into the node of a contender that is to give way.
inline constexpr const char* revoke_message = "__REVOKE__";

/// Watches for requests to give way, as long as the revocation_watch lives: in a lock's nodes, and, where they stand in
/// a queue, in the directory's data as well (see directory_note). If a node is found to be
/// gone, the lock is lost at once.
class revocation_watch {
public:
    explicit revocation_watch(std::shared_ptr<lock_claim> claim);
    revocation_watch(const revocation_watch&) = delete;
    revocation_watch& operator=(const revocation_watch&) = delete;
    ~revocation_watch();

    /// *Completes when* the request was written.
    /// *Fails with* errc::lock_lost when a node is gone, and with the other errors of reading the nodes.
    asio::awaitable<void> asked() const;

    /// Fires `stop` when `grace` is over after the request was written; never if a node goes first.
    void stop_after(std::chrono::nanoseconds grace, one_shot_event stop) const;
    /// Whether this object has fired the event of stop_after(). From any thread.
    bool stopped() const noexcept;

private:
    struct state;
    static asio::awaitable<void> until_asked(std::shared_ptr<state> s);

    std::shared_ptr<state> state_;
};

}  // namespace zkasio::lock_detail
