// What a config_value asks the servers for, and what it waits for.

#include "support/lock_checks.hpp"
#include "unit/support/error_of.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/config/config_value.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

int limit_in(std::string_view text) { return std::stoi(std::string(text)); }
std::string text_of_limit(const int& limit) { return std::to_string(limit); }
config_format<int> as_text() { return config_format<int>(&limit_in, &text_of_limit); }

asio::awaitable<void> ready_of(const config_value<int>& value) { co_await value.ready(); }

}  // namespace

TEST_CASE("config requests: a default is no answer of a server") {
    rig r;
    r.server.answer = [](const request&) { return refusal(zk_errc::no_node); };
    r.server.reachable = false;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const config_value<int> limit(zk, "/limit", as_text(), config_options<int>().default_value(7));
        CHECK(*limit.value() == 7);
        running waiting(r.loop.executor(), ready_of(limit));
        co_await turns(20);
        CHECK_FALSE(waiting.ended());
        r.server.reachable = true;
        const std::error_code ready = co_await waiting.code();
        CHECK_FALSE(ready);
        CHECK(*limit.value() == 7);
    };
    r.run(body);
}

TEST_CASE("config requests: behind a conflict the server is asked to catch up before it is read again") {
    rig r;
    int written = 0;
    const std::vector<std::string> wanted{"get /limit", "set /limit", "sync /limit", "get /limit", "set /limit"};
    r.server.answer = [&](const request& q) {
        reply a;
        a.data = "1";
        a.stat.version = 4;
        if (std::holds_alternative<set_request>(q) && written++ == 0) return refusal(zk_errc::bad_version);
        return a;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const config_value<int> limit(zk, "/limit", as_text());
        co_await limit.ready();
        r.server.requests.clear();
        const std::function<int(int)> more = [](int value) { return value + 1; };
        const config_snapshot<int> now = co_await limit.update(more);
        CHECK(*now.value == 2);
        std::vector<std::string> asked = r.server.texts();
        std::erase_if(asked, [](const std::string& text) {
            return text != "set /limit" && text != "get /limit" && text != "sync /limit";
        });
        CHECK(asked == wanted);
    };
    r.run(body);
}

TEST_CASE("config requests: a version is one of a node, or one of the two that have names") {
    rig r;
    r.server.answer = [](const request&) {
        reply a;
        a.data = "1";
        return a;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const config_value<int> limit(zk, "/limit", as_text());
        const std::error_code refused = co_await code_of(limit.set(1, -3));
        CHECK(refused == errc::invalid_argument);
        const std::error_code created = co_await code_of(limit.set(1, no_node_version));
        CHECK_FALSE(created);
        CHECK(r.server.count("set /limit") == 0);
    };
    r.run(body);
}
