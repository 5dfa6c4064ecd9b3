// Clients whose mechanism is the test's, with servers in the test's own event loop.

#include "support/fork_child.hpp"
#include "support/jute_writer.hpp"
#include "support/opcode.hpp"
#include "support/test_client.hpp"
#include "support/texts.hpp"
#include "unit/support/wire_server.hpp"

#include <zkasio/client_stats.hpp>
#include <zkasio/sasl_mechanism.hpp>
#include <zkasio/session.hpp>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <asio/strand.hpp>
#include <asio/this_coro.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_awaitable.hpp>

#include <sys/wait.h>

#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;

namespace {

constexpr std::int32_t sasl_opcode = 102, refused_login = -115;

// A mechanism of one token, "let me in". What the test says happens in front of it.
class one_token final : public sasl_mechanism {
public:
    std::function<asio::awaitable<void>()> before = []() -> asio::awaitable<void> { co_return; };
    asio::any_io_executor where;
    mutable std::vector<std::string> hosts;

    asio::any_io_executor executor() const override { return where; }
    std::unique_ptr<sasl_conversation> begin(const sasl_server& with) const override {
        hosts.push_back(with.host());
        return std::make_unique<talk>(before);
    }

private:
    struct talk final : sasl_conversation {
        explicit talk(std::function<asio::awaitable<void>()> f) : before(std::move(f)) {}
        asio::awaitable<sasl_step> step(std::string) override {
            co_await before();
            co_return sasl_step::send_last("let me in");
        }
        std::function<asio::awaitable<void>()> before;
    };
};

// A server that demands a login before anything else.
class demanding_server {
public:
    explicit demanding_server(const asio::any_io_executor& executor) : wire(executor) {
        wire.greet = [this](const wire_server::handshake& h) {
            logged_in = false;
            wire_server::session s;
            if (h.session != 0) s.id = h.session;
            s.timeout_ms = timeout_ms;
            return s;
        };
        wire.answer = [this](const wire_server::request& r) -> wire_server::outcome {
            if (r.type == sasl_opcode) {
                tokens.push_back(r.body.substr(4));
                if (std::exchange(refuses, refuses && !refuses_once)) return {refused_login, {}, true};
                logged_in = true;
                return {0, jute_writer().null().bytes()};
            }
            if (!logged_in) return {-124, {}, true};
            return {-101};
        };
    }
    wire_server wire;
    bool refuses = false, refuses_once = false, logged_in = false;
    std::int32_t timeout_ms = 10'000;
    std::vector<std::string> tokens;
};

client_options with_sasl(const std::string& servers, const std::shared_ptr<one_token>& mechanism) {
    return client_options(servers).sasl(mechanism).log(nullptr).connection_timeout(paced(10s));
}

// Runs `body(client)`, closes the client, closes the servers, and runs the loop dry.
template <class Body>
void run_sasl(test_loop& loop, std::vector<demanding_server*> servers, client_options o, Body& body) {
    const test_client zk(loop.executor(), std::move(o));
    std::function<asio::awaitable<void>()> task = [&]() -> asio::awaitable<void> {
        std::exception_ptr failed;
        try {
            co_await body(zk);
        } catch (...) {
            failed = std::current_exception();
        }
        co_await zk.close();
        for (demanding_server* s : servers) s->wire.close();
        if (failed) std::rethrow_exception(failed);
    };
    loop.run(task());
    CHECK(zk.inside().pending_operations() == 0);
}

asio::awaitable<std::int64_t> sasl_session_of(client zk) {
    const session s = co_await zk.current_session();
    co_return s.id();
}

asio::awaitable<void> pause_for(std::chrono::milliseconds d) {
    asio::steady_timer timer(co_await asio::this_coro::executor, d);
    co_await timer.async_wait(asio::use_awaitable);
}

std::string under_two_names(const demanding_server& s) {
    const std::string address = s.wire.address();
    return address + ",127.1" + address.substr(address.find(':'));
}

}  // namespace

