// What discovery asks the servers for, and what it makes of answers that are no instances.

#include "unit/support/error_of.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/discovery/detail/roster.hpp>
#include <zkasio/discovery/provider.hpp>
#include <zkasio/discovery/registry.hpp>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

/// The service /base/orders with instances "n0", "n1" ...
class instances_rig : public rig {
public:
    explicit instances_rig(int n) {
        server.nodes_are_ours = false;
        for (int i = 0; i < n; ++i) names.push_back("n" + std::to_string(i));
        server.answer = [this](const request& q) { return answer(q); };
    }
    std::vector<std::string> names;
    std::map<std::string, std::error_code> refused;  ///< those that cannot be read

private:
    reply answer(const request& q) const {
        reply r;
        r.stat.czxid = r.stat.mzxid = 1;
        const std::string path(path_of(q));
        if (std::holds_alternative<children_request>(q) && path == "/base/orders") r.children = names;
        if (const auto* const several = std::get_if<multi_read_request>(&q)) {
            for (const read_op& op : several->reads) {
                reply one = answer(std::get<get_request>(op));
                multi_result& told = r.results.emplace_back();
                told.code = one.code;
                told.data = std::move(one.data);
                told.stat = one.stat;
            }
            return r;
        }
        if (!std::holds_alternative<get_request>(q)) return r;
        const std::string name = path.substr(path.rfind('/') + 1);
        if (const auto found = refused.find(name); found != refused.end()) return refusal(found->second);
        r.data = service_instance("orders").id(name).to_json();
        return r;
    }
};

asio::awaitable<void> listed(const registry& from) { co_await from.instances("orders"); }

std::string nested(int arrays) {
    const auto n = static_cast<std::size_t>(arrays);
    return std::string(n, '[') + std::string(n, ']');
}

}  // namespace

TEST_CASE("registry: instances that go meanwhile, or may not be read, do no harm to the others") {
    instances_rig r(4);
    r.refused["n1"] = zk_errc::no_auth;
    r.refused["n2"] = zk_errc::no_node;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const service_view view = co_await registry(zk, "/base").instances("orders");
        CHECK(view.instances().size() == 2);
        REQUIRE(view.unreadable().size() == 1);
        CHECK(view.unreadable().front().node == "n1");
        CHECK(view.version() == 1);
        CHECK(view.current());
    };
    r.run(body);
}

TEST_CASE("registry: a listing asks for some instances at a time") {
    instances_rig r(300);
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const auto serve = r.server.answer;
        r.server.answer = [&](const request& q) -> std::optional<reply> {
            if (std::holds_alternative<multi_read_request>(q)) return std::nullopt;
            return serve(q);
        };
        running listing(r.loop.executor(), listed(registry(zk, "/base")));
        co_await r.server.until([&] { return r.server.requests.size() > 2; });
        for (int i = 0; i < 5; ++i) co_await next_turns(r.server);
        CHECK(r.server.requests.size() == 1 + 2);  // the first batches
        listing.cancel();
        co_await listing.end();
        r.server.reply_to_all();
    };
    r.run(body);
}

TEST_CASE("registry: the node of an instance has the ACL that was asked for, and keeps its type") {
    rig r;
    acl wanted(1, acl_entry(permission::read, anyone()));
    r.server.answer = [&](const request& q) {
        if (const auto* c = std::get_if<create_request>(&q); c && c->path == "/base/orders/a") CHECK(c->acl == wanted);
        reply a;
        a.path = std::string(path_of(q));
        a.stat.czxid = 1;
        return a;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const registry all(zk, "/base", registry_options().acl(wanted));
        const service_instance is = service_instance("orders").id("a");
        const announcement said = co_await all.announce(is);
        CHECK(r.server.count("create /base/orders/a") == 1);
        service_instance fixed = is;
        fixed.type(service_type::fixed);
        const std::error_code refused = co_await code_of(said.update(fixed));
        CHECK(refused == errc::invalid_argument);
        co_await said.withdraw();
    };
    r.run(body);
}

