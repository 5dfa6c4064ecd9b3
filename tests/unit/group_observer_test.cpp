// How a group_observer ends, while somebody waits for what it will tell.

#include "unit/rig.hpp"

#include <zkasio/membership/group_observer.hpp>

#include <optional>
#include <utility>

using namespace zkasio;
using namespace zkasio::test;

namespace {

asio::awaitable<void> looked(asio::awaitable<group_view> next) { co_await std::move(next); }

}  // namespace

TEST_CASE("group observer: when it is destroyed, who waits is told, and nothing goes on behind it") {
    rig r;
    r.server.nodes_are_ours = false;
    auto body = [&](client zk) -> asio::awaitable<void> {
        std::optional<group_observer> observer(std::in_place, zk, "/group");
        co_await observer->next();
        running waiting(r.loop.executor(), looked(observer->next()));
        co_await next_turns(r.server);
        observer.reset();
        const std::error_code ended = co_await waiting.code();
        CHECK(ended == errc::client_closed);
        co_await zk.idle();
        CHECK(r.core->watches() == 0);
    };
    r.run(body);
}

TEST_CASE("group observer: what next() returns may be awaited when it is gone") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        std::optional<group_observer> observer(std::in_place, zk, "/group");
        asio::awaitable<group_view> next = observer->next();
        observer.reset();
        const std::error_code ended = co_await code_of(std::move(next));
        CHECK(ended == errc::client_closed);
    };
    r.run(body);
}
