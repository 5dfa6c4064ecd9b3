#pragma once

#include "support/temporary_directory.hpp"

#include <openssl/types.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

namespace zkasio::test {

/// Signs certificates for a test, valid for an hour; keys and certificates are files in a directory of its own.
class certificate_authority {
public:
    explicit certificate_authority(const std::string& name);

    /// Who signs, as a file: "ca.pem".
    std::string file() const { return files_ / "ca.pem"; }

    struct issued {
        std::string chain, key;
        std::string both;  ///< one file, as ZooKeeper's servers want it
    };
    /// @param names "DNS:localhost,IP:127.0.0.1"; empty: none
    issued issue(const std::string& common_name, const std::string& names,
                 std::chrono::seconds ends_in = std::chrono::hours(1)) const;

    /// Writes a key's file anew, with a password.
    static void lock(const std::string& key_file, const std::string& password);

private:
    struct deleter {
        void operator()(EVP_PKEY* k) const noexcept;
        void operator()(X509* c) const noexcept;
    };
    using key_ptr = std::unique_ptr<EVP_PKEY, deleter>;
    using certificate_ptr = std::unique_ptr<X509, deleter>;
    static certificate_ptr unsigned_certificate(const std::string& name, EVP_PKEY* key, std::chrono::seconds ends_in);
    void write(const std::string& file, X509* certificate, EVP_PKEY* key) const;

    temporary_directory files_;
    key_ptr key_;
    certificate_ptr certificate_;
    mutable int count_ = 0;
};

}  // namespace zkasio::test
