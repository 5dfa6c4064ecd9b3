// Servers that are not ZooKeeper's own, as ClickHouse Keeper by its sources: rules K3 and K4 of known_requests.

#include "support/opcode.hpp"
#include "support/test_client.hpp"
#include "support/texts.hpp"
#include "unit/support/wire_server.hpp"

#include <zkasio/error.hpp>
#include <zkasio/session.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;

namespace other_servers_test {

namespace {

constexpr std::int32_t plain_create = 1;

struct rig {
    rig() {
        server.greet = [this](const wire_server::handshake&) { return next_session(); };
        server.answer = [this](const wire_server::request& r) { return answer(r); };
    }

    // Whatever the client had before.
    std::optional<wire_server::session> next_session() {
        server.is_frozen = false;
        if (is_down) return std::nullopt;
        wire_server::session s;
        s.id = ++last_session;
        s.timeout_ms = timeout_ms;
        s.is_zookeepers = is_zookeepers;
        return s;
    }

    wire_server::outcome answer(const wire_server::request& r) {
        jute_writer w;
        node_stat seen;
        seen.czxid = 7;
        if (freezes_at == r.type) {
            server.is_frozen = true;
            return {0, {}, false, true};
        }
        switch (r.type) {
            case plain_create:
            case opcode::sync: return {0, w.text(path_in(r)).bytes()};
            case opcode::exists: return {0, w.stat(seen).bytes()};
            case opcode::get: return {0, w.text("").stat(seen).bytes()};
            case opcode::create: return {0, w.text(path_in(r)).stat(seen).bytes()};
            case opcode::create_container: return {-8};
            default: return {0, {}, true, true};
        }
    }

    template <class Body>
    void run(client_options o, Body body) {
        auto sink = [this](const log_record& line) { log.emplace_back(line.text()); };
        const test_client zk(loop.executor(), std::move(o.log(sink)));
        std::function<asio::awaitable<void>()> task = [&]() -> asio::awaitable<void> {
            std::exception_ptr failed;
            try {
                co_await body(zk);
            } catch (...) {
                failed = std::current_exception();
            }
            co_await zk.close();
            server.close();
            if (failed) std::rethrow_exception(failed);
        };
        loop.run(task());
        CHECK(zk.inside().pending_operations() == 0);
    }
    template <class Body>
    void run(Body body) {
        run(options(), std::move(body));
    }
    client_options options() const { return client_options(server.address()).close_timeout(1s); }

    bool has_logged(std::string_view part) const {
        return std::any_of(log.begin(), log.end(), [&](const std::string& line) { return has(line, part); });
    }

