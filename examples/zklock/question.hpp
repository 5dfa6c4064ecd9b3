#pragma once

#include <zkasio/asio_version.hpp>

#include <asio/awaitable.hpp>

#include <string>

namespace zklock {

enum class answer { yes, no, nobody_there };

/// Asks whoever sits at the terminal; without one, says that --yes is needed. Does not block the loop.
asio::awaitable<answer> ask(std::string question);

}  // namespace zklock
