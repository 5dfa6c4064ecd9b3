#pragma once

#include <chrono>
#include <cstdint>

namespace zkasio::lock_detail {

/// How long a cohort keeps its place in the queue of a lock, see cohort_mutex_options.
struct tenure_limits {
    std::uint64_t turns = 64;
    std::chrono::nanoseconds tenure = std::chrono::milliseconds(20);
    std::chrono::nanoseconds linger = std::chrono::seconds(1);
};

/// What a cohort knows of contenders that are not its own.
enum class other_contenders : std::uint8_t {
    unknown,
    expected,  ///< not known, but the place has got the lock from another session, which most likely waits again
    none,      ///< and a watch tells when that changes
    waiting,   ///< at least one waits for the place
};

/// A tenure: from the moment in which the place got the lock. No turn is being taken.
struct tenure {
    std::uint64_t turns = 0;  ///< so many were given
    std::chrono::nanoseconds age{0};
    other_contenders others = other_contenders::unknown;
    bool asked_back = false;   ///< revoke() was called for the place
    bool tried = false;        ///< T6: a place that no coroutine wants is not to be kept
    bool has_waiters = false;  ///< of this cohort
    bool first_tries = false;  ///< the first waiter does not wait if another contender has the lock
};

enum class tenure_step : std::uint8_t {
    grant,          ///< the first waiter has its turn
    wait_for_look,  ///< nothing, until a listing has told whether other contenders wait
    queue_again,    ///< gives the place up, and queues at the end
    give_back,      ///< gives the place up
    linger,         ///< keeps the place although no coroutine of this cohort wants it
};

/// The rules of a tenure. Pure.
///
/// T1. A tenure ends after `turns` turns or the time `tenure`, if another contender waits; otherwise it goes on.
/// T2. While that is not known, no turn is given beyond these limits. If another contender is expected, the tenure
///     ends: the answer to a listing would take longer than most tenures. A wrong guess costs a process that has just
///     become alone two requests, once: its next place comes from no other session. No try_acquire() is refused for
///     a guess.
/// T3. A place that no coroutine wants is given back at once if another contender waits. (If one is only expected, that
///     is looked up first.)
/// T4. Otherwise the place is kept for the time `linger`; for none if that is 0.
/// T5. revoke() ends the tenure as another contender does that has waited for long.
/// T6. After a refused try_acquire() of another contender (it has come and gone), no place is kept as in T4 for a
///     minute; and after an idle place was given back because another contender waited (T3), which may have been a try
///     of a far client, none is kept every eighth time. Otherwise a contender that only tries would never find the lock
///     free.
tenure_step next_tenure_step(const tenure_limits& limits, const tenure& now) noexcept;

/// For how long an idle place is still kept (T4). @param idle for so long; negative if the place has become idle after
/// another thread has looked at the clock.
std::chrono::nanoseconds linger_left(const tenure_limits& limits, std::chrono::nanoseconds idle) noexcept;

/// Whether the cohort asks for a listing now: before the limits are reached, so that T2 seldom costs time, and not for
/// a single turn, so that a lock that is not contended costs no listing.
bool must_look(const tenure& now) noexcept;

}  // namespace zkasio::lock_detail
