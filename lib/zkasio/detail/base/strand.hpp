#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/strand.hpp>

namespace zkasio::detail {

/// What a client's state lives on: one turn at a time, whichever threads run the context.
using strand_type = asio::strand<asio::any_io_executor>;

}  // namespace zkasio::detail
