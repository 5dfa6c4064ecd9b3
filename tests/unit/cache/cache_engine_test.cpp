#include "unit/support/rig.hpp"
#include "unit/support/with_memory_for.hpp"

#include <zkasio/cache/detail/cache_engine.hpp>
#include <zkasio/error.hpp>

#include <asio/dispatch.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/version.hpp>

#include <memory>
#include <optional>
#include <string>

// Only with the version of Asio that these tests have been seen with: others may end the process where it throws.
#if defined(ZKASIO_TEST_COUNTS_NEW) && ASIO_VERSION == 102201

namespace cache_engine_tests {

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;
using cache_detail::board_limits;
using cache_detail::cache_board;
using cache_detail::cache_engine;

namespace {

struct cache_rig : rig {
    cache_rig() : rig(quick().retry(retry_policy::exponential(1ms, 2ms))) {
        server.answer = [this](const request& q) -> std::optional<reply> {
            const bool first = std::holds_alternative<get_request>(q) && server.count("get /a") <= 1;
            return first ? std::nullopt : std::optional(reply());  // the test answers the first read
        };
    }

    // An engine for one node, which has asked the server for the node.
    asio::awaitable<std::shared_ptr<cache_engine>> reading(client zk) {
        cache_detail::tree_scope scope;
        scope.depth = 0;
        const auto board = std::make_shared<cache_board>(zk, "/a", board_limits{10, 1000});
        const auto engine = std::make_shared<cache_engine>(zk, "/a", scope, 10, board);
        engine->begin(zk);
        co_await server.until([this] { return server.count("get /a") == 1; });
        co_return engine;
    }

    asio::awaitable<void> end(std::shared_ptr<cache_engine> engine) {
        server.reply_to_all();
        engine->stop();
        co_await engine->stopped().wait();
    }
};

const std::string node = "/a";

}  // namespace

TEST_CASE("cache_engine: a pause that there was no memory for is made up for", "[cache]") {
    cache_rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::shared_ptr<cache_engine> engine = co_await r.reading(zk);
        node_feed_listener& listener = *engine;
        const bool enough =
            with_memory_for(0, [&] { listener.answered(node_read::data, node, zk_errc::throttled, node_answer()); });
        CHECK(!enough);
        listener.changed(node_change::data_changed, node);  // any event
        co_await r.server.until([&] { return r.server.count("get /a") == 2; });
        co_await r.end(engine);
    };
    r.run(body);
}

TEST_CASE("cache_engine: a state that there was no memory to publish is published with the next one", "[cache]") {
    constexpr long most = 6;  // then asio::post() asks for memory; a strand does not survive its last refused request
    for (long requests = 0; requests <= most; ++requests) {
        INFO("memory for " << requests);
        cache_rig r;
        auto body = [&](client zk) -> asio::awaitable<void> {
            const std::shared_ptr<cache_engine> engine = co_await r.reading(zk);
            node_feed_listener& listener = *engine;
            const bool enough =
                with_memory_for(requests, [&] { listener.answered(node_read::data, node, {}, node_answer()); });
            CHECK(!enough);
            listener.changed(node_change::data_changed, node);
            co_await cache_board::until_ready(engine->board());
            co_await r.end(engine);
        };
        r.run(body);
    }
}

TEST_CASE("cache_engine: a watch that there was no memory to leave is left with the next one", "[cache]") {
    constexpr long most = 4;  // then toolbox::start_exists() asks for memory, which the core has to survive
    for (long requests = 0; requests <= most; ++requests) {
        INFO("memory for " << requests);
        cache_rig r;
        auto body = [&](client zk) -> asio::awaitable<void> {
            const std::shared_ptr<cache_engine> engine = co_await r.reading(zk);
            node_feed_listener& listener = *engine;
            // A watch of a node that the cache does not know.
            const auto leave_one = [&] { listener.answered(node_read::children, "/a/b", {}, node_answer()); };
            co_await asio::dispatch(zk.get_executor(), asio::use_awaitable);
            const bool enough = with_memory_for(requests, leave_one);
            CHECK(!enough);
            leave_one();
            bool left = true;
            listener.for_each_watch([&](node_read, const std::string& path) { left = left && path != "/a/b"; });
            CHECK(left);
            co_await r.end(engine);
        };
        r.run(body);
    }
}

TEST_CASE("cache_engine: without memory to leave the watches, the engine stops nevertheless", "[cache]") {
    bool enough = false;
    for (long requests = 0; !enough; ++requests) {
        INFO("memory for " << requests);
        cache_rig r;
        auto body = [&](client zk) -> asio::awaitable<void> {
            const std::shared_ptr<cache_engine> engine = co_await r.reading(zk);
            r.server.reply_to_all();
            co_await cache_board::until_ready(engine->board());
            co_await asio::dispatch(zk.get_executor(), asio::use_awaitable);
            enough = with_memory_for(requests, [&] { engine->stop(); });
            co_await r.end(engine);
        };
        r.run(body);
    }
}

}  // namespace cache_engine_tests

#endif
