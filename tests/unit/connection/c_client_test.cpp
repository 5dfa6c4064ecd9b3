// Whole clients over the C library, and a server in the same event loop that says what the test wants.

#include "support/opcode.hpp"
#include "support/test_client.hpp"
#include "unit/support/wire_server.hpp"

#include <zkasio/cache/node_cache.hpp>
#include <zkasio/session.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;

namespace {

std::string data_answer(const std::string& data, std::int64_t changed_at = 1) {
    node_stat s;
    s.czxid = 1, s.mzxid = changed_at;
    return jute_writer().text(data).stat(s).bytes();
}

struct wire_rig {
    client_options options() { return client_options(server.address()).close_timeout(2s); }

    // Runs `body(client)`, closes the client and then the server, and checks that nothing is left.
    template <class Body>
    void run(client_options o, Body& body) {
        const test_client zk(loop.executor(), std::move(o));
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
        CHECK(zk.inside().watches() == 0);
    }

    test_loop loop{20s};
    wire_server server{loop.executor()};
};

asio::awaitable<void> until_state(client zk, session_state wanted) {
    const auto reached = [&]() -> asio::awaitable<bool> { co_return zk.state() == wanted; };
    co_await eventually(reached);
}

}  // namespace

TEST_CASE("c_client: a session is opened, kept over connections, and ended by a goodbye") {
    wire_rig r;
    r.server.answer = [](const wire_server::request&) { return wire_server::outcome{0, data_answer("x")}; };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session own = co_await zk.current_session();
        CHECK(own.id() == 0x1001);
        CHECK(own.timeout() == 10s);
        r.server.cut();
        co_await until_state(zk, session_state::suspended);
        const node_data read = co_await zk.get("/a");
        CHECK(read.data == "x");
        CHECK_FALSE(own.over());
        const close_result how = co_await zk.close();
        CHECK(how == close_result::confirmed);
        REQUIRE(r.server.handshakes.size() == 2);
        CHECK(r.server.handshakes[0].session == 0);
        CHECK(r.server.handshakes[1].session == 0x1001);
        CHECK(r.server.handshakes[1].password == "0123456789abcdef");
        CHECK(r.server.types.back() == opcode::close_session);
    };
    r.run(r.options(), body);
}

TEST_CASE("c_client: a session that has expired at the servers is followed by another one") {
    wire_rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session own = co_await zk.current_session();
        session_events events = zk.events();
        r.server.greet = [](const wire_server::handshake& h) -> std::optional<wire_server::session> {
            return h.session != 0 ? wire_server::session{0, 0} : wire_server::session{0x2002};
        };
        r.server.cut();
        co_await own.ended();
        std::vector<session_state> seen;
        do {
            const session_event e = co_await events.next();
            seen.push_back(e.state);
        } while (seen.size() == 1 || seen.back() != session_state::connected);
        const std::vector<session_state> expected{session_state::connected, session_state::suspended,
                                                  session_state::expired, session_state::connecting,
                                                  session_state::connected};
        CHECK(seen == expected);
        const std::error_code over = co_await code_of(own.get("/a"));
        CHECK(over == errc::session_expired);
        CHECK(zk.session_now().id() == 0x2002);
    };
    r.run(r.options(), body);
}

TEST_CASE("c_client: a session is resumed, and left behind for another client") {
    wire_rig r;
    r.server.greet = [](const wire_server::handshake& h) { return wire_server::session{h.session}; };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        CHECK(zk.session_now().id() == 0x77);
        const auto left = co_await zk.hand_over();
        CHECK(left.id() == 0x77);
        CHECK(left.password() == "0123456789abcdef");
        CHECK(r.server.count(opcode::close_session) == 0);
        REQUIRE(r.server.handshakes.size() == 1);
        CHECK(r.server.handshakes[0].session == 0x77);
        CHECK(r.server.handshakes[0].password == "fedcba9876543210");
    };
    r.run(r.options().resume(session_credentials(0x77, "fedcba9876543210")), body);
}

TEST_CASE("c_client: credentials that a server refuses end the client's session for good") {
    wire_rig r;
    r.server.auth_failure = -115;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await until_state(zk, session_state::auth_failed);
        const std::string text = co_await message_of(zk.get("/a"));
        CHECK(text == "get /a: authentication failed (a credential of digest)");
        const std::size_t connections = r.server.handshakes.size();
        const std::error_code again = co_await code_of(zk.set("/a", "x"));
        CHECK(again == zk_errc::auth_failed);
        CHECK(r.server.handshakes.size() == connections);
    };
    r.run(r.options().auth("digest", "user:wrong"), body);
}

TEST_CASE("c_client: a credential that is added later is presented on each connection, and a refused one never again") {
    wire_rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.add_auth("digest", "user:password");
        r.server.auth_failure = -115;
        const session before = co_await zk.current_session();
        const std::error_code refused = co_await code_of(zk.add_auth("digest", "user:wrong"));
        CHECK(refused == zk_errc::auth_failed);
        r.server.auth_failure = 0;
        CHECK(before.over());
        const session after = co_await zk.current_session();
        CHECK_FALSE(after.over());
    };
    r.run(r.options(), body);
}

