#include "integration/discovery_steps.hpp"
#include "support/fault_proxy.hpp"
#include "support/lock_checks.hpp"

#include <zkasio/discovery/registry.hpp>

#include <set>
#include <stdexcept>
#include <string>
#include <utility>

using namespace zkasio;
using namespace zkasio::test;

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

TEST_CASE("provider: a directory that may not be listed is told apart from an empty one") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "provider-unlistable");
        co_await write_instance(zk, dir, instance_of("orders", "a"));
        const acl unreadable(1, acl_entry(permission::admin | permission::remove, anyone()));
        co_await zk.set_acl(dir + "/orders", unreadable);
        const provider orders(zk, dir, "orders");
        co_await orders.ready();
        REQUIRE(orders.view().unreadable().size() == 1);
        CHECK(orders.view().unreadable().front().node.empty());
        co_await orders.close();
        co_await zk.set_acl(dir + "/orders", open_acl());
    };
    with_client(body);
}

TEST_CASE("provider: nonsense beside the instances does no harm to them") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "provider-nonsense");
        co_await write_instance(zk, dir, instance_of("orders", "good"));
        const std::string path = dir + "/orders/";
        co_await zk.create(path + "empty", "");
        co_await zk.create(path + "nested", std::string(100'000, '['));
        co_await zk.create(path + "port", R"({"name":"orders","id":"port","port":99999})");
        co_await zk.create(path + "type", R"({"name":7})");
        co_await zk.create(path + "utf8", "{\"name\":\"\xff\xfe\"}");
        co_await zk.create(path + "large", std::string(1'000'000, '{'));
        const provider orders(zk, dir, "orders");
        co_await orders.ready();
        CHECK(ids_in(orders.view()) == set_of("good"));
        CHECK(orders.view().unreadable().size() == 6);
        for (const unreadable_instance& bad : orders.view().unreadable()) {
            INFO(bad.node << ": " << bad.why);
            CHECK_FALSE(bad.why.empty());
            CHECK(bad.why.size() < 400);
        }
        CHECK(picked_ids(orders, 4).count("good") == 4);

        // Good data, and bad again.
        co_await zk.set(path + "empty", instance_of("another", "name-and-id").to_json());
        co_await until_ids(orders, set_of("good", "name-and-id"));  // as Curator: what the data say does not matter
        co_await zk.set(path + "empty", "{");
        co_await until_ids(orders, set_of("good"));
        const service_view listed = co_await registry(zk, dir).instances("orders");
        CHECK(ids_in(listed) == set_of("good"));
        CHECK(listed.unreadable().size() == 6);
        co_await orders.close();
    };
    with_client(body);
}

TEST_CASE("provider: enabled and filtered and weighted instances") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "provider-filter");
        service_instance heavy = instance_of("orders", "heavy"), none = instance_of("orders", "none");
        service_instance off = instance_of("orders", "off"), elsewhere = instance_of("orders", "elsewhere", 81);
        heavy.payload(R"({"weight":3})");
        none.payload(R"({"weight":0})");
        off.enabled(false);
        co_await write_instance(zk, dir, heavy);
        co_await write_instance(zk, dir, none);
        co_await write_instance(zk, dir, off);
        co_await write_instance(zk, dir, elsewhere);
        co_await write_instance(zk, dir, instance_of("orders", "bad", 82));
        provider_options how;
        how.strategy(pick_strategy::weighted([](const service_instance& is) {
            if (is.port() == 82) throw std::runtime_error("no weight for it");
            return is.payload_number("weight").value_or(1);
        }));
        how.filter([](const service_instance& is) { return is.port() != 81; });
        const provider orders(zk, dir, "orders", how);
        co_await orders.ready();
        CHECK(picked_ids(orders, 20).count("heavy") == 20);
        CHECK(orders.view().instances().size() == 4);
        REQUIRE(orders.view().unreadable().size() == 1);
        CHECK(orders.view().unreadable().front().why == "no weight for it");
        co_await write_instance(zk, dir, off.enabled(true));
        const auto seen = [&]() -> asio::awaitable<bool> { co_return picked_ids(orders, 50).count("off") > 0; };
        co_await eventually(seen);
        co_await orders.close();
    };
    with_client(body);
}

TEST_CASE("provider: an instance that fails is left out until it is made anew") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "provider-ejection");
        co_await write_instance(zk, dir, instance_of("orders", "a"));
        co_await write_instance(zk, dir, instance_of("orders", "b"));
        const provider orders(zk, dir, "orders", provider_options().eject_after(2, 1h));
        co_await until_ids(orders, set_of("a", "b"));
        for (int failures = 0; failures < 2;) {
            picked p = co_await orders.pick();
            if (p->id() != "a") continue;
            p.report_failure();
            p.report_failure();  // counts once
            CHECK(picked_ids(orders, 10).count("a") == (++failures == 1 ? 5 : 0));
        }
        picked for_key = co_await orders.pick_for("some key");
        CHECK(for_key->id() == "b");
        // Written: the same incarnation. Made anew: another one.
        co_await write_instance(zk, dir, instance_of("orders", "a", 81));
        const auto written = [](const service_view& v) { return v.instances().front().port() == 81; };
        co_await until_seen(orders, written);
        CHECK(picked_ids(orders, 10).count("a") == 0);
        co_await zk.remove(dir + "/orders/a");
        co_await write_instance(zk, dir, instance_of("orders", "a", 82));
        const auto again = [](const service_view& v) { return v.instances().front().port() == 82; };
        co_await until_seen(orders, again);
        CHECK(picked_ids(orders, 10).count("a") == 5);
        co_await orders.close();
    };
    with_client(body);
}

