#include "unit/support/rig.hpp"

#include <zkasio/error.hpp>
#include <zkasio/recipe/detail/follow_engine.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace follow_engine_tests {

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

struct follow_rig : rig {
    follow_rig() : rig(quick().retry(retry_policy::exponential(1ms, 2ms))) {}
};

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

}  // namespace follow_engine_tests
