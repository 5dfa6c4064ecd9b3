#pragma once

#include <zkasio/sasl/detail/digest_challenge.hpp>

#include <string>
#include <string_view>

namespace zkasio::detail {

/// What DIGEST-MD5 computes of a password for one challenge (RFC 2831, 2.1.2.1). Throws std::runtime_error where
/// OpenSSL has no MD5.
class digest_response {
public:
    /// @param user UTF-8, and so is the password
    /// @param cnonce the client's nonce
    digest_response(const digest_challenge& challenge, std::string_view user, std::string_view password,
                    std::string cnonce);

    /// The token that answers the challenge.
    const std::string& token() const noexcept { return token_; }
    /// Whether the server's last challenge proves that it knows the password. Throws as parse_directives().
    bool is_proved_by(std::string_view last) const;

private:
    std::string token_, rspauth_;
};

/// A nonce of a client. Throws std::runtime_error where OpenSSL has no random numbers.
std::string random_nonce();

/// Overwritten before it is freed.
void wipe(std::string& secret) noexcept;

}  // namespace zkasio::detail
