#pragma once

#include <zkasio/back_off.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/locks/detail/cohort/tenure_rules.hpp>
#include <zkasio/locks/detail/lock_spec.hpp>
#include <zkasio/locks/detail/queue_claim.hpp>
#include <zkasio/locks/detail/revocation_watch.hpp>
#include <zkasio/locks/lock_claim.hpp>
#include <zkasio/locks/lockable.hpp>
#include <zkasio/recipe/pending.hpp>
#include <zkasio/session.hpp>
#include <zkasio/watch.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/steady_timer.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace zkasio::lock_detail {

class cohort_place;

/// Looks out, for a place that has the lock, for contenders behind it, for requests to give it back, and for the end of
/// the time for which an idle place lingers. On the strand. Reports to the cohort_place until stop().
class lookout : public std::enable_shared_from_this<lookout> {
public:
    /// @param claim of the place.
    lookout(session on, lock_spec_ptr lock, std::shared_ptr<lock_claim> claim, std::weak_ptr<cohort_place> place);
    /// To be called once. The requests to give the place back are watched for when it was kept for a quarter of the
    /// session timeout, since most are not kept for so long.
    void begin();

    enum class then {
        watch,
        list
    };
    /// Looks whether other contenders wait, unless a look is under way. @param how list: the first look needs no watch,
    /// since another contender is expected.
    void look(then how);
    /// Calls cohort_place::lingered() after `time`, or after an hour.
    void wake_after(boot_clock::duration time);
    void stop() noexcept;

private:
    void list();
    void watch_children();
    template <class Pending>
    void answered(Pending& asked);
    void seen(const std::vector<std::string>& names);
    void failed() noexcept;
    void look_later();

    const session on_;
    const lock_spec_ptr lock_;
    const std::shared_ptr<lock_claim> claim_;
    const std::string own_name_;
    const std::weak_ptr<cohort_place> place_;
    bool over_ = false, looking_ = false, fired_ = false;
    std::shared_ptr<pending_watched_children> request_;
    std::optional<watch> watch_;
    std::vector<std::string> foreign_;  // children that are allowed and no contenders, as listed last; sorted
    back_off pauses_;
    std::optional<revocation_watch> requests_;
    asio::steady_timer timer_, kept_timer_;
};

class cohort;
class cohort_turn;

/// A cohort's place in the queue of the lock, for one tenure: an ordinary contender, and what looks after it. Tells the
/// cohort of all that happens to it, on the strand.
class cohort_place final : public place_user, public std::enable_shared_from_this<cohort_place> {
public:
    explicit cohort_place(std::shared_ptr<cohort> of) : of_(std::move(of)) {}
    cohort_place(const cohort_place&) = delete;
    cohort_place& operator=(const cohort_place&) = delete;

    // ------------------------------------------------------------------------ for the cohort and its turns, any thread
    /// Queues. To be called once, before anything else. @param from the executor of the coroutine that waits first.
    void enter(if_contended when_contended, asio::any_io_executor from) noexcept;
    /// Gives up a place that does not have the lock yet.
    void withdraw() noexcept;
    /// Gives up a place that has, or had, the lock. By one thread, once.
    void leave() noexcept;
    void look(lookout::then how) noexcept;
    void wake_after(boot_clock::duration time) noexcept;
    /// Asks for a heartbeat that checks the node.
    void check() noexcept;
    void stop_looking() noexcept;
    /// Calls cohort::would_deadlock() if the lock is held by the work that waits for this turn on `from`.
    void refuse_if_own_work(const std::shared_ptr<cohort_turn>& waits, asio::any_io_executor from) noexcept;
    /// Of a place that has got the lock.
    const std::shared_ptr<queue_claim>& claim() const noexcept { return claim_; }

    // ------------------------------------------------------------------------------------------------ on the strand
    void decided() noexcept override;
    void asked_back() noexcept override;
    void tried() noexcept override;
    std::optional<boot_clock::time_point> idle_guard_since() const noexcept override;
    void others_are(other_contenders now);
    void lingered();
    /// A listing does not show the place's node.
    void deleted();

private:
    static asio::awaitable<void> wait_for_lease(std::shared_ptr<cohort_place> self);
    void granted();
    template <class F>
    void on_strand(F f) noexcept;

    const std::shared_ptr<cohort> of_;
    std::shared_ptr<queue_claim> claim_;
    std::shared_ptr<lookout> lookout_;  // strand
};

using cohort_place_ptr = std::shared_ptr<cohort_place>;

}  // namespace zkasio::lock_detail
