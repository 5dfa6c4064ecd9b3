#pragma once

#include <zkasio/clock.hpp>
#include <zkasio/locks/detail/cohort/cohort_place.hpp>
#include <zkasio/locks/detail/running_bodies.hpp>
#include <zkasio/locks/if_contended.hpp>
#include <zkasio/locks/lock_claim.hpp>
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
#include <vector>

namespace zkasio::lock_detail {

class cohort;

/// One coroutine's turn at the lock of a cohort: waits for it, then stands for it. A waiting turn has no node and sends
/// no request.
class cohort_turn final : public lock_claim, public std::enable_shared_from_this<cohort_turn> {
public:
    explicit cohort_turn(std::shared_ptr<cohort> of, if_contended when_contended) noexcept
        : of_(std::move(of)), when_contended_(when_contended) {}
    cohort_turn(const cohort_turn&) = delete;
    cohort_turn& operator=(const cohort_turn&) = delete;
    ~cohort_turn() override;

    /// *Completes when* the turn is granted or, of an attempt that is not to wait, refused: then ask granted().
    /// *Cancellation*: ends the wait at once.
    static asio::awaitable<void> decided(std::shared_ptr<cohort_turn> self);
    bool granted() const noexcept { return place_ != nullptr; }

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
    using handler = asio::async_result<asio::use_awaitable_t<>, void(std::exception_ptr)>::handler_type;
    // The suspended coroutine, and its executor, which has work until the coroutine goes on.
    struct waiter {
        handler resume;
        asio::any_io_executor on;
    };
    // Of turns that are more than taken and given back: with_lock(), run(), lost(), and the parts of a multi_mutex.
    struct used {
        session_hold hold;
    };

    void suspended(handler h, asio::any_io_executor on);
    /// Resumes the coroutine, in a turn of its executor. To be called once, without the cohort's mutex.
    void resume(std::exception_ptr failed) noexcept;

    const std::shared_ptr<cohort> of_;
    cohort_place_ptr place_;  // once it is granted
    mutable std::atomic<used*> used_{nullptr};
    std::atomic<bool> given_up_{false};
    cohort_place_ptr left_;  // the place, if it was given up along with this turn

    // Guarded by the cohort's mutex:
    std::shared_ptr<cohort_turn> next_;
    cohort_turn* previous_ = nullptr;
    std::optional<waiter> waiter_;
    boot_clock::time_point since_{};  // when it was asked for; once it is granted: since then
    std::uint64_t number_ = 0;        // of the turn in its tenure, from 0
    std::uint32_t queue_length_ = 0;
    const if_contended when_contended_;
    bool waits_ = false;         // is in the list
    bool lost_alone_ = false;    // lost while the place has the lock: its bodies have to end before the next turn
    bool lost_with_place_ = false;
    running_bodies bodies_;
};

}  // namespace zkasio::lock_detail