TEST_CASE("sasl: the login comes first on each connection, and what is watched is read again behind it") {
    test_loop loop;
    demanding_server server(loop.executor());
    const auto mechanism = std::make_shared<one_token>();
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::error_code missing = co_await code_of(zk.get("/a"));
        CHECK(missing == zk_errc::no_node);
        auto seen = co_await zk.exists_and_watch("/b");
        server.wire.cut();
        while (server.tokens.size() < 2) co_await pause_for(5ms);
        const std::error_code again = co_await code_of(zk.get("/a"));
        CHECK(again == zk_errc::no_node);
        const std::vector<std::int32_t> expected{sasl_opcode, opcode::get, opcode::exists, sasl_opcode,
                                                 opcode::exists, opcode::get};
        CHECK(server.wire.types == expected);
        CHECK(server.tokens == std::vector<std::string>{"let me in", "let me in"});
        CHECK(mechanism->hosts == std::vector<std::string>{"127.0.0.1", "127.0.0.1"});
        REQUIRE(server.wire.handshakes.size() == 2);
        CHECK(server.wire.handshakes[1].session != 0);
    };
    run_sasl(loop, {&server}, with_sasl(server.wire.address(), mechanism).auth("digest", "a:b"), body);
}

TEST_CASE("sasl: a server that refuses is left for one that does not, and the session goes on") {
    test_loop loop;
    demanding_server good(loop.executor()), bad(loop.executor());
    bad.refuses = true;
    const auto mechanism = std::make_shared<one_token>();
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await code_of(zk.get("/a"));
        const std::int64_t id = co_await sasl_session_of(zk);
        for (int i = 0; i < 4; ++i) {
            good.wire.cut();
            const std::error_code code = co_await code_of(zk.get("/a"));
            CHECK(code == zk_errc::no_node);
        }
        const std::int64_t later = co_await sasl_session_of(zk);
        CHECK(later == id);
        CHECK(zk.state() == session_state::connected);
        CHECK(bad.wire.handshakes.size() <= 6);
    };
    run_sasl(loop, {&good, &bad}, with_sasl(good.wire.address() + "," + bad.wire.address(), mechanism), body);
}

TEST_CASE("sasl: only refusals since the last connection are counted") {
    test_loop loop;
    demanding_server near(loop.executor()), far(loop.executor());
    near.refuses = true;
    const auto mechanism = std::make_shared<one_token>();
    const std::string near_port = near.wire.address();
    const std::string servers = "localhost" + near_port.substr(near_port.find(':')) + "," + far.wire.address();
    const auto rank = [](std::string_view name, std::string_view) { return name == "localhost" ? 0 : 1; };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await code_of(zk.get("/a"));
        CHECK(near.tokens.size() == 1);
        CHECK(far.logged_in);
        near.refuses = false;
        far.refuses = true;
        const auto greet = std::exchange(near.wire.greet, [](const auto&) { return std::nullopt; });
        far.wire.cut();
        while (far.tokens.size() < 2) co_await pause_for(5ms);
        near.wire.greet = greet;
        const std::error_code code = co_await code_of(zk.get("/a"));
        CHECK(code == zk_errc::no_node);
        CHECK(near.logged_in);
    };
    run_sasl(loop, {&near, &far}, with_sasl(servers, mechanism).prefer(rank), body);
}

TEST_CASE("sasl: when all servers have refused, the client has failed for good, and asks no more") {
    test_loop loop;
    demanding_server one(loop.executor()), two(loop.executor());
    one.refuses = two.refuses = true;
    const auto mechanism = std::make_shared<one_token>();
    std::string logged;
    auto body = [&](client zk) -> asio::awaitable<void> {
        std::string text;
        std::error_code code;
        try {
            co_await zk.get("/a");
        } catch (const error& e) {
            text = e.what();
            code = e.code();
        }
        CHECK(code == zk_errc::auth_failed);
        CHECK(has(text, "get /a: authentication failed (127.0.0.1:"));
        CHECK(has(text, "SASL: the server refuses this client"));
        const std::string later = co_await message_of(zk.get("/a"));
        CHECK(later == text);
        CHECK(zk.state() == session_state::auth_failed);
        CHECK(has(co_await message_of(zk.connected()), "SASL: the server refuses this client"));
        co_await pause_for(100ms);
        CHECK(one.wire.handshakes.size() == 2);
        CHECK(two.wire.handshakes.size() == 2);
        CHECK_FALSE(has(text + logged, "let me in"));
        CHECK(has(logged, "all servers have refused the login"));
        const close_result how = co_await zk.close();
        CHECK(how == close_result::session_left_to_expire);
    };
    client_options o = with_sasl(one.wire.address() + "," + two.wire.address(), mechanism);
    o.log([&](const log_record& r) { logged += std::string(r.text()) + '\n'; }, log_level::debug);
    run_sasl(loop, {&one, &two}, std::move(o), body);
}

