#pragma once

#include <asio/error_code.hpp>
#include <asio/ip/address.hpp>

#include <string>
#include <string_view>

namespace order_server {

/// Whether a page of this origin ("http://127.0.0.1:8080") comes from a server on this machine.
inline bool is_loopback_origin(std::string_view origin) {
    constexpr std::string_view scheme = "http://";
    if (!origin.starts_with(scheme)) return false;
    origin.remove_prefix(scheme.size());
    asio::error_code failed;
    const auto address = asio::ip::make_address(std::string(origin.substr(0, origin.find(':'))), failed);
    return !failed && address.is_loopback();
}

}  // namespace order_server
