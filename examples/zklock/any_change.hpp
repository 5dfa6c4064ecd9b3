#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/watch.hpp>

#include <asio/awaitable.hpp>
#include <asio/steady_timer.hpp>

#include <vector>

namespace zklock {

/// *Completes when* one of them has fired, or that time has passed. *Fails with* errc::session_expired and the like.
asio::awaitable<void> any_changed(const std::vector<zkasio::watch>& watches,
                                  asio::steady_timer::duration at_most = asio::steady_timer::duration::max());

}  // namespace zklock
