// Servers that do not know the create which answers with a stat: another one is sent, and the stat is read.

#include "support/opcode.hpp"
#include "support/test_client.hpp"
#include "unit/support/rig.hpp"
#include "unit/support/wire_server.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;

namespace create_without_stat_test {

namespace {

constexpr std::int32_t plain_create = 1, unimplemented = -6, no_node = -101;

// Of a node that has been written since.
node_stat seen_later() {
    node_stat s;
    s.czxid = 0x51;
    s.mzxid = s.pzxid = 0x77;
    s.ctime = 1000;
    s.mtime = 2000;
    s.version = 3;
    s.cversion = 4;
    s.aversion = 5;
    s.num_children = 2;
    s.data_length = 7;
    return s;
}

class plain_server {
public:
    explicit plain_server(const asio::any_io_executor& executor) : wire(executor) {
        wire.answer = [this](const wire_server::request& r) { return answer(r); };
    }

    wire_server wire;
    std::optional<node_stat> seen = seen_later();  // none: the node has gone
    int cuts_at_read = 0;

private:
    wire_server::outcome answer(const wire_server::request& r) {
        jute_writer w;
        switch (r.type) {
            case opcode::create: return {unimplemented, {}, true};
            case plain_create: return {0, w.text(path_in(r) + "0000000001").bytes()};
            case opcode::get: return {0, w.text("data").stat({}).bytes()};
            case opcode::exists: break;
            default: return {unimplemented, {}, true};
        }
        if (cuts_at_read > 0) {
            --cuts_at_read;
            wire.cut();
        }
        return seen ? wire_server::outcome{0, w.stat(*seen).bytes()} : wire_server::outcome{no_node};
    }
};

template <class Body>
void run(Body body) {
    test_loop loop(20s);
    plain_server server(loop.executor());
    const test_client zk(loop.executor(), client_options(server.wire.address()));
    std::function<asio::awaitable<void>()> task = [&]() -> asio::awaitable<void> {
        std::exception_ptr failed;
        try {
            co_await zk.connected();
            co_await body(zk, server);
        } catch (...) {
            failed = std::current_exception();
        }
        co_await zk.close();
        server.wire.close();
        if (failed) std::rethrow_exception(failed);
    };
    loop.run(task());
    CHECK(zk.inside().pending_operations() == 0);
}

}  // namespace

TEST_CASE("create without a stat: of an ensemble of such servers, too, it costs one connection") {
    test_loop loop(20s);
    plain_server first(loop.executor()), second(loop.executor()), third(loop.executor());
    const test_client zk(loop.executor(), client_options(first.wire.address() + "," + second.wire.address() + "," +
                                                         third.wire.address()));
    std::string path;
    std::function<asio::awaitable<void>()> task = [&]() -> asio::awaitable<void> {
        try {
            const created made = co_await zk.create("/a", "data");
            path = made.path;
        } catch (const error& e) {
            path = e.what();
        }
        co_await zk.close();
        for (plain_server* one : {&first, &second, &third}) one->wire.close();
    };
    loop.run(task());
    CHECK(path == "/a0000000001");
    CHECK(first.wire.handshakes.size() + second.wire.handshakes.size() + third.wire.handshakes.size() == 2);
}

TEST_CASE("create without a stat: it costs one connection, once, and answers as the other one") {
    auto body = [](client zk, plain_server& server) -> asio::awaitable<void> {
        for (int i = 0; i < 3; ++i) {
            const created made = co_await zk.create("/a", "data");
            CHECK(made.path == "/a0000000001");
            CHECK(made.stat.czxid == 0x51);
            CHECK(made.stat.mzxid == 0x51);
            CHECK(made.stat.pzxid == 0x51);
            CHECK(made.stat.ctime == 1000);
            CHECK(made.stat.mtime == 1000);
            CHECK(made.stat.version == 0);
            CHECK(made.stat.cversion == 0);
            CHECK(made.stat.aversion == 0);
            CHECK(made.stat.num_children == 0);
        }
        CHECK(server.wire.count(opcode::create) == 1);
        CHECK(server.wire.count(plain_create) == 3);
        CHECK(server.wire.count(opcode::exists) == 3);
        CHECK(server.wire.handshakes.size() == 2);
    };
    run(body);
}

TEST_CASE("create without a stat: many at once cost one connection") {
    auto body = [](client zk, plain_server& server) -> asio::awaitable<void> {
        const auto executor = co_await asio::this_coro::executor;
        std::vector<running> all;
        int made = 0, unknown = 0;
        auto create = [&]() -> asio::awaitable<void> {
            try {
                co_await zk.create("/a", "data");
                ++made;
            } catch (const error& e) {
                unknown += e.outcome_unknown() ? 1 : 0;  // behind the first one on the connection that was lost
            }
        };
        for (int i = 0; i < 100; ++i) all.emplace_back(executor, create());
        for (const running& one : all) co_await one.end();
        CHECK(made + unknown == 100);
        CHECK(made >= 1);
        CHECK(server.wire.handshakes.size() == 2);
        for (int i = 0; i < 100; ++i) all.emplace_back(executor, create());
        for (const running& one : all) co_await one.end();
        CHECK(made + unknown == 200);
        CHECK(unknown < 100);
        CHECK(server.wire.handshakes.size() == 2);
    };
    run(body);
}

TEST_CASE("create without a stat: what was asked for behind it is answered behind it") {
    auto body = [](client zk, plain_server& server) -> asio::awaitable<void> {
        const auto executor = co_await asio::this_coro::executor;
        co_await zk.create("/a");
        std::string order;
        auto create = [&]() -> asio::awaitable<void> {
            co_await zk.create("/a");
            order += 'c';
        };
        auto get = [&]() -> asio::awaitable<void> {
            co_await zk.get("/a");
            order += 'g';
        };
        const running first(executor, create()), second(executor, get()), third(executor, create());
        const running fourth(executor, get());
        for (const running* one : {&first, &second, &third, &fourth}) co_await one->end();
        CHECK(order == "cgcg");
        CHECK(server.wire.types.back() == opcode::exists);  // of the third
    };
    run(body);
}

TEST_CASE("create without a stat: a node that has gone by then has none, and an ephemeral one is of unknown outcome") {
    auto body = [](client zk, plain_server& server) -> asio::awaitable<void> {
        server.seen.reset();
        const created gone = co_await zk.create("/a");
        CHECK(gone.path == "/a0000000001");
        CHECK(gone.stat.czxid == 0);
        server.seen = seen_later();
        server.seen->ephemeral_owner = 0x4711;
        create_options ephemeral;
        ephemeral.mode(create_mode::ephemeral);
        const auto is_unknown = [&]() -> asio::awaitable<bool> {
            try {
                co_await zk.create("/a", "", ephemeral);
            } catch (const error& e) {
                co_return e.code() == zk_errc::connection_loss && e.outcome_unknown();
            }
            co_return false;
        };
        const bool of_another_session = co_await is_unknown();
        CHECK(of_another_session);
        server.seen.reset();
        const bool has_gone = co_await is_unknown();
        CHECK(has_gone);
        CHECK(server.wire.handshakes.size() == 2);
        server.seen = seen_later();
        const session mine = co_await zk.current_session();
        server.seen->ephemeral_owner = mine.id();
        const created ours = co_await zk.create("/a", "", ephemeral);
        CHECK(ours.stat.czxid == 0x51);
        CHECK(ours.stat.ephemeral_owner == mine.id());
    };
    run(body);
}

TEST_CASE("create without a stat: if the connection ends before the read, the outcome is unknown") {
    auto body = [](client zk, plain_server& server) -> asio::awaitable<void> {
        co_await zk.create("/a");
        server.cuts_at_read = 1;
        bool unknown = false;
        std::error_code code;
        try {
            co_await zk.create("/a");
        } catch (const error& e) {
            unknown = e.outcome_unknown();
            code = e.code();
        }
        CHECK(unknown);
        CHECK(code == zk_errc::connection_loss);
        const created made = co_await zk.create("/a");
        CHECK(made.stat.czxid == 0x51);
    };
    run(body);
}

TEST_CASE("create without a stat: the node that the second one makes is counted in the budget") {
    rig r(rig::quick().ephemeral_budget(10));
    int creates = 0;
    r.server.answer = [&](const detail::request& q) -> std::optional<detail::reply> {
        if (std::holds_alternative<detail::create_request>(q) && ++creates == 1) return refusal(zk_errc::unimplemented);
        return detail::reply{};
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        create_options ephemeral;
        ephemeral.mode(create_mode::ephemeral);
        co_await zk.create("/a1", "", ephemeral);
        const std::error_code full = co_await code_of(zk.create("/b1", "", ephemeral));
        CHECK(full == errc::too_many_ephemerals);
        CHECK(creates == 2);
    };
    r.run(body);
}

TEST_CASE("create without a stat: if no server can be reached to send it to, nothing was created") {
    const bool is_closed = GENERATE(true, false);
    rig r(rig::quick().connection_timeout(is_closed ? 20s : 100ms));
    r.server.answer = [](const detail::request&) { return std::nullopt; };
    auto body = [&](client zk) -> asio::awaitable<void> {
        std::error_code code;
        bool unknown = true;
        auto create = [&]() -> asio::awaitable<void> {
            try {
                co_await zk.create("/a");
            } catch (const error& e) {
                code = e.code();
                unknown = e.outcome_unknown();
            }
        };
        const running creating(r.loop.executor(), create());
        co_await r.server.until([&] { return r.server.requests.size() == 1; });
        r.server.reply_to_all(zk_errc::unimplemented);
        r.server.reachable = false;
        r.server.drop();
        co_await r.server.until([&] { return zk.state() == session_state::suspended; });
        if (is_closed) co_await zk.close();
        co_await creating.end();
        CHECK(code == (is_closed ? errc::client_closed : errc::not_connected));
        CHECK_FALSE(unknown);
    };
    r.run(body);
}

}  // namespace create_without_stat_test
