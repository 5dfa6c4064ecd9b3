#include "support/catch.hpp"

#include <zkasio/client.hpp>
#include <zkasio/config/config_value.hpp>
#include <zkasio/config/json.hpp>

#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>

#include <array>
#include <cstdint>
#include <exception>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

using namespace zkasio;

namespace {

struct limits_of_test {
    int connections = 0;
    std::vector<std::string> hosts;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(limits_of_test, connections, hosts)

std::string nested(std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); }

}  // namespace

TEST_CASE("json: a type goes to text and back") {
    const config_format<limits_of_test> format = default_config_format<limits_of_test>::make();
    limits_of_test limits;
    limits.connections = 7;
    limits.hosts.push_back("a\"b");
    const std::string text = format.print()(limits);
    CHECK(text == R"({"connections":7,"hosts":["a\"b"]})");
    CHECK(format.parse()(text).hosts.front() == "a\"b");
}

TEST_CASE("json: nonsense is an exception") {
    const config_format<limits_of_test> format = json_format<limits_of_test>();
    for (const char* text : {"", "{", "[]", "null", "{\"connections\":1}", "{\"connections\":\"1\",\"hosts\":[]}",
                             "{\"connections\":1,\"hosts\":[1]}", "{\"connections\":1,\"hosts\":[]} x", "\xff\xfe",
                             "{\"connections\":1,\"hosts\":[\"\xff\"]}", "nan", "1e99999"}) {
        INFO(text);
        CHECK_THROWS_AS(format.parse()(text), nlohmann::json::exception);
    }
    limits_of_test not_utf8;
    not_utf8.hosts.push_back("\xff");
    CHECK_THROWS_AS(format.print()(not_utf8), nlohmann::json::exception);
}

