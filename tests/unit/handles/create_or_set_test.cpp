#include "unit/handles/task_scope_steps.hpp"
#include "unit/support/fake_tree.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/coroutines/result.hpp>

#include <asio/thread_pool.hpp>

#include <string>
#include <type_traits>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

// An execution context, an executor, and nothing else.
static_assert(std::is_constructible_v<client, asio::io_context&, client_options>);
static_assert(std::is_constructible_v<client, asio::thread_pool&, const char*>);
static_assert(std::is_constructible_v<client, asio::io_context::executor_type, client_options>);
static_assert(std::is_constructible_v<client, asio::any_io_executor, const char*>);
static_assert(!std::is_constructible_v<client, const asio::io_context&, client_options>);
static_assert(!std::is_constructible_v<client, client&, client_options>);

namespace {

// A tree in which data cannot be set where there is no node.
class settable_tree {
public:
    reply operator()(const request& what) {
        const auto* set = std::get_if<set_request>(&what);
        if (!set) return tree(what);
        if (!tree.has(set->path)) return refusal(zk_errc::no_node);
        reply r;
        r.stat.version = 5;
        return r;
    }
    fake_tree tree;
};

}  // namespace

TEST_CASE("client: made from an execution context it runs there", "[client]") {
    asio::io_context io;
    const client zk(io, client_options("127.0.0.1:1"));
    CHECK(&asio::query(zk.get_executor(), asio::execution::context) == &io);
}

TEST_CASE("create_unless_exists: returns what was created and nothing when the node is there", "[operations]") {
    rig r;
    settable_tree nodes;
    r.server.answer = [&](const request& what) { return nodes(what); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::optional<created> first = co_await zk.create_unless_exists("/a", "one");
        REQUIRE(first);
        CHECK(first->path == "/a");
        const std::optional<created> second = co_await zk.create_unless_exists("/a", "two");
        CHECK_FALSE(second);
        CHECK(r.server.texts() == std::vector<std::string>{"create /a", "create /a"});
    };
    r.run(body);
}

TEST_CASE("create_or_set: sets the data of a node or creates the node", "[operations]") {
    rig r;
    settable_tree nodes;
    r.server.answer = [&](const request& what) { return nodes(what); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const node_stat made = co_await zk.create_or_set("/a", "one");
        CHECK(made.czxid != 0);
        CHECK(nodes.tree.has("/a"));
        const node_stat changed = co_await zk.create_or_set("/a", "two");
        CHECK(changed.version == 5);
        CHECK(r.server.texts() == std::vector<std::string>{"set /a", "create /a", "set /a"});
    };
    r.run(body);
}

TEST_CASE("create_or_set: a node that comes and goes between the requests", "[operations]") {
    const bool forever_so = GENERATE(false, true);
    rig r;
    settable_tree nodes;
    int creates = 0;
    r.server.answer = [&](const request& what) -> reply {
        if (std::holds_alternative<create_request>(what) && (++creates < 4 || forever_so))
            return refusal(zk_errc::node_exists);
        return nodes(what);
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const result<node_stat> r1 = co_await as_result(zk.create_or_set("/a", "one"));
        CHECK(r1.has_value() == !forever_so);
        if (forever_so) CHECK(r1.error().code() == zk_errc::node_exists);
        CHECK(creates == (forever_so ? 11 : 4));
    };
    r.run(body);
}

TEST_CASE("create_or_set and create_unless_exists: a lost answer is told and nothing is sent again", "[operations]") {
    rig r;
    r.server.answer = [](const request&) { return lost(); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const auto created_one = co_await as_result(zk.create_unless_exists("/a"));
        const auto set_one = co_await as_result(zk.create_or_set("/b", "x"));
        r.server.answer = [](const request& what) {
            return std::holds_alternative<set_request>(what) ? refusal(zk_errc::no_node) : lost();
        };
        const auto then_created = co_await as_result(zk.create_or_set("/c", "x"));
        for (const error* e : {&created_one.error(), &set_one.error(), &then_created.error()}) {
            CHECK(e->code() == zk_errc::connection_loss);
            CHECK(e->outcome_unknown());
        }
        CHECK(r.server.texts() == std::vector<std::string>{"create /a", "set /b", "set /c", "create /c"});
    };
    r.run(body);
}

TEST_CASE("create_or_set and create_unless_exists: what makes no sense is refused before anything is sent",
          "[operations]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const create_options numbered = create_options().mode(create_mode::persistent_sequential);
        const create_options hidden = create_options().protection();
        const create_options no_ttl = create_options().mode(create_mode::persistent_ttl);
        const std::vector<create_options> senseless{numbered, hidden, no_ttl};
        for (const create_options& options : senseless) {
            const std::error_code unless = co_await code_of(zk.create_unless_exists("/a", "", options));
            const std::error_code set = co_await code_of(zk.create_or_set("/a", "", options));
            CHECK(unless == errc::invalid_argument);
            CHECK(set == errc::invalid_argument);
        }
        co_await expect_message(
            zk.create_or_set("/a", "", numbered),
            "create_or_set /a: invalid argument (a sequential or protected node has a new name each time)");
        co_await expect_code(zk.create_unless_exists("no slash"), errc::invalid_path);
        client from = zk;
        const client to = std::move(from);
        co_await expect_code(from.create_or_set("/a", ""), errc::invalid_argument);
        CHECK(r.server.requests.empty());
    };
    r.run(body);
}
