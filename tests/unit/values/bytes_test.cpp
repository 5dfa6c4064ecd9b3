#include "support/catch.hpp"

#include <zkasio/bytes.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

using zkasio::bytes;
using namespace std::string_literals;
using namespace std::string_view_literals;

TEST_CASE("bytes: from text", "[bytes]") {
    CHECK(bytes().size() == 0);
    CHECK(bytes().view() == "");
    CHECK(bytes("text").view() == "text");
    CHECK(bytes("text"s).view() == "text");
    CHECK(bytes("text"sv).view() == "text");
    CHECK(bytes("a\0b"s).view() == "a\0b"sv);
    CHECK(bytes("a\0b"sv).size() == 3);
}

TEST_CASE("bytes: from any range of byte-sized elements", "[bytes]") {
    const std::vector<std::uint8_t> octets{0, 1, 0xff};
    CHECK(bytes(octets).view() == "\0\1\xff"sv);
    const std::vector<char> characters{'a', 'b'};
    CHECK(bytes(characters).view() == "ab");
    const std::array<std::byte, 2> array{std::byte{0x80}, std::byte{0}};
    CHECK(bytes(array).view() == "\x80\0"sv);
    CHECK(bytes(std::span<const std::uint8_t>(octets).subspan(1)).view() == "\1\xff"sv);
    CHECK(bytes(std::vector<std::int8_t>{}).size() == 0);
}

TEST_CASE("bytes: nothing wider than a byte", "[bytes]") {
    STATIC_REQUIRE_FALSE(std::is_constructible_v<bytes, std::vector<int>>);
    STATIC_REQUIRE_FALSE(std::is_constructible_v<bytes, std::array<wchar_t, 2>>);
    STATIC_REQUIRE_FALSE(std::is_constructible_v<bytes, int>);
    STATIC_REQUIRE(std::is_convertible_v<const char*, bytes>);
    STATIC_REQUIRE(std::is_convertible_v<std::vector<std::byte>, bytes>);
}

TEST_CASE("bytes: own what they hold", "[bytes]") {
    std::string text = "a string that is too long for the small buffer of a std::string";
    const bytes copy{std::string_view(text)};
    const std::string before = text;
    text.assign(text.size(), '#');
    CHECK(copy.view() == before);

    bytes moved = copy;
    const std::string taken = std::move(moved).take();
    CHECK(taken == before);
    CHECK(copy.size() == before.size());
}
