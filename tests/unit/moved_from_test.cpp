#include "unit/support/error_of.hpp"
#include "unit/support/refuses.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/barriers/double_barrier.hpp>
#include <zkasio/cache/tree_view.hpp>
#include <zkasio/client_observer.hpp>
#include <zkasio/counters/atomic_counter.hpp>
#include <zkasio/election/leader_election.hpp>
#include <zkasio/locks/cohort_mutex.hpp>
#include <zkasio/locks/detail/nodes_claim.hpp>
#include <zkasio/locks/lock_guard.hpp>
#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/slots.hpp>
#include <zkasio/locks/unfair_mutex.hpp>
#include <zkasio/membership/group.hpp>
#include <zkasio/membership/partitioner.hpp>
#include <zkasio/queues/delivery.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/session_loop.hpp>

using namespace zkasio;
using namespace zkasio::test;

namespace {

// What asio::co_spawn(executor, lock.acquire(), token) needs, with tokens that keep the result for later.
static_assert(std::is_default_constructible_v<lock_guard>);

asio::awaitable<void> refuses_all_of(lock_guard nothing_held) {
    CHECK(nothing_held.path().empty());
    CHECK(nothing_held.paths().empty());
    CHECK_FALSE(nothing_held.held());
    CHECK(nothing_held.held_until() == boot_clock::time_point());
    CHECK(nothing_held.reason() == loss_reason::released);
    const loss_reason why = co_await nothing_held.lost();
    CHECK(why == loss_reason::released);
    co_await refuses("commit", nothing_held.commit(transaction().check("/")), errc::lock_released);
    co_await refuses("run", nothing_held.run(nothing), errc::lock_released);
    co_await refuses("revoke_requested", nothing_held.revoke_requested(), errc::lock_released);
    co_await nothing_held.release();
}

asio::awaitable<void> under_lock(lock_guard&) { co_return; }
asio::awaitable<void> while_leading(leadership&) { co_return; }

asio::awaitable<void> refuses_all_of(leadership nothing_led) {
    CHECK(nothing_led.path().empty());
    CHECK_FALSE(nothing_led.held());
    CHECK(nothing_led.held_until() == boot_clock::time_point());
    CHECK(nothing_led.reason() == loss_reason::released);
    CHECK(nothing_led.token() == fencing_token());
    const loss_reason why = co_await nothing_led.lost();
    CHECK(why == loss_reason::released);
    co_await refuses("commit", nothing_led.commit(transaction().check("/")), errc::lock_released);
    co_await refuses("proclaim", nothing_led.proclaim("x"), errc::lock_released);
    co_await refuses("run", nothing_led.run(nothing), errc::lock_released);
    co_await nothing_led.resign();
}

asio::awaitable<void> refuses_all(operations o) {
    const std::string text = co_await message_of(o.get("/a"));
    CHECK(text == "get /a: invalid argument (this object was moved from)");
    co_await refuses("create", o.create("/a"));
    co_await refuses("create_unless_exists", o.create_unless_exists("/a"));
    co_await refuses("create_or_set", o.create_or_set("/a", ""));
    co_await refuses("get", o.get("/a"));
    co_await refuses("set", o.set("/a", ""));
    co_await refuses("exists", o.exists("/a"));
    co_await refuses("children", o.children("/a"));
    co_await refuses("remove", o.remove("/a"));
    co_await refuses("remove_recursive", o.remove_recursive("/a"));
    co_await refuses("multi", o.multi(transaction()));
    co_await refuses("multi_read", o.multi_read(read_list()));
    co_await refuses("who_am_i", o.who_am_i());
    co_await refuses("ephemerals", o.ephemerals());
    co_await refuses("count_below", o.count_below("/a"));
    co_await refuses("sync", o.sync());
    co_await refuses("get_acl", o.get_acl("/a"));
    co_await refuses("set_acl", o.set_acl("/a", open_acl()));
    co_await refuses("get_and_watch", o.get_and_watch("/a"));
    co_await refuses("exists_and_watch", o.exists_and_watch("/a"));
    co_await refuses("children_and_watch", o.children_and_watch("/a"));
    co_await refuses("add_watch", o.add_watch("/a", watch_mode::persistent));
    co_await refuses("get_config", o.get_config());
    co_await refuses("config_and_watch", o.config_and_watch());
    co_await refuses("reconfigure", o.reconfigure("4", ""));
    const toolbox tools(o);
    co_await refuses("connected", tools.connected("x", "/a"));
    co_await refuses("current_session", tools.current_session("x", "/a"));
    co_await refuses("find_protected", tools.find_protected("/a", "id"));
    co_await refuses("find_all_protected", tools.find_all_protected("/a", {}));
    co_await refuses("multi_behind", tools.multi_behind({}, transaction().check("/a"), "x"));
    CHECK(code_thrown_by([&] { tools.start_create("/a", "", create_options()); }) == errc::invalid_argument);
    CHECK(code_thrown_by([&] { tools.start_children("/a"); }) == errc::invalid_argument);
    CHECK(code_thrown_by([&] { tools.start_get("/a"); }) == errc::invalid_argument);
    CHECK(code_thrown_by([&] { tools.start_gets({"/a"}); }) == errc::invalid_argument);
    CHECK(code_thrown_by([&] { tools.start_exists("/a"); }) == errc::invalid_argument);
    CHECK(code_thrown_by([&] { tools.start_get_and_watch("/a"); }) == errc::invalid_argument);
    CHECK(code_thrown_by([&] { tools.ensure_removed("/a"); }) == errc::invalid_argument);
    CHECK(code_thrown_by([&] { tools.ensure_protected_removed("/a", "long enough"); }) == errc::invalid_argument);
    CHECK(code_thrown_by([&] { tools.make_back_off(); }) == errc::invalid_argument);
    CHECK(code_thrown_by([&] { tools.make_one_shot_event(); }) == errc::invalid_argument);
    CHECK(code_thrown_by([&] { tools.feed("/a", nullptr); }) == errc::invalid_argument);
    CHECK(code_thrown_by([&] { tools.local("", nullptr); }) == errc::invalid_argument);
    CHECK(code_thrown_by([&] { tools.run_in_background(nothing()); }) == errc::invalid_argument);
    CHECK(code_thrown_by([&] { tools.begin_background_work(); }) == errc::invalid_argument);
    tools.report(lock_wait_report());
    CHECK_FALSE(tools.has_observer());
}

}  // namespace