    test_loop loop{30s};
    wire_server server{loop.executor()};
    std::int64_t last_session = 0x1000;
    std::int32_t timeout_ms = 10'000, freezes_at = 0;
    bool is_zookeepers = false, is_down = false;
    std::vector<std::string> log;
};

}  // namespace

TEST_CASE("other servers: they get only what all servers know, and the log says so") {
    rig r;
    r.run([&](client zk) -> asio::awaitable<void> {
        const created made = co_await zk.create("/a");
        CHECK(made.stat.czxid == 7);
        const std::string refused =
            co_await message_of(zk.create("/a", "", create_options().mode(create_mode::container)));
        CHECK(has(refused, "not sent: servers that are not ZooKeeper's may not know it"));
        const std::error_code nobody = co_await code_of(zk.who_am_i());
        CHECK(nobody == zk_errc::unimplemented);
        {
            const auto seen = co_await zk.get_and_watch("/a");
        }
        co_await zk.get("/a");
        const std::vector<std::int32_t> expected{plain_create, opcode::exists, opcode::get, opcode::get};
        CHECK(r.server.types == expected);
        CHECK(r.server.handshakes.size() == 1);
    });
    CHECK(r.has_logged("is not a server of ZooKeeper's own"));
}

TEST_CASE("other servers: an idle client sends sync(), which their leader hears of") {
    rig r;
    r.timeout_ms = 400;
    r.is_zookeepers = GENERATE(true, false);
    r.run([&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const auto has_asked = [&]() -> asio::awaitable<bool> {
            co_return r.server.reads_of_root + r.server.count(opcode::sync) > 3;
        };
        co_await eventually(has_asked);
        CHECK((r.server.count(opcode::sync) > 0) == !r.is_zookeepers);
        CHECK((r.server.reads_of_root > 1) == r.is_zookeepers);
        CHECK(r.server.handshakes.size() == 1);
    });
}

TEST_CASE("other servers: a client that only reads sends sync(), too") {
    rig r;
    r.timeout_ms = 400;
    r.run([&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const auto reads_and_looks = [&]() -> asio::awaitable<bool> {
            co_await zk.get("/a");
            co_return r.server.count(opcode::sync) > 3;
        };
        co_await eventually(reads_and_looks);
        CHECK(r.server.handshakes.size() == 1);
    });
}

TEST_CASE("other servers: close() waits for no connection where the session has ended with the last one") {
    rig r;
    r.run(r.options().close_timeout(20s), [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        r.is_down = true;
        r.server.cut();
        const auto is_cut = [&]() -> asio::awaitable<bool> { co_return zk.state() == session_state::suspended; };
        co_await eventually(is_cut);
        const auto began = boot_clock::now();
        const close_result how = co_await zk.close();
        CHECK(how == close_result::session_left_to_expire);
        CHECK(boot_clock::now() - began < 10s);
    });
}

TEST_CASE("other servers: a session that is not given back may stand until its timeout, and close() says so") {
    const bool is_given_up = GENERATE(true, false);
    rig r;
    r.timeout_ms = 300;
    r.is_zookeepers = GENERATE(true, false);
    close_result how{};
    r.run([&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const session before = co_await zk.current_session();
        r.is_down = is_given_up;
        r.server.cut();
        co_await before.ended();
        r.is_down = false;
        const session after = co_await zk.current_session();
        co_await after.get("/a");
        how = co_await zk.close();
    });
    CHECK(how == (r.is_zookeepers ? close_result::confirmed : close_result::session_left_to_expire));
}

TEST_CASE("other servers: resume() fails, and the reason is told") {
    rig r;
    const auto former = session_credentials(0x77, "fedcba9876543210");
    r.run(r.options().resume(former), [&](client zk) -> asio::awaitable<void> {
        session_events events = zk.events();
        for (;;) {
            const session_event e = co_await events.next();
            if (e.state != session_state::expired) continue;
            CHECK(has(e.reason, "is not a server of ZooKeeper's own, and gives no session back: there, resume() and "
                                "hand_over() cannot work"));
            break;
        }
    });
}

TEST_CASE("other servers: one without a leader is no stranger") {
    rig r;
    r.server.greet = [](const wire_server::handshake&) {
        wire_server::session s{0, 10'000};
        s.is_zookeepers = false;
        s.version = 42;
        return s;
    };
    r.run(r.options().connection_timeout(300ms), [&](client zk) -> asio::awaitable<void> {
        const std::string why = co_await message_of(zk.get("/a"));
        CHECK(has(why, "has no leader"));
    });
}

TEST_CASE("other servers: with all requests tried, what was hung up at twice is not sent again") {
    rig r;
    r.run(r.options().try_all_requests(), [&](client zk) -> asio::awaitable<void> {
        co_await zk.create("/a");
        CHECK(r.server.count(opcode::create) == 1);
        std::error_code code;
        for (int i = 0; i < 4; ++i) {  // each hang-up ends a session, in which the call may fail or be repeated
            co_await zk.connected();
            code = co_await code_of(zk.who_am_i());
            CHECK((code == errc::session_expired || code == zk_errc::unimplemented));
        }
        CHECK(code == zk_errc::unimplemented);
        CHECK(r.server.count(opcode::who_am_i) == 2);
        const std::string refused =
            co_await message_of(zk.create("/a", "", create_options().mode(create_mode::container)));
        CHECK(has(refused, "not implemented by this server"));
        CHECK(r.server.count(opcode::create_container) == 1);
        const auto is_told = [&]() -> asio::awaitable<bool> {
            co_return r.has_logged("does not know the request createContainer");
        };
        co_await eventually(is_told);
    });
    CHECK(r.has_logged("connections end without an answer to the request whoAmI (107)"));
}

TEST_CASE("other servers: a server that is silent has not hung up") {
    rig r;
    r.timeout_ms = 300;
    r.freezes_at = opcode::who_am_i;
    r.run(r.options().try_all_requests().retry(retry_policy::never()), [&](client zk) -> asio::awaitable<void> {
        for (int i = 0; i < 3; ++i) {
            co_await zk.connected();
            const std::error_code code = co_await code_of(zk.who_am_i());
            CHECK(code != zk_errc::unimplemented);
        }
        CHECK(r.server.count(opcode::who_am_i) == 3);
    });
}

}  // namespace other_servers_test
