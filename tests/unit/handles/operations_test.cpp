#include "unit/support/fake_tree.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

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
            const std::error_code one = co_await code_of(toolbox(zk).find_protected("/d", id));
            CHECK(one == errc::invalid_argument);
            const std::error_code all = co_await code_of(toolbox(zk).find_all_protected("/d", ids));
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
            const std::optional<created> node = co_await toolbox(zk).find_protected("/d", id);
            if (node) found.push_back(node->path);
        };
        std::function<asio::awaitable<void>()> all = [&]() -> asio::awaitable<void> {
            const auto names = co_await toolbox(zk).find_all_protected("/d", twice);
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
        if (std::holds_alternative<multi_request>(q)) return refusal(zk_errc::no_node);  // then each node by itself
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

TEST_CASE("operations: a large tree is removed in few requests", "[operations]") {
    testing::fake_ensemble zookeeper;
    constexpr int directories = 20, nodes = 50;
    for (int i = 0; i < directories; ++i)
        for (int k = 0; k < nodes; ++k) zookeeper.create("/large/" + std::to_string(i) + "/" + std::to_string(k));
    const client zk = zookeeper.client();
    int removals = 0;
    zookeeper.on_step([&](std::string_view step) {
        const bool applied = step.find(" apply ") != std::string_view::npos;
        if (applied && (step.find("remove ") != step.npos || step.find("multi") != step.npos)) ++removals;
        // Another client is faster with one of them.
        if (applied && removals == 3 && zookeeper.exists("/large/7/7")) zookeeper.remove("/large/7/7");
    });
    zookeeper.run(zk.remove_recursive("/large"));
    CHECK_FALSE(zookeeper.exists("/large"));
    CHECK(removals < 300);
    zookeeper.run(zk.remove_recursive("/large"));  // no error
    zookeeper.run(zk.close());
}

TEST_CASE("operations: what takes several requests fails under its own name", "[operations]") {
    rig r;
    r.server.answer = [](const request& what) {
        const bool is_set = std::holds_alternative<set_request>(what);
        return refusal(is_set && path_of(what) == "/new" ? zk_errc::no_node : zk_errc::no_auth);
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::string hint =
            ": no permission (the ACL does not allow it to this client: see get_acl() and add_auth())";
        std::string said = co_await message_of(zk.create_or_set("/old", "x"));
        CHECK(said == "create_or_set /old" + hint);
        said = co_await message_of(zk.create_or_set("/new", "x"));
        CHECK(said == "create_or_set /new" + hint);
        said = co_await message_of(zk.create_or_set("no", "x"));
        CHECK(said == "create_or_set no: invalid path (a path starts with '/')");
        said = co_await message_of(zk.create_unless_exists("/new", "x"));
        CHECK(said == "create_unless_exists /new" + hint);
        r.server.answer = [](const request& what) {
            return std::holds_alternative<set_request>(what) ? lost() : refusal(zk_errc::connection_loss);
        };
        said = co_await message_of(zk.create_or_set("/old", "x"));
        CHECK(said == "create_or_set /old: connection lost; it may or may not have been applied");
        said = co_await message_of(zk.remove_recursive("/old"));
        CHECK(said == "remove_recursive /old: connection lost");
    };
    r.run(body);
}

TEST_CASE("operations: a protected create whose node is not found is sent again after a pause", "[operations]") {
    constexpr auto pause = std::chrono::milliseconds(20);
    rig r(rig::quick().retry(retry_policy::n_times(1, pause)));
    std::size_t creates = 0;
    r.server.answer = [&](const request& q) {
        const bool is_create = std::holds_alternative<create_request>(q);
        return is_create && ++creates < 3 ? lost() : reply();  // the connection goes on, and the directory is empty
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const create_options options = create_options().protection();
        co_await zk.create("/d/a", "", options);
        std::vector<boot_clock::time_point> sent;
        for (const auto& q : r.server.requests)
            if (std::holds_alternative<create_request>(q.what)) sent.push_back(q.at);
        REQUIRE(sent.size() == 3);
        CHECK(sent[1] - sent[0] >= pause);
        CHECK(sent[2] - sent[1] >= pause);
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

TEST_CASE("operations: a create with parents stays in its session", "[operations]") {
    const bool parents_made = GENERATE(false, true);
    rig r;
    r.server.answer = [](const request&) { return std::nullopt; };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session mine = co_await zk.current_session();
        std::function<asio::awaitable<void>()> create = [&]() -> asio::awaitable<void> {
            const create_options how = create_options().parents(missing_parents::create_persistent);
            co_await mine.create("/p/c", "data", how);
        };
        const running creating(r.loop.executor(), create());
        co_await r.server.until([&] { return r.server.count("create /p/c") == 1; });
        r.server.reply_to(r.server.requests.back().id, refusal(zk_errc::no_node));
        if (parents_made) {
            co_await r.server.until([&] { return r.server.count("create /p") == 1; });
            r.server.reply_to(r.server.requests.back().id);
        }
        r.server.answer = [](const request&) { return reply(); };
        r.server.expire();
        const std::error_code code = co_await creating.code();
        CHECK(code == errc::session_expired);
        CHECK(r.server.count("create /p") == (parents_made ? 1 : 0));
        CHECK(r.server.count("create /p/c") == 1);
    };
    r.run(body);
}

TEST_CASE("operations: a create that had to wait for its parents is the one that was asked for", "[operations]") {
    rig r;
    std::vector<create_request> asked;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        if (const auto* c = std::get_if<create_request>(&q)) asked.push_back(*c);
        return asked.size() == 1 ? refusal(zk_errc::no_node) : reply();
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const create_options how = create_options()
                                       .parents(missing_parents::create_container)
                                       .mode(create_mode::ephemeral)
                                       .acl(read_only_acl());
        co_await zk.create("/p/c", "data", how);
        REQUIRE(asked.size() == 3);
        CHECK(asked[1].path == "/p");
        CHECK(asked[1].data.empty());
        CHECK(asked[1].mode == create_mode::container);
        for (const std::size_t i : {0U, 2U}) {
            CHECK(asked[i].path == "/p/c");
            CHECK(asked[i].data == "data");
            CHECK(asked[i].mode == create_mode::ephemeral);
        }
        for (const create_request& c : asked) CHECK(c.acl == how.acl());
    };
    r.run(body);
}