TEST_CASE("a client and a session that were moved from refuse everything", "[moved]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        client from = zk;
        const client to = std::move(from);
        co_await refuses_all(from);
        co_await refuses("connected", from.connected());
        co_await refuses("current_session", from.current_session());
        co_await refuses("credentials", from.credentials());
        co_await refuses("add_auth", from.add_auth("digest", "somebody:secret"));
        co_await refuses("set_servers", from.set_servers("10.0.0.2"));
        co_await refuses("with_session", from.with_session([](session) { return nothing(); }));
        co_await refuses("idle", from.idle());
        co_await refuses("close", from.close());
        CHECK(from.state() == session_state::closed);
        CHECK(code_thrown_by([&] { from.get_executor(); }) == errc::invalid_argument);
        CHECK(code_thrown_by([&] { from.options(); }) == errc::invalid_argument);
        CHECK(code_thrown_by([&] { from.session_now(); }) == errc::invalid_argument);
        CHECK(code_thrown_by([&] { from.events(); }) == errc::invalid_argument);

        session s = co_await to.current_session();
        const session kept = std::move(s);
        co_await refuses_all(s);
        co_await refuses("ended", s.ended());
        CHECK(s.over());
        CHECK(s.id() == 0);
        CHECK(s.timeout() == 0ms);
        CHECK(s.leased_until() == boot_clock::time_point());
        CHECK(code_thrown_by([&] { s.hold("/a"); }) == errc::invalid_argument);
        CHECK(code_thrown_by([&] { s.get_executor(); }) == errc::invalid_argument);
        CHECK(code_thrown_by([&] { toolbox(to).local("", nullptr); }) == errc::invalid_argument);

        session_events events = zk.events();
        const session_events others = std::move(events);
        co_await refuses("next", events.next());
    };
    r.run(body);
}

