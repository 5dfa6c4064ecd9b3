#include "unit/support/error_of.hpp"
#include "unit/support/fake_tree.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/unfair_mutex.hpp>
#include <zkasio/path.hpp>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

// Somebody else stands before whoever comes.
std::optional<reply> second_in_line(const request& what, std::string& ours) {
    reply r;
    if (const auto* create = std::get_if<create_request>(&what)) {
        ours = r.path = create->path + "0000000005";
    } else if (std::holds_alternative<children_request>(what)) {
        r.children = {"_c_11111111-2222-4333-8444-555555555555-lock-0000000001"};
        if (!ours.empty()) r.children.emplace_back(node_name(ours));
    }
    return r;
}

asio::awaitable<void> note(std::string& text, asio::awaitable<lock_guard> acquiring) {
    text = co_await message_of(std::move(acquiring));
}

}  // namespace

TEST_CASE("what is asked of a lock after the client was closed names the lock", "[messages]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const mutex m(zk, "/m");
        const mutex m2(zk, "/m2");
        const shared_mutex rw(zk, "/rw");
        const semaphore s(zk, "/s", permits::fixed(2));
        const unfair_mutex u(zk, "/u");
        const multi_mutex both = multi_mutex(zk).add(m).add(m2);
        co_await zk.close();

        std::vector<std::string> said;
        said.push_back(co_await message_of(m.acquire()));
        said.push_back(co_await message_of(rw.acquire_shared()));
        said.push_back(co_await message_of(s.acquire()));
        said.push_back(co_await message_of(u.acquire()));
        said.push_back(co_await message_of(both.acquire()));
        CHECK(said == std::vector<std::string>{"acquire /m: client closed", "acquire /rw: client closed",
                                               "acquire /s: client closed", "acquire /u: client closed",
                                               "acquire /m,/m2: client closed"});
        const std::string timed = co_await message_of(m.try_acquire_for(1h));
        CHECK(timed == "try_acquire_for /m: client closed");
        const std::string shared = co_await message_of(rw.try_acquire_shared_for(1h));
        CHECK(shared == "try_acquire_for /rw: client closed");
        const std::string negative = co_await message_of(rw.try_acquire_shared_for(-1ns));
        CHECK(negative == "try_acquire_for /rw: invalid argument (a time limit is not negative)");
        const std::string connecting = co_await message_of(zk.connected());
        CHECK(connecting == "connect 10.0.0.1:2181: client closed");
    };
    r.run(body);
}

TEST_CASE("a limit that passes without a connection names the servers", "[messages]") {
    rig r;
    r.server.silent = true;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const mutex m(zk, "/m");
        const std::string none = co_await message_of(m.try_acquire_for(0ns));
        CHECK(
            none ==
            "try_acquire_for /m: not connected (there is no connection to 10.0.0.1:2181, and no time to wait for one)");
        const std::string little = co_await message_of(m.try_acquire_for(20ms));
        CHECK(little == "try_acquire_for /m: not connected (no connection: fake:2181: no answer)");
    };
    r.run(body);
}

TEST_CASE("a limit that passes without a connection says why there is none", "[messages]") {
    rig r;
    r.server.reachable = false;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const mutex m(zk, "/m");
        const std::string limited = co_await message_of(m.try_acquire_for(20ms));
        CHECK(limited == "try_acquire_for /m: not connected (no connection: connection refused)");
        auto nothing_more = [](lock_guard&) -> asio::awaitable<void> { co_return; };
        const std::string body_limited =
            co_await message_of(m.with_lock(nothing_more, with_lock_options().time_limit(20ms)));
        CHECK(body_limited == "with_lock /m: not connected (no connection: connection refused)");
        const std::string timed = co_await message_of(timeout(20ms, m.acquire()));
        CHECK(timed == "acquire /m: timed out (no connection: connection refused)");
    };
    r.run(body);
}

TEST_CASE("an acquire that is cancelled, or whose session ends, names the lock", "[messages]") {
    rig r;
    std::string ours;
    r.server.answer = [&](const request& what) { return second_in_line(what, ours); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const mutex m(zk, "/m");
        std::string cancelled, expired;
        running first(r.loop.executor(), note(cancelled, m.acquire()));
        const auto queued = [&] { return r.server.count("children /m") > 0 && !ours.empty(); };
        co_await r.server.until(queued);
        co_await next_turns(r.server);
        first.cancel();
        co_await first.end();
        CHECK(cancelled == "acquire /m: cancelled");

        running second(r.loop.executor(), note(expired, m.acquire()));
        co_await next_turns(r.server);
        r.server.expire();
        co_await second.end();
        CHECK(expired == "acquire /m: session expired");
    };
    r.run(body);
}

TEST_CASE("an acquire whose session ends while its predecessor is looked for, or at, names the lock", "[messages]") {
    const bool looked_at = GENERATE(false, true);
    rig r;
    std::string ours;
    r.server.answer = [&](const request& what) -> std::optional<reply> {
        const bool silent = looked_at ? std::holds_alternative<get_request>(what)
                                      : std::holds_alternative<children_request>(what);
        return silent ? std::nullopt : second_in_line(what, ours);
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const mutex m(zk, "/m");
        std::string expired;
        running one(r.loop.executor(), note(expired, m.acquire()));
        const auto asked = [&] {
            return looked_at ? r.server.count("get /m/_c_11111111-2222-4333-8444-555555555555-lock-0000000001") > 0
                             : r.server.count("children /m") > 0;
        };
        co_await r.server.until(asked);
        r.server.expire();
        co_await one.end();
        CHECK(expired == "acquire /m: session expired");
    };
    r.run(body);
}

TEST_CASE("a downgrade that comes too late, or that is cancelled, names the lock and says why", "[messages]") {
    rig r;
    r.server.session_timeout = 1s;
    fake_tree tree;
    bool asked = false;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        if (const auto* m = std::get_if<multi_request>(&q)) {
            asked = asked || m->ops.size() == 2;
            return std::nullopt;
        }
        return tree(q);
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const shared_mutex rw(zk, "/rw");
        std::string text;
        lock_guard writing = co_await rw.acquire();
        std::string path = writing.path();
        running cancelled(r.loop.executor(), note(text, rw.downgrade(std::move(writing))));
        co_await r.server.until([&] { return asked; });
        cancelled.cancel();
        co_await cancelled.end();
        CHECK(text == "downgrade " + path + ": cancelled");

        const shared_mutex another(zk, "/another");
        lock_guard late = co_await another.acquire();
        path = late.path();
        while (boot_clock::now() <= late.held_until()) {  // so nobody else can have noticed
        }
        text = co_await message_of(another.downgrade(std::move(late)));
        CHECK(text == "downgrade " + path + ": lock lost (lease ended)");
    };
    r.run(body);
}

TEST_CASE("a hold that is not confirmed says why once", "[messages]") {
    rig r;
    r.server.session_timeout = 1h;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        r.server.expire();
        co_await s.ended();
        const session_hold hold = s.hold("/node");
        const std::string text = co_await message_of(hold.confirmed());
        CHECK(text == "hold /node: session expired");
    };
    r.run(body);
}
