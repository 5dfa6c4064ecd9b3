#pragma once

#include <zkasio/client.hpp>
#include <zkasio/locks/acquire_options.hpp>
#include <zkasio/locks/lock_claim.hpp>
#include <zkasio/locks/lock_guard.hpp>
#include <zkasio/session.hpp>

#include <asio/awaitable.hpp>

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

/// Throws errc::invalid_argument if `how` has data: for kinds of lock without a node of each acquire's own.
void refuse_data(const acquire_options& how, const std::string& path, std::string_view why);

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

/// To be called in a catch block of an acquire. If the acquire was cancelled, or ended by the session or the
/// connection, throws the same error under the name of the lock: the request that was under way does not matter, since
/// nothing of it stays.
[[noreturn]] void rethrow_as_acquire(const std::string& path);

/// Runs the attempt. Its errors pass through rethrow_as_acquire().
asio::awaitable<std::optional<lock_guard>> errors_as_acquire(asio::awaitable<std::optional<lock_guard>> attempt,
                                                             std::string path);

/// The guard of an attempt that never ends without one.
asio::awaitable<lock_guard> require_guard(asio::awaitable<std::optional<lock_guard>> attempt);

}  // namespace zkasio::lock_detail