TEST_CASE("provider: its session expires, and it goes on with the next") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "provider-expiry");
        co_await write_instance(zk, dir, instance_of("orders", "a"));
        const provider orders(zk, dir, "orders");
        service_view view = co_await until_ids(orders, set_of("a"));
        const picked kept = orders.try_pick();
        co_await expire_session(zk);
        const auto out_of_sight = [](const service_view& v) { return !v.current(); };
        co_await until_seen(orders, out_of_sight);
        CHECK(picked_ids(orders, 2).count("a") == 2);  // from what was known
        co_await until_ids(orders, set_of("a"));
        CHECK(kept.outstanding() == 1);
        const picked second = orders.try_pick();
        CHECK(kept.outstanding() == 2);  // the node is the same one
        co_await write_instance(zk, dir, instance_of("orders", "b"));
        co_await until_ids(orders, set_of("a", "b"));
        co_await orders.close();
    };
    with_client(body);
}

TEST_CASE("provider: what has changed between two sessions is seen in the second", "[any-server]") {
    fault_proxy proxy(first_server());
    test_loop loop;
    auto body = [&]() -> asio::awaitable<void> {
        const test_client writer(co_await asio::this_coro::executor, options());
        const test_client reader(co_await asio::this_coro::executor, options(proxy.address()));
        const std::string dir = co_await fresh_directory(writer, "provider-between");
        co_await write_instance(writer, dir, instance_of("orders", "a"));
        const provider orders(reader, dir, "orders");
        co_await until_ids(orders, set_of("a"));
        const session_credentials stolen = co_await reader.credentials();
        proxy.silence(true);
        proxy.cut_all();
        const test_client thief(co_await asio::this_coro::executor, options().resume(stolen));
        co_await thief.connected();
        co_await thief.close();
        co_await writer.remove(dir + "/orders/a");
        co_await write_instance(writer, dir, instance_of("orders", "b"));
        const auto out_of_sight = [](const service_view& v) { return !v.current(); };
        co_await until_seen(orders, out_of_sight);
        CHECK(picked_ids(orders, 2).count("a") == 2);
        proxy.silence(false);
        co_await until_ids(orders, set_of("b"));
        CHECK(picked_ids(orders, 2).count("b") == 2);
        co_await orders.close();
        co_await reader.close();
        co_await writer.close();
    };
    loop.run(body());
}

TEST_CASE("provider: the service is removed and comes again") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "provider-parent");
        const provider orders(zk, dir, "orders");
        for (int i = 0; i < 3; ++i) {
            co_await write_instance(zk, dir, instance_of("orders", "a"));
            co_await write_instance(zk, dir, instance_of("orders", "b"));
            co_await until_ids(orders, set_of("a", "b"));
            co_await zk.remove_recursive(dir + "/orders");
            co_await until_ids(orders, {});
            CHECK_FALSE(orders.try_pick());
        }
        co_await orders.close();
    };
    with_client(body);
}

TEST_CASE("provider: a connection that is cut while instances come and go") {
    fault_proxy proxy(first_server());
    test_loop loop(120s);
    auto body = [&]() -> asio::awaitable<void> {
        const test_client writer(co_await asio::this_coro::executor, options());
        const test_client reader(co_await asio::this_coro::executor, options(proxy.address()));
        const std::string dir = co_await fresh_directory(writer, "provider-cuts");
        const provider orders(reader, dir, "orders");
        std::set<std::string> wanted;
        for (int cut = 0; cut < 15; ++cut) {
            for (int i = 0; i < 10; ++i) {
                const std::string id = std::to_string((cut * 7 + i * 3) % 20);
                if (wanted.erase(id) > 0) {
                    co_await writer.remove(dir + "/orders/" + id);
                } else {
                    co_await write_instance(writer, dir, instance_of("orders", id));
                    wanted.insert(id);
                }
            }
            proxy.cut_all(cut % 2 ? fault_proxy::end::rst : fault_proxy::end::fin);
        }
        co_await until_ids(orders, wanted);
        const auto n = static_cast<int>(wanted.size());
        const std::multiset<std::string> all = picked_ids(orders, n);
        CHECK(std::set<std::string>(all.begin(), all.end()) == wanted);
        co_await orders.close();
        CHECK(watched_below(dir).empty());
        co_await reader.close();
        co_await writer.close();
        CHECK(reader.inside().pending_operations() == 0);
    };
    loop.run(body());
}
