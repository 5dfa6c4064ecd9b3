// Pending requests, watches and holds that are asked more than once.

#include "unit/support/error_of.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/recipe/pending.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/dispatch.hpp>
#include <asio/post.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

using names = std::vector<std::string>;

reply with_data_and_children() {
    reply r;
    r.data = "hello";
    r.children = {"b1", "b2"};
    r.stat.data_length = 5;
    return r;
}

}  // namespace

TEST_CASE("pending: whoever looks at an answer gets all of it, however often it was looked at", "[pending]") {
    rig r;
    r.server.answer = [](const request&) { return with_data_and_children(); };
    auto body = [](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const pending_data data = toolbox(zk).start_get("/a"), same_data = data;
        const pending_children children = toolbox(zk).start_children("/a"), same_children = children;
        const node_data first = co_await data.result(), second = co_await same_data.result();
        CHECK(first.data == "hello");
        CHECK(second.data == "hello");
        CHECK(data.get().data == "hello");
        const node_children one = co_await children.result(), two = co_await same_children.result();
        CHECK(one.names == names{"b1", "b2"});
        CHECK(two.names == names{"b1", "b2"});
        CHECK(children.get().names == names{"b1", "b2"});
    };
    r.run(body);
}

TEST_CASE("pending: an answer that has not come is refused, and no success", "[pending]") {
    rig r;
    r.server.answer = [](const request&) { return with_data_and_children(); };
    auto body = [](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const toolbox tools(zk);
        const pending_create create = tools.start_create("/a", "", create_options());
        const pending_data data = tools.start_get("/a");
        const pending_children children = tools.start_children("/a");
        pending_watched_data watched = tools.start_get_and_watch("/a");
        pending_watched_children listed = tools.start_children_and_watch("/a");
        const pending_removal removal = tools.ensure_removed("/a");
        const std::optional<error> too_early = error_of([&] { create.get(); });
        REQUIRE(too_early);
        CHECK(std::string(too_early->what()) == "create /a: invalid argument (the request is not answered yet)");
        CHECK(code_thrown_by([&] { data.get(); }) == errc::invalid_argument);
        CHECK(code_thrown_by([&] { children.get(); }) == errc::invalid_argument);
        CHECK(code_thrown_by([&] { watched.get(); }) == errc::invalid_argument);
        CHECK(code_thrown_by([&] { listed.get(); }) == errc::invalid_argument);
        CHECK(code_thrown_by([&] { removal.get(); }) == errc::invalid_argument);
        CHECK(code_thrown_by([&] { removal.found(); }) == errc::invalid_argument);
        co_await removal.result();  // the last one that was sent
        CHECK_NOTHROW(create.get());
        CHECK(data.get().data == "hello");
        CHECK(children.get().names == names{"b1", "b2"});
        CHECK(watched.get().value.data == "hello");
        CHECK(listed.get().value.names == names{"b1", "b2"});
        CHECK_NOTHROW(removal.get());
    };
    r.run(body);
}

TEST_CASE("pending: a cancelled wait for a read leaves nothing uncertain, and one for a write does", "[pending]") {
    rig r;
    r.server.reachable = false;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const auto executor = co_await asio::this_coro::executor;
        const auto get = [](pending_data asked) -> asio::awaitable<void> { co_await asked.result(); };
        const auto create = [](pending_create asked) -> asio::awaitable<void> { co_await asked.result(); };
        running reads(executor, get(toolbox(zk).start_get("/a")));
        running writes(executor, create(toolbox(zk).start_create("/a", "", create_options())));
        for (int turn = 0; turn < 5; ++turn) co_await asio::post(executor, asio::use_awaitable);
        reads.cancel();
        writes.cancel();
        const std::exception_ptr of_read = co_await reads.end();
        const std::exception_ptr of_write = co_await writes.end();
        const auto read_error = error_of([&] { std::rethrow_exception(of_read); });
        const auto write_error = error_of([&] { std::rethrow_exception(of_write); });
        REQUIRE((read_error && write_error));
        CHECK_FALSE(read_error->outcome_unknown());
        CHECK(write_error->outcome_unknown());
    };
    r.run(body);
}

TEST_CASE("pending: a watched answer that was taken is refused, and not an empty one", "[pending]") {
    rig r;
    r.server.answer = [](const request&) { return with_data_and_children(); };
    auto body = [](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        pending_watched_data asked = toolbox(zk).start_get_and_watch("/a");
        co_await asked.answered();
        const watched<node_data> taken = asked.get();
        CHECK(taken.value.data == "hello");
        CHECK(code_thrown_by([&] { asked.get(); }) == errc::invalid_argument);
    };
    r.run(body);
}

TEST_CASE("pending: then() of one that is destroyed is called, and its watch is removed", "[pending]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        co_await asio::dispatch(zk.get_executor(), asio::use_awaitable);
        std::string called;
        {
            const pending_watched_data watched = toolbox(zk).start_get_and_watch("/a");
            watched.then([&] { called += "watched "; });
            const pending_data plain = toolbox(zk).start_get("/b");
            plain.then([&] { called += "plain "; });
        }
        co_await zk.sync();
        co_await r.server.until([&] { return r.core->watches() == 0; });
        CHECK(called == "watched plain ");
        CHECK_FALSE(r.server.watched("/a"));
    };
    r.run(body);
}

TEST_CASE("pending: each then() and each on_lost() is called, in order", "[pending]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session on = co_await zk.current_session();
        co_await asio::dispatch(zk.get_executor(), asio::use_awaitable);
        std::string called;
        const pending_data asked = toolbox(zk).start_get("/a");
        for (const char* which : {"1", "2", "3"}) asked.then([&called, which] { called += which; });
        co_await asked.answered();
        CHECK(called == "123");
        asked.then([&] { called += "4"; });  // at once
        CHECK(called == "1234");

        called.clear();
        const watched<node_data> seen = co_await zk.get_and_watch("/a");
        co_await asio::dispatch(zk.get_executor(), asio::use_awaitable);
        for (const char* which : {"1", "2", "3"})
            seen.changes.then([&called, which](std::error_code, node_change) { called += which; });
        r.server.fire(node_event::data_changed, "/a");
        co_await seen.changes.changed();
        CHECK(called == "123");

        called.clear();
        const session_hold hold = on.hold("/a");
        co_await asio::dispatch(zk.get_executor(), asio::use_awaitable);
        for (const char* which : {"1", "2", "3"}) hold.on_lost([&called, which](loss_reason) { called += which; });
        r.server.expire();
        co_await hold.lost();
        CHECK(called == "123");
    };
    r.run(body);
}

TEST_CASE("pending: a then() that throws does not keep the next from being called", "[pending]") {
    rig r;
    auto body = [](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        co_await asio::dispatch(zk.get_executor(), asio::use_awaitable);
        bool called = false;
        const pending_data asked = toolbox(zk).start_get("/a");
        asked.then([] { throw std::runtime_error("the first"); });
        asked.then([&] { called = true; });
        co_await asked.answered();
        CHECK(called);
    };
    r.run(body);
}
