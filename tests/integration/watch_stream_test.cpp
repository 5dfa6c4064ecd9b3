#include "support/fault_proxy.hpp"
#include "support/lock_checks.hpp"
#include "support/test_client.hpp"

#include <zkasio/cache/streams.hpp>

#include <memory>
#include <optional>
#include <string>

using namespace zkasio;
using namespace zkasio::test;

namespace {

using state_of_node = std::optional<node_data>;
using names_of_node = std::optional<node_children>;

// "-": there is no node.
asio::awaitable<std::string> next_text(const value_stream& stream) {
    const state_of_node state = co_await stream.next();
    co_return state ? state->data : std::string("-");
}

asio::awaitable<std::string> next_names(const children_stream& stream) {
    const names_of_node state = co_await stream.next();
    std::string all = state ? "" : "-";
    if (state)
        for (const std::string& name : state->names) all += name + ' ';
    co_return all;
}

asio::awaitable<void> next_into(const value_stream& stream, std::shared_ptr<std::string> text) {
    *text = co_await next_text(stream);
}

// Of what next() returns, after it was called: the stream may be gone.
asio::awaitable<void> await_state(asio::awaitable<state_of_node> next) { co_await std::move(next); }

create_options private_to_all() {
    acl nobody;
    nobody.push_back(acl_entry(permission::admin | permission::write | permission::remove, acl_id("world", "anyone")));
    return create_options().acl(nobody);
}

}  // namespace

TEST_CASE("watch_value: a node that is missing and comes and changes and goes and comes again") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "watch-value");
        const std::string node = dir + "/n";
        {
            const value_stream stream = watch_value(zk, node);
            std::string text = co_await next_text(stream);
            CHECK(text == "-");
            co_await zk.create(node, "1");
            text = co_await next_text(stream);
            CHECK(text == "1");
            co_await zk.create(node + "/child");  // of no interest: the next state is another one
            co_await zk.set(node, "2");
            text = co_await next_text(stream);
            CHECK(text == "2");
            co_await zk.set(node, "2");  // the same data, written again
            const state_of_node again = co_await stream.next();
            REQUIRE(again);
            CHECK(again->stat.version == 2);
            co_await zk.remove_recursive(node);
            text = co_await next_text(stream);
            CHECK(text == "-");
            co_await zk.create(node, "3");
            text = co_await next_text(stream);
            CHECK(text == "3");
            co_await zk.remove(node);
            co_await zk.create(node, "3");  // made anew while nobody looked
            const state_of_node anew = co_await stream.next();
            REQUIRE(anew);
            CHECK(anew->stat.version == 0);
            CHECK_FALSE(watched_below(dir).empty());
        }
        co_await zk.idle();
        CHECK(watched_below(dir).empty());
        co_await until_quiet(zk, dir);
    };
    with_client(body);
}

TEST_CASE("watch_value: a reader that waits is told what happens later") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "watch-value-waiting");
        const value_stream stream = watch_value(zk, dir + "/n");
        std::string last = co_await next_text(stream);
        const auto executor = co_await asio::this_coro::executor;
        for (int i = 0; i < 5; ++i) {
            const auto text = std::make_shared<std::string>();
            const running waiting(executor, next_into(stream, text));
            co_await turns(3);
            CHECK_FALSE(waiting.ended());
            co_await zk.create_or_set(dir + "/n", std::to_string(i));
            const std::error_code code = co_await waiting.code();
            CHECK(!code);
            CHECK(*text == std::to_string(i));
        }
        co_await stream.close();
        CHECK(watched_below(dir).empty());
    };
    with_client(body);
}

TEST_CASE("watch_value: a slow reader gets the latest of a thousand states and no backlog") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "watch-value-slow");
        co_await zk.create(dir + "/n", "first");
        const value_stream stream = watch_value(zk, dir + "/n");
        const std::string first = co_await next_text(stream);
        CHECK(first == "first");
        const long before = requests_of(zk.session_now());
        for (int i = 1; i <= 1000; ++i) co_await zk.set(dir + "/n", std::to_string(i));
        CHECK(requests_of(zk.session_now()) - before < 1050);  // the writes, and next to nothing else
        const std::string last = co_await next_text(stream);
        CHECK(last == "1000");
        const auto text = std::make_shared<std::string>();
        const running waiting(co_await asio::this_coro::executor, next_into(stream, text));
        co_await turns(5);
        CHECK_FALSE(waiting.ended());
        co_await zk.set(dir + "/n", "end");
        co_await waiting.end();
        CHECK(*text == "end");
        co_await stream.close();
    };
    with_client(body);
}

