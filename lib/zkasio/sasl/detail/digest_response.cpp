#include <zkasio/sasl/detail/digest_response.hpp>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <array>
#include <initializer_list>
#include <memory>
#include <stdexcept>

namespace zkasio::detail {
namespace {

// ZooKeeper's servers and clients have agreed on this one, wherever the server is.
constexpr const char* digest_uri = "zookeeper/zk-sasl-md5";

struct deleter {
    void operator()(EVP_MD_CTX* c) const noexcept { ::EVP_MD_CTX_free(c); }
};

// Of the parts, with colons in between.
std::string md5(std::initializer_list<std::string_view> parts) {
    const std::unique_ptr<EVP_MD_CTX, deleter> context(::EVP_MD_CTX_new());
    bool good = context && ::EVP_DigestInit_ex(context.get(), ::EVP_md5(), nullptr) == 1;
    bool first = true;
    for (const std::string_view part : parts) {
        if (good && !first) good = ::EVP_DigestUpdate(context.get(), ":", 1) == 1;
        good = good && ::EVP_DigestUpdate(context.get(), part.data(), part.size()) == 1;
        first = false;
    }
    std::string sum(16, '\0');
    good = good && ::EVP_DigestFinal_ex(context.get(), reinterpret_cast<unsigned char*>(sum.data()), nullptr) == 1;
    if (!good) throw std::runtime_error("DIGEST-MD5: OpenSSL has no MD5 (FIPS?)");
    return sum;
}

std::string hex(std::string_view bytes) {
    constexpr const char* digits = "0123456789abcdef";
    std::string text;
    text.reserve(2 * bytes.size());  // growing would leave copies of a secret behind
    for (const char c : bytes) {
        text.push_back(digits[static_cast<unsigned char>(c) >> 4]);
        text.push_back(digits[static_cast<unsigned char>(c) & 15]);
    }
    return text;
}

// What is hashed of a text in UTF-8: ISO 8859-1, if that has all of its characters.
std::string to_hash(std::string_view utf8) {
    std::string latin1;
    latin1.reserve(utf8.size());
    for (std::size_t i = 0; i < utf8.size(); ++i) {
        const auto c = static_cast<unsigned char>(utf8[i]);
        if (c < 0x80) {
            latin1.push_back(utf8[i]);
        } else if ((c == 0xc2 || c == 0xc3) && i + 1 < utf8.size() && (utf8[i + 1] & 0xc0) == 0x80) {
            latin1.push_back(static_cast<char>((c & 3) << 6 | (utf8[++i] & 0x3f)));
        } else {
            wipe(latin1);
            return std::string(utf8);
        }
    }
    return latin1;
}

bool is_ascii(std::string_view text) noexcept {
    for (const char c : text)
        if (static_cast<unsigned char>(c) >= 0x80) return false;
    return true;
}

}  // namespace

void wipe(std::string& secret) noexcept {
    ::OPENSSL_cleanse(secret.data(), secret.size());
    secret.clear();
}

std::string random_nonce() {
    std::array<unsigned char, 16> bytes{};
    if (::RAND_bytes(bytes.data(), bytes.size()) != 1)
        throw std::runtime_error("DIGEST-MD5: OpenSSL has no random numbers");
    return hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

digest_response::digest_response(const digest_challenge& challenge, std::string_view user, std::string_view password,
                                 std::string cnonce) {
    if (!challenge.is_utf8 && !(is_ascii(user) && is_ascii(password)))
        throw std::runtime_error("DIGEST-MD5: the server does not speak UTF-8, in which the user or password is given");
    constexpr std::string_view count = "00000001";
    std::string secret = to_hash(password);
    std::string of_user = md5({to_hash(user), challenge.is_utf8 ? to_hash(challenge.realm) : challenge.realm, secret});
    std::string sum = md5({of_user, challenge.nonce, cnonce});
    std::string key = hex(sum);
    const auto proof = [&](const std::string& what) {
        return hex(md5({key, challenge.nonce, count, cnonce, "auth", hex(md5({what, digest_uri}))}));
    };
    const std::string response = proof("AUTHENTICATE");
    rspauth_ = proof("");
    wipe(secret);
    wipe(of_user);
    wipe(sum);
    wipe(key);
    token_ = challenge.is_utf8 ? "charset=utf-8," : "";
    token_ += "username=" + quoted(user);
    if (challenge.has_realm) token_ += ",realm=" + quoted(challenge.realm);
    token_ += ",nonce=" + quoted(challenge.nonce) + ",nc=" + std::string(count) + ",cnonce=" + quoted(cnonce) +
              ",digest-uri=" + quoted(digest_uri) + ",maxbuf=65536,response=" + response + ",qop=auth";
}

bool digest_response::is_proved_by(std::string_view last) const {
    const sasl_directives all = parse_directives(last);
    if (all.size() != 1 || all[0].first != "rspauth" || all[0].second.size() != rspauth_.size()) return false;
    return ::CRYPTO_memcmp(all[0].second.data(), rspauth_.data(), rspauth_.size()) == 0;
}

}  // namespace zkasio::detail