namespace {

template <class T>
std::string refusal_of(const std::string& text) {
    const config_format<T> format = json_format<T>();
    try {
        format.parse()(text);
    } catch (const std::exception& e) {
        return e.what();
    }
    return {};
}

template <class T>
void refuses(const std::string& text) {
    INFO(text);
    CHECK_FALSE(refusal_of<T>(text).empty());
}

template <class T>
void takes(const std::string& text) {
    INFO(text);
    CHECK(refusal_of<T>(text).empty());
}

enum class open_mode {
    read_only,
    read_write
};
NLOHMANN_JSON_SERIALIZE_ENUM(open_mode, {{open_mode::read_only, "read-only"},
                                      {open_mode::read_write, "read-write"},
                                      {open_mode::read_write, "rw"}})

struct rights_of_test {
    open_mode mode = open_mode::read_only;
    int limit = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(rights_of_test, mode, limit)

struct as_minutes {
    long minutes = 0;
};
void from_json(const nlohmann::json& j, as_minutes& m) { m.minutes = std::stol(j.get<std::string>()); }
void to_json(nlohmann::json& j, const as_minutes& m) { j = std::to_string(m.minutes) + " min"; }

struct inverted_of_test {
    bool value = false;
};
void from_json(const nlohmann::json& j, inverted_of_test& i) { i.value = !j.get<bool>(); }
void to_json(nlohmann::json& j, const inverted_of_test& i) { j = i.value; }

}  // namespace

TEST_CASE("json: a number that its type does not hold is refused and not cut") {
    for (const char* text : {"4294967297", "-2147483649", "2147483648", "1e300", "1.9", "1e-5", "true", "false",
                             "18446744073709551615", "12345678901234567890123"})
        refuses<int>(text);
    for (const char* text : {"-1", "4294967296", "-1.0"}) refuses<unsigned>(text);
    refuses<std::uint8_t>("256");
    refuses<std::int64_t>("9223372036854775808");
    for (const char* text : {"9223372036854775808.0", "9007199254740993.0", "-9.007199254740993e15", "1e18",
                             "9007199254740991.2", "4503599627370496.5", "45035996273704965e-1"})
        refuses<std::int64_t>(text);
    for (const char* text : {"1.00000000000000001", "-0.00000000000000000001e1", "1e-400", "100000000000000000001e-20"})
        refuses<int>(text);
    refuses<std::uint64_t>("9007199254740993.0");
    refuses<std::uint64_t>("-1");
    refuses<std::uint64_t>("18446744073709551616");
    for (const char* text : {"9007199254740993", "-9007199254740993", "12345678901234567890123", "true"})
        refuses<double>(text);
    for (const char* text : {"16777217", "1e39", "1e-60"}) refuses<float>(text);
    refuses<nlohmann::json>("12345678901234567890123");
    refuses<nlohmann::json>("{\"a\":[-12345678901234567890123]}");
    refuses<std::array<int, 2>>("[1,2,3]");
    refuses<std::array<int, 2>>("[1,2,1]");
    refuses<std::vector<int>>("[1,4294967297]");
    refuses<std::map<std::string, int>>("{\"a\":1,\"b\":4294967297}");
    CHECK(refusal_of<limits_of_test>(R"({"connections":8589934593,"hosts":[]})").find(
              "/connections: 8589934593 would become 1") != std::string::npos);
}

TEST_CASE("json: what a type holds is taken, however it is written") {
    for (const char* text : {"2147483647", "-2147483648", "1.0", "1e3", "0", "-0", "-0.0", "0e-9", "120e-1", "1.20e1",
                             "0.000000000000000000005e21"})
        takes<int>(text);
    for (const char* text : {"0.1", "1e300", "1e-300", "9007199254740992", "100000000000000000000", "-0.0", "3"})
        takes<double>(text);
    for (const char* text : {"0.1", "16777216", "3.4e38", "0", "1e-30"}) takes<float>(text);
    for (const char* text : {"9223372036854775807", "9007199254740991.0", "-9.007199254740991e15"})
        takes<std::int64_t>(text);
    takes<std::int64_t>("-9223372036854775808");
    takes<std::uint64_t>("18446744073709551615");
    takes<std::set<int>>("[3,1,2]");
    takes<bool>("true");
    takes<nlohmann::json>(R"({"a":[1,2.5,"x",null,true,18446744073709551615]})");
    takes<limits_of_test>(R"({"connections":7,"hosts":["a"],"of a later version":4294967297})");
    takes<as_minutes>(R"("5m")");
}

TEST_CASE("json: what is no enumerator is refused, and not read as the first one") {
    for (const char* text : {R"("read-wirte")", R"("")", R"("Read-only")", "7", "0", "null", "true", "[]", "{}"}) {
        refuses<open_mode>(text);
        refuses<rights_of_test>(R"({"limit":1,"mode":)" + std::string(text) + "}");
        refuses<std::vector<open_mode>>("[\"read-only\"," + std::string(text) + "]");
        refuses<std::map<std::string, open_mode>>(R"({"a":"rw","b":)" + std::string(text) + "}");
    }
    refuses<std::set<open_mode>>(R"(["read-write","read-wirte"])");
    CHECK(refusal_of<rights_of_test>(R"({"mode":"read-wirte"})") ==
          R"(its type does not hold what it says: /mode: "read-wirte" would become "read-only", as any other value)");
    for (const char* text : {R"("read-only")", R"("read-write")", R"("rw")"}) {
        takes<open_mode>(text);
        takes<rights_of_test>(R"({"mode":)" + std::string(text) + "}");
        takes<std::vector<open_mode>>("[" + std::string(text) + ",\"rw\"]");
    }
    takes<std::set<open_mode>>(R"(["read-write","read-only"])");
    takes<rights_of_test>("{}");
    takes<std::set<std::string>>(R"(["b","a"])");
    takes<std::map<std::string, as_minutes>>(R"({"a":"5m","b":"7 min","c":"0 m"})");
}

TEST_CASE("json: of a text in which many strings are written in another way, as many are tried as cost little") {
    std::string many = "{";
    for (int i = 0; i < 3000; ++i) many += "\"" + std::to_string(i) + R"(":"5m",)";
    takes<std::map<std::string, as_minutes>>(many + R"("last":"6m"})");
}

