#pragma once

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

}  // namespace zkasio
