#include "support/fault_proxy.hpp"
#include "support/lock_checks.hpp"
#include "support/test_client.hpp"

#include <zkasio/discovery/provider.hpp>
#include <zkasio/discovery/registry.hpp>

#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;

namespace {

service_instance instance_of(const std::string& name, const std::string& id, std::uint16_t port = 80) {
    service_instance is(name);
    is.id(id).address("10.0.0.1").port(port);
    return is;
}

// Writes it as somebody else would.
asio::awaitable<void> write_instance(client zk, std::string dir, service_instance is) {
    create_options parents;
    parents.parents(missing_parents::create_persistent);
    co_await zk.create_or_set(dir + "/" + is.name() + "/" + is.id(), is.to_json(), parents);
}

std::set<std::string> ids_in(const service_view& view) {
    std::set<std::string> ids;
    for (const service_instance& is : view.instances()) ids.insert(is.id());
    return ids;
}

// The ids of the next `n` that are picked, while none of them is given back.
std::multiset<std::string> picked_ids(const provider& from, int n) {
    std::multiset<std::string> ids;
    std::vector<picked> all;
    for (int i = 0; i < n; ++i) {
        all.push_back(from.try_pick());
        ids.insert(all.back() ? all.back()->id() : "none");
    }
    return ids;
}

template <class Condition>
asio::awaitable<service_view> until_seen(const provider& from, Condition wanted) {
    service_view view = from.view();
    while (!wanted(view)) view = co_await from.changed(view);
    co_return view;
}

asio::awaitable<service_view> until_ids(const provider& from, std::set<std::string> wanted) {
    const auto equal = [&](const service_view& view) { return ids_in(view) == wanted && view.current(); };
    co_return co_await until_seen(from, equal);
}

std::set<std::string> set_of(const std::string& a) {
    std::set<std::string> all;
    all.insert(a);
    return all;
}
std::set<std::string> set_of(const std::string& a, const std::string& b) {
    std::set<std::string> all = set_of(a);
    all.insert(b);
    return all;
}

}  // namespace

TEST_CASE("provider: picks what is announced, and follows it") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "provider");
        const registry services(zk, dir);
        const provider orders(zk, dir, "orders");
        co_await orders.ready();
        CHECK(orders.view().current());
        CHECK_FALSE(orders.try_pick());

        picked first;
        auto wait = [&]() -> asio::awaitable<void> { first = co_await orders.pick(); };
        const running waiting(co_await asio::this_coro::executor, wait());
        CHECK_FALSE(waiting.ended());
        const announcement a = co_await services.announce(instance_of("orders", "a", 81));
        const std::error_code waited = co_await waiting.code();
        CHECK_FALSE(waited);
        REQUIRE(first);
        CHECK(first->port() == 81);
        CHECK(first.outstanding() == 1);

        const announcement b = co_await services.announce(instance_of("orders", "b"));
        co_await until_ids(orders, set_of("a", "b"));
        CHECK(picked_ids(orders, 10).count("a") == 5);

        // The data change: what is outstanding goes on.
        co_await a.update(instance_of("orders", "a", 82));
        const auto moved = [](const service_view& v) { return v.instances().front().port() == 82; };
        co_await until_seen(orders, moved);
        CHECK(first->port() == 81);
        CHECK(first.outstanding() == 1);
        co_await b.withdraw();
        co_await until_ids(orders, set_of("a"));
        const picked again = co_await orders.pick();
        CHECK(again->port() == 82);
        CHECK(first.outstanding() == 2);
        first = picked();
        CHECK(again.outstanding() == 1);

        co_await orders.close();
        co_await orders.close();
        CHECK(watched_below(dir + "/orders/").empty());
        const std::error_code closed = co_await code_of(orders.pick());
        CHECK(closed == errc::client_closed);
        CHECK_FALSE(orders.try_pick());
        co_await a.withdraw();
        co_await zk.idle();
        co_await until_quiet(zk, dir);
    };
    with_client(body);
}
