#pragma once

#include <zkasio/client_observer.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/locks/detail/cohort/cohort_place.hpp>
#include <zkasio/locks/detail/cohort/tenure_rules.hpp>
#include <zkasio/locks/detail/lock_spec.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/session.hpp>
#include <zkasio/session_local.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/steady_timer.hpp>

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <variant>
#include <vector>

namespace zkasio::lock_detail {

/// A mutex for which a child process does not wait: a thread of its parent may have had it at the fork, and no thread
/// of the child will ever release it.
class process_mutex {
public:
    /// Owns nothing in a child process, if a thread of the parent had the mutex: what it guards is then not to be used.
    std::unique_lock<std::mutex> lock() const {
        std::unique_lock<std::mutex> mine(mutex_, std::try_to_lock);
        if (!mine && made_in_ == ::getpid()) mine.lock();
        return mine;
    }

private:
    mutable std::mutex mutex_;
    const pid_t made_in_ = ::getpid();
};

class cohort_turn;
using cohort_turn_ptr = std::shared_ptr<cohort_turn>;

/// What all acquires through copies of one cohort_mutex share.
struct cohort_spec {
    cohort_spec(lock_spec_ptr l, const tenure_limits& how_long);

    /// The cohort of the latest session in which it was found; null if it is gone.
    std::shared_ptr<cohort> last() const;
    void remember(const std::shared_ptr<cohort>& c) const;

    const lock_spec_ptr lock;
    const tenure_limits limits;
    const std::string key;  // the cohort's among a session's locals

private:
    process_mutex mutex_;
    mutable std::weak_ptr<cohort> last_;
};
using cohort_spec_ptr = std::shared_ptr<const cohort_spec>;

/// The coroutines of one session that take turns at a lock, in the order in which they came, and their place in the
/// lock's queue (lock cohorting: Dice, Marathe, Shavit, PPoPP 2012).
///
/// A mutex of its own guards the state, and not the client's strand: a turn passes from one coroutine to the next
/// without a detour through a third executor. All that concerns the servers is on the strand (cohort_place, lookout).
/// Each event ends in advance(), which asks next_tenure_step(), and whose effects are carried out when the mutex is
/// free again.
class cohort final : public session_local, public std::enable_shared_from_this<cohort> {
public:
    cohort(session on, const cohort_spec& of);

    /// The session's cohort for this lock and these limits. On the strand.
    static std::shared_ptr<cohort> of(const session& on, const cohort_spec_ptr& spec);

    const session& on() const noexcept { return on_; }
    const lock_spec_ptr& lock() const noexcept { return lock_; }
    /// Whether the session has ended.
    bool over() const;

    // ------------------------------------------------------------------------------------ for turns, from any thread
    /// Whether a coroutine of this cohort has its turn, or waits.
    bool is_busy() const;
    /// Whether the caller of take_at_once() lets other coroutines run first: see yield_turn().
    bool must_yield() noexcept { return taken_.fetch_add(1, std::memory_order_relaxed) % 32 == 31; }
    /// A turn without a wait, if no coroutine has or wants one and the place has the lock; else null.
    cohort_turn_ptr take_at_once();
    /// `t` waits for its turn. @param from the executor of its coroutine.
    void enter(const cohort_turn_ptr& t, const asio::any_io_executor& from);
    void cancel(const cohort_turn_ptr& t) noexcept;
    /// The lock is held by the work that waits for `t`.
    void would_deadlock(const cohort_turn_ptr& t) noexcept;
    /// The guard of `t` is given up. The result: whether the place was given up along with the turn.
    bool give_up(cohort_turn& t) noexcept;
    /// The turn is lost, and the place is not.
    void turn_lost(cohort_turn& t) noexcept;
    /// False: the turn was given up, and its bodies no longer concern the cohort and its place.
    bool body_begins(cohort_turn& t, asio::any_io_executor executor);
    bool body_ends(cohort_turn& t, const asio::any_io_executor& executor) noexcept;
    /// The place's holder was asked to release the lock.
    void asked_back(const cohort_turn& t) noexcept;

    // ------------------------------------------------------------------------------------ for its place, on the strand
    void place_granted(const cohort_place_ptr& place);
    void place_refused(const cohort_place_ptr& place) noexcept;
    void place_failed(const cohort_place_ptr& place, const std::exception_ptr& why) noexcept;
    void place_lost(const cohort_place_ptr& place) noexcept;
    void others_are(const cohort_place_ptr& place, other_contenders now) noexcept;
    void place_asked_back(const cohort_place_ptr& place) noexcept;
    /// Another contender has tried to get the lock, and was refused.
    void tried(const cohort_place_ptr& place) noexcept;
    void lingered(const cohort_place_ptr& place) noexcept;
    /// Since when a guard has its turn, if no body runs under it.
    std::optional<boot_clock::time_point> idle_guard_since(const cohort_place& place) const noexcept;