TEST_CASE("provider: with no connection it is not current, and picks go on") {
    instances_rig r(3);
    auto body = [&](client zk) -> asio::awaitable<void> {
        const provider orders(zk, "/base", "orders");
        co_await orders.ready();
        service_view view = orders.view();
        while (!view.current()) view = co_await orders.changed(view);
        r.server.reachable = false;
        r.server.drop();
        while (view.current()) view = co_await orders.changed(view);
        CHECK(view.instances().size() == 3);
        CHECK(orders.try_pick());
        r.server.reachable = true;
        while (!view.current()) view = co_await orders.changed(view);
    };
    r.run(body);
}

TEST_CASE("provider: a key leads to one instance, whoever asks, and whatever the strategy") {
    instances_rig r(5);
    auto body = [&](client zk) -> asio::awaitable<void> {
        const provider orders(zk, "/base", "orders");
        co_await orders.ready();
        const picked first = co_await orders.pick_for("customer");
        for (int i = 0; i < 10; ++i) {
            const picked again = co_await orders.pick_for("customer");
            CHECK(again->id() == first->id());
            CHECK(orders.try_pick_for("customer")->id() == first->id());
        }
    };
    r.run(body);
}

TEST_CASE("provider: what is assigned to a picked object has not failed yet") {
    instances_rig r(2);
    auto body = [&](client zk) -> asio::awaitable<void> {
        const provider orders(zk, "/base", "orders", provider_options().eject_after(1));
        co_await orders.ready();
        picked one = co_await orders.pick();
        const std::string failed = one->id();
        one.report_failure();
        one = co_await orders.pick();
        CHECK(one->id() != failed);
        one.report_failure();
        // Both have failed now: so both are picked.
        const picked third = co_await orders.pick(), fourth = co_await orders.pick();
        CHECK(third->id() != fourth->id());
    };
    r.run(body);
}

TEST_CASE("provider: a refused credential is why it has ended") {
    instances_rig r(1);
    auto body = [&](client zk) -> asio::awaitable<void> {
        const provider orders(zk, "/base", "orders");
        co_await orders.ready();
        r.server.refuse_auth();
        std::error_code ended;
        for (service_view view = orders.view(); !ended;) {
            try {
                view = co_await orders.changed(view);
            } catch (const error& e) {
                ended = e.code();
            }
        }
        CHECK(ended == zk_errc::auth_failed);
        const std::error_code none = co_await code_of(orders.pick());
        CHECK(none == zk_errc::auth_failed);
    };
    r.run(body);
}

TEST_CASE("provider_options: an ejection takes some time") {
    using std::chrono::milliseconds;
    CHECK(code_thrown_by([] { provider_options().eject_after(2, milliseconds(0)); }) == errc::invalid_argument);
    CHECK(provider_options().eject_after(2, milliseconds(1)).ejection_time() == milliseconds(1));
}

TEST_CASE("roster: what has become readable is read, and what has no weight is not picked") {
    using namespace zkasio::discovery_detail;
    double weight = 1;
    roster all([&](const service_instance&) { return weight; }, nullptr, ejection_policy());
    const std::string data = service_instance("orders").id("a").to_json();
    all.set("a", {data, 1, 1, false});
    CHECK(all.pickable().empty());
    all.set("a", {data, 1, 1, true});
    REQUIRE(all.pickable().size() == 1);
    weight = 0;
    all.set("a", {data, 1, 2, true});
    CHECK(all.pickable().empty());
    CHECK(all.all().members.size() == 1);
}

TEST_CASE("service_instance: the deepest payload that is written can be read") {
    service_instance deep("orders");
    deep.payload(nested(99));
    CHECK(service_instance::from_json(deep.to_json()).payload() == nested(99));
    deep.payload(nested(100));
    CHECK(code_thrown_by([&] { deep.to_json(); }) == errc::invalid_argument);
}