TEST_CASE("watch_value: connections that are cut and a session that expires") {
    fault_proxy proxy(first_server());
    test_loop loop(60s);
    auto body = [&]() -> asio::awaitable<void> {
        const test_client writer(co_await asio::this_coro::executor, options());
        const test_client reader(co_await asio::this_coro::executor, options(proxy.address()));
        const std::string dir = co_await fresh_directory(writer, "watch-value-cuts");
        const std::string node = dir + "/n";
        const value_stream stream = watch_value(reader, node);
        const children_stream children = watch_children(reader, dir);
        std::string text = co_await next_text(stream), names = co_await next_names(children);
        CHECK(text == "-");
        CHECK(names == "");
        for (int i = 0; i < 20; ++i) {
            proxy.cut_all(i % 2 ? fault_proxy::end::rst : fault_proxy::end::fin);
            if (i == 10) co_await expire_session(reader);
            if (i > 0) co_await writer.remove(node);
            co_await writer.create(node, std::to_string(i));
            while (text != std::to_string(i)) text = co_await next_text(stream);
            names = co_await next_names(children);
            // What has changed in between may be told in two steps.
            while (names != "n ") names = co_await next_names(children);
        }
        // Cut, and nothing has changed: nothing is told.
        const auto later = std::make_shared<std::string>();
        const running waiting(co_await asio::this_coro::executor, next_into(stream, later));
        proxy.cut_all();
        co_await reader.connected();
        co_await reader.sync("/");
        co_await turns(3);
        CHECK_FALSE(waiting.ended());
        co_await writer.set(node, "end");
        co_await waiting.end();
        CHECK(*later == "end");
        co_await stream.close();
        co_await children.close();
        CHECK(watched_below(dir).empty());
        co_await reader.close();
        co_await writer.close();
        CHECK(reader.inside().pending_operations() == 0);
    };
    loop.run(body());
}

TEST_CASE("watch_value: a node that was removed and made anew during a cut is another state") {
    fault_proxy proxy(first_server());
    test_loop loop(60s);
    auto body = [&]() -> asio::awaitable<void> {
        const test_client writer(co_await asio::this_coro::executor, options());
        const test_client reader(co_await asio::this_coro::executor, options(proxy.address()));
        const std::string dir = co_await fresh_directory(writer, "watch-value-anew");
        co_await writer.create(dir + "/n", "same");
        const value_stream stream = watch_value(reader, dir + "/n");
        const state_of_node first = co_await stream.next();
        proxy.silence(true);
        proxy.cut_all();
        co_await writer.remove(dir + "/n");
        co_await writer.create(dir + "/n", "same");
        proxy.silence(false);
        proxy.cut_all();
        const state_of_node second = co_await stream.next();
        REQUIRE(second);
        CHECK(second->data == "same");
        CHECK(second->stat.version == first->stat.version);
        CHECK(second->stat.czxid != first->stat.czxid);
        co_await stream.close();
        co_await reader.close();
        co_await writer.close();
    };
    loop.run(body());
}

TEST_CASE("watch_value: what waits ends when the stream is destroyed or closed or the client is closed") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "watch-value-ends");
        const auto executor = co_await asio::this_coro::executor;
        {
            std::optional<value_stream> doomed(watch_value(zk, dir));
            co_await doomed->next();
            const running waiting(executor, await_state(doomed->next()));
            co_await turns(2);
            doomed.reset();
            const std::error_code code = co_await waiting.code();
            CHECK(code == errc::client_closed);
            co_await zk.idle();
            CHECK(watched_below(dir).empty());
        }
        const value_stream closed = watch_value(zk, dir);
        co_await closed.next();
        const running waiting(executor, await_state(closed.next()));
        co_await turns(2);
        co_await closed.close();
        CHECK(watched_below(dir).empty());
        std::error_code code = co_await waiting.code();
        CHECK(code == errc::client_closed);
        code = co_await code_of(closed.next());
        CHECK(code == errc::client_closed);
        // In its first moments: its read may be on its way.
        for (int moments = 0; moments < 20; ++moments) {
            const value_stream quick = watch_value(zk, dir);
            const running reading(executor, await_state(quick.next()));
            for (int i = 0; i < moments; ++i) co_await asio::post(executor, asio::use_awaitable);
        }
        co_await zk.idle();
        CHECK(watched_below(dir).empty());
        const value_stream last = watch_value(zk, dir);
        co_await last.next();
        const running until_close(executor, await_state(last.next()));
        co_await turns(2);
        co_await zk.close();
        code = co_await until_close.code();
        CHECK(code == errc::client_closed);
        code = co_await code_of(watch_value(zk, dir).next());
        CHECK(code == errc::client_closed);
    };
    with_client(body);
}

TEST_CASE("watch_value: a cancelled wait loses nothing") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "watch-value-cancelled");
        co_await zk.create(dir + "/n", "0");
        const value_stream stream = watch_value(zk, dir + "/n");
        const std::string first = co_await next_text(stream);
        CHECK(first == "0");
        int writes = 0;
        std::string heard;
        const auto attempt = [&]() -> asio::awaitable<void> {
            co_await zk.set(dir + "/n", std::to_string(++writes));
            heard = co_await next_text(stream);
            CHECK(heard == std::to_string(writes));
        };
        const int cancelled = co_await cancel_everywhere(attempt);
        CHECK(cancelled > 0);
        co_await zk.set(dir + "/n", "end");
        while (heard != "end") heard = co_await next_text(stream);
        co_await stream.close();
        CHECK(watched_below(dir).empty());
    };
    with_client(body);
}

