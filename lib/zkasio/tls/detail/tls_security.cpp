#include <zkasio/tls/detail/tls_security.hpp>

#include <zkasio/tls/detail/tls_channel.hpp>

#include <stdexcept>

namespace zkasio::detail {

channel_maker tls_security::prepare() const {
    tls_options::context_ptr context = options_.source()();
    if (!context) throw std::runtime_error("TLS: the function that makes a context has made none");
    return [context = std::move(context), name = options_.server_name(),
            verification = options_.verification()](int descriptor, const std::string& host) {
        return std::make_unique<tls_channel>(descriptor, context, name.empty() ? host : name, verification);
    };
}

}  // namespace zkasio::detail
