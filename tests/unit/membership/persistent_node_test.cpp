// What a persistent_node asks for when answers are lost, and others take its place meanwhile.

#include "unit/membership/kept_node.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/membership/persistent_node.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

/// One node: none, ours, or of session 99.
class one_node : public rig {
public:
    one_node() : rig(quick().retry(retry_policy::forever(1ms, 1ms))) {
        server.answer = [this](const request& q) { return answer(q); };
    }

    std::int64_t owner = -1;  ///< -1: there is none; 0: ours
    bool loses_create = false, loses_remove = false, readable = true;

private:
    std::optional<reply> answer(const request& q) {
        reply r;
        r.path = "/node";
        r.stat.czxid = 100 + owner;
        r.stat.ephemeral_owner = owner;
        if (std::holds_alternative<create_request>(q)) {
            if (owner != -1) return refusal(zk_errc::node_exists);
            if (std::exchange(loses_create, false)) return others_come();
            owner = 0;
        } else if (std::holds_alternative<remove_request>(q)) {
            if (std::exchange(loses_remove, false)) return others_come();
            owner = -1;
        } else if (const auto* e = std::get_if<exists_request>(&q); e && e->path == "/node") {
            if (!readable) return refusal(zk_errc::no_auth);
            if (owner == -1) return refusal(zk_errc::no_node);
        }
        return r;
    }
    // What was asked for was applied, and its answer is lost; ours is gone by now, if there was one.
    std::optional<reply> others_come() {
        owner = 99;
        server.drop();
        return std::nullopt;
    }
};

asio::awaitable<void> until(const persistent_node& node, persistent_node_state wanted) {
    for (persistent_node_state now = node.state(); now != wanted;) now = co_await node.state_after(now);
}

}  // namespace

TEST_CASE("persistent node: a removal whose answer is lost is not sent again to the node of somebody else") {
    one_node r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const persistent_node node(zk, "/node");
        co_await node.created();
        r.loses_remove = true;
        co_await node.leave();
        CHECK(r.owner == 99);
        CHECK(r.server.count("remove /node") == 1);
    };
    r.run(body);
}

TEST_CASE("persistent node: one that ends removes nothing once it has seen that the node is not its own") {
    one_node r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        r.loses_create = true;
        const persistent_node node(zk, "/node");
        co_await until(node, persistent_node_state::taken);
        r.readable = false;
        r.server.fire(node_event::data_changed, "/node");
        const std::error_code ended = co_await code_of(node.ended());
        CHECK(ended == zk_errc::no_auth);
        co_await zk.idle();
        CHECK(r.owner == 99);
        CHECK(r.server.count("remove /node") == 0);
    };
    r.run(body);
}

namespace {

// From now on there is no server in reach, and the client knows it.
asio::awaitable<void> lose_servers(kept_node& r, client zk) {
    r.server.reachable = false;
    r.server.drop();
    co_await r.server.until([&] { return zk.state() != session_state::connected; });
}

asio::awaitable<void> data_set(const persistent_node& node, std::string data) {
    co_await node.set_data(std::move(data));
}

}  // namespace

TEST_CASE("persistent node: one that others have taken is not waited for when there is no server to leave") {
    kept_node r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const persistent_node node(zk, "/node", "ours");
        co_await node.created();
        r.put(99);
        r.server.fire(node_event::data_changed, "/node");
        co_await until(node, persistent_node_state::taken);
        co_await lose_servers(r, zk);
        const std::error_code left = co_await code_of(timeout(10s, node.leave()));
        CHECK_FALSE(left);
        r.server.reachable = true;
    };
    r.run(body);
    CHECK(r.there->owner == 99);
}

TEST_CASE("persistent node: one that has gone is not waited for when there is no server to leave") {
    kept_node r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const persistent_node node(zk, "/node", "ours");
        co_await node.created();
        r.instead = [](const request& q) -> std::optional<reply> {
            if (!std::holds_alternative<create_request>(q)) return std::nullopt;
            return refusal(zk_errc::throttled);
        };
        r.there.reset();
        r.server.fire(node_event::removed, "/node");
        co_await r.server.until([&] { return r.server.count("create /node") == 3; });  // each is answered
        co_await lose_servers(r, zk);
        const std::error_code left = co_await code_of(timeout(10s, node.leave()));
        CHECK_FALSE(left);
        r.server.reachable = true;
    };
    r.run(body);
}

TEST_CASE("persistent node: a node of its session that it has found and cannot write goes with it") {
    kept_node r;
    r.instead = [](const request& q) -> std::optional<reply> {
        if (!std::holds_alternative<set_request>(q)) return std::nullopt;
        return refusal(zk_errc::bad_arguments);
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        r.put(0, "of this session");
        const persistent_node node(zk, "/node", "ours");
        const std::error_code ended = co_await code_of(node.ended());
        CHECK(ended == zk_errc::bad_arguments);
        co_await zk.idle();
        CHECK_FALSE(r.there);
    };
    r.run(body);
}

TEST_CASE("persistent node: what stood there before its create was refused is not its own, and stays") {
    kept_node r(false);
    r.instead = [](const request& q) -> std::optional<reply> {
        if (!std::holds_alternative<set_request>(q)) return std::nullopt;
        return refusal(zk_errc::throttled);
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        r.put(0, "an operator's");
        const persistent_node node(zk, "/node", "ours", persistent_node_options().mode(create_mode::persistent));
        co_await r.server.until([&] { return r.server.count("set /node") > 1; });
        co_await node.leave();
        CHECK(r.there);
        CHECK(r.server.count("remove /node") == 0);
    };
    r.run(body);
}

TEST_CASE("persistent node: new data that are too large to create it with are refused alone, and it is made anew") {
    kept_node r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        r.put(99);
        const persistent_node node(zk, "/node", "ours");
        co_await until(node, persistent_node_state::taken);
        running waiting(r.loop.executor(), data_set(node, "large"));
        co_await next_turns(r.server);
        r.instead = [](const request& q) -> std::optional<reply> {
            const auto* c = std::get_if<create_request>(&q);
            if (!c || c->data != "large") return std::nullopt;
            return refusal(errc::too_large);
        };
        r.there.reset();
        r.server.fire(node_event::removed, "/node");
        const std::error_code refused = co_await waiting.code();
        CHECK(refused == errc::too_large);
        co_await until(node, persistent_node_state::standing);
        CHECK(r.there->data == "ours");
        co_await node.leave();
    };
    r.run(body);
}
