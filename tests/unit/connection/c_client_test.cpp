// Whole clients over the C library, and a server in the same event loop that says what the test wants.

#include "support/opcode.hpp"
#include "support/test_client.hpp"
#include "support/texts.hpp"
#include "unit/support/few_descriptors.hpp"
#include "unit/support/wire_server.hpp"

#include <zkasio/cache/node_cache.hpp>
#include <zkasio/coroutines/task_scope.hpp>
#include <zkasio/session.hpp>

#include <asio/ip/tcp.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
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

namespace {

// Two servers of one ensemble, of which a client prefers the one that listens by the name 127.0.0.1.
struct two_zones {
    two_zones() {
        far.answer = near.answer = [](const wire_server::request& q) {
            if (q.type == opcode::multi)
                return wire_server::outcome{0, jute_writer().number(-1).boolean(true).number(-1).bytes()};
            if (q.type == opcode::set) return wire_server::outcome{0, jute_writer().stat({}).bytes()};
            return wire_server::outcome{0, q.type == opcode::get ? data_answer("x") : std::string()};
        };
        far.greet = [](const wire_server::handshake&) { return session_of_both; };
        down();
    }
    void down() {
        near.greet = [](const wire_server::handshake&) { return std::nullopt; };
        near.mode = "This ZooKeeper instance is not currently serving requests\n";
    }
    void up() {
        near.greet = far.greet;
        near.mode = "Mode: follower\n";
    }
    client_options options() const {
        // The C library knows one address by two names.
        const std::string far_address = "localhost:" + far.address().substr(10);
        return client_options(near.address() + ',' + far_address).close_timeout(2s).prefer(rank, every);
    }
    static int rank(std::string_view name, std::string_view) { return name == "127.0.0.1" ? 0 : 1; }
    static constexpr auto every = 200ms;
    static constexpr wire_server::session session_of_both{0x1001, 6000};

    wire_rig r;
    wire_server& near = r.server;
    wire_server far{r.loop.executor()};

    template <class Body>
    void run(client_options o, Body& body) {
        auto and_close = [&](test_client zk) -> asio::awaitable<void> {
            co_await body(zk);
            co_await zk.close();
            far.close();
        };
        r.run(std::move(o), and_close);
    }
    asio::awaitable<void> until(std::function<bool()> reached) const {
        co_await eventually([&]() -> asio::awaitable<bool> { co_return reached(); });
    }
};

}  // namespace

TEST_CASE("c_client: a client prefers a near server, and moves there when that is up again") {
    two_zones z;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session own = co_await zk.current_session();
        const session_hold hold = own.hold("");
        CHECK(z.far.handshakes.size() == 1);
        co_await z.until([&] { return z.near.visits >= 3; });
        CHECK(z.far.handshakes.size() == 1);  // not while it does not serve
        const std::size_t refused = z.near.handshakes.size();
        z.near.mode = "Mode: follower\n";
        // It says that it serves, and does not take the client: this one comes back.
        co_await z.until([&] { return z.far.handshakes.size() == 2; });
        CHECK(z.near.handshakes.size() == refused + 1);
        z.up();
        co_await z.until([&] { return z.near.handshakes.size() > refused + 1; });
        const node_data read = co_await zk.get("/a");
        CHECK(read.data == "x");
        CHECK(hold.reason() == loss_reason::none);
        CHECK(own.id() == 0x1001);
        CHECK(z.far.handshakes.size() == 2);
        const std::size_t visits = z.near.visits;
        co_await z.until([&] { return z.near.count(opcode::multi) >= 1; });  // much later
        CHECK(z.near.visits == visits);
    };
    z.run(z.options(), body);
    CHECK(z.near.types.back() == opcode::close_session);
}

TEST_CASE("c_client: a near server that says that it serves, and takes nobody, is tried more and more rarely") {
    two_zones z;
    std::vector<boot_clock::time_point> tried;
    z.near.mode = "Mode: leader\n";
    z.near.greet = [&](const wire_server::handshake&) {
        tried.push_back(boot_clock::now());
        return std::nullopt;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        co_await z.until([&] { return tried.size() == 4; });  // the first one before there was another connection
        CHECK(tried[2] - tried[1] >= 3 * z.every);
        CHECK(tried[3] - tried[2] >= 6 * z.every);
    };
    z.run(z.options(), body);
}

