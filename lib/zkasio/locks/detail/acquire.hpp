#pragma once

#include <zkasio/client.hpp>
#include <zkasio/locks/detail/lock_spec.hpp>
#include <zkasio/locks/lock_claim.hpp>
#include <zkasio/locks/lock_guard.hpp>
#include <zkasio/locks/lock_options.hpp>
#include <zkasio/locks/lockable.hpp>
#include <zkasio/session.hpp>

#include <asio/awaitable.hpp>

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

/// The first and last steps of every acquire: refusing unsupported options, and turning a granted claim into the
/// caller's guard.
namespace zkasio::lock_detail {

/// Throws errc::invalid_argument if `how` names an owner: for kinds of lock without owners. @param why for the message.
void refuse_owner(const acquire_options& how, const std::string& path, std::string_view why);

/// For lockable::refusal(): errc::invalid_argument if the nodes of the lock have names without an id, since zkasio does
/// not contend under such names, see name_scheme::plain(). Null for null. @param path as the caller names the lock.
std::exception_ptr refusal_without_id(const lock_spec_ptr& lock, const std::string& path);

/// Waits until the lease covers the granted claim. False: the claim was lost before, and the session lives: start over.
asio::awaitable<bool> wait_until_covered(std::shared_ptr<lock_claim> claim);

/// Runs `acquire` for a caller that has waited in the session `on` before: again after a pause when it fails with
/// condition::retryable, errc::not_connected included. So an outage that the session survives does not end the wait,
/// also if there is no connection when `acquire` begins.
/// *Fails with* errc::session_expired when the session ends, and with the other errors of `acquire`.
asio::awaitable<void> acquire_in_session(session on, std::string path,
                                         std::function<asio::awaitable<void>()> acquire);

/// The guard of the claim; empty for null. @param zk is kept open by the guard.
std::optional<lock_guard> to_guard(std::shared_ptr<lock_claim> claim, const client& zk);

/// Runs the attempt. Its errors pass through rethrow_without_trace().
asio::awaitable<std::optional<lock_guard>> errors_as_acquire(asio::awaitable<std::optional<lock_guard>> attempt,
                                                             std::string path);

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
