#include <zkasio/tls/tls_options.hpp>

#include <zkasio/error.hpp>
#include <zkasio/tls/detail/tls_channel.hpp>

#include <asio/ssl/context_base.hpp>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/objects.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <system_error>
#include <utility>

namespace zkasio {
namespace {

void checked(const std::error_code& code, const std::string& what) {
    if (code) throw error(errc::invalid_argument, "tls", {}, what + ": " + code.message());
}

struct closer {
    void operator()(BIO* b) const noexcept { ::BIO_free(b); }
    void operator()(EVP_PKEY* k) const noexcept { ::EVP_PKEY_free(k); }
    void operator()(X509* x) const noexcept { ::X509_free(x); }
};
template <class T>
using owned = std::unique_ptr<T, closer>;

// Without a password: OpenSSL would ask for it at the terminal.
int no_password(char*, int, int, void*) { return -1; }

std::string kind_of(const EVP_PKEY* key) {
    const char* const name = ::OBJ_nid2sn(::EVP_PKEY_base_id(key));
    return name ? name : "unknown";
}

// OpenSSL itself takes a key of another kind than the certificate for that of a second certificate, which never comes,
// and then shows none to the server. Files that cannot be read are left to it, and its messages.
void check_pair(const tls_files& files) {
    const owned<BIO> chain(::BIO_new_file(files.chain().c_str(), "r"));
    const owned<BIO> key_file(::BIO_new_file(files.key().c_str(), "r"));
    const owned<EVP_PKEY> key(key_file ? ::PEM_read_bio_PrivateKey(key_file.get(), nullptr, &no_password, nullptr)
                                       : nullptr);
    std::string first;
    for (int place = 1; chain && key; ++place) {
        const owned<X509> one(::PEM_read_bio_X509(chain.get(), nullptr, &no_password, nullptr));
        if (!one) {
            if (place > 1)
                throw error(errc::invalid_argument, "tls", {},
                            files.key() + ": this key (" + kind_of(key.get()) + ") is not that of the certificate (" +
                                first + ") in " + files.chain());
            break;
        }
        if (::X509_check_private_key(one.get(), key.get()) == 1) {
            if (place > 1)
                throw error(errc::invalid_argument, "tls", {},
                            files.chain() + ": the certificate of the key " + files.key() + " is number " +
                                std::to_string(place) + " of the chain, and has to be the first");
            break;
        }
        if (place == 1) first = kind_of(::X509_get0_pubkey(one.get()));
    }
    ::ERR_clear_error();
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
    check_pair(files);
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
