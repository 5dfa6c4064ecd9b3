#pragma once

#include <zkasio/client.hpp>
#include <zkasio/locks/acquire_options.hpp>
#include <zkasio/locks/detail/cohort/cohort.hpp>
#include <zkasio/locks/lockable.hpp>

#include <asio/awaitable.hpp>

namespace zkasio::lock_detail {

/// Waits for a turn at the lock. Empty if another contender has the lock and the call was not to wait.
/// @param came when the caller began to wait, in an earlier session: it is ahead of coroutines that came later.
/// @tparam Result lock_guard, for a call that waits, or std::optional<lock_guard>.
/// @param spec null if its object was moved from: errc::invalid_argument.
///
/// *Fails with* the errors of lockable::acquire().
/// *Cancellation*: leaves no turn behind, and no node if no other coroutine waits.
template <class Result>
asio::awaitable<Result> take_turn(client zk, cohort_spec_ptr spec, if_contended when_contended,
                                  const acquire_options& how,
                                  boot_clock::time_point came = boot_clock::time_point::max());

}  // namespace zkasio::lock_detail