TEST_CASE("json: a member that an object has twice is refused") {
    refuses<limits_of_test>(R"({"connections":7,"hosts":[],"connections":7})");
    refuses<std::map<std::string, int>>(R"({"a":1,"a":2})");
    refuses<nlohmann::json>(R"({"a":[{"b":1},{"b":1,"c":2,"b":3}]})");
    CHECK(refusal_of<nlohmann::json>(R"({"a":1,"a":2})") == R"(the member "a" is there twice)");
    takes<nlohmann::json>(R"({"a":{"a":1},"b":[{"a":1},{"a":1}]})");
}

TEST_CASE("json: a boolean is not inverted") {
    refuses<inverted_of_test>("true");
}

TEST_CASE("json: update() is told of what would be lost with the text") {
    const config_format<limits_of_test> format = json_format<limits_of_test>();
    const auto refused = [&](const std::string& text) {
        try {
            format.before_update()(text, format.parse()(text));
        } catch (const std::range_error& e) {
            return std::string(e.what());
        }
        return std::string();
    };
    CHECK(refused(R"({"connections":7,"hosts":["a"]})").empty());
    CHECK(refused(R"({"connections":7,"hosts":["a"],"later":1})").find("/later would be lost") != std::string::npos);
}

TEST_CASE("json: what no reader would take is not written") {
    asio::io_context io;
    const client zk(io.get_executor(), client_options("127.0.0.1:1"));
    const auto refusal = [&io](asio::awaitable<std::int32_t> set) {
        std::string text;
        asio::co_spawn(io, std::move(set), [&](std::exception_ptr failed, std::int32_t) {
            try {
                if (failed) std::rethrow_exception(failed);
            } catch (const std::exception& e) {
                text = e.what();
            }
        });
        io.restart();
        while (text.empty() && io.run_one() > 0) {
        }
        return text;
    };
    const config_value<double> number(zk, "/number");
    const std::string no_number = refusal(number.set(std::numeric_limits<double>::quiet_NaN()));
    CHECK(no_number.find("set /number: ") == 0);
    CHECK(no_number.find("cannot be read") != std::string::npos);
    const config_value<nlohmann::json> tree(zk, "/tree");
    nlohmann::json deep = 1;
    for (int i = 0; i < 65; ++i) deep = nlohmann::json::array({std::move(deep)});
    CHECK(refusal(tree.set(deep)).find("more than 64 levels") != std::string::npos);
}

TEST_CASE("json: nesting is limited before it is looked at") {
    CHECK(parse_json(nested(64)).is_array());
    CHECK_THROWS_AS(parse_json(nested(65)), std::length_error);
    CHECK_THROWS_AS(parse_json(nested(100000)), std::length_error);
    CHECK_THROWS_AS(parse_json(std::string(1000000, '[')), std::length_error);
    std::string objects;
    for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
    CHECK_THROWS_AS(parse_json(objects), std::length_error);
    CHECK(parse_json(nested(1), 1).is_array());
    CHECK_THROWS_AS(parse_json(nested(2), 1), std::length_error);
    CHECK(parse_json("1", 0) == 1);
    std::string wide = "[";
    for (int i = 0; i < 1000; ++i) wide += "[1],";
    CHECK(parse_json(wide + "[1]]", 2).size() == 1001);
}

TEST_CASE("config: what validate() takes") {
    config_options<int> options;
    CHECK_FALSE(options.check());
    options.validate([](int n) { return n > 0; });
    CHECK_NOTHROW(options.check()(1));
    CHECK_THROWS_AS(options.check()(0), std::invalid_argument);
    const auto throwing = [](const int& n) {
        if (n > 5) throw std::range_error("too many");
    };
    options.validate(throwing);
    CHECK_NOTHROW(options.check()(0));
    CHECK_THROWS_AS(options.check()(6), std::range_error);
}
