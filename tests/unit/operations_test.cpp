#include "unit/fake_tree.hpp"
#include "unit/rig.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

TEST_CASE("operations: a protection id that anybody's name may contain is refused", "[operations]") {
    rig r;
    fake_tree tree;
    for (const char* foreign : {"/d/a", "/d/b-1234567", "/d/c"}) tree.create_as(foreign, 77);
    r.server.answer = [&](const request& q) { return tree(q); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        for (const char* id : {"", "a", "1234567"}) {
            const std::vector<std::string> ids{new_protection_id(), id};
            const std::error_code one = co_await code_of(zk.find_protected("/d", id));
            CHECK(one == errc::invalid_argument);
            const std::error_code all = co_await code_of(zk.find_all_protected("/d", ids));
            CHECK(all == errc::invalid_argument);
        }
        CHECK(r.server.requests.empty());
        CHECK(tree.size() == 3);
    };
    r.run(body);
}

TEST_CASE("operations: all who look for the same node at one time find it", "[operations]") {
    rig r;
    fake_tree tree;
    const std::string id = new_protection_id(), path = "/d/" + protection_prefix(id) + "a";
    const std::vector<std::string> twice(2, id);
    tree.create_as(path, 0);
    r.server.answer = [&](const request& q) { return tree(q); };
    std::vector<std::string> found;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        std::function<asio::awaitable<void>()> one = [&]() -> asio::awaitable<void> {
            const std::optional<created> node = co_await zk.find_protected("/d", id);
            if (node) found.push_back(node->path);
        };
        std::function<asio::awaitable<void>()> all = [&]() -> asio::awaitable<void> {
            const auto names = co_await zk.find_all_protected("/d", twice);
            for (const auto& [of, name] : names) found.push_back("/d/" + name);
        };
        const running first(r.loop.executor(), one()), second(r.loop.executor(), all()),
            third(r.loop.executor(), one());
        co_await first.end();
        co_await second.end();
        co_await third.end();
        CHECK(found == std::vector<std::string>(3, path));
        CHECK(tree.has(path));
    };
    r.run(body);
}

TEST_CASE("operations: a node below that is gone, or may not be listed, after the connection was lost",
          "[operations]") {
    const zk_errc then = GENERATE(zk_errc::no_node, zk_errc::no_auth);
    rig r;
    int listings = 0;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        reply a;
        const auto* c = std::get_if<children_request>(&q);
        if (c && c->path == "/a") a.children = {"b"};
        if (!c || c->path == "/a") return a;
        return listings++ == 0 ? lost() : refusal(then);
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.remove_recursive("/a");
        CHECK(listings == 2);
        CHECK(r.server.count("remove /a/b") == 1);
        CHECK(r.server.count("remove /a") == 1);
    };
    r.run(body);
}

TEST_CASE("operations: a protected create that ends with its session does not speak of a search", "[operations]") {
    rig r;
    r.server.answer = [](const request&) { return std::nullopt; };
    std::string text;
    auto body = [&](client zk) -> asio::awaitable<void> {
        std::function<asio::awaitable<void>()> create = [&]() -> asio::awaitable<void> {
            const create_options options = create_options().protection();
            text = co_await message_of(zk.create("/d/a", "", options));
        };
        const running creating(r.loop.executor(), create());
        co_await r.server.until([&] { return r.server.requests.size() == 1; });
        r.server.expire();
        co_await creating.end();
        CHECK(text == "create /d/a: session expired; it may or may not have been applied");
    };
    r.run(body);
}
