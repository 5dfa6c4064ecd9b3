#pragma once

#include <string>
#include <utility>

namespace zkasio {

/// Certificates and keys in files, PEM. Every setter returns the object:
/// `tls_files().ca("ca.pem").certificate("client.pem", "client.key")`.
class tls_files {
public:
    /// The certificates of who has signed the servers' (those that the system trusts, where OpenSSL finds them).
    tls_files& ca(std::string file) { ca_ = std::move(file); return *this; }
    /// Who this client is, to servers that ask for it, and in the ACLs of the scheme "x509": the certificate with those
    /// that it was signed with behind it, and its private key without a password (none). Both may be one file.
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
