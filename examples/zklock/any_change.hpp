#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/watch.hpp>

#include <asio/awaitable.hpp>
#include <asio/steady_timer.hpp>

#include <vector>

namespace zklock {

/// *Completes when* one of them has fired, when they are gone because their session has expired, or when that time has
/// passed: when it is worth another look.
asio::awaitable<void> any_changed_or_expired(const std::vector<zkasio::watch>& watches,
                                             asio::steady_timer::duration at_most =
                                                 asio::steady_timer::duration::max());

}  // namespace zklock
