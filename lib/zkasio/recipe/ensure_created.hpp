#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/bytes.hpp>
#include <zkasio/create_options.hpp>
#include <zkasio/export.hpp>
#include <zkasio/session.hpp>

#include <asio/awaitable.hpp>

#include <string>

namespace zkasio {

/// Creates the node unless there is one, whichever client has created it. The request is repeated until its outcome is
/// certain. For writers of recipes.
/// *Completes when* the node has been created, by this call or before.
/// *Fails with* the errors of operations::create_unless_exists() that are not condition::retryable, and with one with
/// error::hung_up() when no attempt has created the node.
/// error::outcome_unknown() tells whether one of the attempts may have created the node.
/// *Cancellation*: see error::outcome_unknown().
/// @param on patient, see session::patient().
ZKASIO_EXPORT asio::awaitable<void> ensure_created(session on, std::string path, bytes data = bytes(),
                                                   create_options how = create_options());

}  // namespace zkasio
