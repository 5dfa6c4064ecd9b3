// An id_allocator over servers whose data were restored from a backup: the node is the same, and its version is lower.

#include "unit/support/error_of.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/counters/id_allocator.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

namespace id_allocator_restore_tests {

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

// The servers' node of an id_allocator with blocks of one id.
struct counted_node {
    node_stat stat;

    counted_node() {
        stat.czxid = 100;
        stat.mzxid = 100;
    }
    std::optional<reply> answer(const request& q) {
        reply a;
        if (std::holds_alternative<set_request>(q)) {
            ++stat.version;
            ++stat.mzxid;
        }
        a.data = "blocks of 1 ids";
        a.stat = stat;
        return a;
    }
};

asio::awaitable<std::string> next_of(id_allocator ids) {
    try {
        const std::uint64_t id = co_await ids.next();
        co_return std::to_string(id);
    } catch (const error& e) {
        co_return e.what();
    }
}

void refuses_after(node_stat restored) {
    rig r;
    counted_node node;
    r.server.answer = [&](const request& q) { return node.answer(q); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const id_allocator ids(zk, "/ids", id_options().block(1));
        for (int i = 0; i < 5; ++i) {
            const std::string id = co_await next_of(ids);
            CHECK(id == std::to_string(i));
        }
        co_await zk.idle();
        CHECK(node.stat.version == 6);  // one block ahead
        node.stat = restored;
        const std::string fetched_before = co_await next_of(ids);
        CHECK(fetched_before == "5");
        co_await zk.idle();
        const std::int32_t version = node.stat.version;
        for (int i = 0; i < 3; ++i) {
            const std::string refused = co_await next_of(ids);
            CHECK(refused.starts_with("next /ids: inconsistent data (the node was deleted and re-created, or rest"));
            CHECK_FALSE(ids.try_next());
        }
        co_await zk.idle();
        CHECK(node.stat.version == version);
        const std::string begun_afterwards = co_await next_of(id_allocator(zk, "/ids", id_options().block(1)));
        CHECK(begun_afterwards == std::to_string(version));
    };
    r.run(body);
}

}  // namespace

TEST_CASE("id_allocator: a node that was restored from a backup gives no id twice") {
    node_stat restored = counted_node().stat;
    SECTION("the version is lower") {
        restored.version = 3;
        restored.mzxid = 500;
    }
    SECTION("the version was counted up again by other clients, and the transaction is older") {
        restored.version = 20;
        restored.mzxid = 103;
    }
    SECTION("the version is the one that was given last") {
        restored.version = 5;
        restored.mzxid = 500;
    }
    refuses_after(restored);
}

TEST_CASE("id_allocator: ids left of a block are not given once the node is known to be an older one") {
    rig r;
    counted_node node;
    r.server.answer = [&](const request& q) {
        std::optional<reply> a = node.answer(q);
        a->data = "blocks of 8 ids";
        return a;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const id_allocator ids(zk, "/ids", id_options().block(8));
        const std::string first = co_await next_of(ids);
        CHECK(first == "0");
        node.stat.version = 0;
        for (std::uint64_t i = 1; i < 6; ++i) CHECK(ids.try_next() == i);  // the last of these fetches a block
        co_await zk.idle();
        CHECK_FALSE(ids.try_next());
        const std::string refused = co_await next_of(ids);
        CHECK(refused.starts_with("next /ids: inconsistent data"));
    };
    r.run(body);
}

}  // namespace id_allocator_restore_tests