TEST_CASE("c_client: a client that asks all the time moves, too, and loses no request") {
    two_zones z;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        z.up();
        int lost = 0, done = 0;
        bool over = false;
        auto writer = [&]() -> asio::awaitable<void> {
            while (!over) {
                try {
                    co_await zk.set("/a", "x");
                } catch (const error&) {
                    ++lost;
                }
                ++done;
            }
        };
        auto writers = [&](task_scope& scope) -> asio::awaitable<void> {
            for (int i = 0; i < 20; ++i) scope.spawn(writer());
            co_await z.until([&] { return z.near.count(opcode::set) >= 20; });
            over = true;
        };
        co_await with_task_scope(writers);
        CHECK(lost == 0);
        CHECK(z.far.handshakes.size() == 1);
        CHECK(z.far.count(opcode::set) > 0);
    };
    z.run(z.options(), body);
}

TEST_CASE("c_client: a client that holds something moves while its lease is fresh, not in the lease's last half") {
    two_zones z;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session own = co_await zk.current_session();
        const session_hold hold = own.hold("");
        const auto left = [&] { return hold.held_until() - boot_clock::now(); };
        std::optional<boot_clock::duration> at_move;
        co_await z.until([&] { return z.far.count(opcode::multi) >= 1; });
        co_await z.until([&] { return left() < 2600ms; });
        z.up();
        z.near.greet = [&](const wire_server::handshake&) {
            at_move = left();
            return z.session_of_both;
        };
        co_await z.until([&] { return at_move.has_value(); });
        CHECK(*at_move > 2800ms);  // half of the session timeout, but for the time of the connection
        CHECK(hold.held());
    };
    z.run(z.options().lease_renewal(lease_renewal::half), body);
}

TEST_CASE("c_client: a client that loses what it holds with its connection moves when it holds nothing") {
    two_zones z;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session own = co_await zk.current_session();
        session_hold hold = own.hold("");
        z.up();
        co_await z.until([&] { return z.near.visits >= 2; });  // that is enough, otherwise
        co_await zk.set("/a", "x");
        CHECK(hold.reason() == loss_reason::none);
        CHECK(z.far.handshakes.size() == 1);
        hold.end();
        co_await z.until([&] { return z.near.handshakes.size() == 2; });  // the first was refused
    };
    z.run(z.options().suspension(suspension_policy::lose), body);
}

TEST_CASE("c_client: other servers, while a nearer one is looked for") {
    two_zones z;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        co_await zk.set_servers(z.options().servers());
        co_await z.until([&] { return z.near.visits >= 1; });
        const std::string far_only = z.options().servers().substr(z.options().servers().find(',') + 1);
        co_await zk.set_servers(far_only);
        co_await zk.connected();
        z.up();
        co_await zk.set_servers(z.options().servers());
        co_await z.until([&] { return z.near.handshakes.size() >= 1; });
        co_await zk.get("/a");
        CHECK(zk.state() == session_state::connected);
    };
    const std::string both = z.options().servers();
    z.run(client_options(both.substr(both.find(',') + 1)).close_timeout(2s).prefer(z.rank, z.every), body);
}

TEST_CASE("c_client: a client that only reads does not look for nearer servers") {
    two_zones z;
    bool reads = true;
    z.far.greet = [&](const wire_server::handshake&) { return wire_server::session{0x1001, 6000, reads}; };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        z.up();
        z.near.greet = z.far.greet;
        reads = false;
        // For as long as others look, twice.
        for (int i = 0; i < 2; ++i) {
            z.down();
            const std::size_t before = z.near.handshakes.size();
            const client other(zk.get_executor(), z.options().log(nullptr));
            co_await other.connected();
            z.up();
            co_await z.until([&] { return z.near.handshakes.size() == before + 2; });
            co_await other.close();
        }
        CHECK(z.near.visits == 4);
    };
    z.run(z.options().read_only(), body);
}

TEST_CASE("c_client: a rank that throws is the last") {
    two_zones z;
    z.up();
    const auto rank = [](std::string_view name, std::string_view) -> int {
        if (name != "127.0.0.1") throw std::runtime_error("no rank");
        return 7;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        CHECK(z.near.handshakes.size() == 1);
        CHECK(z.far.handshakes.empty());
    };
    z.run(z.options().prefer(rank, z.every).log(nullptr), body);
}

