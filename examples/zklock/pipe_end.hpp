#pragma once

#include <zkasio/asio_version.hpp>

#include <asio/awaitable.hpp>

namespace zklock {

/// *Completes when* `descriptor`, the standard input or output, is a pipe whose other end is closed, with true: nobody
/// writes any more, or nobody reads. With false, at once, when it is no pipe. What is in the pipe is left there.
asio::awaitable<bool> other_end_closed(int descriptor);

}  // namespace zklock
