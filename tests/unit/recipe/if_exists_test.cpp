#include "unit/support/error_of.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/recipe/certain.hpp>

#include <optional>
#include <string>
#include <vector>

namespace if_exists_tests {

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

// Nothing for the connection's own requests.
std::optional<reply> refuse_reads(const request& q, zk_errc code) {
    const bool is_read = std::holds_alternative<get_request>(q) || std::holds_alternative<children_request>(q);
    return is_read ? refusal(code) : reply();
}

}  // namespace

TEST_CASE("if_exists: the result of a read, and nothing for a missing node", "[recipe]") {
    rig r;
    bool missing = false;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        if (missing) return refuse_reads(q, zk_errc::no_node);
        reply a;
        a.data = "seven";
        a.children = {"b", "a"};
        return a;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        std::optional<node_data> data = co_await if_exists(zk.get("/a"));
        REQUIRE(data);
        CHECK(data->data == "seven");
        std::vector<std::string> names = co_await children_if_any(zk, "/a");
        CHECK(names == std::vector<std::string>{"b", "a"});
        missing = true;
        data = co_await if_exists(zk.get("/a"));
        CHECK(!data);
        names = co_await children_if_any(zk, "/a");
        CHECK(names.empty());
    };
    r.run(body);
}

TEST_CASE("if_exists: other errors are those of the read", "[recipe]") {
    rig r;
    r.server.answer = [](const request& q) { return refuse_reads(q, zk_errc::no_auth); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        std::string text = co_await message_of(if_exists(zk.get("/a")));
        CHECK(text.starts_with("get /a: "));
        text = co_await message_of(children_if_any(zk, "/a"));
        CHECK(text.starts_with("children /a: "));
        const std::error_code code = co_await code_of(children_if_any(zk, "/a"));
        CHECK(code == zk_errc::no_auth);
    };
    r.run(body);
}

TEST_CASE("if_exists: an empty awaitable is refused", "[recipe]") {
    rig r;
    auto body = [](client) -> asio::awaitable<void> {
        const std::string text = co_await message_of(if_exists(asio::awaitable<node_data>()));
        CHECK(text == "if_exists: invalid argument (the operation is empty)");
    };
    r.run(body);
}

}  // namespace if_exists_tests
