// What a persistent_node does where sessions are given up, servers lag behind, answers are lost, and writes refused.

#include "unit/membership/kept_node.hpp"

#include <zkasio/membership/persistent_node.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

using state_of_node = persistent_node_state;

asio::awaitable<void> until_it_is(const persistent_node& node, state_of_node wanted) {
    for (state_of_node now = node.state(); now != wanted;) now = co_await node.state_after(now);
}

asio::awaitable<void> set_on(const persistent_node& node, std::string data) { co_await node.set_data(std::move(data)); }

persistent_node_options kept_as(create_mode m) { return persistent_node_options().mode(m); }

// The session is over, and its node stays.
asio::awaitable<void> leave_behind(kept_node& r, client zk, const persistent_node& node) {
    const session before = zk.session_now();
    r.there->owner = before.id();
    r.server.expire();
    co_await before.ended();
    co_await zk.connected();
    co_await until_it_is(node, state_of_node::creating);
    co_await until_it_is(node, state_of_node::standing);
}

template <class Request>
bool is(const request& q) {
    return std::holds_alternative<Request>(q);
}

// Requests of this kind are refused, so many of them at most; counts all.
template <class Request>
auto refusing(std::error_code why, int& asked, int at_most = 1'000'000) {
    return [why, at_most, &asked](const request& q) -> std::optional<reply> {
        if (!is<Request>(q) || asked++ >= at_most) return std::nullopt;
        return refusal(why);
    };
}

}  // namespace

TEST_CASE("node keeper: what a session that was given up has left behind is replaced, as it was seen") {
    kept_node r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const persistent_node node(zk, "/node", "ours");
        co_await node.created();
        r.there->version = 7;
        co_await leave_behind(r, zk, node);
        CHECK(r.there->owner == 0);
        CHECK(r.version_removed == 7);
        co_await node.leave();
    };
    r.run(body);
}

TEST_CASE("node keeper: a parent that is missing for a while is waited for, also where the root may not be read") {
    kept_node r;
    r.server.own_reads_give = zk_errc::no_auth;  // as servers from 3.8.4 on
    r.instead = [&](const request& q) -> std::optional<reply> {
        if (is<create_request>(q) && r.server.own_reads < 3) return refusal(zk_errc::no_node);
        return std::nullopt;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const persistent_node node(zk, "/node", "ours");
        co_await node.created();
        co_await node.leave();
    };
    r.run(body);
}

TEST_CASE("node keeper: of many sessions that were given up the last ones are known") {
    // Without the pauses between short sessions, see session_pace.
    kept_node r(true, access::make<retry_policy>(0ms));
    auto body = [&](client zk) -> asio::awaitable<void> {
        const persistent_node node(zk, "/node", "ours");
        co_await node.created();
        for (int i = 0; i < 20; ++i) co_await leave_behind(r, zk, node);
        CHECK(r.there->owner == 0);
        co_await node.leave();
    };
    r.run(body);
}

TEST_CASE("node keeper: a node that was left behind, and written to since it was seen, is looked at again") {
    kept_node r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const persistent_node node(zk, "/node", "ours");
        co_await node.created();
        int removals = 0;
        r.instead = refusing<remove_request>(zk_errc::bad_version, removals, 1);
        co_await leave_behind(r, zk, node);
        CHECK(removals == 2);
        r.instead = nullptr;
        co_await node.leave();
    };
    r.run(body);
}

TEST_CASE("node keeper: leaving does not remove what an operator has put in the place of a node that stood") {
    kept_node r(false);
    auto body = [&](client zk) -> asio::awaitable<void> {
        const persistent_node node(zk, "/node", "ours", kept_as(create_mode::persistent));
        co_await node.created();
        co_await r.server.until([&] { return r.server.watched("/node"); });
        co_await next_turns(r.server);
        r.put(0, "an operator's");
        co_await node.leave();
        CHECK(r.there);
        CHECK(r.there->data == "an operator's");
    };
    r.run(body);
}

TEST_CASE("node keeper: a server that has not heard of the node in the way is asked to catch up") {
    kept_node r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        r.put(99);
        r.lags = true;
        const persistent_node node(zk, "/node", "ours");
        co_await until_it_is(node, state_of_node::taken);
        CHECK(r.server.count("create /node") == 1);
        co_await node.leave();
        CHECK(r.there->owner == 99);
    };
    r.run(body);
}

TEST_CASE("node keeper: a node that is not ours and may not be written ends one that takes over") {
    kept_node r(false);
    int writes = 0;
    r.instead = refusing<set_request>(zk_errc::no_auth, writes);
    auto body = [&](client zk) -> asio::awaitable<void> {
        r.put(0);
        const persistent_node node(zk, "/node", "ours", kept_as(create_mode::persistent));
        const std::error_code ended = co_await code_of(node.created());
        CHECK(ended == zk_errc::no_auth);
        CHECK(r.there->data == "theirs");
    };
    r.run(body);
}

