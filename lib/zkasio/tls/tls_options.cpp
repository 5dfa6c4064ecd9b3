#include <zkasio/tls/tls_options.hpp>

#include <zkasio/error.hpp>
#include <zkasio/tls/detail/context_of_files.hpp>
#include <zkasio/tls/detail/tls_security.hpp>

#include <asio/ssl/context_base.hpp>

#include <openssl/ssl.h>

#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

namespace zkasio {
namespace {

void checked(const std::error_code& code, const std::string& what) {
    if (code) throw error(errc::invalid_argument, "tls", {}, what + ": " + code.message());
}

tls_options::context_source always(tls_options::context_ptr context) {
    if (!context) throw error(errc::invalid_argument, "tls", {}, "there is no context behind the pointer");
    return [context = std::move(context)] { return context; };
}

}  // namespace

tls_options::context_ptr make_tls_context(const tls_files& files) {
    auto context = std::make_shared<asio::ssl::context>(asio::ssl::context_base::tls_client);
    ::SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
    std::error_code code;
    if (files.ca().empty())
        context->set_default_verify_paths(code);
    else
        context->load_verify_file(files.ca(), code);
    checked(code, files.ca().empty() ? "the system's certificates" : files.ca());
    if (files.chain().empty() && files.key().empty()) return context;
    if (files.chain().empty() || files.key().empty())
        throw error(errc::invalid_argument, "tls", {},
                    files.chain().empty() ? "there is no certificate for the key " + files.key()
                                          : "there is no key for the certificate " + files.chain());
    // Without this callback OpenSSL would ask for a password at the terminal.
    ::SSL_CTX_set_default_passwd_cb(context->native_handle(), [](char*, int, int, void*) { return -1; });
    context->use_certificate_chain_file(files.chain(), code);
    checked(code, files.chain());
    context->use_private_key_file(files.key(), asio::ssl::context_base::pem, code);
    checked(code, files.key());
    return context;
}

tls_options::tls_options(tls_files files) {
    const auto from = std::make_shared<detail::context_of_files>(std::move(files));
    source_ = [from] { return from->get(); };
}

tls_options::tls_options(context_ptr context) : source_(always(std::move(context))) {}

tls_options::tls_options(context_source source) : source_(std::move(source)) {
    if (!source_) throw error(errc::invalid_argument, "tls", {}, "there is no function that makes a context");
}

client_options& client_options::tls(const tls_options& o) {
    security_ = std::make_shared<detail::tls_security>(o);
    return *this;
}

}  // namespace zkasio
