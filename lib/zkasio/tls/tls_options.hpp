#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client_options.hpp>
#include <zkasio/export.hpp>

#include <asio/ssl/context.hpp>

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace zkasio {

/// Certificates and keys in files, PEM. Every setter returns the object:
/// `tls_files().ca("ca.pem").certificate("client.pem", "client.key")`.
class tls_files {
public:
    /// The certificates of the authorities that sign the servers' certificates (those that the system trusts, where
    /// OpenSSL finds them).
    tls_files& ca(std::string file) { ca_ = std::move(file); return *this; }
    /// The certificate and the private key of this client, for servers that ask for a certificate, and for ACLs of the
    /// scheme "x509" (none). Both may be in one file.
    /// @param chain_file the certificate, followed by those that it was signed with.
    /// @param key_file its private key, without a password.
    tls_files& certificate(std::string chain_file, std::string key_file) {
        chain_ = std::move(chain_file);
        key_ = std::move(key_file);
        return *this;
    }

    const std::string& ca() const noexcept { return ca_; }
    const std::string& chain() const noexcept { return chain_; }
    const std::string& key() const noexcept { return key_; }

private:
    std::string ca_, chain_, key_;
};

/// Whether a client verifies the identity of its server.
enum class tls_verification {
    server,  ///< the certificate has to be signed by a trusted authority, valid now, and for this server's name
    none,    ///< nothing is verified: the connection is encrypted, perhaps to an attacker. For experiments.
};

/// How a client speaks TLS with its servers: `client_options("zk1:2281,zk2:2281").tls(tls_files().ca("ca.pem"))`. Needs
/// the CMake target zkasio::tls (the component `tls` of the installed package), which adds OpenSSL.
///
/// Each connection begins with a handshake; nothing else is sent before the handshake has succeeded. A name in the list
/// of servers, as given and not as DNS answers, is looked for among the names (subjectAltName) of the server's
/// certificate, and is sent to the server (SNI); an address is looked for among the certificate's addresses. If a
/// handshake fails, the attempt to connect fails, and the client goes on trying: errc::not_connected and the log tell
/// the reason. The time of the handshake is part of what an attempt to connect may take.
class ZKASIO_EXPORT tls_options {
public:
    using context_ptr = std::shared_ptr<asio::ssl::context>;
    /// Called on the client's strand, once for each connection that is made. An exception ends that attempt to connect,
    /// and is told as its reason. The function may do with the client all that the public API offers; while it runs,
    /// the client does nothing else. Several clients may call the function concurrently.
    using context_source = std::function<context_ptr()>;

    /// TLS 1.2 or later. Before each connection the files are checked, and read again if a file has changed, so that
    /// certificates can be replaced while the client runs; established connections are not touched. Throws
    /// zkasio::error, errc::invalid_argument, if the files cannot be used now.
    tls_options(tls_files files = {});

    /// All settings except verification() come from `context`. The context may be shared, and must not be changed while
    /// a client uses it. Throws zkasio::error for a null pointer.
    tls_options(context_ptr context);

    /// As with a context, but `source` returns it: one for each connection, or another one from some time on.
    tls_options(context_source source);

    /// (tls_verification::server) Overrides the context: a callback of the context can refuse a good certificate, but
    /// cannot accept a bad one.
    tls_options& verification(tls_verification v) { verification_ = v; return *this; }
    /// One name for which the certificates of all servers are valid, instead of the names in the list of servers. For a
    /// list of addresses, or of a proxy's names.
    tls_options& server_name(std::string name) { server_name_ = std::move(name); return *this; }

    const context_source& source() const noexcept { return source_; }
    tls_verification verification() const noexcept { return verification_; }
    const std::string& server_name() const noexcept { return server_name_; }

private:
    context_source source_;
    tls_verification verification_ = tls_verification::server;
    std::string server_name_;
};

/// The context that tls_options makes from files. Throws zkasio::error, which names the file that cannot be used.
ZKASIO_EXPORT tls_options::context_ptr make_tls_context(const tls_files& files);

}  // namespace zkasio
