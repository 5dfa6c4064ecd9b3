#pragma once

#include <zkasio/clock.hpp>
#include <zkasio/locks/detail/cohort/cohort_place.hpp>
#include <zkasio/locks/detail/running_bodies.hpp>
#include <zkasio/locks/lock_claim.hpp>
#include <zkasio/locks/lock_guard.hpp>
#include <zkasio/locks/lockable.hpp>
#include <zkasio/session.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/awaitable.hpp>
#include <asio/use_awaitable.hpp>

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zkasio::lock_detail {

class cohort;

/// One coroutine's turn at the lock of a cohort: waits for it, then stands for it. A waiting turn has no node and sends
/// no request.
class cohort_turn final : public lock_claim, public std::enable_shared_from_this<cohort_turn> {
public:
    /// @param came when its coroutine first asked for the lock, maybe in an earlier session.
    cohort_turn(std::shared_ptr<cohort> of, if_contended when_contended, boot_clock::time_point came) noexcept
        : of_(std::move(of)), came_(came), when_contended_(when_contended) {}
    cohort_turn(const cohort_turn&) = delete;
    cohort_turn& operator=(const cohort_turn&) = delete;
    ~cohort_turn() override;

    /// Waits for a turn. An empty guard: the call was not to wait, and another contender has the lock.
    /// *Cancellation*: ends the wait at once.
    /// @param open client::keep_open(), for the wait and for the guard.
    /// @param came the beginning of the wait, if it began in an earlier session: the turn is ahead of those that came
    /// later.
    static asio::awaitable<lock_guard> next(std::shared_ptr<cohort> of, if_contended when_contended,
                                            std::shared_ptr<const void> open,
                                            boot_clock::time_point came = boot_clock::time_point::max());

    // --------------------------------------------------------------------------------------------------- as lock_claim
    const session_hold& hold() const noexcept override;
    bool held() const noexcept override { return held_until() > boot_clock::now(); }
    boot_clock::time_point held_until() const noexcept override;
    loss_reason reason() const noexcept override;
    const std::vector<std::string>& paths() const noexcept override { return place_->claim()->paths(); }
    const session& on() const noexcept override { return place_->claim()->on(); }
    std::int64_t token() const noexcept override { return place_->claim()->token(); }
    std::uint64_t turn() const noexcept override { return number_; }
    std::optional<std::int32_t> sequence() const noexcept override { return place_->claim()->sequence(); }
    void body_begins(asio::any_io_executor executor) override;
    void body_ends(asio::any_io_executor executor) noexcept override;
    void asked_back() noexcept override;
    void give_up() noexcept override;
    asio::awaitable<void> gone() override;

private:
    friend class cohort;
    using handler = asio::async_result<asio::use_awaitable_t<>, void(std::exception_ptr, lock_guard)>::handler_type;
    // The suspended coroutine. Its executor has work until the coroutine goes on, and its client is open.
    struct waiter {
        handler resume;
        asio::any_io_executor on;
        std::shared_ptr<const void> open;
    };

    // A turn on its way to its coroutine. If the executor drops the handler, the turn is given up.
    struct delivery {
        explicit delivery(std::shared_ptr<cohort_turn> t) noexcept : turn(std::move(t)) {}
        delivery(delivery&&) noexcept = default;
        ~delivery();
        std::shared_ptr<cohort_turn> turn;
    };

    /// Resumes the coroutine, in a turn of its executor. To be called once, without the cohort's mutex.
    static void resume(std::shared_ptr<cohort_turn> self, std::exception_ptr failed) noexcept;

    // There may be very many waiting turns: what few turns need is allocated when they do.
    const std::shared_ptr<cohort> of_;
    cohort_place_ptr place_;  // once it is granted
    mutable std::atomic<session_hold*> hold_{nullptr};

    // Guarded by the cohort's mutex:
    std::shared_ptr<cohort_turn> next_;
    cohort_turn* previous_ = nullptr;
    std::optional<waiter> waiter_;
    boot_clock::time_point came_;
    boot_clock::time_point since_{};  // when it was asked for; once it is granted: since then
    std::uint64_t number_ = 0;        // of the turn in its tenure, from 0
    std::unique_ptr<running_bodies> bodies_;
    std::uint32_t queue_length_ = 0;
    const if_contended when_contended_;
    bool waits_ = false;       // is in the list
    bool lost_alone_ = false;  // lost while the place has the lock: its bodies have to end before the next turn
    bool lost_with_place_ = false;

    std::atomic<bool> given_up_{false};
    bool gave_place_up_ = false;  // the place was given up along with this turn
};

}  // namespace zkasio::lock_detail
