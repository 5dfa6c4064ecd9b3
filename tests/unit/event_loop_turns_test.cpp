// What completes at once if a state is already as wished must not keep the event loop: a loop around it would starve
// the client, and the state could never change.

#include "unit/membership/kept_node.hpp"

#include <zkasio/cache/node_cache.hpp>
#include <zkasio/config/config_value.hpp>
#include <zkasio/discovery/provider.hpp>
#include <zkasio/membership/group_observer.hpp>
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
