#include "support/catch.hpp"

#include "unit/support/error_of.hpp"

#include <zkasio/path.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

using namespace zkasio;
using zkasio::test::has;
using namespace std::string_literals;

namespace {

std::string utf8(std::uint32_t c) {
    std::string s;
    const auto tail = [&](int shift) { s += static_cast<char>(0x80 | ((c >> shift) & 0x3f)); };
    if (c < 0x80) {
        s += static_cast<char>(c);
    } else if (c < 0x800) {
        s += static_cast<char>(0xc0 | (c >> 6));
        tail(0);
    } else if (c < 0x10000) {
        s += static_cast<char>(0xe0 | (c >> 12));
        tail(6), tail(0);
    } else {
        s += static_cast<char>(0xf0 | (c >> 18));
        tail(12), tail(6), tail(0);
    }
    return s;
}

bool valid(const std::string& path) { return path_problem(path).empty(); }

// org.apache.zookeeper.common.PathUtils.validatePath, statement by statement, for text without special characters.
bool java_accepts(const std::string& path) {
    if (path.empty() || path[0] != '/') return false;
    if (path.size() == 1) return true;
    if (path.back() == '/') return false;
    char last = '/';
    for (std::size_t i = 1; i < path.size(); last = path[i], ++i) {
        const char c = path[i];
        const bool part_ends = i + 1 == path.size() || path[i + 1] == '/';
        if (c == '/' && last == '/') return false;
        if (c == '.' && last == '.') {
            if (path[i - 2] == '/' && part_ends) return false;
        } else if (c == '.') {
            if (path[i - 1] == '/' && part_ends) return false;
        }
    }
    return true;
}

}  // namespace

TEST_CASE("path: what is a path", "[path]") {
    for (const char* path :
         {"/", "/a", "/a/b", "/a/b/c", "/a b", "/a\\b", "/a:b*?", "/zookeeper", "/\xc3\xbc\xe2\x82\xac"}) {
        INFO(path);
        CHECK(path_problem(path) == "");
    }
    CHECK(path_problem("") == "the path is empty");
    CHECK(has(path_problem("a"), "starts with '/'"));
    CHECK(has(path_problem("a/b"), "starts with '/'"));
    CHECK(has(path_problem("/a/"), "end with '/'"));
    CHECK(has(path_problem("//"), "'/'"));
}

TEST_CASE("path: the message says where", "[path]") {
    CHECK(path_problem("/a//b") == "empty node name at character 3");
    CHECK(path_problem("//a") == "empty node name at character 1");
    CHECK(path_problem("/a/./b") == "relative path at character 3");
    CHECK(path_problem("/a/..") == "relative path at character 3");
    CHECK(path_problem("/ab\0c"s) == "NUL at character 3");
    CHECK(path_problem("/ab\x01") == "character not allowed at byte 3");
    CHECK(path_problem("/\xc3\xbc\x80") == "not UTF-8 at byte 3");
}

TEST_CASE("path: dots and slashes as in Java, every string of up to eight characters", "[path]") {
    // How many of them Java accepts, counted with zookeeper-3.8.0.jar.
    constexpr std::array<int, 9> accepted{0, 1, 1, 3, 9, 22, 58, 153, 404};
    constexpr char alphabet[] = {'/', '.', 'a'};
    for (std::size_t length = 0; length < accepted.size(); ++length) {
        std::size_t combinations = 1;
        for (std::size_t i = 0; i < length; ++i) combinations *= 3;
        int count = 0;
        for (std::size_t k = 0; k < combinations; ++k) {
            std::string path;
            for (std::size_t i = 0, rest = k; i < length; ++i, rest /= 3) path += alphabet[rest % 3];
            if (valid(path) != java_accepts(path)) {
                INFO(path);
                CHECK(valid(path) == java_accepts(path));
            }
            count += valid(path);
        }
        INFO("length " << length);
        CHECK(count == accepted[length]);
    }
}

TEST_CASE("path: dots inside names are fine", "[path]") {
    for (const char* path : {"/...", "/..a", "/a..", "/.a", "/a.", "/a.b", "/a/.../b", "/a/..b/c", "/a/b../c"}) {
        INFO(path);
        CHECK(valid(path));
    }
    for (const char* path : {"/.", "/..", "/./a", "/../a", "/a/.", "/a/..", "/a/./b", "/a/../b"}) {
        INFO(path);
        CHECK_FALSE(valid(path));
    }
}

TEST_CASE("path: every character as in Java", "[path]") {
    // Enumerated with zookeeper-3.8.0.jar; all else is refused. Above U+FFFF Java sees two surrogates.
    const auto java = [](std::uint32_t c) {
        return (c >= 0x20 && c <= 0x7e) || (c >= 0xa0 && c <= 0xd7ff) || (c >= 0xf900 && c <= 0xffef);
    };
    std::vector<std::uint32_t> different;
    for (std::uint32_t c = 0; c <= 0x10ffff; ++c)
        if (valid("/a" + utf8(c) + "b") != java(c)) different.push_back(c);
    CHECK(different == std::vector<std::uint32_t>{});
}