TEST_CASE("holds and guards that were moved from have been released", "[moved]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        session_hold hold = s.hold("/a");
        const session_hold kept = std::move(hold);
        co_await refuses("confirmed", hold.confirmed(), errc::lock_released);
        co_await refuses("run", hold.run(nothing), errc::lock_released);
        const loss_reason lost = co_await hold.lost();
        CHECK(lost == loss_reason::released);
        CHECK(hold.reason() == loss_reason::released);
        CHECK_FALSE(hold.held());
        CHECK(hold.held_until() == boot_clock::time_point());
        CHECK_FALSE(hold.nodes_watched());
        hold.on_lost([](loss_reason) { FAIL("nothing is held"); });
        hold.watch_nodes();
        hold.lose(loss_reason::node_deleted);
        hold.end();

        std::vector<std::string> paths(1, "/lock");
        auto claim = std::make_shared<lock_detail::nodes_claim>(s, std::move(paths), 7, "/lock", boot_clock::now());
        lock_guard guard(std::move(claim));
        {
            const lock_guard owner = std::move(guard);
            CHECK_FALSE(guard.held());
            CHECK(guard.held_until() == boot_clock::time_point());
            CHECK(guard.reason() == loss_reason::released);
            CHECK(guard.path() == "/lock");
            CHECK(guard.token().value() == 7);
            co_await refuses("commit", guard.commit(transaction()), errc::lock_released);
            co_await refuses("guard.run", guard.run(nothing), errc::lock_released);
            co_await refuses("revoke_requested", guard.revoke_requested(), errc::lock_released);
            const loss_reason guard_lost = co_await guard.lost();
            CHECK(guard_lost == loss_reason::released);
            co_await guard.release();
            CHECK(owner.reason() == loss_reason::none);
        }
    };
    r.run(body);
}

TEST_CASE("watches, one-shots and pending requests that were moved from refuse everything", "[moved]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        auto seen = co_await zk.get_and_watch("/a");
        const watch kept = std::move(seen.changes);
        co_await refuses("changed", seen.changes.changed());
        CHECK(seen.changes.path().empty());
        CHECK(code_thrown_by([&] { seen.changes.then([](std::error_code, node_change) {}); }) ==
              errc::invalid_argument);

        one_shot_event o = toolbox(zk).make_one_shot_event();
        const one_shot_event same = std::move(o);
        o.fire();
        co_await refuses("wait", o.wait());
        co_await refuses("run_until", o.run_until(nothing));

        auto creating = toolbox(zk).start_create("/a", "", create_options());
        auto listing = toolbox(zk).start_children("/a");
        auto reading = toolbox(zk).start_get("/a");
        auto watching = toolbox(zk).start_get_and_watch("/a");
        auto removing = toolbox(zk).ensure_removed("/a");
        const auto creating2 = std::move(creating);
        const auto listing2 = std::move(listing);
        const auto reading2 = std::move(reading);
        const auto watching2 = std::move(watching);
        const auto removing2 = std::move(removing);
        co_await refuses("answered", creating.answered());
        co_await refuses("create", creating.result());
        co_await refuses("children", listing.result());
        co_await refuses("get", reading.result());
        co_await refuses("remove", removing.result());
        CHECK(code_thrown_by([&] { creating.then([] {}); }) == errc::invalid_argument);
        CHECK(code_thrown_by([&] { creating.get(); }) == errc::invalid_argument);
        CHECK(code_thrown_by([&] { listing.get(); }) == errc::invalid_argument);
        CHECK(code_thrown_by([&] { reading.get(); }) == errc::invalid_argument);
        CHECK(code_thrown_by([&] { watching.get(); }) == errc::invalid_argument);
        CHECK(code_thrown_by([&] { removing.get(); }) == errc::invalid_argument);
        co_await watching2.answered();
    };
    r.run(body);
}