    // ------------------------------------------------------------------------------------------------- for the session
    void session_over(std::error_code why) noexcept override;
    bool waits() noexcept override;
    void loop_over() noexcept override;

private:
    using locked = std::unique_lock<std::mutex>;
    enum class place_state : std::uint8_t {
        none,
        waiting,
        has_lock
    };

    enum class flush_time : std::uint8_t {
        none,
        soon,
        now
    };

    // What a change of the state leads to. Carried out without the mutex.
    struct effects {
        cohort_turn_ptr granted;
        cohort_place_ptr left, lost, withdrawn, entered, looked, woken, checked;
        if_contended when_contended = if_contended::wait;
        asio::any_io_executor from;
        lookout::then look_how = lookout::then::list;
        boot_clock::duration wake_after{0};
        bool wanted = false, warn_later = false;
        flush_time flush = flush_time::none;
    };

    void advance(effects& e, boot_clock::time_point now);
    void lose_place(effects& e);
    void ask_for_place(effects& e);
    void grant(effects& e, cohort_turn_ptr t, boot_clock::time_point now);
    boot_clock::duration unchecked(boot_clock::time_point now) const noexcept;
    bool is_checked(effects& e, boot_clock::time_point now);
    void remember_tries() noexcept;
    void warn_later() noexcept;
    void warn();
    bool has_idle_guard() const noexcept;
    void finish(locked lock, effects& e) noexcept;
    void fail_waiting(locked lock, std::exception_ptr why) noexcept;
    cohort_turn_ptr take_all_waiting() noexcept;
    bool waits_for_itself(const asio::any_io_executor& from) const noexcept;
    void turn_lost_with_place(effects& e, boot_clock::time_point now) noexcept;
    std::exception_ptr failure(std::error_code why) const;
    void stop_waiting(const cohort_turn_ptr& t, std::error_code why) noexcept;
    tenure now_of_tenure(boot_clock::time_point now) const noexcept;

    // The waiting turns, first come, first served: a list through cohort_turn::next_.
    void insert(cohort_turn_ptr t) noexcept;
    cohort_turn_ptr pop(cohort_turn& t) noexcept;

    void report_wait(effects& e, const cohort_turn& t, boot_clock::time_point now, std::error_code failed,
                     bool refused) noexcept;
    void report_hold(effects& e, const cohort_turn& t, boot_clock::time_point now) noexcept;
    void must_flush(effects& e) noexcept;
    void flush_reports(flush_time when) noexcept;
    void tell_reports() noexcept;

    const session on_;
    const toolbox tools_;  // of on_
    const lock_spec_ptr lock_;
    const tenure_limits limits_;
    const bool observed_;

    asio::steady_timer flush_timer_, tries_timer_, warning_timer_;  // strand
    std::atomic<std::uint32_t> taken_{0};
    process_mutex mutex_;  // guards what follows; not to be had: a child process, see process_mutex
    std::error_code over_;
    place_state state_ = place_state::none;
    cohort_place_ptr place_;
    std::weak_ptr<cohort_turn> asked_for_;  // the first waiter when the place was asked for
    cohort_turn* current_ = nullptr;
    cohort_turn_ptr first_;
    cohort_turn* last_ = nullptr;
    std::size_t waiting_ = 0;
    std::vector<cohort_turn*> with_bodies_;

    std::uint64_t turns_ = 0;
    boot_clock::time_point since_{}, idle_since_{};
    other_contenders others_ = other_contenders::unknown;
    bool warns_later_ = false, warned_ = false;  // of a guard of this client, see warn_of_guard()
    bool looked_ = false, lingers_ = false, asked_back_ = false;
    boot_clock::time_point check_asked_{};
    std::optional<boot_clock::time_point> waits_for_check_;  // since when a turn waits for a check of the node
    bool tried_ = false, wanted_ = false;                    // T6, until tries_timer_
    std::uint64_t given_ = 0;                                // turns, of all places

    // Not empty: a flush_reports() is under way.
    std::vector<std::variant<lock_wait_report, lock_hold_report>> reports_;
};

}  // namespace zkasio::lock_detail
