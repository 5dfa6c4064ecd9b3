#include <zkasio/sasl/detail/digest_challenge.hpp>

#include <algorithm>
#include <cstddef>
#include <stdexcept>

namespace zkasio::detail {
namespace {

constexpr std::size_t longest = 4096;  // RFC 2831 allows 2048 bytes
constexpr std::size_t most_directives = 64;

[[noreturn]] void malformed(const char* what) {
    throw std::runtime_error(std::string("DIGEST-MD5: the server's challenge is malformed: ") + what);
}

bool is_space(char c) noexcept { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

// A token of RFC 2616: no control characters, spaces or separators, and ASCII only.
bool is_token(char c) noexcept {
    constexpr std::string_view separators = "()<>@,;:\\\"/[]?={}";
    return c > ' ' && c < 0x7f && separators.find(c) == separators.npos;
}

char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

class reader {
public:
    explicit reader(std::string_view text) : text_(text) {}

    bool at_end() const noexcept { return at_ == text_.size(); }
    void skip(char separator) {
        while (!at_end() && (is_space(text_[at_]) || text_[at_] == separator)) ++at_;
    }
    bool take(char c) {
        if (at_end() || text_[at_] != c) return false;
        ++at_;
        return true;
    }
    void skip_spaces() { skip(' '); }
    // Empty: there is none.
    std::string token() {
        const std::size_t begin = at_;
        while (!at_end() && is_token(text_[at_])) ++at_;
        return std::string(text_.substr(begin, at_ - begin));
    }
    // Behind the opening quote.
    std::string quoted_rest() {
        std::string value;
        while (!at_end()) {
            char c = text_[at_++];
            if (c == '"') return value;
            if (c == '\\') {
                if (at_end()) break;
                c = text_[at_++];
            }
            if (c == '\0') malformed("a NUL");
            value.push_back(c);
        }
        malformed("a quote that does not end");
    }

private:
    std::string_view text_;
    std::size_t at_ = 0;
};

// "auth,auth-int" has the item "auth".
bool has_item(std::string_view list, std::string_view item) {
    for (reader r(list); !r.at_end();) {
        r.skip(',');
        const std::string one = r.token();
        if (one == item) return true;
        if (one.empty()) return false;
    }
    return false;
}

}  // namespace

sasl_directives parse_directives(std::string_view text) {
    if (text.size() > longest) malformed("too long");
    sasl_directives all;
    reader r(text);
    for (r.skip(','); !r.at_end(); r.skip(',')) {
        if (all.size() == most_directives) malformed("too many directives");
        std::string key = r.token();
        if (key.empty()) malformed("a directive without a name");
        std::transform(key.begin(), key.end(), key.begin(), lower);
        r.skip_spaces();
        if (!r.take('=')) malformed("a directive without a value");
        r.skip_spaces();
        const bool is_quoted = r.take('"');
        std::string value = is_quoted ? r.quoted_rest() : r.token();
        if (value.empty() && !is_quoted) malformed("a directive without a value");
        all.emplace_back(std::move(key), std::move(value));
        r.skip_spaces();
        if (r.at_end()) break;
        if (!r.take(',')) malformed("no comma between directives");
    }
    return all;
}

digest_challenge parse_digest_challenge(std::string_view text) {
    digest_challenge c;
    int nonces = 0, algorithms = 0, charsets = 0, qops = 0;
    for (auto& [key, value] : parse_directives(text)) {
        if (key == "nonce") {
            if (++nonces > 1) malformed("two nonces");
            c.nonce = std::move(value);
        } else if (key == "realm") {  // of several ones, the first
            if (!c.has_realm) c.realm = std::move(value);
            c.has_realm = true;
        } else if (key == "charset") {
            if (++charsets > 1 || value != "utf-8") malformed("another charset than UTF-8");
            c.is_utf8 = true;
        } else if (key == "algorithm") {
            if (++algorithms > 1 || value != "md5-sess") malformed("another algorithm than md5-sess");
        } else if (key == "qop") {
            if (++qops > 1 || !has_item(value, "auth"))
                throw std::runtime_error("DIGEST-MD5: the server demands more than authentication (qop)");
        }
    }
    if (c.nonce.empty()) malformed("no nonce");
    if (algorithms == 0) malformed("no algorithm");
    return c;
}

std::string quoted(std::string_view text) {
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') result.push_back('\\');
        result.push_back(c);
    }
    return result + '"';
}

}  // namespace zkasio::detail