TEST_CASE("locks that were moved from refuse everything", "[moved]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        mutex m(zk, "/mutex");
        const mutex m2 = std::move(m);
        co_await refuses("acquire", m.acquire());
        co_await refuses("acquire", m.acquire(acquire_options().owner(lock_owner())));
        co_await refuses("try_acquire", m.try_acquire());
        co_await refuses("try_acquire_for", m.try_acquire_for(1h));
        co_await refuses("with_lock", m.with_lock(under_lock));
        co_await refuses("contenders", m.contenders());
        cohort_mutex c(zk, "/cohort");
        const cohort_mutex c2 = std::move(c);
        co_await refuses("acquire", c.acquire());
        co_await refuses("acquire", c.acquire(acquire_options().owner(lock_owner())));
        co_await refuses("try_acquire", c.try_acquire());
        co_await refuses("try_acquire_for", c.try_acquire_for(1h));
        co_await refuses("contenders", c.contenders());
        shared_mutex rw(zk, "/shared");
        const shared_mutex rw2 = std::move(rw);
        co_await refuses("acquire_shared", rw.acquire_shared());
        co_await refuses("try_acquire_shared_for", rw.try_acquire_shared_for(0s));
        co_await refuses("contenders", rw.contenders());
        semaphore s(zk, "/semaphore", permits::fixed(2));
        const semaphore s2 = std::move(s);
        co_await refuses("acquire", s.acquire());
        co_await refuses("acquire_each", s.acquire_each(2));
        co_await refuses("holders", s.holders());
        unfair_mutex u(zk, "/unfair");
        const unfair_mutex u2 = std::move(u);
        co_await refuses("acquire", u.acquire());
        co_await refuses("holder", u.holder());
        slots n(zk, "/slots", 2);
        const slots n2 = std::move(n);
        co_await refuses("acquire", n.acquire());
        co_await refuses("try_acquire", n.try_acquire());
        multi_mutex several(zk);
        several.add(m2).add(u2);
        const multi_mutex several2 = std::move(several);
        co_await refuses("acquire", several.acquire());
        co_await refuses("try_acquire_for", several.try_acquire_for(1h));
    };
    r.run(body);
}

TEST_CASE("elections and observers that were moved from refuse everything", "[moved]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        leader_election e(zk, "/election");
        const leader_election e2 = std::move(e);
        co_await refuses("campaign", e.campaign());
        co_await refuses("try_campaign", e.try_campaign());
        co_await refuses("try_campaign_for", e.try_campaign_for(1h));
        co_await refuses("try_campaign_until", e.try_campaign_until(boot_clock::now() + 1h));
        co_await refuses("lead", e.lead(while_leading));
        co_await refuses("candidates", e.candidates());
        CHECK(code_thrown_by([&] { e.observe(); }) == errc::invalid_argument);
        leader_observer o = e2.observe();
        const leader_observer o2 = std::move(o);
        co_await refuses("next", o.next());
        client from = zk;
        const client to = std::move(from);
        const leader_observer nowhere(from, "/election");
        co_await refuses("next", nowhere.next());
    };
    r.run(body);
}

TEST_CASE("nodes, groups and partitioners that were moved from refuse everything", "[moved]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        persistent_node n(zk, "/node");
        const persistent_node n2 = std::move(n);
        CHECK(n.state() == persistent_node_state::ended);
        co_await refuses("created", n.created());
        co_await refuses("set_data", n.set_data("x"));
        co_await refuses("state_after", n.state_after(persistent_node_state::standing));
        co_await refuses("ended", n.ended());
        co_await n.leave();

        group g(zk, "/group");
        const group g2 = std::move(g);
        co_await refuses("join", g.join("me"));
        co_await refuses("members", g.members());
        CHECK(code_thrown_by([&] { static_cast<void>(g.observe()); }) == errc::invalid_argument);
        group_observer o = g2.observe();
        const group_observer o2 = std::move(o);
        co_await refuses("ready", o.ready());
        co_await refuses("next", o.next());
        CHECK(o.members().members.empty());

        const std::vector<std::string> one(1, "p0");
        partitioner p(zk, "/partitioner", one);
        const partitioner p2 = std::move(p);
        auto work = [](held_partition&) -> asio::awaitable<void> { co_return; };
        co_await refuses("run", p.run(work));
        CHECK(p.state() == partitioner_state::idle);
        CHECK(p.owned().empty());
        co_await zk.close();
    };
    r.run(body);
}

