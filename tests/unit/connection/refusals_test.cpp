// What the refusal of a request says of others, and what the end of a connection does not: rule K1 of known_requests.

#include "support/opcode.hpp"
#include "support/test_client.hpp"
#include "unit/support/wire_server.hpp"

#include <zkasio/error.hpp>

#include <asio/steady_timer.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;

namespace refusals_test {

namespace {

constexpr std::int32_t plain_create = 1;

struct outcomes {
    int done = 0, refused = 0, unknown = 0;

    asio::awaitable<void> of(asio::awaitable<void> operation) {
        try {
            co_await std::move(operation);
            ++done;
        } catch (const error& e) {
            ++(e.outcome_unknown() ? unknown : refused);
        }
    }
};

asio::awaitable<void> create(client zk, std::string path, create_mode mode = create_mode::persistent) {
    co_await zk.create(std::move(path), "", create_options().mode(mode));
}

asio::awaitable<void> reconfigure(client zk) { co_await zk.reconfigure("", "3"); }

template <class Body>
void run(wire_server& server, test_loop& loop, Body body) {
    const test_client zk(loop.executor(), client_options(server.address()));
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

std::string created_answer(const wire_server::request& r) {
    node_stat s;
    s.czxid = 7;
    return jute_writer().text(path_in(r)).stat(s).bytes();
}

}  // namespace

// As reconfigure() at a server that stands alone.
TEST_CASE("refusals: one that is answered in turn says nothing of the create that was asked for behind it") {
    test_loop loop(20s);
    wire_server server(loop.executor());
    server.answer = [](const wire_server::request& r) {
        if (r.type == opcode::reconfigure) return wire_server::outcome{-6};
        return wire_server::outcome{0, created_answer(r)};
    };
    run(server, loop, [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const auto executor = co_await asio::this_coro::executor;
        outcomes creates, changes;
        const running first(executor, changes.of(reconfigure(zk))), second(executor, creates.of(create(zk, "/a")));
        co_await first.end();
        co_await second.end();
        CHECK(changes.refused == 1);
        CHECK(creates.done == 1);
        co_await create(zk, "/b");
        CHECK(server.count(opcode::create) == 2);
        CHECK(server.count(plain_create) == 0);
        CHECK(server.handshakes.size() == 1);
    });
}

TEST_CASE("refusals: ahead of its turn, nothing is certain, and the next such request is sent alone") {
    test_loop loop(20s);
    wire_server server(loop.executor());
    std::vector<wire_server::request> gets;
    const std::string data = jute_writer().text("").stat({}).bytes();
    server.answer = [&](const wire_server::request& r) -> wire_server::outcome {
        if (r.type == opcode::get) gets.push_back(r);
        const bool is_slow = gets.size() != 2;
        if (r.type == opcode::get) return {0, data, false, is_slow};
        if (r.type == opcode::exists) return {0, jute_writer().stat({}).bytes()};
        if (r.type == plain_create) return {0, jute_writer().text(path_in(r)).bytes()};
        return {-6, {}, true};
    };
    run(server, loop, [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const auto executor = co_await asio::this_coro::executor;
        outcomes creates;
        auto get = [&]() -> asio::awaitable<void> { co_await zk.get("/a"); };
        {
            const running reads(executor, get()), first(executor, creates.of(create(zk, "/a")));
            co_await first.end();
            CHECK(creates.unknown == 1);
            CHECK(server.count(plain_create) == 0);
            const std::exception_ptr failed = co_await reads.end();
            CHECK_FALSE(failed);
        }
        const running reads(executor, get()), second(executor, creates.of(create(zk, "/b")));
        const auto is_asked = [&]() -> asio::awaitable<bool> { co_return gets.size() == 3; };
        co_await eventually(is_asked);
        asio::steady_timer timer(executor, 100ms);
        co_await timer.async_wait(asio::use_awaitable);
        CHECK(server.count(opcode::create) == 1);
        server.answer_late(gets.back(), {0, data});
        co_await second.end();
        co_await reads.end();
        CHECK(creates.done == 1);
        CHECK(server.count(opcode::create) == 2);
        CHECK(server.count(plain_create) == 1);
        CHECK(server.handshakes.size() == 3);
        co_await create(zk, "/c");
        CHECK(server.count(opcode::create) == 2);
    });
}

TEST_CASE("refusals: the end of a connection to a server of ZooKeeper is none") {
    const create_mode mode = GENERATE(create_mode::container, create_mode::persistent, create_mode::persistent_ttl);
    test_loop loop(20s);
    wire_server server(loop.executor());
    int cuts = 3;
    std::vector<std::int32_t> asked;
    server.answer = [&](const wire_server::request& r) -> wire_server::outcome {
        asked.push_back(r.type);
        if (cuts > 0) {
            --cuts;
            return {0, {}, true, true};
        }
        return {0, created_answer(r)};
    };
    run(server, loop, [&](client zk) -> asio::awaitable<void> {
        outcomes creates;
        for (int i = 0; i < 4; ++i) {
            co_await zk.connected();
            create_options how;
            how.mode(mode);
            if (has_ttl(mode)) how.ttl(1s);
            auto one = [&]() -> asio::awaitable<void> { co_await zk.create("/a", "", how); };
            co_await creates.of(one());
        }
        CHECK(creates.unknown == 3);
        CHECK(creates.done == 1);
        CHECK(asked == std::vector<std::int32_t>(4, asked.front()));
    });
}

TEST_CASE("refusals: arguments that a server of ZooKeeper calls bad are no refusal of containers") {
    test_loop loop(20s);
    wire_server server(loop.executor());
    server.answer = [](const wire_server::request&) { return wire_server::outcome{-8}; };
    run(server, loop, [&](client zk) -> asio::awaitable<void> {
        for (int i = 0; i < 2; ++i) {
            const std::error_code code = co_await code_of(create(zk, "/a", create_mode::container));
            CHECK(code == zk_errc::bad_arguments);
        }
        CHECK(server.count(opcode::create_container) == 2);
    });
}

}  // namespace refusals_test
