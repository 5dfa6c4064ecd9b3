#include <zkasio/tls/detail/tls_security.hpp>

#include <zkasio/tls/detail/tls_channel.hpp>

#include <stdexcept>

namespace zkasio::detail {

std::unique_ptr<secure_channel> tls_security::over(int descriptor, const std::string& host) const {
    tls_options::context_ptr context = options_.source()();
    if (!context) throw std::runtime_error("TLS: the function that makes a context has made none");
    const std::string& name = options_.server_name().empty() ? host : options_.server_name();
    return std::make_unique<tls_channel>(descriptor, std::move(context), name, options_.verification());
}

}  // namespace zkasio::detail
