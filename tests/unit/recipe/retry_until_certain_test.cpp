#include "unit/support/error_of.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/recipe/certain.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <functional>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

client_options impatient() { return rig::quick().retry(retry_policy::exponential(1ms, 2ms)); }

}  // namespace

TEST_CASE("retry until certain: what may succeed is tried again, and its value returned", "[retry]") {
    rig r(impatient());
    int refusals = 3;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        if (std::holds_alternative<get_request>(q) && refusals-- > 0) return refusal(zk_errc::throttled);
        reply a;
        a.data = "seven";
        return a;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        int calls = 0;
        auto read = [&]() -> asio::awaitable<std::string> {
            ++calls;
            const pending_data asked = toolbox(zk).start_get("/a");  // which does not repeat anything by itself
            const node_data got = co_await asked.result();
            co_return got.data;
        };
        const std::string text = co_await retry_until_certain(toolbox(zk).make_back_off(), read);
        CHECK(text == "seven");
        CHECK(calls == 4);
    };
    r.run(body);
}

TEST_CASE("retry until certain: what fails for good is told at once, and an empty operation is refused", "[retry]") {
    rig r(impatient());
    r.server.answer = [](const request& q) -> std::optional<reply> {
        return std::holds_alternative<get_request>(q) ? refusal(zk_errc::no_auth) : reply();
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        auto read = [&]() -> asio::awaitable<void> { co_await zk.get("/a"); };
        const std::error_code code = co_await code_of(retry_until_certain(toolbox(zk).make_back_off(), read));
        CHECK(code == zk_errc::no_auth);
        CHECK(r.server.count("get /a") == 1);
        const std::function<asio::awaitable<void>()> empty;
        const std::string text = co_await message_of(retry_until_certain(toolbox(zk).make_back_off(), empty));
        CHECK(text == "retry_until_certain: invalid argument (the operation is empty)");
    };
    r.run(body);
}

TEST_CASE("retry until certain: a cancellation ends the pause", "[retry]") {
    rig r(rig::quick().retry(retry_policy::exponential(1h, 1h)));
    auto body = [&](client zk) -> asio::awaitable<void> {
        bool tried = false;
        auto fails = [&]() -> asio::awaitable<void> {
            tried = true;
            throw error(zk_errc::throttled, "get", "/a");
            co_return;
        };
        auto task = [&]() -> asio::awaitable<void> {
            co_await retry_until_certain(toolbox(zk).make_back_off(), fails);
        };
        running retrying(r.loop.executor(), task());
        while (!tried) co_await next_turns(r.server);
        retrying.cancel();
        const std::error_code code = co_await retrying.code();
        CHECK(code == condition::cancelled);
    };
    r.run(body);
}

TEST_CASE("retry until certain: that there is no connection is no end", "[retry]") {
    rig r(impatient());
    auto body = [&](client zk) -> asio::awaitable<void> {
        int calls = 0;
        auto unconnected = [&]() -> asio::awaitable<void> {
            if (++calls < 3) throw error(errc::not_connected, "get", "/a");
            co_return;
        };
        co_await retry_until_certain(toolbox(zk).make_back_off(), unconnected);
        CHECK(calls == 3);
    };
    r.run(body);
}