TEST_CASE("c_client: a server that asks for SASL") {
    wire_rig r;
    r.server.answer = [](const wire_server::request&) { return wire_server::outcome{-124, {}, true}; };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::string text = co_await message_of(zk.get("/a"));
        CHECK(text == "get /a: the server requires authentication (by a scheme of its setting enforce.auth.schemes, "
                      "or SASL)");
    };
    r.run(r.options(), body);
}

// A server that has lost its quorum: it refuses the sessions of the ensemble, and opens its own for who allows it.
TEST_CASE("c_client: a client that only reads, and its end when the server has a quorum again") {
    wire_rig r;
    bool has_quorum = true;
    r.server.greet = [&](const wire_server::handshake& h) -> std::optional<wire_server::session> {
        if (has_quorum) return wire_server::session();
        if (!h.allows_read_only) return std::nullopt;
        return wire_server::session{0x5eed, 10'000, true};
    };
    r.server.answer = [&](const wire_server::request& q) {
        if (q.type != opcode::get) return wire_server::outcome{-119};
        return path_in(q) == "/a" ? wire_server::outcome{0, data_answer("old", 1)} : wire_server::outcome{-101};
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const auto is_asked = [&]() -> asio::awaitable<bool> { co_return r.server.handshakes.size() > 2; };
        co_await eventually(is_asked);
        CHECK(zk.state() == session_state::connecting);
        CHECK(r.server.count(opcode::get) == 0);
        has_quorum = false;
        co_await zk.connected();
        CHECK(std::all_of(r.server.handshakes.begin(), r.server.handshakes.end(),
                          [](const wire_server::handshake& h) { return h.allows_read_only && h.session == 0; }));
        const node_data read = co_await zk.get("/a");
        CHECK(read.data == "old");
        const std::error_code none = co_await code_of(zk.get("/none")), refused = co_await code_of(zk.set("/a", "x"));
        CHECK(none == zk_errc::no_node);
        CHECK(refused == zk_errc::not_read_only);
        CHECK(r.server.count(opcode::set) == 0);
        const session own = zk.session_now();
        has_quorum = true;
        r.server.cut();
        co_await own.ended();
        const std::error_code over = co_await code_of(zk.get("/a"));
        CHECK(over == errc::session_expired);
    };
    r.run(r.options().read_only(), body);
}

TEST_CASE("c_client: the library never sets watches again, and each watched node is read once on the next connection") {
    const std::string chroot = GENERATE("", "/app");
    wire_rig r;
    std::map<std::string, std::size_t> reads;
    r.server.answer = [&](const wire_server::request& q) {
        if (q.type == opcode::sync) return wire_server::outcome{0, jute_writer().text("/").bytes()};
        if (q.type == opcode::close_session || q.type == opcode::remove_watches) return wire_server::outcome{};
        if (path_in(q) != chroot) ++reads[path_in(q)];  // not the client's own reads
        node_stat s;
        s.czxid = s.mzxid = s.pzxid = 1;
        s.ephemeral_owner = 0x1001;
        if (q.type == opcode::get) return wire_server::outcome{0, jute_writer().text("x").stat(s).bytes()};
        if (q.type == opcode::children) return wire_server::outcome{0, jute_writer().texts({}).stat(s).bytes()};
        if (path_in(q).ends_with("/missing")) return wire_server::outcome{-101};
        return wire_server::outcome{0, jute_writer().stat(s).bytes()};
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session own = co_await zk.current_session();
        const auto data = co_await zk.get_and_watch("/data");
        const auto missing = co_await zk.exists_and_watch("/missing");
        const auto children = co_await zk.children_and_watch("/children");
        auto left = std::optional(co_await zk.get_and_watch("/left"));
        const session_hold held = own.hold("/held");
        held.watch_nodes();
        const node_cache cached(zk, "/cached");
        co_await cached.ready();
        const auto all_watched = [&]() -> asio::awaitable<bool> { co_return held.nodes_watched(); };
        co_await eventually(all_watched);
        for (int cut = 0; cut < 3; ++cut) {
            reads.clear();
            r.server.cut();
            co_await until_state(zk, session_state::suspended);
            left.reset();
            const auto read_again = [&]() -> asio::awaitable<bool> {
                co_return reads.size() == 5 && held.nodes_watched();
            };
            co_await eventually(read_again);
            for (const auto& [path, times] : reads) {
                INFO(path);
                CHECK(times == 1);
            }
            CHECK_FALSE(reads.contains(chroot + "/left"));
        }
        r.server.tell(3, chroot + "/data");
        const watch_event event = co_await data.changes.changed();
        CHECK(event.what == node_change::data_changed);
        CHECK(r.server.count(opcode::set_watches) == 0);
    };
    r.run(client_options(r.server.address() + chroot).close_timeout(2s), body);
}
