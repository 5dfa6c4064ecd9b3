// What a persistent_node asks for when answers are lost, and others take its place meanwhile.

#include "unit/rig.hpp"

#include <zkasio/membership/persistent_node.hpp>

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