TEST_CASE("path: both sides of each border", "[path]") {
    const auto at = [](std::uint32_t c) { return valid("/" + utf8(c)); };
    CHECK_FALSE(at(0x00));
    CHECK_FALSE(at(0x01));
    CHECK_FALSE(at(0x1f));
    CHECK(at(0x20));
    CHECK(at(0x7e));
    CHECK_FALSE(at(0x7f));
    CHECK_FALSE(at(0x80));
    CHECK_FALSE(at(0x9f));
    CHECK(at(0xa0));
    CHECK(at(0xd7ff));
    CHECK_FALSE(at(0xd800));  // surrogates
    CHECK_FALSE(at(0xdfff));
    CHECK_FALSE(at(0xe000));  // private use
    CHECK_FALSE(at(0xf8ff));
    CHECK(at(0xf900));
    CHECK(at(0xffef));
    CHECK_FALSE(at(0xfff0));
    CHECK_FALSE(at(0xfffd));  // the replacement character, too
    CHECK_FALSE(at(0xffff));
    CHECK_FALSE(at(0x10000));
    CHECK_FALSE(at(0x1f600));
    CHECK_FALSE(at(0x10ffff));
}

TEST_CASE("path: what is no UTF-8", "[path]") {
    const std::vector<std::string> bad{
        "\x80",  // continuation without a beginning
        "\xbf",
        "\xc0\xaf",  // '/', overlong
        "\xc1\xbf",  // DEL, overlong
        "\xc3",      // cut off
        "\xc3"
        "a",
        "\xc3\xc3",
        "\xe0\x9f\xbf",  // U+07FF, overlong
        "\xe0\x80\xaf",
        "\xe2\x82",  // cut off
        "\xe2\x82"
        "a",
        "\xed\xa0\x80",      // U+D800
        "\xf0\x8f\xbf\xbf",  // U+FFFF, overlong
        "\xf0\x90\x80",      // cut off
        "\xf4\x90\x80\x80",  // U+110000
        "\xf5\x80\x80\x80",
        "\xf8\x88\x80\x80\x80",
        "\xfe",
        "\xff",
    };
    for (const std::string& s : bad)
        for (const std::string& path : {"/" + s, "/a" + s + "b", "/a/" + s + "/b"}) {
            INFO(path);
            CHECK_FALSE(valid(path));
        }
    CHECK(valid("/\xe0\xa0\x80"));  // U+0800, the first of three bytes
    CHECK(valid("/\xc2\xa0"));      // U+00A0
    CHECK(has(path_problem("/\xc3"), "not UTF-8"));
    CHECK(has(path_problem("/\xff"), "not UTF-8"));
    CHECK(has(path_problem("/\xe0\x9f\xbf"), "not UTF-8"));
    CHECK(has(path_problem("/\xf4\x90\x80\x80"), "not UTF-8"));
}

TEST_CASE("path: parent, name and join", "[path]") {
    CHECK(parent_path("/a/b") == "/a");
    CHECK(parent_path("/a/b/c") == "/a/b");
    CHECK(parent_path("/a") == "/");
    CHECK(parent_path("/") == "");
    CHECK(parent_path("a") == "");

    CHECK(node_name("/a/b") == "b");
    CHECK(node_name("/a") == "a");
    CHECK(node_name("/") == "");
    CHECK(node_name("a") == "a");

    CHECK(join_path("/a", "b") == "/a/b");
    CHECK(join_path("/", "b") == "/b");
    CHECK(join_path("/a/b", "c") == "/a/b/c");

    for (const char* path : {"/a", "/a/b", "/a/b/c"}) CHECK(join_path(parent_path(path), node_name(path)) == path);
}

TEST_CASE("paths: a path that is required and not valid is refused with the operation, the path and the reason") {
    const auto refused = zkasio::test::error_of([] { require_path("watch", "/a/"); });
    REQUIRE(refused);
    CHECK(refused->code() == errc::invalid_path);
    CHECK(refused->operation() == "watch");
    CHECK(refused->path() == "/a/");
    CHECK(refused->hint() == path_problem("/a/"));
    CHECK_FALSE(zkasio::test::error_of([] { require_path("watch", "/a"); }));
    CHECK_FALSE(zkasio::test::error_of([] { require_directory("lock", "/a"); }));
    for (const char* path : {"/", "/a/"}) {
        const auto no_directory = zkasio::test::error_of([&] { require_directory("lock", path); });
        REQUIRE(no_directory);
        CHECK(no_directory->code() == errc::invalid_path);
    }
}
