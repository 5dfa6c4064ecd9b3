#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zkasio::detail {

/// The directives of a challenge or of a response, as RFC 2831 has them: `key=value,key="quoted \"value\""`, with
/// spaces around the commas. Keys are in lower case, values without their quotes.
/// Throws std::runtime_error, which quotes nothing of the text, for anything else.
using sasl_directives = std::vector<std::pair<std::string, std::string>>;
sasl_directives parse_directives(std::string_view text);

/// A challenge of DIGEST-MD5 that this client can answer.
struct digest_challenge {
    std::string nonce, realm;
    bool has_realm = false;
    bool is_utf8 = false;
};

/// Throws std::runtime_error, which quotes nothing of the text, for a challenge that is malformed, or that asks for
/// more than authentication.
digest_challenge parse_digest_challenge(std::string_view text);

/// In quotes, with a backslash in front of each quote and backslash.
std::string quoted(std::string_view text);

}  // namespace zkasio::detail
