#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client_options.hpp>
#include <zkasio/export.hpp>
#include <zkasio/tls/tls_files.hpp>

#include <asio/ssl/context.hpp>

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace zkasio {

/// Whether a client makes sure whom it talks to.
enum class tls_verification {
    server,  ///< the server's certificate: signed by somebody who is trusted, valid now, and for this server's name
    none,    ///< nobody is asked for anything: the connection is encrypted, perhaps to an attacker. For experiments.
};

/// How a client speaks TLS with its servers: `client_options("zk1:2281,zk2:2281").tls(tls_files().ca("ca.pem"))`. Needs
/// the CMake target zkasio::tls (the component `tls` of the installed package), which adds OpenSSL.
///
/// Each connection begins with a handshake, and nothing is sent to a server before that has ended well. A name in the
/// list of servers is looked for among the names (subjectAltName) of the server's certificate, as it was given and not
/// as DNS answers, and is sent to the server (SNI); an address among the addresses there. A handshake that fails is an
/// attempt to connect that fails, and the client goes on trying: errc::not_connected says what was wrong, and so does
/// the log. Its time is part of what an attempt to connect may take.
class ZKASIO_EXPORT tls_options {
public:
    using context_ptr = std::shared_ptr<asio::ssl::context>;
    /// Called on the client's strand, once for each connection that is made; what it throws ends that attempt to
    /// connect, and is told as its reason. It may do with the client all that the public API offers; as long as it
    /// runs, the client does nothing else. Several clients may call it at a time.
    using context_source = std::function<context_ptr()>;

    /// TLS 1.2 or later. Before each connection the files are looked at, and read anew when one of them has changed, so
    /// that certificates can be replaced while the client runs; connections that stand are not touched. Throws
    /// zkasio::error, errc::invalid_argument, when they cannot be used now.
    tls_options(tls_files files = {});

    /// Everything but verification is as it is in `context`, which may be shared, and must not be changed while a
    /// client uses it. Throws zkasio::error for a null pointer.
    tls_options(context_ptr context);

    /// The same with a context of each connection's own, or another one from some time on.
    tls_options(context_source source);

    /// (tls_verification::server) Whatever the context says: a callback of the context's can refuse a certificate that
    /// is good, and not accept one that is not.
    tls_options& verification(tls_verification v) { verification_ = v; return *this; }
    /// One name that the certificates of all servers are for, instead of those in the list of servers: where that has
    /// addresses, or names of a proxy's.
    tls_options& server_name(std::string name) { server_name_ = std::move(name); return *this; }

    const context_source& source() const noexcept { return source_; }
    tls_verification verification() const noexcept { return verification_; }
    const std::string& server_name() const noexcept { return server_name_; }

private:
    context_source source_;
    tls_verification verification_ = tls_verification::server;
    std::string server_name_;
};

/// What tls_options makes of files. Throws zkasio::error, which names the file that cannot be used.
ZKASIO_EXPORT tls_options::context_ptr make_tls_context(const tls_files& files);

}  // namespace zkasio