TEST_CASE("sasl: a single refusal, as of a server that has mistaken one user for another, is not final") {
    test_loop loop;
    demanding_server server(loop.executor());
    server.refuses = server.refuses_once = true;
    const auto mechanism = std::make_shared<one_token>();
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::error_code code = co_await code_of(zk.get("/a"));
        CHECK(code == zk_errc::no_node);
        CHECK(server.wire.handshakes.size() == 2);
    };
    run_sasl(loop, {&server}, with_sasl(server.wire.address(), mechanism), body);
}

TEST_CASE("sasl: while one server refuses and another is down, the attempts become rare, and never final") {
    test_loop loop;
    demanding_server bad(loop.executor());
    bad.refuses = true;
    const auto mechanism = std::make_shared<one_token>();
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::error_code code = co_await code_of(zk.get("/a"));
        CHECK(code == errc::not_connected);
        CHECK(zk.state() == session_state::connecting);
        CHECK(bad.wire.handshakes.size() >= 2);
        CHECK(bad.wire.handshakes.size() < 12);  // 25 ms, then twice as long each time
        bad.refuses = false;
        std::error_code then = errc::not_connected;  // the pause that has begun may be the longer one
        while (then == errc::not_connected) then = co_await code_of(zk.get("/a"));
        CHECK(then == zk_errc::no_node);
    };
    run_sasl(loop, {&bad}, with_sasl(bad.wire.address() + ",127.0.0.1:1", mechanism).connection_timeout(2s), body);
}

TEST_CASE("sasl: a mechanism that fails for a while costs no session") {
    test_loop loop;
    demanding_server server(loop.executor());
    server.timeout_ms = 2000;
    const auto mechanism = std::make_shared<one_token>();
    int failures = 0;
    bool works = true;
    mechanism->before = [&]() -> asio::awaitable<void> {
        if (!works) {
            ++failures;
            throw std::runtime_error("no ticket");
        }
        co_return;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await code_of(zk.get("/a"));
        const std::int64_t id = co_await sasl_session_of(zk);
        works = false;
        const std::size_t sessions = server.wire.handshakes.size();
        server.wire.cut();
        co_await pause_for(1200ms);
        CHECK(server.wire.handshakes.size() == sessions);  // nothing was asked of the servers
        CHECK(failures >= 3);
        CHECK(failures < 15);
        works = true;
        const auto begin = std::chrono::steady_clock::now();
        const std::error_code code = co_await code_of(zk.get("/a"));
        CHECK(code == zk_errc::no_node);
        CHECK(std::chrono::steady_clock::now() - begin < paced(600ms));  // a quarter of the session timeout, and a bit
        const std::int64_t later = co_await sasl_session_of(zk);
        CHECK(later == id);
    };
    run_sasl(loop, {&server}, with_sasl(server.wire.address(), mechanism).session_timeout(2s), body);
}

TEST_CASE("sasl: what a mechanism throws is told as the reason") {
    test_loop loop;
    demanding_server server(loop.executor());
    const auto mechanism = std::make_shared<one_token>();
    mechanism->before = []() -> asio::awaitable<void> {
        throw std::runtime_error("no ticket");
        co_return;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::string text = co_await message_of(zk.get("/a"));
        CHECK(text == "get /a: not connected (" + server.wire.address() + ": SASL: no ticket)");
        CHECK(server.wire.handshakes.empty());
    };
    run_sasl(loop, {&server}, with_sasl(server.wire.address(), mechanism).connection_timeout(300ms), body);
}

