#pragma once

#include <asio/ip/tcp.hpp>

#include <string>
#include <string_view>

namespace zkasio::testing_detail {

/// Of "address:port", numeric. Throws zkasio::error (errc::invalid_argument) for anything else.
asio::ip::tcp::endpoint endpoint_of(const std::string& text, std::string_view asked_by);

}  // namespace zkasio::testing_detail