TEST_CASE("a leadership that never was is as one that was resigned", "[moved]") {
    test_loop loop;
    loop.run(refuses_all_of(leadership()));
}

TEST_CASE("results that are made without arguments are as ones that were moved from", "[moved]") {
    test_loop loop;
    auto body = []() -> asio::awaitable<void> {
        const session no_session;
        co_await refuses_all(no_session);
        co_await refuses("ended", no_session.ended());
        CHECK(no_session.over());
        CHECK(no_session.id() == 0);
        CHECK(code_thrown_by([&] { no_session.hold("/a"); }) == errc::invalid_argument);

        const watched<node_data> not_watched;
        co_await refuses("changed", not_watched.changes.changed());
        CHECK(not_watched.changes.path().empty());

        session_hold no_hold;
        co_await refuses("confirmed", no_hold.confirmed(), errc::lock_released);
        co_await refuses("run", no_hold.run(nothing), errc::lock_released);
        CHECK(no_hold.reason() == loss_reason::released);
        CHECK_FALSE(no_hold.held());
        no_hold.end();
        no_hold = session_hold();

        session_loop no_loop;
        co_await no_loop.stopped();
        no_loop.stop();
        no_loop = session_loop();

        CHECK(session_credentials().id() == 0);
        CHECK(session_credentials().password().empty());
        CHECK(fencing_token() < fencing_token(1));
        CHECK(fencing_token().value() == 0);
        CHECK_FALSE(lock_guard().sequence());

        const group_membership no_member;
        co_await refuses("set_data", no_member.set_data("x"));
        co_await no_member.leave();
        CHECK(no_member.state() == persistent_node_state::ended);
    };
    loop.run(body());
    const auto nobody = client_options("127.0.0.1:1").resume(session_credentials());
    CHECK(code_thrown_by([&] { const client zk(loop.context(), nobody); }) == errc::invalid_argument);
}

TEST_CASE("a guard that never held anything is as one that was released", "[moved]") {
    test_loop loop;
    loop.run(refuses_all_of(lock_guard()));
}

TEST_CASE("entries, deliveries and counters without anything have nothing, and refuse everything", "[moved]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        barrier_entry entry;
        CHECK_FALSE(entry.held());
        CHECK(entry.reason() == loss_reason::released);
        CHECK(entry.path().empty());
        const loss_reason why = co_await entry.lost();
        CHECK(why == loss_reason::released);
        co_await entry.leave();
        barrier_entry& same = entry;
        entry = std::move(same);
        entry = barrier_entry();
        CHECK_FALSE(entry.held());

        delivery nothing_delivered;
        CHECK(nothing_delivered.item().empty());
        CHECK(nothing_delivered.name().empty());
        co_await refuses("done", nothing_delivered.done(), errc::lock_released);
        co_await refuses("reject", nothing_delivered.reject("why"), errc::lock_released);
        co_await refuses("run", nothing_delivered.run(nothing), errc::lock_released);

        atomic_counter c(zk, "/counter");
        const atomic_counter c2 = std::move(c);
        co_await refuses("get", c.get());
        co_await refuses("add", c.add(1));

        CHECK_FALSE(tree_view().ready());
        CHECK_FALSE(tree_view().contains("/a"));
        CHECK_FALSE(cached_node().readable());
        CHECK(cached_node() == cached_node());
    };
    r.run(body);
}
