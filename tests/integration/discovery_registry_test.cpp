#include "support/dead_handle.hpp"
#include "support/fault_proxy.hpp"
#include "support/lock_checks.hpp"
#include "support/test_client.hpp"

#include <zkasio/discovery/provider.hpp>
#include <zkasio/discovery/registry.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <functional>
#include <string>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;

namespace {

service_instance with_id(const std::string& id, service_type type = service_type::dynamic) {
    service_instance is("orders");
    is.id(id).address("10.0.0.1").port(80).type(type);
    return is;
}

std::string joined_names(const std::vector<std::string>& names) {
    std::string all;
    for (const std::string& name : names) all += name + ' ';
    return all;
}

asio::awaitable<std::string> data_of(client zk, std::string path) {
    std::string data;
    try {
        const node_data is = co_await zk.get(path);
        data = is.data;
    } catch (const error& e) {
        if (e.code() != zk_errc::no_node) throw;
    }
    co_return data;
}

asio::awaitable<void> until_instance_data(client zk, std::string path, std::string wanted) {
    const auto equal = [&]() -> asio::awaitable<bool> {
        const std::string data = co_await data_of(zk, path);
        co_return data == wanted;
    };
    co_await eventually(equal);
}

}  // namespace

TEST_CASE("registry: announces and lists and withdraws", "[any-server]") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "registry");
        const registry services(zk, dir + "/base");
        const std::vector<std::string> none = co_await services.names();
        CHECK(none.empty());
        const service_view nothing = co_await services.instances("orders");
        CHECK(nothing.instances().empty());

        service_instance is = with_id("a");
        is.payload(R"({"weight":3,"b":[1,2]})");
        const announcement a = co_await services.announce(is);
        CHECK(a.path() == dir + "/base/orders/a");
        CHECK(a.state() == persistent_node_state::standing);
        const node_data node = co_await zk.get(a.path());
        CHECK(node.data == is.to_json());
        CHECK(node.stat.ephemeral_owner == zk.session_now().id());
        service_instance other("users");
        const announcement b = co_await services.announce(other);
        const std::vector<std::string> names = co_await services.names();
        CHECK(joined_names(names) == "orders users ");
        const service_view orders = co_await services.instances("orders");
        REQUIRE(orders.instances().size() == 1);
        CHECK(orders.instances().front().payload_number("weight") == 3);
        CHECK(orders.current());

        co_await a.update(is.enabled(false));
        const service_view disabled = co_await services.instances("orders");
        CHECK_FALSE(disabled.instances().front().enabled());
        const std::error_code refused = co_await code_of(a.update(with_id("b")));
        CHECK(refused == errc::invalid_argument);
        const std::error_code no_json = co_await code_of(a.update(with_id("a").payload("{")));
        CHECK(no_json == errc::invalid_argument);
        co_await a.withdraw();
        co_await a.withdraw();
        co_await a.ended();
        const std::error_code over = co_await code_of(a.update(is));
        CHECK(over == errc::client_closed);
        const service_view left = co_await services.instances("orders");
        CHECK(left.instances().empty());
    };
    with_client(body);
}

TEST_CASE("registry: an announcement that is destroyed is withdrawn") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "registry-destroyed");
        const registry services(zk, dir);
        { const announcement a = co_await services.announce(with_id("a")); }
        co_await zk.idle();
        const std::vector<std::string> children = co_await children_of(zk, dir + "/orders");
        CHECK(children.empty());
        co_await until_quiet(zk, dir);
    };
    with_client(body);
}

TEST_CASE("registry: an instance is announced again in the next session and when an operator has removed it") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "registry-again");
        const test_client operating(co_await asio::this_coro::executor, options());
        const registry services(zk, dir);
        const announcement a = co_await services.announce(with_id("a"));
        service_instance changed = with_id("a");
        changed.port(81);
        co_await a.update(changed);
        co_await operating.remove(a.path());
        co_await until_instance_data(operating, a.path(), changed.to_json());
        co_await operating.remove_recursive(dir + "/orders");
        co_await until_instance_data(operating, a.path(), changed.to_json());
        co_await expire_session(zk);
        const auto owned_anew = [&]() -> asio::awaitable<bool> {
            const std::optional<node_stat> stat = co_await operating.exists(a.path());
            co_return stat && stat->ephemeral_owner == zk.session_now().id();
        };
        co_await eventually(owned_anew);
        co_await until_instance_data(operating, a.path(), changed.to_json());
        co_await a.withdraw();
        const std::string left = co_await data_of(operating, a.path());
        CHECK(left.empty());
        co_await operating.close();
    };
    with_client(body);
}

