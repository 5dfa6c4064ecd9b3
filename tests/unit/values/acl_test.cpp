#include "support/catch.hpp"

#include <zkasio/acl.hpp>
#include <zkasio/detail/base/sha1.hpp>

#include <cstdint>
#include <string>
#include <vector>

using namespace zkasio;

namespace {

std::string hex_sha1(std::string_view message) {
    std::string text;
    for (const std::uint8_t byte : detail::sha1(message)) {
        static constexpr char digits[] = "0123456789abcdef";
        text += digits[byte >> 4];
        text += digits[byte & 15];
    }
    return text;
}

std::string base64_of(std::string_view text) {
    const std::vector<std::uint8_t> bytes(text.begin(), text.end());
    return detail::base64(bytes);
}

}  // namespace

TEST_CASE("sha1: FIPS 180 vectors", "[acl]") {
    CHECK(hex_sha1("abc") == "a9993e364706816aba3e25717850c26c9cd0d89d");
    CHECK(hex_sha1("") == "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    CHECK(hex_sha1("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
          "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
    CHECK(hex_sha1(std::string(1'000'000, 'a')) == "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

TEST_CASE("sha1: lengths around the padding", "[acl]") {
    // Python's hashlib.
    const std::vector<std::pair<std::size_t, std::string>> vectors{
        {55, "cef734ba81a024479e09eb5a75b6ddae62e6abf1"},  {56, "901305367c259952f4e7af8323f480d59f81335b"},
        {57, "025ecbd5d70f8fb3c5457cd96bab13fda305dc59"},  {63, "0ddc4e0cccd9a12850deb5abb0853a4425559fec"},
        {64, "bb2fa3ee7afb9f54c6dfb5d021f14b1ffe40c163"},  {65, "78c741ddc482e4cdf8c474a0876347a0905b6233"},
        {119, "4300320394f7ee239bcdce7d3b8bcee173a0cd5c"}, {120, "ceb2821639c4b6dcb10bce0e522ca2e608ce056d"},
        {127, "e463484d274607e1897d4099497cbf2aedcf8206"}, {128, "150fa3fbdc899bd0b8f95a9fb6027f564d953762"}};
    for (const auto& [length, digest] : vectors) {
        INFO(length);
        CHECK(hex_sha1(std::string(length, 'x')) == digest);
    }
}

TEST_CASE("sha1: bytes above 0x7f", "[acl]") {
    std::string all;
    for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
    CHECK(hex_sha1(all) == "4916d6bdb7f78e6803698cab32d1586ea457dfc8");
}

TEST_CASE("base64: RFC 4648 vectors", "[acl]") {
    CHECK(base64_of("") == "");
    CHECK(base64_of("f") == "Zg==");
    CHECK(base64_of("fo") == "Zm8=");
    CHECK(base64_of("foo") == "Zm9v");
    CHECK(base64_of("foob") == "Zm9vYg==");
    CHECK(base64_of("fooba") == "Zm9vYmE=");
    CHECK(base64_of("foobar") == "Zm9vYmFy");
    CHECK(base64_of("\xfb\xff\xbf") == "+/+/");
}

TEST_CASE("acl: digest ids as ZooKeeper's DigestAuthenticationProvider makes them", "[acl]") {
    CHECK(digest_id("super", "test") == "super:D/InIHSb7yEEbrWz8b9l71RjZJU=");  // of ZooKeeper's documentation
    CHECK(digest_id("user", "secret") == "user:5w9W4eL3797Y4Wq8AcKUPPk8ha4=");
    CHECK(digest_id("a", "") == "a:faqErSBWcv9/lZW1ERCcDsnNQLg=");
    CHECK(digest_id("\xc3\xbc", "p\xc3\xa4ss") == "\xc3\xbc:nr2eKCprZV8VCw/9M81ma3Hh8BI=");
    CHECK(digest_id("user", "pass:word") == "user:yNMcEO4y6Bgll487yEAxpvnMYoo=");
}

TEST_CASE("acl: ids", "[acl]") {
    CHECK(anyone() == acl_id("world", "anyone"));
    CHECK(authenticated() == acl_id("auth", ""));
    CHECK(digest_user("super", "test") == acl_id("digest", "super:D/InIHSb7yEEbrWz8b9l71RjZJU="));
    CHECK(ip_address("10.0.0.0/8") == acl_id("ip", "10.0.0.0/8"));
    CHECK(x509_subject("CN=a") == acl_id("x509", "CN=a"));
    CHECK(sasl_user("alice") == acl_id("sasl", "alice"));
    CHECK(acl_id("ip", "a") != acl_id("ip", "b"));
    CHECK(acl_id("ip", "a") != acl_id("world", "a"));
}

TEST_CASE("acl: permissions and the usual lists", "[acl]") {
    CHECK((permission::read | permission::write | permission::create | permission::remove | permission::admin) ==
          permission::all);
    CHECK((permission::all & permission::write) == permission::write);
    CHECK((permission::read & permission::write) == permission::none);
    CHECK(static_cast<int>(permission::read) == 1);  // the values of the protocol
    CHECK(static_cast<int>(permission::write) == 2);
    CHECK(static_cast<int>(permission::create) == 4);
    CHECK(static_cast<int>(permission::remove) == 8);
    CHECK(static_cast<int>(permission::admin) == 16);

    CHECK(open_acl() == acl{acl_entry(permission::all, anyone())});
    CHECK(creator_all_acl() == acl{acl_entry(permission::all, authenticated())});
    CHECK(read_only_acl() == acl{acl_entry(permission::read, anyone())});
}
