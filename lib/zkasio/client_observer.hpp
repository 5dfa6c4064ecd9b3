#pragma once

#include <zkasio/clock.hpp>
#include <zkasio/export.hpp>
#include <zkasio/lock_kind.hpp>
#include <zkasio/loss_reason.hpp>
#include <zkasio/session_event.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

namespace zkasio {

/// One request, from asking for it to its end. Names of nodes are as they are: print them with printable().
struct operation_report {
    std::string_view operation;  ///< "get", "create" ...: as error::operation() calls it; a literal
    std::string path;            ///< below the client's chroot; "" where there is none: of a transaction, say
    std::error_code code;        ///< how it has ended; no code: it succeeded
    bool outcome_unknown = false;  ///< a write that may or may not have been applied
    bool cancelled = false;      ///< the caller did not wait for this end
    bool internal = false;       ///< the library's own: heartbeats, removals of watches, releases in the background
    /// `sent` is 0 when it never was; the last time, if it was sent again.
    boot_clock::time_point asked{}, sent{}, ended{};

    boot_clock::duration in_queue() const noexcept { return (was_sent() ? sent : ended) - asked; }
    boot_clock::duration on_the_wire() const noexcept { return was_sent() ? ended - sent : boot_clock::duration(0); }
    bool was_sent() const noexcept { return sent != boot_clock::time_point(); }
};

/// From whom an acquire has got its lock.
enum class hand_over : std::uint8_t {
    none,    ///< nobody had it
    local,   ///< from another contender of the same session, in the turn in which that released it
    remote,  ///< from another session
};
ZKASIO_EXPORT std::string_view to_string(hand_over h) noexcept;

/// One contender's wait for a lock.
struct lock_wait_report {
    std::string path;  ///< of the lock
    lock_kind kind = lock_kind::exclusive;
    std::error_code code;    ///< what the acquire has failed with; none: it was granted, or `refused`
    bool refused = false;    ///< not had: somebody else had it, and the acquire was not to wait, or had ended
    std::int64_t token = 0;  ///< if it was granted
    hand_over from = hand_over::none;
    std::size_t queue_length = 0;  ///< contenders ahead of it that were known when it got its place
    boot_clock::time_point asked{}, ended{};
};

/// One owner's time with a lock.
struct lock_hold_report {
    std::string path;  ///< of the lock
    lock_kind kind = lock_kind::exclusive;
    std::int64_t token = 0;
    loss_reason lost = loss_reason::none;  ///< none: it was released while it was held
    boot_clock::time_point granted{}, ended{};  ///< when it was given back, or was lost while its session lived on
};

/// Is told what a client does: see client_options::observer(). Derive from it, for metrics or traces; what is not
/// overridden is not wanted.
///
/// It is called on an executor of its own, never on the client's strand and never under a lock: it may block, and may
/// use the client. One call at a time, in the order of what happened, in batches that are a hundredth of a second late
/// at most. What it throws is ignored.
class ZKASIO_EXPORT client_observer {
public:
    virtual ~client_observer() = default;
    virtual void operation(const operation_report&) {}
    virtual void session(const session_event&) {}
    virtual void lock_wait(const lock_wait_report&) {}
    virtual void lock_hold(const lock_hold_report&) {}
    /// So many reports were thrown away here, because more than 65 536 waited for this observer, or 32 MiB.
    virtual void dropped(std::size_t) {}
};

/// The time of day of a report.
ZKASIO_EXPORT std::chrono::system_clock::time_point to_system_time(boot_clock::time_point t) noexcept;

}  // namespace zkasio
