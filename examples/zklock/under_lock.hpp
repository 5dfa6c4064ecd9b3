#pragma once

#include "options.hpp"
#include "session.hpp"

#include <zkasio/asio_version.hpp>
#include <zkasio/locks/lock_guard.hpp>
#include <zkasio/locks/lock_options.hpp>

#include <asio/awaitable.hpp>

namespace zklock {

struct outcome {
    int exit_code = 0;
    bool executed = true;  ///< false: there is no such program, or it cannot be executed
    bool held = true;      ///< the lock, until the command had ended
};

/// Runs the command of `o` while `guard` is held, see supervise(). Does not release it.
asio::awaitable<outcome> run_under(const zkasio::lock_guard& guard, session s, run_options o);

/// Waits through expiries, and tells, when we are verbose, how many are in front.
zkasio::acquire_options patiently(const session& s);

}  // namespace zklock