TEST_CASE("sasl: a login that takes half of the granted timeout is given up, and no lease begins with it") {
    test_loop loop;
    demanding_server server(loop.executor());
    server.timeout_ms = 800;  // 60 s are asked for
    const auto mechanism = std::make_shared<one_token>();
    // Its second token comes late: behind the session.
    struct late final : sasl_mechanism {
        struct talk final : sasl_conversation {
            asio::awaitable<sasl_step> step(std::string challenge) override {
                if (challenge.empty()) co_return sasl_step::send("first");
                co_await pause_for(1h);
                co_return sasl_step::send_last("last");
            }
        };
        std::unique_ptr<sasl_conversation> begin(const sasl_server&) const override { return std::make_unique<talk>(); }
    };
    server.wire.answer = [&](const wire_server::request& r) -> wire_server::outcome {
        if (r.type != sasl_opcode) return {-101};
        server.tokens.push_back(r.body.substr(4));
        return {0, jute_writer().text("challenge").bytes()};
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        std::string text;
        do text = co_await message_of(zk.get("/a"));
        while (has(text, "does not end its step"));  // the next attempt has got so far already
        CHECK(has(text, "SASL: the login has taken half of the session timeout"));
        CHECK(zk.stats().connections == 0);
        for (const std::string& token : server.tokens) CHECK(token == "first");
    };
    client_options o = with_sasl(server.wire.address(), nullptr).sasl(std::make_shared<late>());
    run_sasl(loop, {&server}, o.session_timeout(60s).connection_timeout(1500ms), body);
}

TEST_CASE("sasl: a client is closed while a step hangs, and says what it waits for") {
    test_loop loop;
    demanding_server server(loop.executor());
    const auto mechanism = std::make_shared<one_token>();
    mechanism->before = []() -> asio::awaitable<void> { co_await pause_for(1h); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::string text = co_await message_of(zk.get("/a"));
        CHECK(has(text, "SASL: the mechanism does not end its first step"));
        CHECK(server.wire.handshakes.empty());
    };
    client_options o = with_sasl(server.wire.address(), mechanism);
    run_sasl(loop, {&server}, o.connection_timeout(300ms).session_timeout(2s), body);
}

TEST_CASE("sasl: an event loop is destroyed while a step blocks a thread of the mechanism's") {
    asio::thread_pool pool(1);
    std::promise<void> begun, go;
    const std::shared_future<void> may_end(go.get_future());
    const auto mechanism = std::make_shared<one_token>();
    mechanism->where = pool.get_executor();
    mechanism->before = [&begun, may_end]() -> asio::awaitable<void> {
        begun.set_value();
        may_end.wait();
        co_return;
    };
    {
        asio::io_context io;
        demanding_server server(io.get_executor());
        const client zk(io.get_executor(), with_sasl(server.wire.address(), mechanism));
        std::future<void> has_begun = begun.get_future();
        while (has_begun.wait_for(0s) != std::future_status::ready) io.run_one_for(10ms);
        if (GENERATE(true, false)) io.poll();
    }
    go.set_value();
    pool.join();
}

TEST_CASE("sasl: a nearer server is asked without a login, and moved to with one") {
    test_loop loop;
    demanding_server near(loop.executor()), far(loop.executor());
    near.refuses = true;
    const auto mechanism = std::make_shared<one_token>();
    const std::string near_port = near.wire.address(), far_port = far.wire.address();
    // The name of a server tells its rank: both are on the loopback.
    const std::string servers = "localhost" + near_port.substr(near_port.find(':')) + "," + far_port;
    const auto rank = [](std::string_view name, std::string_view) { return name == "localhost" ? 0 : 1; };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await code_of(zk.get("/a"));
        CHECK(far.logged_in);
        near.refuses = false;
        auto moved = [&]() -> asio::awaitable<bool> {
            co_await code_of(zk.get("/a"));
            co_return near.logged_in;
        };
        co_await eventually(moved);
        CHECK(near.wire.visits >= 2);
        CHECK(near.wire.count(sasl_opcode) >= 2);
    };
    client_options o = with_sasl(servers, mechanism).prefer(rank, 50ms).connection_timeout(paced(20s));
    run_sasl(loop, {&near, &far}, std::move(o), body);
}

