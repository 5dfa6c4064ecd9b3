#include <zkasio/tls/detail/tls_channel.hpp>

#include <asio/ip/address.hpp>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <cerrno>
#include <cstddef>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>

namespace zkasio::detail {

channel_maker tls_security::prepare() const {
    tls_options::context_ptr context = options_.source()();
    if (!context) throw std::runtime_error("TLS: the function that makes a context has made none");
    return [context = std::move(context), name = options_.server_name(),
            verification = options_.verification()](int descriptor, const server_address& server) {
        return std::make_unique<tls_channel>(descriptor, context, name.empty() ? server.host : name, verification);
    };
}

context_of_files::context_of_files(tls_files files) : files_(std::move(files)) { get(); }

tls_options::context_ptr context_of_files::get() {
    const std::lock_guard lock(mutex_);
    // Before the files are read: a change during the reading is seen the next time.
    std::vector<mark> now = marks();
    if (!context_ || now != read_) {
        context_ = make_tls_context(files_);
        read_ = std::move(now);
    }
    return context_;
}

context_of_files::mark context_of_files::mark_of(const std::string& file) {
    struct ::stat s {};
    if (file.empty() || ::stat(file.c_str(), &s) != 0) return {};
    return {s.st_dev, s.st_ino, s.st_size, s.st_ctim.tv_sec, s.st_ctim.tv_nsec};
}

std::vector<context_of_files::mark> context_of_files::marks() const {
    const char* const named = ::secure_getenv(::X509_get_default_cert_file_env());  // where OpenSSL looks
    const std::string ca = !files_.ca().empty() ? files_.ca() : named ? named : ::X509_get_default_cert_file();
    return {mark_of(ca), mark_of(files_.chain()), mark_of(files_.key())};
}

namespace {

socket_end& end_of(BIO* b) { return *static_cast<socket_end*>(::BIO_get_data(b)); }

// Takes the result `n` of recv() or send().
int transferred(BIO* b, ssize_t n, bool reading) {
    if (n >= 0) return static_cast<int>(n);
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
        end_of(b).failure = errno;
    else if (reading)
        BIO_set_retry_read(b);
    else
        BIO_set_retry_write(b);
    return -1;
}

int read(BIO* b, char* to, int room) {
    BIO_clear_retry_flags(b);
    const ssize_t n = ::recv(end_of(b).descriptor, to, static_cast<std::size_t>(room), MSG_DONTWAIT);
    if (n == 0 && room > 0) end_of(b).read_to_end = true;
    return transferred(b, n, true);
}

int write(BIO* b, const char* from, int size) {
    BIO_clear_retry_flags(b);
    return transferred(b, ::send(end_of(b).descriptor, from, static_cast<std::size_t>(size),
                                 MSG_NOSIGNAL | MSG_DONTWAIT), false);
}

long control(BIO* b, int what, long, void*) {
    if (what == BIO_CTRL_EOF) return end_of(b).read_to_end;
    return what == BIO_CTRL_FLUSH ? 1 : 0;
}

const BIO_METHOD* method() {
    static const BIO_METHOD* const made = [] {
        BIO_METHOD* const m = ::BIO_meth_new(::BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "zkasio socket");
        if (m) {
            ::BIO_meth_set_read(m, &read);
            ::BIO_meth_set_write(m, &write);
            ::BIO_meth_set_ctrl(m, &control);
        }
        return m;
    }();
    return made;
}

}  // namespace

void bio_deleter::operator()(BIO* b) const noexcept { ::BIO_free(b); }

bio_ptr make_socket_bio(socket_end& end) {
    bio_ptr b(method() ? ::BIO_new(method()) : nullptr);
    if (!b) return b;
    ::BIO_set_data(b.get(), &end);
    ::BIO_set_init(b.get(), 1);
    return b;
}

namespace {

std::string first_error(const char* otherwise) {
    const char* const text = ::ERR_reason_error_string(::ERR_peek_error());
    return std::string("TLS: ") + (text ? text : otherwise);
}

void checked(bool good, const char* what) {
    if (!good) throw std::runtime_error(first_error(what));
}

// True for the alerts by which a server refuses the client's certificate, or the lack of one. Which of them it sends
// depends on its library: without a certificate it is bad_certificate (Java 17.0.15), handshake_failure (Java 17.0.21,
// OpenSSL with TLS 1.2) or certificate_required (OpenSSL with TLS 1.3).
bool is_about_clients_certificate(int reason) {
    switch (reason - SSL_AD_REASON_OFFSET) {
        case SSL_AD_HANDSHAKE_FAILURE:
        case SSL_AD_BAD_CERTIFICATE:
        case SSL_AD_UNSUPPORTED_CERTIFICATE:
        case SSL_AD_CERTIFICATE_REVOKED:
        case SSL_AD_CERTIFICATE_EXPIRED:
        case SSL_AD_CERTIFICATE_UNKNOWN:
        case SSL_AD_UNKNOWN_CA:
        case SSL_AD_ACCESS_DENIED:
        case TLS13_AD_CERTIFICATE_REQUIRED: return true;
        default: return false;
    }
}

}  // namespace

void tls_channel::deleter::operator()(SSL* s) const noexcept { ::SSL_free(s); }

tls_channel::tls_channel(int descriptor, tls_options::context_ptr context, const std::string& name, tls_verification v)
    : context_(std::move(context)), end_(descriptor) {
    ::ERR_clear_error();
    ssl_.reset(::SSL_new(context_->native_handle()));
    checked(ssl_ != nullptr, "no memory");
    bio_ptr socket = make_socket_bio(end_);
    checked(socket != nullptr, "no memory");
    ::SSL_set0_rbio(ssl_.get(), socket.get());
    ::BIO_up_ref(socket.get());
    ::SSL_set0_wbio(ssl_.get(), socket.release());
    ::SSL_set_connect_state(ssl_.get());
    ::SSL_set_options(ssl_.get(), SSL_OP_NO_RENEGOTIATION);
    ::SSL_set_mode(ssl_.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    ::SSL_set_read_ahead(ssl_.get(), 1);
    // No callback is passed: a callback of the context stays.
    verified_ = v == tls_verification::server;
    ::SSL_set_verify(ssl_.get(), verified_ ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
    expected_name_ = name;
    expect(name);
}

// Names are sent to the server, addresses are not (RFC 6066). A name may end in a dot, the certificate's name does not.
void tls_channel::expect(const std::string& name) {
    X509_VERIFY_PARAM* const how = ::SSL_get0_param(ssl_.get());
    std::error_code is_name;
    asio::ip::make_address(name, is_name);
    if (!is_name) {
        checked(::X509_VERIFY_PARAM_set1_ip_asc(how, name.c_str()) == 1, "not an address");
        return;
    }
    const std::string host = name.ends_with('.') ? name.substr(0, name.size() - 1) : name;
    checked(!host.empty(), "a server's name is empty");
    checked(!host.starts_with('.'), "not a name");  // to OpenSSL: all names with this ending
    ::X509_VERIFY_PARAM_set_hostflags(how, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    checked(::X509_VERIFY_PARAM_set1_host(how, host.data(), host.size()) == 1, "not a name");
    checked(SSL_set_tlsext_host_name(ssl_.get(), host.c_str()) == 1, "not a name");
}

// --------------------------------------------------------------------------------------------------- progress

secure_channel::progress tls_channel::handshake() {
    ::ERR_clear_error();
    const progress p = after(::SSL_do_handshake(ssl_.get()));
    if (p == progress::done && verified_) return whom_it_is_with();
    // A server that closes the connection with unread data resets it.
    if (p != progress::ended && end_.failure != EPIPE && end_.failure != ECONNRESET) return p;
    failure_ = "hung up during the TLS handshake (not serving, or it does not speak TLS here)";
    return progress::failed;
}

// The context may have a callback that accepts everything, and ciphers that need no certificate.
secure_channel::progress tls_channel::whom_it_is_with() {
    const long result = ::SSL_get_verify_result(ssl_.get());
    if (::SSL_get0_peer_certificate(ssl_.get()) && result == X509_V_OK) return progress::done;
    failure_ = result == X509_V_OK ? "TLS: the server has shown no certificate" : unverified(result);
    return progress::failed;
}

secure_channel::transfer tls_channel::read(std::span<char> to) {
    ::ERR_clear_error();
    std::size_t n = 0;
    const progress p = after(::SSL_read_ex(ssl_.get(), to.data(), to.size(), &n));
    return {p, n};
}

secure_channel::transfer tls_channel::write(std::span<const char> from) {
    ::ERR_clear_error();
    std::size_t n = 0;
    const progress p = after(::SSL_write_ex(ssl_.get(), from.data(), from.size(), &n));
    return {p, n};
}

secure_channel::progress tls_channel::after(int result) {
    if (result == 1) return progress::done;
    switch (::SSL_get_error(ssl_.get(), result)) {
        case SSL_ERROR_WANT_READ: return progress::needs_input;
        case SSL_ERROR_WANT_WRITE: return progress::needs_output;
        case SSL_ERROR_ZERO_RETURN: return progress::ended;
        default: break;
    }
    // Servers do not reliably announce that they close the connection. ZooKeeper's packets contain their length: to cut
    // a connection gives an attacker no more than a lost connection.
    if (end_.failure == 0 && end_.read_to_end) return progress::ended;
    failure_ = reason();
    return progress::failed;
}

std::string tls_channel::reason() const {
    if (end_.failure != 0) {
        const bool hung_up = end_.failure == EPIPE;
        return hung_up ? "closed by the server" : std::generic_category().message(end_.failure);
    }
    const int why = ERR_GET_REASON(::ERR_peek_error());
    if (why == SSL_R_CERTIFICATE_VERIFY_FAILED) return unverified(::SSL_get_verify_result(ssl_.get()));
    return first_error("failed") + hint(why);
}

// The remedy, where the reason is clear. A handshake that fails before the server has shown its certificate fails
// because of versions or ciphers.
std::string tls_channel::hint(int why) const {
    if (why == SSL_R_WRONG_VERSION_NUMBER) return " (the server does not speak TLS here)";
    if (!is_about_clients_certificate(why) || !::SSL_get0_peer_certificate(ssl_.get())) return "";
    return ::SSL_get_certificate(ssl_.get()) ? " (the server refuses this client's certificate)"
                                             : " (this client has shown no certificate: if the server wants one, give "
                                               "it with tls_files::certificate())";
}

std::string tls_channel::unverified(long result) const {
    const bool name = result == X509_V_ERR_HOSTNAME_MISMATCH || result == X509_V_ERR_IP_ADDRESS_MISMATCH;
    return std::string("TLS: certificate verify failed: ") + ::X509_verify_cert_error_string(result) +
           (name ? " (it is not for " + expected_name_ + ')' : "");
}

}  // namespace zkasio::detail