TEST_CASE("node keeper: leaving asks a server to catch up before it looks for a node whose create has no answer") {
    kept_node r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        r.loses_create = true;
        const persistent_node node(zk, "/node", "ours");
        co_await r.server.until([&] { return r.there.has_value(); });
        r.lags = true;
        co_await node.leave();
        CHECK_FALSE(r.there);
    };
    r.run(body);
}

TEST_CASE("node keeper: once its session is over, and no server in reach, it is being created, and leaves at once") {
    kept_node r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const persistent_node node(zk, "/node", "ours");
        co_await node.created();
        const session before = zk.session_now();
        r.server.reachable = false;
        r.there.reset();
        r.server.expire();
        co_await before.ended();
        const state_of_node now = co_await node.state_after(state_of_node::standing);
        CHECK(now == state_of_node::creating);
        co_await node.leave();
        CHECK(node.state() == state_of_node::ended);
        r.server.reachable = true;
    };
    r.run(body);
}

TEST_CASE("node keeper: state_after() tells the end once and fails after that") {
    kept_node r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const persistent_node left(zk, "/node", "ours");
        co_await left.created();
        co_await left.leave();
        const state_of_node last = co_await left.state_after(state_of_node::standing);
        CHECK(last == state_of_node::ended);
        const std::error_code after_leaving = co_await code_of(left.state_after(state_of_node::ended));
        CHECK(after_leaving == errc::client_closed);

        const persistent_node refused(zk, "/node", "ours");
        co_await refused.created();
        int looked = 0;
        r.instead = refusing<exists_request>(zk_errc::no_auth, looked, 1);
        r.server.fire(node_event::data_changed, "/node");
        co_await code_of(refused.ended());
        const std::error_code after_a_refusal = co_await code_of(refused.state_after(state_of_node::ended));
        CHECK(after_a_refusal == zk_errc::no_auth);
    };
    r.run(body);
}

TEST_CASE("node keeper: what ends it leaves no node standing that nobody keeps") {
    kept_node r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const persistent_node node(zk, "/node", "ours");
        co_await node.created();
        int looked = 0;
        r.instead = refusing<exists_request>(zk_errc::no_auth, looked, 1);
        r.server.fire(node_event::data_changed, "/node");
        const std::error_code ended = co_await code_of(node.ended());
        CHECK(ended == zk_errc::no_auth);
        co_await zk.idle();
        CHECK_FALSE(r.there);
    };
    r.run(body);
}

TEST_CASE("node keeper: a sequential node whose create has no answer is removed when it leaves") {
    kept_node r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        r.loses_create = true;
        const persistent_node node(zk, "/node-", "ours", kept_as(create_mode::ephemeral_sequential));
        co_await r.server.until([&] { return r.there.has_value(); });
        co_await node.leave();
        CHECK_FALSE(r.there);
    };
    r.run(body);
}

TEST_CASE("node keeper: a sequential node whose create has no answer is looked for until there is one") {
    kept_node r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        r.loses_create = true;
        int looked = 0;
        r.instead = refusing<children_request>(zk_errc::no_auth, looked, 1);
        {
            const persistent_node node(zk, "/node-", "ours", kept_as(create_mode::ephemeral_sequential));
            const std::error_code ended = co_await code_of(node.ended());
            CHECK(ended == zk_errc::no_auth);
        }
        co_await zk.idle();
        CHECK(looked > 1);
        CHECK_FALSE(r.there);
    };
    r.run(body);
}

TEST_CASE("node keeper: a sequential node comes again with its name and in its mode") {
    kept_node r(false);
    auto body = [&](client zk) -> asio::awaitable<void> {
        const persistent_node node(zk, "/node-", "ours", kept_as(create_mode::persistent_sequential));
        const std::string path = co_await node.created();
        r.there.reset();
        r.server.fire(node_event::removed, path);
        co_await r.server.until([&] { return r.there.has_value(); });
        CHECK(r.there->path == path);
        CHECK(r.there->mode == create_mode::persistent);
        co_await node.leave();
    };
    r.run(body);
}

TEST_CASE("node keeper: in each session it is the only one of its client for that node") {
    kept_node r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const persistent_node node(zk, "/node", "ours");
        co_await node.created();
        co_await leave_behind(r, zk, node);
        const persistent_node second(zk, "/node", "second");
        const std::error_code refused = co_await code_of(second.created());
        CHECK(refused == errc::invalid_argument);
        CHECK(node.state() == state_of_node::standing);
        // The end of the one that was refused gives nothing up.
        const persistent_node third(zk, "/node", "third");
        const std::error_code again = co_await code_of(third.created());
        CHECK(again == errc::invalid_argument);
        co_await node.leave();
    };
    r.run(body);
}

