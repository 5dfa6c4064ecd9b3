#pragma once

#include <zkasio/client.hpp>
#include <zkasio/locks/acquire_options.hpp>
#include <zkasio/locks/lock_claim.hpp>
#include <zkasio/locks/lock_guard.hpp>

#include <asio/awaitable.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

/// The first and last steps of every acquire: what cannot be asked for, and from a claim that was granted to what the
/// caller gets.
namespace zkasio::lock_detail {

/// Throws errc::invalid_argument when `how` names an owner: for kinds of lock that know none. @param why as a message
/// says it.
void refuse_owner(const acquire_options& how, const std::string& path, std::string_view why);

/// Waits until the lease covers what was granted. False: it was lost before that, and the session lives: start over.
asio::awaitable<bool> covered(std::shared_ptr<lock_claim> claim);

/// Nothing for null. @param zk the guard keeps it open.
std::optional<lock_guard> to_guard(std::shared_ptr<lock_claim> claim, const client& zk);

/// In a catch block of an acquire. When it was cancelled, or session and connection have ended it, throws the same
/// error under the name of the lock: which request was under way just then does not matter, since nothing of it stays.
[[noreturn]] void rethrow_as_acquire(const std::string& path);

/// The attempt, whose errors are those of rethrow_as_acquire().
asio::awaitable<std::optional<lock_guard>> named(asio::awaitable<std::optional<lock_guard>> attempt, std::string path);

/// What comes from an attempt that never ends with nothing.
asio::awaitable<lock_guard> always(asio::awaitable<std::optional<lock_guard>> attempt);

}  // namespace zkasio::lock_detail
