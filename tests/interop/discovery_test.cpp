#include "interop/peer.hpp"
#include "support/test_client.hpp"

#include <zkasio/discovery/provider.hpp>
#include <zkasio/discovery/registry.hpp>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

using namespace zkasio;
using namespace zkasio::test;

namespace {

bool skipped_without_curators_discovery() {
    if (std::filesystem::exists(ZKASIO_PEERS_DIR "/curator-discovery")) return false;
    WARN("SKIPPED: Curator's discovery is not there (libcurator-discovery-java)");
    return true;
}

service_instance our_instance(const std::string& id, std::uint16_t port, int weight) {
    service_instance is("orders");
    is.id(id).address("10.0.0.2").port(port).payload("{\"weight\":" + std::to_string(weight) + "}");
    return is;
}

asio::awaitable<std::string> answer_to(peer& curator, std::string command) {
    curator.send("x " + command);
    co_return co_await curator.expect("x");
}

// What Curator says in the end.
asio::awaitable<void> until_curator_says(peer& curator, std::string command, std::string wanted) {
    const auto equal = [&]() -> asio::awaitable<bool> {
        const std::string answer = co_await answer_to(curator, command);
        co_return answer == wanted;
    };
    co_await eventually(equal);
}

// "a:8080:5 b:..."
std::string text_of(const service_view& view) {
    std::string all;
    for (const service_instance& is : view.instances()) {
        const double weight = is.payload_number("weight").value_or(-1);
        all += is.id() + ':' + std::to_string(is.port().value_or(0)) + ':' + std::to_string(static_cast<int>(weight));
        all += is.enabled() ? " " : ":disabled ";
    }
    return all;
}

asio::awaitable<void> until_text(const provider& from, std::string wanted) {
    service_view view = from.view();
    while (text_of(view) != wanted) view = co_await from.changed(view);
}

}  // namespace

TEST_CASE("discovery: Curator reads what we announce") {
    if (skipped_without_curators_discovery()) return;
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-discovery-ours");
        peer curator(co_await asio::this_coro::executor, "curator-discovery");
        const test_client second(co_await asio::this_coro::executor, options());
        co_await curator.ready();
        const registry services(zk, dir);
        const std::string instances = "instances " + dir + " orders", provide = "provide " + dir + " orders";
        const announcement a = co_await services.announce(our_instance("a", 8080, 5));
        co_await until_curator_says(curator, "names " + dir, "names orders");
        co_await until_curator_says(curator, instances, "instances a:10.0.0.2:8080:5:DYNAMIC");
        co_await until_curator_says(curator, provide, "provided a:10.0.0.2:8080:5:DYNAMIC");

        co_await a.update(our_instance("a", 8081, 6));
        co_await until_curator_says(curator, provide, "provided a:10.0.0.2:8081:6:DYNAMIC");
        co_await a.update(our_instance("a", 8081, 6).enabled(false));
        co_await until_curator_says(curator, instances, "instances a:10.0.0.2:8081:6:DYNAMIC:disabled");
        co_await until_curator_says(curator, provide, "provided nothing");
        co_await a.update(our_instance("a", 8081, 6));
        co_await until_curator_says(curator, provide, "provided a:10.0.0.2:8081:6:DYNAMIC");
        co_await expire_session(zk);  // announced again
        const auto again = [&]() -> asio::awaitable<bool> {
            const std::optional<node_stat> stat = co_await second.exists(a.path());
            co_return stat && stat->ephemeral_owner == zk.session_now().id();
        };
        co_await eventually(again);
        co_await until_curator_says(curator, provide, "provided a:10.0.0.2:8081:6:DYNAMIC");
        co_await a.withdraw();
        co_await until_curator_says(curator, instances, "instances ");
        co_await until_curator_says(curator, provide, "provided nothing");
        const announcement fixed = co_await services.announce(our_instance("f", 1, 1).type(service_type::fixed));
        co_await until_curator_says(curator, provide, "provided f:10.0.0.2:1:1:STATIC");
        co_await fixed.withdraw();
        co_await second.close();
        co_await curator.exit();
    };
    with_client(body);
}

TEST_CASE("discovery: we read what Curator registers") {
    if (skipped_without_curators_discovery()) return;
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-discovery-theirs");
        peer curator(co_await asio::this_coro::executor, "curator-discovery");
        co_await curator.ready();
        const provider orders(zk, dir, "orders");
        curator.send("a register " + dir + " orders a 8080 5");
        co_await curator.expect("a", "registered");
        const picked first = co_await orders.pick();
        CHECK(first->id() == "a");
        CHECK(first->address() == "10.0.0.1");
        CHECK(first->payload() == R"({"@class":"java.util.HashMap","weight":5})");
        curator.send("b register " + dir + " orders b 8081 7");
        co_await curator.expect("b", "registered");
        co_await until_text(orders, "a:8080:5 b:8081:7 ");
        curator.send("a update " + dir + " orders a 8082 6");
        co_await curator.expect("a", "updated");
        co_await until_text(orders, "a:8082:6 b:8081:7 ");
        const service_view listed = co_await registry(zk, dir).instances("orders");
        CHECK(text_of(listed) == "a:8082:6 b:8081:7 ");
        curator.send("a unregister " + dir);
        co_await curator.expect("a", "unregistered");
        const announcement c = co_await registry(zk, dir).announce(our_instance("c", 1, 2));
        co_await until_text(orders, "b:8081:7 c:1:2 ");
        curator.send("a register " + dir + " orders a 8083 8");
        co_await curator.expect("a", "registered");
        co_await until_text(orders, "a:8083:8 b:8081:7 c:1:2 ");
        co_await curator.exit();  // with its session go its instances
        co_await until_text(orders, "c:1:2 ");
        co_await c.withdraw();
        co_await orders.close();
    };
    with_client(body);
}
