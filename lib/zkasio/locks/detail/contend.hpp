#pragma once

#include <zkasio/client.hpp>
#include <zkasio/locks/acquire_options.hpp>
#include <zkasio/locks/detail/acquire_request.hpp>

#include <asio/awaitable.hpp>

namespace zkasio::lock_detail {

/// Queues for the lock and waits for its turn. Null when it is not the first and is asked not to wait.
///
/// The algorithm is ZooKeeper's lock recipe as Curator runs it (StandardLockInternalsDriver): a contender watches only
/// its immediate predecessor (a reader: the last writer ahead). What lock_queue adds: contenders of one session share
/// listings and watches, and hand over to each other without any.
///
/// *Fails with* what operations fail with; errc::session_expired when the session ends while waiting.
/// *Cancellation*: leaves no node and no watch behind.
/// @tparam Result a pointer to the lock_claim, a lock_guard, or an optional one: every coroutine more is memory for
/// each who waits.
template <class Result>
asio::awaitable<Result> contend(client zk, acquire_request what);

/// The same for the owner that `how` names, if it does, and with its observer.
template <class Result>
asio::awaitable<Result> contend(client zk, acquire_request what, acquire_options how);

}  // namespace zkasio::lock_detail