TEST_CASE("sasl: a client that only reads logs in at a server without a quorum") {
    test_loop loop;
    demanding_server server(loop.executor());
    const auto greet = server.wire.greet;
    server.wire.greet = [&, greet](const wire_server::handshake& h) {
        auto s = greet(h);
        s->is_read_only = true;
        return s;
    };
    const auto mechanism = std::make_shared<one_token>();
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::error_code code = co_await code_of(zk.get("/a"));
        CHECK(code == zk_errc::no_node);
        CHECK(server.wire.types.front() == sasl_opcode);
    };
    run_sasl(loop, {&server}, with_sasl(server.wire.address(), mechanism).read_only(), body);
}

TEST_CASE("sasl: a child process that is forked during a login leaves it to its parent") {
    asio::io_context io, servers;  // the child runs no server
    demanding_server server(servers.get_executor());
    const auto mechanism = std::make_shared<one_token>();
    bool may_go_on = false;
    mechanism->before = [&]() -> asio::awaitable<void> {
        while (!may_go_on) co_await pause_for(5ms);
    };
    const auto turn_until = [&](auto reached) {
        const auto give_up = std::chrono::steady_clock::now() + paced(20s);
        while (!reached() && std::chrono::steady_clock::now() < give_up) {
            io.restart();
            io.run_one_for(5ms);
            servers.restart();
            servers.poll();
        }
        CHECK(reached());
    };
    std::optional<client> zk(std::in_place, io.get_executor(), with_sasl(server.wire.address(), mechanism));
    turn_until([&] { return !mechanism->hosts.empty(); });
    io.notify_fork(asio::io_context::fork_prepare);
    const pid_t pid = fork_child([&] {
        io.notify_fork(asio::io_context::fork_child);
        for (int i = 0; i < 20; ++i) io.poll();
        return std::string(zk->state() == session_state::closed ? "" : "the client is not closed");
    });
    REQUIRE(pid > 0);
    io.notify_fork(asio::io_context::fork_parent);
    int status = -1;
    CHECK(::waitpid(pid, &status, 0) == pid);
    CHECK(status == 0);
    CHECK(server.wire.handshakes.empty());
    may_go_on = true;
    turn_until([&] { return zk->state() == session_state::connected; });
    CHECK(server.tokens.size() == 1);
    bool closed = false;
    asio::co_spawn(io, zk->close(), [&](std::exception_ptr, close_result) { closed = true; });
    turn_until([&] { return closed; });
    zk.reset();
}

TEST_CASE("sasl: a server that hangs up while the mechanism makes its first step is left at once") {
    test_loop loop;
    demanding_server server(loop.executor());
    const auto mechanism = std::make_shared<one_token>();
    int steps = 0;
    mechanism->before = [&]() -> asio::awaitable<void> {
        if (++steps == 1) co_await pause_for(1h);
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        while (steps == 0) co_await pause_for(5ms);
        server.wire.cut();
        const std::error_code code = co_await code_of(zk.get("/a"));
        CHECK(code == zk_errc::no_node);
        CHECK(steps == 2);
    };
    client_options o = with_sasl(server.wire.address(), mechanism);
    run_sasl(loop, {&server}, o.session_timeout(60s).connection_timeout(paced(5s)), body);
}

// For ASan: a strand of Asio's must not outlive its context.
TEST_CASE("sasl: a client is closed and gone, and then its loop, while a step blocks a thread of the mechanism's") {
    asio::thread_pool pool(1);
    std::promise<void> begun, go;
    const std::shared_future<void> may_end(go.get_future());
    const auto mechanism = std::make_shared<one_token>();
    mechanism->where = pool.get_executor();
    mechanism->before = [&begun, may_end]() -> asio::awaitable<void> {
        begun.set_value();
        may_end.wait();
        co_return;
    };
    {
        asio::io_context io;
        demanding_server server(io.get_executor());
        {
            const client zk(asio::make_strand(io), with_sasl(server.wire.address(), mechanism));
            std::future<void> has_begun = begun.get_future();
            while (has_begun.wait_for(0s) != std::future_status::ready) io.run_one_for(10ms);
            asio::co_spawn(io, zk.close(), asio::detached);
            server.wire.close();
            io.run();
        }
    }
    go.set_value();
    pool.join();
}

