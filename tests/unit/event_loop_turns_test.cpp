// What completes at once if a state is already as wished must not keep the event loop: a loop around it would starve
// the client, and the state could never change.

#include "unit/membership/kept_node.hpp"
#include "unit/support/fake_tree.hpp"

#include <zkasio/cache/node_cache.hpp>
#include <zkasio/config/config_value.hpp>
#include <zkasio/discovery/provider.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/membership/group.hpp>
#include <zkasio/membership/persistent_node.hpp>
#include <zkasio/recipe/node_follower.hpp>

#include <asio/post.hpp>
#include <asio/this_coro.hpp>

#include <memory>
#include <string>
#include <string_view>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

using state_of_node = persistent_node_state;

int parsed_number(std::string_view text) { return std::stoi(std::string(text)); }
std::string printed_number(const int& number) { return std::to_string(number); }

// Awaits it again and again, until something else has run on the loop. False: it has not within 1000 times.
template <class Operation>
asio::awaitable<bool> lets_others_run(Operation& begin) {
    const auto ran = std::make_shared<bool>(false);
    const auto executor = co_await asio::this_coro::executor;
    asio::post(executor, [ran] { *ran = true; });
    for (int i = 0; i < 1000 && !*ran; ++i) co_await begin();
    co_return *ran;
}

}  // namespace

TEST_CASE("event loop: a loop around connected() or current_session() lets others run", "[turns]") {
    rig r;
    auto body = [](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        auto connected = [&] { return zk.connected(); };
        const bool turns_of_connected = co_await lets_others_run(connected);
        CHECK(turns_of_connected);
        auto current = [&] { return zk.current_session(); };
        const bool turns_of_current = co_await lets_others_run(current);
        CHECK(turns_of_current);
    };
    r.run(body);
}

TEST_CASE("event loop: a loop around created() or state_after() lets others run", "[turns]") {
    kept_node r;
    auto body = [](client zk) -> asio::awaitable<void> {
        const persistent_node node(zk, "/node", "ours");
        co_await node.created();
        auto created = [&] { return node.created(); };
        const bool turns_of_created = co_await lets_others_run(created);
        CHECK(turns_of_created);
        auto not_taken = [&] { return node.state_after(state_of_node::taken); };
        const bool turns_of_state = co_await lets_others_run(not_taken);
        CHECK(turns_of_state);
        co_await node.leave();
        const bool turns_at_the_end = co_await lets_others_run(not_taken);
        CHECK(turns_at_the_end);
    };
    r.run(body);
}

TEST_CASE("event loop: a loop around ready() or changed() lets others run", "[turns]") {
    rig r;
    r.server.nodes_are_ours = false;
    auto body = [](client zk) -> asio::awaitable<void> {
        const node_cache cache(zk, "/a");
        co_await cache.ready();
        auto cache_is_ready = [&] { return cache.ready(); };
        const bool turns_of_cache = co_await lets_others_run(cache_is_ready);
        CHECK(turns_of_cache);

        const group_observer group(zk, "/a");
        co_await group.ready();
        auto group_is_ready = [&] { return group.ready(); };
        const bool turns_of_group = co_await lets_others_run(group_is_ready);
        CHECK(turns_of_group);

        const config_value<int> config(zk, "/a", config_format<int>(&parsed_number, &printed_number),
                                       config_options<int>().default_value(7));
        co_await config.ready();
        auto config_is_ready = [&] { return config.ready(); };
        const bool turns_of_config = co_await lets_others_run(config_is_ready);
        CHECK(turns_of_config);

        const provider services(zk, "/base", "orders");
        co_await services.ready();
        auto provider_is_ready = [&] { return services.ready(); };
        const bool turns_of_provider = co_await lets_others_run(provider_is_ready);
        CHECK(turns_of_provider);
        const service_view nothing;
        auto changed = [&] { return services.changed(nothing); };
        const bool turns_of_changed = co_await lets_others_run(changed);
        CHECK(turns_of_changed);
    };
    r.run(body);
}

TEST_CASE("event loop: a loop around next() of a node_follower that has ended lets others run", "[turns]") {
    rig r;
    auto body = [](client zk) -> asio::awaitable<void> {
        const node_follower follower(zk, "/a", node_read::data);
        co_await follower.close();
        auto next = [&] { return follower.next(std::nullopt); };
        const bool turns = co_await lets_others_run(next);
        CHECK(turns);
    };
    r.run(body);
}

namespace {

asio::awaitable<void> acquire_as(mutex lock, lock_owner owner, std::optional<lock_guard>& guard) {
    acquire_options how;
    how.owner(owner);
    guard.emplace(co_await lock.acquire(how));
}

}  // namespace

TEST_CASE("event loop: a loop around what a lock_owner answers at once lets others run", "[turns]") {
    const std::string foreign = "/lock/_c_00000000-0000-4000-8000-000000000001-lock-0000000001";
    rig r;
    fake_tree tree;
    tree.create_as(foreign, 77);
    r.server.answer = [&](const request& q) { return tree(q); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const mutex lock(zk, "/lock");
        const lock_owner me;
        acquire_options mine;
        mine.owner(me);
        std::optional<lock_guard> guard;
        running waiting(r.loop.executor(), acquire_as(lock, me, guard));
        co_await r.server.until([&] { return r.server.watched(foreign); });
        auto attempt = [&]() -> asio::awaitable<void> {
            const std::optional<lock_guard> second = co_await lock.try_acquire(mine);
            CHECK_FALSE(second);
        };
        const bool turns_of_refusals = co_await lets_others_run(attempt);
        CHECK(turns_of_refusals);
        tree(remove_request{foreign});
        r.server.fire(node_event::removed, foreign);
        const std::exception_ptr failed = co_await waiting.end();
        REQUIRE_FALSE(failed);

        auto again = [&]() -> asio::awaitable<void> {
            lock_guard second = co_await lock.acquire(mine);
            co_await second.release();
        };
        const bool turns_of_shares = co_await lets_others_run(again);
        CHECK(turns_of_shares);
        guard->claim()->hold().lose(loss_reason::node_deleted);
        auto lost = [&]() -> asio::awaitable<void> {
            const std::error_code c = co_await code_of(lock.acquire(mine));
            CHECK(c == errc::lock_lost);
        };
        const bool turns_of_losses = co_await lets_others_run(lost);
        CHECK(turns_of_losses);
        co_await guard->release();
    };
    r.run(body);
}

TEST_CASE("event loop: a loop around an acquire that has no time to wait for a connection lets others run", "[turns]") {
    rig r;
    auto body = [](client zk) -> asio::awaitable<void> {
        const mutex lock(zk, "/lock");
        auto attempt = [&]() -> asio::awaitable<void> {
            const std::error_code c = co_await code_of(lock.try_acquire_for(0ms));
            CHECK((!c || c == errc::not_connected));
        };
        REQUIRE(zk.state() == session_state::connecting);
        const bool turns = co_await lets_others_run(attempt);
        CHECK(turns);
    };
    r.run(body);
}
