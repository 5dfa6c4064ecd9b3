// Locks over a scripted server: connections that are cut, and sessions that end, while a lock changes hands.

#include "unit/locks/lock_steps.hpp"
#include "unit/support/fake_tree.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/shared_mutex.hpp>

#include <asio/post.hpp>

#include <algorithm>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

TEST_CASE("lock: a downgrade whose session ends says that the lock is lost", "[lock]") {
    rig r;
    fake_tree tree;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        const auto* m = std::get_if<multi_request>(&q);
        if (m && m->ops.size() == 2) {
            r.server.expire();
            return std::nullopt;
        }
        return tree(q);
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const shared_mutex lock(zk, "/lock");
        lock_guard writing = co_await lock.acquire();
        const std::string path = writing.path();
        std::optional<error> failed;
        try {
            lock_guard reading = co_await lock.downgrade(std::move(writing));
        } catch (const error& e) {
            failed = e;
        }
        REQUIRE(failed);
        CHECK(failed->code() == errc::lock_lost);
        CHECK(failed->what() == "downgrade " + path + ": lock lost (session expired)");
    };
    r.run(body);
}

// Fails without G24, G29 and G30.
TEST_CASE("lock: a cut takes the lock from its owner where that is wanted, and from those who wait nothing", "[lock]") {
    const bool one_gives_up = GENERATE(false, true), one_is_deleted = GENERATE(false, true);
    rig r(rig::quick().suspension(suspension_policy::lose));
    fake_tree tree;
    r.server.answer = [&](const request& q) -> std::optional<reply> { return tree(q); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const mutex lock(zk, "/lock");
        std::vector<int> served;
        std::vector<std::string> paths;
        auto use = [&](int me) -> asio::awaitable<void> {
            lock_guard guard = co_await lock.acquire();
            served.push_back(me);
            CHECK(zk.state() == session_state::connected);
            CHECK(guard.held());
            paths.push_back(guard.path());
            co_await guard.release();
        };
        lock_guard first = co_await lock.acquire();
        std::vector<running> tasks;
        for (int i = 0; i < 4; ++i) {
            tasks.emplace_back(r.loop.executor(), use(i));
            co_await r.server.until([&] { return tree.size() == static_cast<std::size_t>(i) + 2; });
        }
        co_await next_turns(r.server);
        r.server.reachable = false;
        r.server.drop();
        const loss_reason why = co_await first.lost();
        CHECK(why == loss_reason::suspended);
        running releasing(r.loop.executor(), first.release());
        for (int i = 0; i < 20; ++i) co_await asio::post(r.loop.executor(), asio::use_awaitable);
        CHECK(served.empty());
        if (one_gives_up) {
            tasks[0].cancel();
            co_await tasks[0].end();
        }
        if (one_is_deleted) tree(remove_request{tree.nth(one_gives_up ? 2 : 1)});
        r.server.reachable = true;
        for (const running& t : tasks) {
            const std::error_code code = co_await t.code();
            CHECK((!code || (one_gives_up && code == condition::cancelled)));
        }
        std::vector<int> expected{0, 1, 2, 3};
        if (one_gives_up) expected.erase(expected.begin());
        if (one_is_deleted) std::rotate(expected.begin(), expected.begin() + 1, expected.end());
        CHECK(served == expected);
        CHECK(requests_named(r.server, "create") == (one_is_deleted ? 6 : 5));
        co_await releasing.end();
        co_await r.server.until([&] { return tree.size() == 0; });
    };
    r.run(body);
}

// Fails without G24.
TEST_CASE("lock: of readers who are handed the lock during a cut those have it afterwards whose nodes are there",
          "[lock]") {
    rig r(rig::quick().suspension(suspension_policy::lose));
    fake_tree tree;
    r.server.answer = [&](const request& q) -> std::optional<reply> { return tree(q); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const shared_mutex lock(zk, "/lock");
        std::vector<int> served;
        auto read = [&](int me) -> asio::awaitable<void> {
            lock_guard guard = co_await lock.acquire_shared();
            served.push_back(me);
            CHECK(guard.held());
            co_await guard.release();
        };
        lock_guard writing = co_await lock.acquire();
        std::vector<running> tasks;
        for (int i = 0; i < 3; ++i) {
            tasks.emplace_back(r.loop.executor(), read(i));
            co_await r.server.until([&] { return tree.size() == static_cast<std::size_t>(i) + 2; });
        }
        co_await next_turns(r.server);
        r.server.reachable = false;
        r.server.drop();
        co_await writing.lost();
        running releasing(r.loop.executor(), writing.release());
        for (int i = 0; i < 20; ++i) co_await asio::post(r.loop.executor(), asio::use_awaitable);
        tree(remove_request{tree.nth(2)});
        r.server.reachable = true;
        for (const running& t : tasks) {
            const std::exception_ptr failed = co_await t.end();
            CHECK_FALSE(failed);
        }
        REQUIRE(served.size() == 3);
        CHECK(served.back() == 1);
        CHECK(requests_named(r.server, "create") == 5);
        co_await releasing.end();
    };
    r.run(body);
}

TEST_CASE("lock: who would be handed the lock during a cut fails when the session does not outlast it", "[lock]") {
    rig r(rig::quick().suspension(suspension_policy::lose).renewal(session_renewal::none));
    fake_tree tree;
    r.server.answer = [&](const request& q) -> std::optional<reply> { return tree(q); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const mutex lock(zk, "/lock");
        lock_guard first = co_await lock.acquire();
        running waiting(r.loop.executor(), take(lock));
        co_await r.server.until([&] { return tree.size() == 2; });
        co_await next_turns(r.server);
        r.server.silent = true;
        r.server.drop();
        co_await first.lost();
        running releasing(r.loop.executor(), first.release());
        for (int i = 0; i < 20; ++i) co_await asio::post(r.loop.executor(), asio::use_awaitable);
        r.server.expire();
        const std::exception_ptr failed = co_await waiting.end();
        REQUIRE(failed);
        std::string text;
        try {
            std::rethrow_exception(failed);
        } catch (const std::exception& e) {
            text = e.what();
        }
        CHECK(text == "acquire /lock: session expired");
        co_await releasing.end();
    };
    r.run(body);
}

// Servers hang up at a request above their jute.maxbuffer, and all requests behind it are lost with the connection.
TEST_CASE("lock: a create at which each server hangs up fails, and those beside it do not", "[lock]") {
    rig r;
    fake_tree tree;
    const std::string big(2000, 'x');
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        const auto* c = std::get_if<create_request>(&q);
        if (c && c->data.size() >= big.size()) {
            r.server.drop();
            return std::nullopt;
        }
        return tree(q);
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const mutex lock(zk, "/lock");
        lock_guard first = co_await lock.acquire();  // the directory exists
        int got = 0;
        std::optional<error> failed;
        auto use = [&](bytes data) -> asio::awaitable<void> {
            try {
                const lock_guard guard = co_await lock.acquire(acquire_options().data(std::move(data)));
                ++got;
            } catch (const error& e) {
                CHECK_FALSE(failed);
                failed = e;
            }
        };
        std::vector<running> tasks;
        tasks.emplace_back(r.loop.executor(), use(bytes(big)));
        for (int i = 0; i < 20; ++i) tasks.emplace_back(r.loop.executor(), use(bytes("small")));
        co_await r.server.until([&] { return failed.has_value(); });
        co_await first.release();
        for (running& t : tasks) co_await t.end();
        CHECK(got == 20);
        CHECK(std::string(failed->what()).find("connections ended with this request") != std::string::npos);
    };
    r.run(body);
}