TEST_CASE("watch_value: data that an ACL keeps from us are told once, and what comes when it does not any more") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "watch-value-acl");
        co_await zk.create(dir + "/n", "1", private_to_all());
        const value_stream stream = watch_value(zk, dir + "/n");
        std::error_code code = co_await code_of(stream.next());
        CHECK(code == zk_errc::no_auth);
        const std::string message = co_await message_of(watch_value(zk, dir + "/n").next());
        CHECK(message.find("watch_value " + dir + "/n: ") == 0);
        const auto text = std::make_shared<std::string>();
        const running waiting(co_await asio::this_coro::executor, next_into(stream, text));
        const long before = requests_of(zk.session_now());
        for (int i = 0; i < 30; ++i) co_await zk.sync("/");  // time enough for another 30 reads, without pauses
        CHECK_FALSE(waiting.ended());                        // it was told
        CHECK(requests_of(zk.session_now()) - before < 30 + 15);
        co_await zk.set_acl(dir + "/n", open_acl());
        code = co_await waiting.code();
        CHECK(!code);
        CHECK(*text == "1");
        co_await stream.close();
        CHECK(watched_below(dir).empty());
    };
    with_client(body);
}

TEST_CASE("watch_value: one reader at a time, and bad paths, and a stream that was moved from") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "watch-value-refused");
        CHECK_THROWS_AS(watch_value(zk, "no/slash"), error);
        CHECK_THROWS_AS(watch_children(zk, "/a/"), error);
        value_stream stream = watch_value(zk, dir);
        co_await stream.next();
        const auto text = std::make_shared<std::string>();
        const running waiting(co_await asio::this_coro::executor, next_into(stream, text));
        co_await turns(2);
        const std::string message = co_await message_of(stream.next());
        CHECK(message.find("another coroutine awaits next()") != std::string::npos);
        co_await zk.set(dir, "x");  // the first one is not disturbed
        co_await waiting.end();
        CHECK(*text == "x");
        const value_stream other = std::move(stream);
        std::error_code code = co_await code_of(stream.next());
        CHECK(code == errc::invalid_argument);
        code = co_await code_of(stream.close());
        CHECK(code == errc::invalid_argument);
        stream = watch_value(zk, dir + "/x");
        const state_of_node missing = co_await stream.next();
        CHECK_FALSE(missing);
        co_await stream.close();
        co_await other.close();
        CHECK(watched_below(dir).empty());
    };
    with_client(body);
}

TEST_CASE("watch_children: names in order, and a child that was made anew") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "watch-children");
        const std::string node = dir + "/n";
        const children_stream stream = watch_children(zk, node);
        std::string names = co_await next_names(stream);
        CHECK(names == "-");
        co_await zk.create(node, "1");
        names = co_await next_names(stream);
        CHECK(names == "");
        co_await zk.create(node + "/b");
        names = co_await next_names(stream);
        CHECK(names == "b ");
        co_await zk.set(node, "2");  // of no interest
        co_await zk.create(node + "/a");
        names = co_await next_names(stream);
        CHECK(names == "a b ");
        co_await zk.remove(node + "/a");
        co_await zk.create(node + "/a");
        names = co_await next_names(stream);
        CHECK(names == "a b ");
        co_await zk.remove_recursive(node);
        names = co_await next_names(stream);
        while (names != "-") names = co_await next_names(stream);
        co_await zk.create(node);
        names = co_await next_names(stream);
        CHECK(names == "");
        co_await stream.close();
        CHECK(watched_below(dir).empty());
    };
    with_client(body);
}

TEST_CASE("watch_value: streams and a user's own watch of one node share it, and a chroot") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "watch-value-shared");
        const test_client inside(co_await asio::this_coro::executor, options(shared_servers() + dir));
        const value_stream one = watch_value(zk, dir + "/n"), rooted = watch_value(inside, "/n");
        std::string text = co_await next_text(rooted);
        CHECK(text == "-");
        {
            const value_stream two = watch_value(zk, dir + "/n");
            text = co_await next_text(one);
            text = co_await next_text(two);
            const auto own = co_await zk.exists_and_watch(dir + "/n");
            co_await two.close();
            co_await zk.create(dir + "/n", "1");
            co_await own.changes.changed();
        }
        text = co_await next_text(one);
        CHECK(text == "1");
        text = co_await next_text(rooted);
        CHECK(text == "1");
        co_await rooted.close();
        co_await one.close();
        CHECK(watched_below(dir).empty());
        const value_stream root = watch_value(inside, "/");
        const state_of_node at_root = co_await root.next();
        CHECK(at_root);
        co_await root.close();
        co_await inside.close();
    };
    with_client(body);
}