TEST_CASE("registry: an instance stays where it is when its process is replaced") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "registry-replaced");
        const auto executor = co_await asio::this_coro::executor;
        const test_client old(executor, options());
        const registry services(old, dir);
        announcement a = co_await services.announce(with_id("a"));
        const std::string path = a.path();
        const std::optional<node_stat> before = co_await zk.exists(path);
        REQUIRE(before);
        const session_credentials left = co_await old.hand_over();
        a = announcement();
        const test_client heir(executor, options().resume(left));
        const registry again(heir, dir);
        const announcement b = co_await again.announce(with_id("a"));
        const std::optional<node_stat> after = co_await zk.exists(path);
        REQUIRE(after);
        CHECK(after->czxid == before->czxid);
        co_await b.withdraw();
        co_await heir.close();
    };
    with_client(body);
}

TEST_CASE("registry: a connection that is cut while instances are announced and withdrawn", "[real-bytes]") {
    fault_proxy proxy(first_server());
    test_loop loop(120s);
    auto body = [&]() -> asio::awaitable<void> {
        const test_client reader(co_await asio::this_coro::executor, options());
        const test_client writer(co_await asio::this_coro::executor, options(proxy.address()));
        const std::string dir = co_await fresh_directory(reader, "registry-cuts");
        proxy.plan_connections([](std::size_t n) {
            fault_proxy::plan cut;
            if (n % 3 != 2) cut.cut_replies_after = 150 + n * 17 % 400;
            return cut;
        });
        const registry services(writer, dir);
        for (int i = 0; i < 10; ++i) {
            proxy.cut_all();
            const announcement a = co_await services.announce(with_id(std::to_string(i)));
            proxy.cut_all();
            co_await a.update(with_id(std::to_string(i)).port(81));
            proxy.cut_all();
            if (i % 2) co_await a.withdraw();
        }
        co_await writer.idle();
        const std::vector<std::string> left = co_await children_of(reader, dir + "/orders");
        CHECK(joined_names(left).empty());
        co_await writer.close();
        co_await reader.close();
        CHECK(writer.inside().pending_operations() == 0);
    };
    loop.run(body());
}

TEST_CASE("registry: kinds of instances") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "registry-kinds");
        const registry services(zk, dir);
        const announcement fixed = co_await services.announce(with_id("f", service_type::fixed));
        const node_data node = co_await zk.get(fixed.path());
        CHECK(node.stat.ephemeral_owner == 0);
        const announcement numbered = co_await services.announce(with_id("n", service_type::dynamic_sequential));
        CHECK(numbered.path() != dir + "/orders/n");
        const service_view orders = co_await services.instances("orders");
        CHECK(orders.instances().size() == 2);
        co_await fixed.withdraw();
        co_await numbered.withdraw();
        const std::vector<std::string> left = co_await children_of(zk, dir + "/orders");
        CHECK(left.empty());
    };
    with_client(body);
}

TEST_CASE("registry: an instance that is no dynamic one takes over a node and its announcement removes it") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "registry-takes-over");
        const registry services(zk, dir);
        co_await zk.create(dir + "/orders");
        std::vector<service_type> types(1, service_type::fixed);
        types.push_back(service_type::permanent);
        for (const service_type type : types) {
            const std::string path = dir + "/orders/" + to_string(type);
            co_await zk.create(path, with_id(to_string(type), type).port(79).to_json());  // of a process that has died
            const service_instance is = with_id(to_string(type), type);
            {
                const announcement a = co_await services.announce(is);
                CHECK(a.path() == path);
                co_await until_instance_data(zk, path, is.to_json());
                const std::optional<node_stat> stat = co_await zk.exists(path);
                CHECK((stat && stat->ephemeral_owner == 0));
            }
            co_await zk.idle();
            const std::string left = co_await data_of(zk, path);
            CHECK(left.empty());
        }
    };
    with_client(body);
}

TEST_CASE("registry: a thousand instances are listed") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "registry-many");
        co_await zk.create(dir + "/orders");
        std::vector<pending_create> creating;
        for (int i = 0; i < 1000; ++i) {
            const service_instance is = with_id(std::to_string(i));
            creating.push_back(toolbox(zk).start_create(dir + "/orders/" + is.id(), is.to_json(), create_options()));
        }
        for (const pending_create& p : creating) co_await p.result();
        const service_view all = co_await registry(zk, dir).instances("orders");
        CHECK(all.instances().size() == 1000);
    };
    with_client(body);
}