TEST_CASE("sasl: a server that cannot be reached adds nothing to the pauses that follow another one's failed login") {
    test_loop loop;
    demanding_server server(loop.executor());
    const auto mechanism = std::make_shared<one_token>();
    int failures = 0;
    mechanism->before = [&]() -> asio::awaitable<void> {
        ++failures;
        throw std::runtime_error("no ticket");
        co_return;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await code_of(zk.get("/a"));
        CHECK(failures >= 6);
    };
    // connect() to the address of a broadcast fails at once.
    client_options o = with_sasl(server.wire.address() + ",255.255.255.255:1", mechanism);
    run_sasl(loop, {&server}, o.connection_timeout(3s), body);
}

TEST_CASE("sasl: a server whose login fails under one of its names is tried under the next") {
    test_loop loop;
    demanding_server server(loop.executor());
    const auto mechanism = std::make_shared<one_token>();
    const std::int32_t failure = GENERATE(as<std::int32_t>(), refused_login, -4);
    server.wire.answer = [&, usual = server.wire.answer](const wire_server::request& r) -> wire_server::outcome {
        if (r.type == sasl_opcode && mechanism->hosts.back() == mechanism->hosts.front()) return {failure, {}, true};
        return usual(r);
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::error_code code = co_await code_of(zk.get("/a"));
        CHECK(code == zk_errc::no_node);
        REQUIRE(mechanism->hosts.size() == 2);
        CHECK(mechanism->hosts[0] != mechanism->hosts[1]);
    };
    run_sasl(loop, {&server}, with_sasl(under_two_names(server), mechanism), body);
}

TEST_CASE("sasl: a server that refuses all of its names refuses for good") {
    test_loop loop;
    demanding_server server(loop.executor());
    server.refuses = true;
    const auto mechanism = std::make_shared<one_token>();
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::error_code code = co_await code_of(zk.get("/a"));
        CHECK(code == zk_errc::auth_failed);
        CHECK(mechanism->hosts.size() == 4);
    };
    run_sasl(loop, {&server}, with_sasl(under_two_names(server), mechanism), body);
}

TEST_CASE("sasl: a login has a third of the session timeout, however many servers there are") {
    test_loop loop;
    demanding_server server(loop.executor());
    const auto mechanism = std::make_shared<one_token>();
    mechanism->before = []() -> asio::awaitable<void> { co_await pause_for(700ms); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::error_code code = co_await code_of(zk.get("/a"));
        CHECK(code == zk_errc::no_node);
        CHECK(mechanism->hosts.size() == 1);
    };
    const std::string down = ",127.0.0.1:1,127.0.0.1:2,127.0.0.1:3,127.0.0.1:4";  // a fifteenth of 6 s is 400 ms
    run_sasl(loop, {&server}, with_sasl(server.wire.address() + down, mechanism).session_timeout(6s), body);
}