TEST_CASE("c_client: a client follows the ensemble's own list of servers") {
    constexpr std::int32_t data_changed = 3;
    two_zones z;
    z.up();
    const std::string first = z.near.address(), second = "localhost:" + z.far.address().substr(10);
    std::string config = "server.1=" + second.substr(0, 10) + "1:2:participant;" + second + "\nversion=1";
    std::size_t reads = 0;
    bool is_old = false;
    const auto script = [&](const wire_server::request& q) {
        if (q.type != opcode::get || path_in(q) != "/zookeeper/config") return wire_server::outcome{-101};
        ++reads;
        if (config.empty()) return wire_server::outcome{-102};
        return wire_server::outcome{0, data_answer(config, is_old ? 1 : 100 + static_cast<std::int64_t>(reads))};
    };
    z.near.answer = z.far.answer = script;
    z.near.greet = z.far.greet = [](const wire_server::handshake&) { return wire_server::session{0x1001, 1000}; };
    const auto changed = [&](wire_server& at, std::string to) {
        config = std::move(to);
        at.tell(data_changed, "/zookeeper/config");
    };
    std::vector<std::string> logged;
    auto body = [&](test_client zk) -> asio::awaitable<void> {
        const auto names = [&] { return zk.inside().server_names(); };
        co_await z.until([&] { return names() == second; });
        co_await z.until([&] { return z.far.handshakes.size() == 1; });
        CHECK(z.near.handshakes.size() == 1);
        // On each connection it is read again.
        co_await z.until([&] { return reads == 2; });
        changed(z.far, "server.1=x:1:2;" + second + "\nserver.2=127.0.0.1:1:2:observer;" + first.substr(10));
        co_await z.until([&] { return names() == second + "," + first; });
        CHECK(reads == 3);
        // Older than what is known: from a server that lags behind.
        const std::size_t before = reads;
        is_old = true;
        changed(z.far, "server.1=x:1:2;" + second);
        co_await z.until([&] { return reads == before + 1; });
        CHECK(names() == second + "," + first);
        is_old = false;
        // Without a server for clients, or without a right to read it, the list stays.
        changed(z.far, "server.1=x:1:2:participant\nversion=3");
        co_await z.until([&] { return reads == 5; });
        CHECK(names() == second + "," + first);
        CHECK(logged.empty());
        changed(z.far, "");
        co_await z.until([&] { return reads == 6 && !logged.empty(); });
        CHECK(has(logged.front(), "follow_ensemble: the list of servers stays as it is"));
        const std::size_t before_cut = z.far.handshakes.size() + z.near.handshakes.size();
        z.far.cut();
        z.near.cut();
        co_await z.until([&] { return z.far.handshakes.size() + z.near.handshakes.size() > before_cut; });
        co_await zk.connected();
        CHECK(reads == 6);
        CHECK(names() == second + "," + first);
    };
    auto log = [&](const log_record& r) {
        if (r.level() == log_level::warning && has(r.text(), "follow")) logged.emplace_back(r.text());
    };
    // What is no member any more is left when a member has shown that it is up.
    const auto alike = [](std::string_view, std::string_view) { return 0; };
    z.run(client_options(first).close_timeout(2s).follow_ensemble().prefer(alike, z.every).log(log), body);
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

TEST_CASE("c_client: without descriptors, the reason is told, and the next attempt soon follows") {
    if (!few_descriptors::is_possible()) return;
    wire_rig r;
    asio::ip::tcp::acceptor nobody(r.loop.executor(), {asio::ip::address_v4::loopback(), 0});  // takes no descriptor
    std::optional<few_descriptors> few(1);  // for the library's socket
    std::size_t attempts = 0;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::string text = co_await message_of(zk.get("/a"));
        CHECK(has(text, "cannot wait for the socket: Too many open files"));
        CHECK(attempts >= 2);
        few.reset();
        co_await zk.set_servers(r.server.address());
        const std::error_code code = co_await code_of(zk.get("/a"));
        CHECK(code == zk_errc::no_node);
    };
    client_options o("127.0.0.1:" + std::to_string(nobody.local_endpoint().port()));
    o.log([&](const log_record& l) { attempts += has(std::string(l.text()), "cannot wait for the socket") ? 1 : 0; });
    r.run(o.session_timeout(60s).connection_timeout(paced(1s)), body);
}
