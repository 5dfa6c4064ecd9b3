#pragma once

#include <zkasio/error.hpp>
#include <zkasio/export.hpp>

namespace zkasio {

/// Whether a write has failed because its session is over, and was certainly not applied: then the caller can make the
/// write in the next session, without making it twice. False for an error with error::outcome_unknown(). For writers of
/// recipes.
ZKASIO_EXPORT bool is_for_next_session(const error& failed) noexcept;

}  // namespace zkasio
