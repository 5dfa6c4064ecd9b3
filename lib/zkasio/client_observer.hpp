#pragma once

#include <zkasio/clock.hpp>
#include <zkasio/export.hpp>
#include <zkasio/lock_kind.hpp>
#include <zkasio/loss_reason.hpp>
#include <zkasio/session_event.hpp>
#include <zkasio/structure_reports.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

namespace zkasio {

/// One request, from its call to its end. Names of nodes are not escaped: print them with printable().
struct operation_report {
    std::string_view operation;  ///< "get", "create" ...: as error::operation() calls it; a literal
    std::string path;            ///< below the chroot, also of a rooted() view; "": none, like a transaction
    std::error_code code;        ///< the error of the request; no code: the request succeeded
    bool outcome_unknown = false;  ///< a write that may or may not have been applied
    bool cancelled = false;      ///< the caller has stopped waiting before this end
    bool internal = false;       ///< the library's own: heartbeats, removals of watches, releases in the background
    /// `sent` is 0 if the request was never sent, and the last time if the request was sent again.
    boot_clock::time_point asked{}, sent{}, ended{};

    boot_clock::duration in_queue() const noexcept { return (was_sent() ? sent : ended) - asked; }
    boot_clock::duration on_the_wire() const noexcept { return was_sent() ? ended - sent : boot_clock::duration(0); }
    bool was_sent() const noexcept { return sent != boot_clock::time_point(); }
};

/// The previous owner of a lock that an acquire was granted.
enum class hand_over : std::uint8_t {
    none,    ///< there was no previous owner: the lock was free
    local,   ///< another contender of the same session, in the turn in which this owner released the lock
    remote,  ///< another session
};
constexpr std::string_view to_string(hand_over h) noexcept {
    switch (h) {
        case hand_over::none: return "none";
        case hand_over::local: return "local";
        case hand_over::remote: return "remote";
    }
    return "unknown";
}

/// One contender's wait for a lock.
struct lock_wait_report {
    std::string path;  ///< of the lock
    lock_kind kind = lock_kind::exclusive;
    std::error_code code;    ///< the error of the acquire; none: the lock was granted, or `refused`
    bool refused = false;    ///< not granted: another owner had the lock, and the acquire was not to wait, or had ended
    std::int64_t token = 0;  ///< if the lock was granted
    hand_over from = hand_over::none;
    std::size_t queue_length = 0;  ///< contenders known to be ahead when this contender got its place
    boot_clock::time_point asked{}, ended{};
};

/// One contender's time as the owner of a lock.
struct lock_hold_report {
    std::string path;  ///< of the lock
    lock_kind kind = lock_kind::exclusive;
    std::int64_t token = 0;
    loss_reason lost = loss_reason::none;  ///< none: the lock was released while it was held
    boot_clock::time_point granted{}, ended{};  ///< ended: released, or lost while its session lived on
};

/// Receives reports of what a client does: see client_options::observer(). Derive from this class, for metrics or
/// traces. Reports whose member is not overridden are ignored.
///
/// The observer is called on an executor of its own, never on the client's strand and never under a lock: the observer
/// may block, and may use the client. Calls are made one at a time, in the order of the events, in batches that are at
/// most a hundredth of a second late. Exceptions of the observer are ignored.
class ZKASIO_EXPORT client_observer {
public:
    virtual ~client_observer() = default;
    virtual void operation(const operation_report&) {}
    virtual void session(const session_event&) {}
    virtual void lock_wait(const lock_wait_report&) {}
    virtual void lock_hold(const lock_hold_report&) {}
    virtual void commit(const commit_report&) {}
    virtual void delivery(const delivery_report&) {}
    virtual void barrier(const barrier_report&) {}
    virtual void lock_stop(const lock_stop_report&) {}
    /// This number of reports was dropped here, because more than 65 536, or 32 MiB, waited for this observer.
    virtual void dropped(std::size_t) {}
};

/// Converts a time in a report to the time of day.
inline std::chrono::system_clock::time_point to_system_time(boot_clock::time_point t) noexcept {
    using std::chrono::system_clock;
    return system_clock::now() + std::chrono::duration_cast<system_clock::duration>(t - boot_clock::now());
}

}  // namespace zkasio
