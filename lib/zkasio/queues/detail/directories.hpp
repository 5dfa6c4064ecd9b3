#pragma once

#include <zkasio/queues/detail/queue_spec.hpp>
#include <zkasio/session.hpp>

#include <asio/awaitable.hpp>

namespace zkasio::queue_detail {

/// Creates the directories of a queue unless they exist. @param on patient.
asio::awaitable<void> create_directories(session on, spec_ptr what);

}  // namespace zkasio::queue_detail
