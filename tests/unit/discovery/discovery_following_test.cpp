// What a provider knows between two sessions, of what it has not seen, and once it has ended.

#include "unit/support/error_of.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/cache/children_cache.hpp>
#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/discovery/detail/provider_state.hpp>
#include <zkasio/discovery/provider.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;
using discovery_detail::listing;
using discovery_detail::make_service_view;
using discovery_detail::provider_state;

namespace {

/// The service "/base/orders", with some instances.
class service_rig : public rig {
public:
    service_rig() {
        server.nodes_are_ours = false;
        server.answer = [this](const request& q) { return answer(q); };
    }

    std::vector<std::string> names{"n0", "n1", "n2"};
    bool there = true;
    std::int64_t made = 1;  ///< when: of all nodes

    void names_change(std::vector<std::string> now) {
        names = std::move(now);
        server.fire(node_event::children_changed, "/base/orders");
    }

private:
    reply answer(const request& q) {
        const std::string path(path_of(q));
        if (!there && path.starts_with("/base/orders")) return refusal(zk_errc::no_node);
        reply r;
        r.stat.czxid = r.stat.mzxid = made;
        if (path == "/base/orders") r.stat.pzxid = r.stat.cversion = ++listings_;
        if (std::holds_alternative<children_request>(q) && path == "/base/orders") r.children = names;
        if (std::holds_alternative<get_request>(q))
            r.data = service_instance("orders").id(path.substr(path.rfind('/') + 1)).to_json();
        return r;
    }
    int listings_ = 0;
};

/// What is behind a provider, without the loop that follows the cache in each session.
struct followed {
    followed(const client& zk, const service_rig& r)
        : state(std::make_shared<provider_state>(zk, "/base/orders", provider_options())),
          cache(std::make_shared<const children_cache>(zk, "/base/orders")),
          executor(r.core->strand()) {}

    running follow() const { return running(executor, provider_state::follow(state, cache)); }
    listing known() const { return *state->latest(); }
    bool picks() const { return static_cast<bool>(state->try_pick(std::nullopt)); }

    const std::shared_ptr<provider_state> state;
    const std::shared_ptr<const children_cache> cache;
    const asio::any_io_executor executor;
};

asio::awaitable<void> until_current(const provider& of, bool wanted = true) {
    for (service_view view = of.view(); view.current() != wanted;) view = co_await of.changed(view);
}

asio::awaitable<void> until_there_are(const provider& of, std::size_t instances) {
    service_view view = of.view();
    while (!view.current() || view.instances().size() != instances) view = co_await of.changed(view);
}

}  // namespace

TEST_CASE("provider: what nobody follows any more is not current, and that is told once") {
    service_rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const followed orders(zk, r);
        running first = orders.follow();
        co_await r.server.until([&] { return orders.state->latest() && orders.known().current; });
        const std::uint64_t version = orders.known().version;
        first.cancel();
        const std::error_code cancelled = co_await first.code();
        CHECK(cancelled == condition::cancelled);
        CHECK_FALSE(orders.known().current);
        CHECK(orders.known().version == version + 1);
        CHECK(orders.known().members.size() == 3);
        CHECK(orders.picks());

        running second = orders.follow();
        co_await r.server.until([&] { return orders.known().current; });
        r.server.reachable = false;
        r.server.drop();
        service_view view = make_service_view::of(orders.state->latest());
        while (view.current()) view = co_await provider_state::changed(orders.state, view);
        const std::uint64_t without_connection = orders.known().version;
        second.cancel();
        co_await second.end();
        CHECK(orders.known().version == without_connection);
        r.server.reachable = true;
        co_await orders.cache->close();
    };
    r.run(body);
}