TEST_CASE("node keeper: data that come while others are being written are written behind them") {
    kept_node r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const persistent_node node(zk, "/node", "ours");
        co_await node.created();
        bool hold = true;
        r.server.answer = [&, serve = r.server.answer](const request& q) -> std::optional<reply> {
            if (is<set_request>(q) && std::exchange(hold, false)) return std::nullopt;
            return serve(q);
        };
        running first(r.loop.executor(), set_on(node, "first"));
        co_await r.server.until([&] { return r.server.count("set /node") == 1; });
        running second(r.loop.executor(), set_on(node, "second"));
        co_await next_turns(r.server);
        r.server.reply_to_all();
        const std::error_code one = co_await first.code();
        CHECK_FALSE(one);
        const std::error_code two = co_await second.code();
        CHECK_FALSE(two);
        CHECK(r.there->data == "second");
        co_await node.leave();
    };
    r.run(body);
}

TEST_CASE("node keeper: data are not written into what another client has put in the place of the node") {
    for (const std::int32_t version : {5, 0}) {
        kept_node r;
        auto body = [&](client zk) -> asio::awaitable<void> {
            const persistent_node node(zk, "/node", "ours");
            co_await node.created();
            bool replace = true;
            r.instead = [&](const request& q) -> std::optional<reply> {
                if (!is<set_request>(q) || !std::exchange(replace, false)) return std::nullopt;
                r.put(99);
                r.there->version = version;
                return std::nullopt;
            };
            running waiting(r.loop.executor(), set_on(node, "new"));
            co_await until_it_is(node, state_of_node::taken);
            if (version != 0) CHECK(r.there->data == "theirs");
            co_await node.leave();
            const std::error_code told = co_await waiting.code();
            CHECK(told == errc::client_closed);
            CHECK(r.there->owner == 99);
        };
        r.run(body);
    }
}

TEST_CASE("node keeper: data are written although others write to the node at the same time") {
    kept_node r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const persistent_node node(zk, "/node", "ours");
        co_await node.created();
        int writes = 0;
        r.instead = refusing<set_request>(zk_errc::bad_version, writes, 3);
        co_await node.set_data("new");
        CHECK(writes == 4);
        CHECK(r.there->data == "new");
        co_await node.leave();
    };
    r.run(body);
}

TEST_CASE("node keeper: data that nobody has written when it leaves are told so") {
    kept_node r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        r.put(99);
        const persistent_node node(zk, "/node", "ours");
        co_await until_it_is(node, state_of_node::taken);
        running waiting(r.loop.executor(), set_on(node, "new"));
        co_await next_turns(r.server);
        co_await node.leave();
        const std::error_code told = co_await waiting.code();
        CHECK(told == errc::client_closed);
    };
    r.run(body);
}

TEST_CASE("node keeper: leaving fails when the node may not be removed") {
    kept_node r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const persistent_node node(zk, "/node", "ours");
        co_await node.created();
        int removals = 0;
        r.instead = refusing<remove_request>(zk_errc::no_auth, removals);
        const std::error_code left = co_await code_of(node.leave());
        CHECK(left == zk_errc::no_auth);
        co_await zk.idle();
    };
    r.run(body);
}

TEST_CASE("node keeper: the largest data that there is room for are written, and one byte more is refused") {
    kept_node r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const persistent_node node(zk, "/node", "ours");
        const std::string refused = co_await message_of(node.set_data(std::string(2'000'000, 'x')));
        const std::string before = "there is room for ";
        const std::size_t at = refused.find(before);
        REQUIRE(at != std::string::npos);
        const std::size_t room = std::stoul(refused.substr(at + before.size()));
        co_await node.set_data(std::string(room, 'x'));
        CHECK(r.there->data.size() == room);
        const std::error_code more = co_await code_of(node.set_data(std::string(room + 1, 'x')));
        CHECK(more == errc::too_large);
        co_await node.leave();
    };
    r.run(body);
}

TEST_CASE("node keeper: a node with a time to live that may not be written to is kept as well as that goes") {
    kept_node r(false);
    int written = 0;
    std::error_code why;
    SECTION("the ACL forbids it") { why = zk_errc::no_auth; }
    SECTION("another client has written") { why = zk_errc::bad_version; }
    SECTION("the server has too much to do") { why = zk_errc::throttled; }
    SECTION("the answer is lost") { why = zk_errc::connection_loss; }
    r.instead = [&](const request& q) -> std::optional<reply> {
        if (is<set_request>(q)) {
            ++written;
            return refusal(why);
        }
        return std::nullopt;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        persistent_node_options options;
        options.mode(create_mode::persistent_ttl).ttl(std::chrono::milliseconds(100));
        const persistent_node node(zk, "/node", "ours", options);
        co_await node.created();
        co_await r.server.until([&] { return written > 0; });
        CHECK(node.state() == state_of_node::standing);
        r.there.reset();  // as the servers do when its time has passed
        r.server.fire(node_event::removed, "/node");
        co_await r.server.until([&] { return r.there.has_value(); });
        const int before = written;
        co_await r.server.until([&] { return written > before; });
        co_await node.leave();
    };
    r.run(body);
}
