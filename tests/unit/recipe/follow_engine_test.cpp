#include "unit/support/rig.hpp"
#include "unit/support/with_memory_for.hpp"

#include <zkasio/error.hpp>
#include <zkasio/recipe/detail/follow_engine.hpp>

#include <asio/dispatch.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/version.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

// Only with the version of Asio that these tests have been seen with: others may end the process where it throws.
#if defined(ZKASIO_TEST_COUNTS_NEW) && ASIO_VERSION == 102201

namespace follow_engine_tests {

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

struct follow_rig : rig {
    follow_rig() : rig(quick().retry(retry_policy::exponential(1ms, 2ms))) {}

    // An engine that has asked the server for the node.
    asio::awaitable<std::shared_ptr<follow_engine>> reading(client zk) {
        const auto engine = std::make_shared<follow_engine>(zk, "/a", node_read::data);
        engine->begin(zk);
        engine->tell_next(std::nullopt, [this](const node_report&) { ++told; });
        co_await server.until([this] { return server.count("get /a") == 1; });
        co_return engine;
    }

    int told = 0;
};

asio::awaitable<void> to_strand(client zk) { co_await asio::dispatch(zk.get_executor(), asio::use_awaitable); }

}  // namespace

// As ClickHouse Keeper does it: the removal of a child leaves the parent's pzxid as it was.
TEST_CASE("follow_engine: a removed child is told if the parent's pzxid has not changed", "[recipe]") {
    follow_rig r;
    std::vector<std::string> names{"a", "b", "c"};
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        reply answer;
        if (!std::holds_alternative<children_request>(q)) return answer;
        answer.children = names;
        answer.stat.czxid = 3;
        answer.stat.pzxid = 7;
        return answer;
    };
    std::vector<node_report> told;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const auto engine = std::make_shared<follow_engine>(zk, "/a", node_read::children);
        engine->begin(zk);
        node_follower::listener tell = [&](const node_report& report) {
            told.push_back(report);
            if (!report.ended) engine->tell_next(report.mark, tell);
        };
        engine->tell_next(std::nullopt, tell);
        co_await r.server.until([&] { return told.size() == 1; });
        names = {"c", "a"};
        r.server.fire(node_event::children_changed, "/a");
        co_await r.server.until([&] { return told.size() == 2; });
        CHECK(told.back().answer.children.size() == 2);
        names = {"a", "c"};  // in another order: nothing has changed
        const std::size_t asked = r.server.requests.size();
        r.server.fire(node_event::children_changed, "/a");
        co_await r.server.until([&] { return r.server.requests.size() > asked; });
        co_await next_turns(r.server);
        CHECK(told.size() == 2);
        tell = nullptr;
        engine->stop();
        co_await engine->stopped().wait();
    };
    r.run(body);
}

TEST_CASE("follow_engine: a pause that there was no memory for is made up for", "[recipe]") {
    follow_rig r;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        const bool first = std::holds_alternative<get_request>(q) && r.server.count("get /a") <= 1;
        return first ? std::nullopt : std::optional(reply());  // the test answers the first read
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::shared_ptr<follow_engine> engine = co_await r.reading(zk);
        node_feed_listener& listener = *engine;
        const std::string path = "/a";
        const bool enough =
            with_memory_for(0, [&] { listener.answered(node_read::data, path, zk_errc::throttled, node_answer()); });
        CHECK(!enough);
        listener.changed(node_change::data_changed, path);  // any event
        co_await r.server.until([&] { return r.server.count("get /a") == 2; });
        r.server.reply_to_all();
        engine->stop();
        co_await engine->stopped().wait();
    };
    r.run(body);
}

TEST_CASE("follow_engine: without memory to leave the watch, the engine stops nevertheless", "[recipe]") {
    bool enough = false;
    for (long requests = 0; !enough; ++requests) {
        INFO("memory for " << requests);
        follow_rig r;
        auto body = [&](client zk) -> asio::awaitable<void> {
            const std::shared_ptr<follow_engine> engine = co_await r.reading(zk);
            co_await r.server.until([&] { return r.told == 1; });
            co_await to_strand(zk);
            enough = with_memory_for(requests, [&] { engine->stop(); });
            engine->stop();  // as node_follower::close()
            co_await engine->stopped().wait();
        };
        r.run(body);
    }
}

}  // namespace follow_engine_tests

#endif