TEST_CASE("provider: an instance that has gone while nobody followed is not picked any more") {
    service_rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const followed orders(zk, r);
        running first = orders.follow();
        co_await r.server.until([&] { return orders.state->latest() && orders.known().current; });
        first.cancel();
        co_await first.end();
        r.names_change(std::vector<std::string>(1, "n1"));
        co_await r.server.until([&] { return orders.cache->snapshot().size() == 1; });
        CHECK(orders.known().members.size() == 3);
        running second = orders.follow();
        co_await r.server.until([&] { return orders.known().current; });
        CHECK(orders.known().members.size() == 1);
        for (int i = 0; i < 3; ++i) CHECK(orders.state->try_pick(std::nullopt)->id() == "n1");
        // That the cache ends first is no failure.
        co_await orders.cache->close();
        const std::error_code closed = co_await second.code();
        CHECK_FALSE(closed);
        CHECK_FALSE(orders.known().current);
    };
    r.run(body);
}

TEST_CASE("provider: what comes behind its end is neither shown nor picked") {
    service_rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const followed orders(zk, r);
        orders.state->end(nullptr);
        running late = orders.follow();
        co_await orders.cache->ready();
        for (int i = 0; i < 5; ++i) co_await next_turns(r.server);
        CHECK_FALSE(orders.state->latest());
        CHECK_FALSE(orders.picks());
        co_await orders.cache->close();
        const std::error_code ended = co_await late.code();
        CHECK_FALSE(ended);
    };
    r.run(body);
}

TEST_CASE("provider: between two sessions it is not current, and what went with the first one goes") {
    service_rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const provider orders(zk, "/base", "orders");
        co_await until_current(orders);
        CHECK(orders.view().instances().size() == 3);
        r.server.reachable = false;
        r.server.expire();
        co_await until_current(orders, false);
        CHECK(orders.view().instances().size() == 3);
        CHECK(orders.try_pick());
        r.names.resize(1);
        r.server.reachable = true;
        co_await until_current(orders);
        CHECK(orders.view().instances().size() == 1);
        for (int i = 0; i < 3; ++i) CHECK(orders.try_pick()->id() == "n0");
    };
    r.run(body);
}

TEST_CASE("provider: a service that goes and comes again is no instance of itself") {
    service_rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const provider orders(zk, "/base", "orders");
        co_await until_there_are(orders, 3);
        r.there = false;
        r.server.fire(node_event::removed, "/base/orders");
        co_await until_there_are(orders, 0);
        CHECK_FALSE(orders.try_pick());
        r.there = true;
        r.made = 2;
        r.server.fire(node_event::created, "/base/orders");
        co_await until_there_are(orders, 3);
        CHECK(orders.view().unreadable().empty());
    };
    r.run(body);
}

TEST_CASE("provider: with its end there is one more version, which is not current") {
    service_rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const provider orders(zk, "/base", "orders");
        co_await until_current(orders);
        const std::uint64_t version = orders.view().version();
        co_await orders.close();
        CHECK_FALSE(orders.view().current());
        CHECK(orders.view().version() == version + 1);
        co_await orders.close();
        CHECK(orders.view().version() == version + 1);
    };
    r.run(body);
}

TEST_CASE("provider: closes also where there has never been a server") {
    service_rig r;
    r.server.reachable = false;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const provider orders(zk, "/base", "orders");
        const std::error_code not_ready = co_await code_of(timeout(20ms, orders.ready()));
        CHECK(not_ready == errc::timed_out);
        const std::error_code closed = co_await code_of(timeout(10s, orders.close()));
        CHECK_FALSE(closed);
        {
            const provider destroyed(zk, "/base", "orders");
        }
        const std::error_code idle = co_await code_of(timeout(10s, zk.idle()));
        CHECK_FALSE(idle);
    };
    r.run(body);
}

TEST_CASE("provider: as soon as it is destroyed, nothing is picked that was asked for before") {
    service_rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        std::optional<provider> orders(std::in_place, zk, "/base", "orders");
        co_await until_current(*orders);
        asio::awaitable<picked> pick = orders->pick();
        orders.reset();
        const std::error_code ended = co_await code_of(std::move(pick));
        CHECK(ended == errc::client_closed);
    };
    r.run(body);
}
