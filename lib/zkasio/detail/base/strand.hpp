#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/strand.hpp>

namespace zkasio::detail {

/// The strand that a client's state lives on: one turn at a time, on any of the threads that run the context.
using strand_type = asio::strand<asio::any_io_executor>;

}  // namespace zkasio::detail
