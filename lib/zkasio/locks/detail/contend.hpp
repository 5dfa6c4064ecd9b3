#pragma once

#include <zkasio/client.hpp>
#include <zkasio/locks/acquire_options.hpp>
#include <zkasio/locks/detail/acquire_request.hpp>

#include <asio/awaitable.hpp>

namespace zkasio::lock_detail {

/// Queues for the lock and waits for its turn. Null if the contender is not the first and was asked not to wait.
///
/// The algorithm is ZooKeeper's lock recipe as Curator runs it (StandardLockInternalsDriver): a contender watches only
/// its immediate predecessor (a reader: the last writer ahead). lock_queue adds: contenders of one session share
/// listings and watches, and need none to hand over the lock to each other.
///
/// *Fails with* the errors of operations; errc::session_expired if the session ends during the wait.
/// *Cancellation*: leaves no node and no watch behind.
/// @tparam Result a pointer to the lock_claim, a lock_guard, or an optional lock_guard: converting the result in a
/// further coroutine would cost memory for each waiting acquire.
template <class Result>
asio::awaitable<Result> contend(client zk, acquire_request what);

/// Like contend(zk, what), for the owner and with the position observer of `how`, if `how` names them.
template <class Result>
asio::awaitable<Result> contend(client zk, acquire_request what, acquire_options how);

}  // namespace zkasio::lock_detail
