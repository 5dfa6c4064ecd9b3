#pragma once

#include "child_process.hpp"
#include "signals.hpp"
#include "watchdog.hpp"

#include <zkasio/asio_version.hpp>
#include <zkasio/locks/lock_guard.hpp>

#include <asio/awaitable.hpp>

#include <chrono>

namespace zklock {

/// What becomes of the command when the lock is lost.
enum class on_loss {
    kill,  ///< SIGKILL, before the lease ends: before anybody else can have the lock
    term,  ///< SIGTERM some time before the lease ends, SIGKILL before it ends
    warn,  ///< nothing but a line on the standard error
};

/// What becomes of it when somebody asks for the lock back.
enum class on_revoke { term, kill, ignore };

struct supervision {
    on_loss loss = on_loss::kill;
    on_revoke revoke = on_revoke::term;
    /// After a SIGTERM for a loss that could not be foreseen: how long until SIGKILL.
    std::chrono::milliseconds grace{5'000};
    std::chrono::milliseconds session_timeout{10'000};  ///< as granted
    watchdog* killer = nullptr;                         ///< null with on_loss::warn
};

struct verdict {
    int wait_status = 0;   ///< of the command
    bool held = true;      ///< all the time, until the command had ended
    bool unguarded = false;  ///< the watchdog was killed, and so the command
    zkasio::loss_reason why = zkasio::loss_reason::none;
};

/// Runs `what` while `guard` is held. Does not release it. *Completes when* the command is over. *Fails with*
/// std::system_error when it cannot be executed. *Cancellation*: kills it.
/// @param guard and `signals` must outlive this.
asio::awaitable<verdict> supervise(const zkasio::lock_guard& guard, command what, supervision how,
                                   signal_router& signals);

/// How long before the end of the lease the command is killed: for the kernel to do so.
std::chrono::milliseconds kill_margin(std::chrono::milliseconds session_timeout) noexcept;

}  // namespace zklock
