#pragma once

#include <asio/ip/tcp.hpp>

#include <string>
#include <string_view>

namespace zkasio::testing_detail {

/// Parses "address:port", numeric. Throws zkasio::error (errc::invalid_argument) for any other text.
asio::ip::tcp::endpoint endpoint_of(const std::string& text, std::string_view asked_by);

}  // namespace zkasio::testing_detail
