#include "unit/support/rig.hpp"

#include <zkasio/recipe/toolbox.hpp>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

client_options without_retries() { return rig::quick().connection_timeout(20ms).retry(retry_policy::never()); }

asio::awaitable<void> create(session on) { co_await on.create("/a"); }

// In an outage that lasts longer than an operation waits.
asio::awaitable<void> pass_connection_timeout(client zk, session plain) {
    const std::error_code code = co_await code_of(plain.get("/asked/later"));
    CHECK(code == errc::not_connected);
    CHECK(zk.state() == session_state::suspended);
}

}  // namespace

TEST_CASE("a patient session: what was not sent waits for a connection as long as the session lives", "[session]") {
    rig r(without_retries());
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session plain = co_await zk.current_session();
        r.server.reachable = false;
        r.server.drop();
        co_await r.server.until([&] { return zk.state() == session_state::suspended; });
        const running read(r.loop.executor(), get(plain.patient(), "/a"));
        const running write(r.loop.executor(), create(plain.patient()));
        co_await pass_connection_timeout(zk, plain);
        CHECK_FALSE(read.ended());
        CHECK_FALSE(write.ended());
        r.server.reachable = true;
        const std::error_code was_read = co_await read.code(), was_written = co_await write.code();
        CHECK(was_read == std::error_code());
        CHECK(was_written == std::error_code());
        CHECK(r.server.count("get /asked/later") == 0);
    };
    r.run(body);
}

TEST_CASE("a patient session: what was queued when the connection went waits on", "[session]") {
    rig r(without_retries());
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session plain = co_await zk.current_session();
        r.server.answer = [&](const request& what) -> std::optional<reply> {
            if (operation_name(what) == "get") return std::nullopt;
            return reply{};
        };
        // More than may be under way.
        std::vector<pending_data> reads;
        for (int i = 0; i < 1000; ++i) reads.push_back(toolbox(plain.patient()).start_get("/b"));
        const running write(r.loop.executor(), create(plain.patient()));
        co_await r.server.until([&] { return r.server.count("get /b") == 1000; });
        CHECK(r.server.count("create /a") == 0);
        r.server.reachable = false;
        r.server.drop();
        co_await r.server.until([&] { return zk.state() == session_state::suspended; });
        co_await pass_connection_timeout(zk, plain);
        CHECK_FALSE(write.ended());
        r.server.reachable = true;
        const std::error_code code = co_await write.code();
        CHECK(code == std::error_code());
    };
    r.run(body);
}

TEST_CASE("a patient session: a read is repeated whatever the retry policy says, and ends with the session",
          "[session]") {
    rig r(without_retries());
    int refusals = 3;
    r.server.answer = [&](const request& what) -> std::optional<reply> {
        if (operation_name(what) != "get") return reply{};
        if (refusals-- > 0) return refusal(zk_errc::throttled);
        return reply{};
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session on = co_await zk.current_session();
        const std::error_code code = co_await code_of(on.patient().get("/a"));
        CHECK(code == std::error_code());
        CHECK(r.server.count("get /a") == 4);
        refusals = 1;
        const std::error_code plain = co_await code_of(on.get("/a"));
        CHECK(plain == zk_errc::throttled);

        r.server.reachable = false;
        r.server.drop();
        co_await r.server.until([&] { return zk.state() == session_state::suspended; });
        const running read(r.loop.executor(), get(on.patient(), "/b"));
        r.server.reachable = true;
        r.server.expire();
        const std::error_code ended = co_await read.code();
        CHECK((ended == errc::session_expired || ended == std::error_code()));
    };
    r.run(body);
}

TEST_CASE("a patient session: before the first connection it waits as any operation", "[session]") {
    rig r(without_retries());
    r.server.reachable = false;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::error_code code = co_await code_of(zk.session_now().patient().get("/a"));
        CHECK(code == errc::not_connected);
    };
    r.run(body);
}