TEST_CASE("registry: cancelled at each await it leaves no node") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "registry-cancel");
        const registry services(zk, dir);
        int done = 0;
        std::function<asio::awaitable<void>()> attempt = [&]() -> asio::awaitable<void> {
            const announcement a = co_await services.announce(with_id("a"));
            co_await a.update(with_id("a").port(81));
            const std::vector<std::string> names = co_await services.names();
            const service_view all = co_await services.instances("orders");
            if (all.instances().size() != 1 || names.empty()) throw std::runtime_error("it is not there");
            co_await a.withdraw();
            ++done;
        };
        const int cancelled = co_await cancel_everywhere(attempt);
        CHECK(cancelled > 5);
        CHECK(done >= 3);
        co_await zk.idle();
        const std::vector<std::string> left = co_await children_of(zk, dir + "/orders");
        CHECK(left.empty());
        co_await until_quiet(zk, dir);
    };
    with_client(body);
}

TEST_CASE("registry: what it refuses and one that was moved from") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "registry-refused");
        CHECK_THROWS_AS(registry(zk, "base"), error);
        const registry services(zk, dir);
        const std::error_code slash = co_await code_of(services.announce(with_id("a/b")));
        CHECK(slash == errc::invalid_path);
        const std::error_code no_name = co_await code_of(services.announce(service_instance("")));
        CHECK(no_name == errc::invalid_path);
        const std::error_code no_json = co_await code_of(services.announce(with_id("a").payload("nonsense")));
        CHECK(no_json == errc::invalid_argument);
        const std::error_code listed = co_await code_of(services.instances("a/b"));
        CHECK(listed == errc::invalid_path);
        registry first(zk, dir);
        const registry second = std::move(first);
        const std::error_code moved = co_await code_of(first.names());
        CHECK(moved == errc::invalid_argument);
        const std::error_code moved_too = co_await code_of(first.announce(with_id("a")));
        CHECK(moved_too == errc::invalid_argument);
        const std::error_code moved_three = co_await code_of(first.instances("orders"));
        CHECK(moved_three == errc::invalid_argument);

        announcement a = co_await second.announce(with_id("a"));
        const announcement b = std::move(a);
        const std::error_code gone = co_await code_of(a.update(with_id("a")));
        CHECK(gone == errc::invalid_argument);
        const std::string why = co_await message_of(a.update(with_id("a")));
        CHECK(why.find("moved from") != std::string::npos);
        const std::error_code ended = co_await code_of(a.ended());
        CHECK(ended == errc::invalid_argument);
        CHECK(a.state() == persistent_node_state::ended);
        co_await a.withdraw();
        CHECK(b.state() == persistent_node_state::standing);
    };
    with_client(body);
}

TEST_CASE("what discovery returns may be awaited when the objects are gone") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "dead-discovery");
        const registry services(zk, dir);
        co_await when_dead("registry.hpp announce", services, [](registry& r) { return r.announce(with_id("d")); });
        co_await when_dead("registry.hpp names", services, [](registry& r) { return r.names(); });
        co_await when_dead("registry.hpp instances", services, [](registry& r) { return r.instances("orders"); });

        co_await when_dead("registry.hpp instance", services, [](registry& r) { return r.instance("orders", "d"); });

        announcement first = co_await services.announce(with_id("1"));
        co_await when_dead(
            "registry.hpp update", std::move(first), [](announcement& a) { return a.update(with_id("1")); },
            errc::client_closed);
        announcement second = co_await services.announce(with_id("2"));
        co_await when_dead("registry.hpp withdraw", std::move(second),
                           [](announcement& a) { return a.withdraw(); });
        announcement third = co_await services.announce(with_id("3"));
        co_await when_dead("registry.hpp ended", std::move(third), [](announcement& a) { return a.ended(); });

        // One that is destroyed is closed.
        co_await when_dead("provider.hpp pick", provider(zk, dir, "orders"), [](provider& p) { return p.pick(); },
                           errc::client_closed);
        co_await when_dead("provider.hpp pick_for", provider(zk, dir, "orders"),
                           [](provider& p) { return p.pick_for("key"); }, errc::client_closed);
        co_await when_dead("provider.hpp ready", provider(zk, dir, "orders"), [](provider& p) { return p.ready(); },
                           errc::client_closed);
        co_await when_dead("provider.hpp changed", provider(zk, dir, "orders"),
                           [](provider& p) { return p.changed(p.view()); }, errc::client_closed);
        co_await when_dead("provider.hpp close", provider(zk, dir, "orders"), [](provider& p) { return p.close(); });
    };
    with_client(body);
}