TEST_CASE("sasl: an attempt that is given up in the middle of a login is one that has failed") {
    test_loop loop;
    demanding_server server(loop.executor());
    // Under the first of the server's names, the second step hangs: behind the session.
    struct hanging final : sasl_mechanism {
        struct talk final : sasl_conversation {
            explicit talk(bool h) : hangs(h) {}
            asio::awaitable<sasl_step> step(std::string challenge) override {
                if (challenge.empty()) co_return sasl_step::send("first");
                if (hangs) co_await pause_for(1h);
                co_return sasl_step::send_last("last");
            }
            bool hangs;
        };
        std::unique_ptr<sasl_conversation> begin(const sasl_server& with) const override {
            hosts.push_back(with.host());
            return std::make_unique<talk>(hosts.back() == hosts.front());
        }
        mutable std::vector<std::string> hosts;
    };
    server.wire.answer = [](const wire_server::request& r) -> wire_server::outcome {
        if (r.type != sasl_opcode) return {-101};
        const bool is_last = r.body.substr(4) == "last";
        return {0, is_last ? jute_writer().null().bytes() : jute_writer().text("challenge").bytes()};
    };
    const auto mechanism = std::make_shared<hanging>();
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::error_code code = co_await code_of(zk.get("/a"));
        CHECK(code == zk_errc::no_node);
        CHECK(mechanism->hosts.size() == 2);
    };
    client_options o = with_sasl(under_two_names(server), nullptr).sasl(mechanism);
    run_sasl(loop, {&server}, o.session_timeout(paced(1s)).connection_timeout(paced(5s)), body);
}

TEST_CASE("sasl: a refused login is final, also while a credential is unconfirmed") {
    test_loop loop;
    demanding_server server(loop.executor());
    const auto mechanism = std::make_shared<one_token>();
    server.wire.answer = [&, usual = server.wire.answer](const wire_server::request& r) -> wire_server::outcome {
        if (r.type != opcode::get) return usual(r);
        server.refuses = true;
        server.wire.cut();  // with the credential unread
        return {};
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await sasl_session_of(zk);
        auto executor = co_await asio::this_coro::executor;
        asio::co_spawn(executor, zk.get("/a"), [](std::exception_ptr, const node_data&) {});
        const std::error_code code = co_await code_of(zk.add_auth("digest", "a:b"));
        CHECK(code == zk_errc::auth_failed);
        const std::size_t handshakes = server.wire.handshakes.size();
        co_await pause_for(100ms);
        CHECK(zk.state() == session_state::auth_failed);
        CHECK(server.wire.handshakes.size() == handshakes);
    };
    run_sasl(loop, {&server}, with_sasl(server.wire.address(), mechanism), body);
}

TEST_CASE("sasl: failed logins are no connections that ended before a request was answered") {
    test_loop loop;
    demanding_server server(loop.executor());
    const auto mechanism = std::make_shared<one_token>();
    int failures = 0;
    mechanism->before = [&]() -> asio::awaitable<void> {
        if (++failures <= 6) throw std::runtime_error("no ticket");
        co_return;
    };
    std::string logged;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await sasl_session_of(zk);
        server.wire.cut();
        co_await code_of(zk.get("/a"));
        CHECK(failures == 8);
        CHECK_FALSE(has(logged, "connections in a row"));
    };
    client_options o = with_sasl(server.wire.address(), mechanism);
    o.log([&](const log_record& r) { logged += std::string(r.text()) + '\n'; }, log_level::debug);
    run_sasl(loop, {&server}, std::move(o), body);
}

TEST_CASE("sasl: for a session that has long expired, no more is asked than for a new one") {
    test_loop loop;
    demanding_server server(loop.executor());
    const auto mechanism = std::make_shared<one_token>();
    int failures = 0;
    mechanism->before = [&]() -> asio::awaitable<void> {
        ++failures;
        throw std::runtime_error("no ticket");
        co_return;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await code_of(zk.get("/a"));
        CHECK(failures >= 3);
        CHECK(failures < 14);
    };
    client_options o = with_sasl(server.wire.address(), mechanism);
    o.resume(session_credentials(0x1001, "0123456789abcdef")).session_timeout(1s).connection_timeout(5s);
    run_sasl(loop, {&server}, std::move(o), body);
}

TEST_CASE("sasl: a server that expects TLS is told from others by a client without TLS") {
    test_loop loop;
    demanding_server server(loop.executor());
    server.wire.greet = [](const wire_server::handshake&) { return std::nullopt; };
    const auto mechanism = std::make_shared<one_token>();
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::string text = co_await message_of(zk.get("/a"));
        CHECK(has(text, "or it expects TLS"));
    };
    run_sasl(loop, {&server}, with_sasl(server.wire.address(), mechanism).connection_timeout(300ms), body);
}
