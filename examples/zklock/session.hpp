#pragma once

#include "options.hpp"
#include "signals.hpp"

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/client_options.hpp>

#include <asio/awaitable.hpp>

#include <exception>
#include <functional>
#include <string>

namespace zklock {

class watchdog;

/// What a command of zklock works with.
struct session {
    zkasio::client zk;
    signal_router& signals;
    watchdog* killer = nullptr;  ///< for those who run commands
    bool keeps_nodes = false;    ///< what it does has ephemeral nodes: they go with the session
    bool verbose = false;
    bool has_credentials = false;  ///< see digest_credentials()
};

using task = std::function<asio::awaitable<int>(session)>;

/// Reads the credentials, too. Throws what digest_credentials() does.
zkasio::client_options client_options_of(const connection_options& how);

/// Connects, runs `what` until it ends or a signal comes, and ends the session. Returns the exit code. What `what`
/// throws is said on the standard error.
/// @param keeps_nodes of the session that `what` is given.
int run_session(const connection_options& how, const task& what, bool keeps_nodes, watchdog* killer = nullptr);

/// For a command that creates nodes at `path`: with credentials and without --acl, warns that every client may change
/// these nodes.
/// @param acl the value of --acl; empty: the option was not given
void warn_if_open(const session& s, const std::string& path, const std::string& acl);

/// Says what has gone wrong. Returns the exit code.
int report(std::exception_ptr failed) noexcept;

}  // namespace zklock
