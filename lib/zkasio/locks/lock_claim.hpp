#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/locks/fencing_token.hpp>
#include <zkasio/loss_reason.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/session.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zkasio {

/// The implementation behind a lock_guard: each recipe has its own. For writers of recipes.
///
/// If hold() is lost while its session lives, the claim gives its nodes back in the background, without waiting for
/// give_up(): the owner may keep the lost guard for as long as it likes (session_hold::on_lost(),
/// toolbox::ensure_removed()).
///
/// All members may be called from any thread.
class lock_claim {
public:
    virtual ~lock_claim() = default;

    /// The hold on the nodes that stand for the ownership of the lock.
    virtual const session_hold& hold() const noexcept = 0;
    virtual const std::vector<std::string>& paths() const noexcept = 0;
    virtual const session& on() const noexcept = 0;
    virtual std::int64_t token() const noexcept = 0;
    /// The second part of the fencing token: distinguishes claims whose token() is the same.
    virtual std::uint64_t turn() const noexcept { return 0; }
    /// One for each of paths(), see lock_guard::tokens().
    virtual std::vector<fencing_token> tokens() const {
        return std::vector<fencing_token>(paths().size(), fencing_token(token(), turn()));
    }

    /// As the members of hold(). Override them where the answers are known without a hold of the claim's own.
    virtual bool held() const noexcept { return hold().held(); }
    virtual boot_clock::time_point held_until() const noexcept { return hold().held_until(); }
    virtual loss_reason reason() const noexcept { return hold().reason(); }

    /// The sequence number of the node, see lock_guard::sequence(); nothing where the recipe has none.
    virtual std::optional<std::int32_t> sequence() const noexcept { return std::nullopt; }

    /// See lock_guard::slot(); nothing where the recipe has none.
    virtual std::optional<std::uint32_t> slot() const noexcept { return std::nullopt; }

    /// Whether the existence of the nodes proves ownership, so that lock_guard::commit() may rely on it.
    virtual bool proves() const noexcept { return true; }

    /// Announces a body, which runs on this executor until body_ends() with the same executor: an acquire of the same
    /// lock on that executor would wait for itself. Each of several bodies is announced, also one within another. The
    /// body begins after this call has returned, and only if hold() is not lost then. If hold() is lost while a body
    /// runs, the next contender of this session waits until the body has ended or this claim is given up.
    virtual void body_begins(asio::any_io_executor) {}
    virtual void body_ends(asio::any_io_executor) noexcept {}

    /// Ends the claim for this reason, as if hold() had been lost: for each part of a claim that consists of claims.
    virtual void lose(loss_reason why) noexcept { hold().lose(why); }

    /// A body with a stop margin begins, of which several may run under one claim. False: another one was stopped, so
    /// the claim will be lost, and no further body may begin.
    bool margin_begins() noexcept {
        std::uint32_t now = with_margin_.load(std::memory_order_relaxed);
        while (now < one_was_stopped)
            if (with_margin_.compare_exchange_weak(now, now + 1, std::memory_order_acq_rel)) return true;
        return false;
    }
    /// @param stopped the body was cancelled before the end of the lease: the claim is lost when the last of these
    /// bodies has ended.
    void margin_ends(bool stopped) noexcept {
        if (stopped) with_margin_.fetch_or(one_was_stopped, std::memory_order_acq_rel);
        if (with_margin_.fetch_sub(1, std::memory_order_acq_rel) == one_was_stopped + 1) lose(loss_reason::lease_ended);
    }

    /// Another client or an operator has asked for the lock back, see lock_guard::revoke_requested().
    virtual void asked_back() noexcept {}

    /// Gives the lock back; called once. From then on hold().held() is false. If the claim was lost before, this call
    /// tells that no guard is left.
    virtual void give_up() noexcept = 0;
    /// *Completes when* the servers have carried out give_up(): the nodes are gone, or the session is.
    /// *Fails with* the servers' error when they refuse the removal.
    virtual asio::awaitable<void> gone() = 0;

private:
    static constexpr std::uint32_t one_was_stopped = std::uint32_t{1} << 31;
    std::atomic<std::uint32_t> with_margin_{0};  // how many such bodies run, and that bit
};

namespace lock_detail {
/// The message of errc::would_deadlock when the work under a lock acquires the same lock.
inline constexpr const char* holds_it_already =
    "the work under this lock acquires the lock again: pass its lock_owner on, or acquire on another executor if the "
    "work does not wait for that";

/// The reason for messages when held() is false. loss_reason::none: the claim was not covered by a lease yet.
inline std::string_view why_not_held(loss_reason why) noexcept {
    return to_string(why == loss_reason::none ? loss_reason::lease_ended : why);
}
}  // namespace lock_detail

}  // namespace zkasio
