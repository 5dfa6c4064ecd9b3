// A server's challenge, as DIGEST-MD5 reads it. What is accepted is read again from what the client would quote.
#include "fuzz/fuzz.hpp"

#include <zkasio/sasl/detail/digest_challenge.hpp>

#include <optional>
#include <stdexcept>

namespace {

using namespace zkasio::fuzz;
using namespace zkasio::detail;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(view(data, size));
    std::optional<digest_challenge> c;
    const auto read = [&] { c = parse_digest_challenge(text); };
    try {
        read();
    } catch (const std::runtime_error& e) {
        const std::string why = e.what();
        require(why.starts_with("DIGEST-MD5: "), "a reason", why);
        require(why.size() < 100, "the reason quotes nothing", why);
        return 0;
    }
    require(!c->nonce.empty() && c->nonce.size() < size, "a nonce", text);
    require(c->realm.size() < size, "a realm", text);
    std::string again = "algorithm=md5-sess,nonce=" + quoted(c->nonce);
    if (c->has_realm) again += ",realm=" + quoted(c->realm);
    if (c->is_utf8) again += ",charset=utf-8";
    if (again.size() > 4096) return 0;  // longer, for its quotes
    const digest_challenge same = parse_digest_challenge(again);
    require(same.nonce == c->nonce && same.realm == c->realm && same.has_realm == c->has_realm &&
                same.is_utf8 == c->is_utf8,
            "what is quoted is read again", text);
    return 0;
}
