#pragma once

#include <zkasio/error.hpp>

#include <asio/ip/tcp.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace zkasio::testing_detail {

/// Parses "address:port", numeric. Throws zkasio::error (errc::invalid_argument) for any other text.
inline asio::ip::tcp::endpoint endpoint_of(const std::string& text, std::string_view asked_by) {
    const auto colon = text.rfind(':');
    std::error_code is_name;
    const auto address = asio::ip::make_address(text.substr(0, colon), is_name);
    const std::string port = colon == std::string::npos ? std::string() : text.substr(colon + 1);
    const bool is_number = !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == port.npos;
    if (is_name || !is_number || std::stoul(port) > 65535 || std::stoul(port) == 0)
        throw error(errc::invalid_argument, asked_by, {}, "\"" + text + "\" is no \"address:port\"");
    return {address, static_cast<std::uint16_t>(std::stoul(port))};
}

}  // namespace zkasio::testing_detail
