// A provider between two sessions, and at its end: what it shows, and what becomes of those who wait.

#include "support/catch.hpp"
#include "support/test_client.hpp"

#include <zkasio/discovery/provider.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;
using testing::fake_ensemble;

namespace {

using ids = std::set<std::string>;

client_options sessions_for_providers() { return client_options("zk1").session_timeout(10s); }

void announce(fake_ensemble& ensemble, const std::string& id) {
    service_instance is("orders");
    is.id(id).address("10.0.0.1").port(80);
    ensemble.create("/base/orders/" + id, is.to_json());
}

ids ids_in(const service_view& view) {
    ids all;
    for (const service_instance& is : view.instances()) all.insert(is.id());
    return all;
}

ids picked_by(const provider& orders) {
    ids all;
    for (int i = 0; i < 8; ++i)
        if (const picked p = orders.try_pick()) all.insert(p->id());
    return all;
}

asio::awaitable<void> pick_one(const provider* orders) { co_await orders->pick(); }
asio::awaitable<void> await_change(const provider* orders, service_view seen) {
    co_await orders->changed(std::move(seen));
}

}  // namespace

TEST_CASE("provider: between sessions it picks from what was known, tells once, and then what has changed") {
    fake_ensemble ensemble;
    announce(ensemble, "a");
    announce(ensemble, "b");
    const client zk = ensemble.client(sessions_for_providers());
    const provider orders(zk, "/base", "orders");
    ensemble.run(orders.ready());
    service_view view = orders.view();
    CHECK(view.current());

    ensemble.hold_down(zk);
    ensemble.run_for(60s);
    CHECK(ensemble.sessions() == 0);
    const service_view between = orders.view();
    CHECK_FALSE(between.current());
    CHECK(between.version() == view.version() + 1);  // one change: what was known is not current any more
    CHECK(ids_in(between) == ids{"a", "b"});
    CHECK(picked_by(orders) == ids{"a", "b"});

    ensemble.remove("/base/orders/a");
    announce(ensemble, "c");
    ensemble.let_in(zk);
    view = ensemble.run(orders.changed(between));
    while (!view.current()) view = ensemble.run(orders.changed(view));
    CHECK(ids_in(view) == ids{"b", "c"});
    CHECK(picked_by(orders) == ids{"b", "c"});
}

TEST_CASE("provider: a service that may not be listed for a while is found again") {
    fake_ensemble ensemble;
    ensemble.know_multi_read(false);  // with a recursive watch, nothing gives a reason to list once more
    announce(ensemble, "a");
    const client zk = ensemble.client(sessions_for_providers());
    const provider orders(zk, "/base", "orders");
    ensemble.run(orders.ready());
    ensemble.refuse("/base/orders", zk_errc::no_auth);
    announce(ensemble, "b");
    ensemble.run_for(9s);
    CHECK(picked_by(orders).empty());
    CHECK(orders.view().unreadable().size() == 1);
    ensemble.accept("/base/orders");
    ensemble.run_for(20s);
    CHECK(picked_by(orders) == ids{"a", "b"});
    CHECK(orders.view().unreadable().empty());
}

TEST_CASE("provider: JSON of something else is no instance, and is not picked") {
    fake_ensemble ensemble;
    ensemble.create("/base/orders/other", R"({"host":"10.0.0.1","port":80})");
    const client zk = ensemble.client(sessions_for_providers());
    const provider orders(zk, "/base", "orders");
    ensemble.run(orders.ready());
    CHECK(picked_by(orders).empty());
    CHECK(orders.view().unreadable().size() == 1);
}

TEST_CASE("provider: closing it ends what waits, and it shows and picks nothing that is current") {
    fake_ensemble ensemble;
    announce(ensemble, "a");
    const client zk = ensemble.client(sessions_for_providers());
    const provider orders(zk, "/base", "orders");
    ensemble.run(orders.ready());
    const service_view view = orders.view();
    const provider empty(zk, "/base", "nothing");
    ensemble.run(empty.ready());

    const running changing(ensemble.get_executor(), await_change(&orders, view));
    const running picking(ensemble.get_executor(), pick_one(&empty));
    ensemble.run_for(1s);
    CHECK_FALSE(changing.ended());
    CHECK_FALSE(picking.ended());
    ensemble.run(orders.close());
    ensemble.run(empty.close());
    CHECK(ensemble.run(changing.code()) == errc::client_closed);
    CHECK(ensemble.run(picking.code()) == errc::client_closed);
    CHECK_FALSE(orders.view().current());
    CHECK(orders.view().version() > view.version());
    CHECK(ids_in(orders.view()) == ids{"a"});
    CHECK(picked_by(orders).empty());
    CHECK(ensemble.watches() == 0);

    // What happens from now on does not bring it back.
    announce(ensemble, "b");
    ensemble.expire(zk);
    ensemble.run_for(60s);
    CHECK(ids_in(orders.view()) == ids{"a"});
    CHECK(picked_by(orders).empty());
}

TEST_CASE("provider: closing it between two sessions ends it, too") {
    fake_ensemble ensemble;
    announce(ensemble, "a");
    const client zk = ensemble.client(sessions_for_providers());
    std::optional<provider> orders(std::in_place, zk, "/base", "orders");
    ensemble.run(orders->ready());
    ensemble.hold_down(zk);
    ensemble.run_for(60s);
    CHECK(picked_by(*orders) == ids{"a"});
    ensemble.run(orders->close());
    CHECK(picked_by(*orders).empty());
    CHECK(ensemble.run(code_of(orders->pick())) == errc::client_closed);
    ensemble.let_in(zk);
    ensemble.run(zk.connected());
    ensemble.run_for(10s);
    CHECK(ensemble.watches() == 0);
}

TEST_CASE("provider: closing its client between two sessions ends what waits") {
    fake_ensemble ensemble;
    announce(ensemble, "a");
    const client zk = ensemble.client(sessions_for_providers());
    const provider orders(zk, "/base", "orders");
    ensemble.run(orders.ready());
    ensemble.hold_down(zk);
    ensemble.run_for(60s);
    const running changing(ensemble.get_executor(), await_change(&orders, orders.view()));
    ensemble.run_for(1s);
    CHECK_FALSE(changing.ended());
    ensemble.run(zk.close());
    CHECK(ensemble.run(changing.code()) == errc::client_closed);
    CHECK(picked_by(orders).empty());
    CHECK_FALSE(orders.view().current());
}
