#include "support/dead_handle.hpp"
#include "support/source_dir.hpp"
#include "unit/support/awaitable_members.hpp"
#include "unit/support/error_of.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/recipe/local_turn.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/session_loop.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

// Completes when the session is over, that is when the test is.
asio::awaitable<void> session_ends(session s) {
    co_await when_dead("session.hpp lease_extended", s, [](session& h) { return h.lease_extended({}); });
    co_await when_dead("session.hpp ended", s, [](session& h) { return h.ended(); });
}

}  // namespace

TEST_CASE("what a client returns may be awaited when the client is gone", "[dead]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await when_dead("client.hpp connected", zk, [](client& c) { return c.connected(); });
        co_await when_dead("client.hpp current_session", zk, [](client& c) { return c.current_session(); });
        co_await when_dead("client.hpp credentials", zk, [](client& c) { return c.credentials(); });
        co_await when_dead("client.hpp add_auth", zk,
                           [](client& c) { return c.add_auth("digest", "somebody:secret"); });
        co_await when_dead("client.hpp set_servers", zk, [](client& c) { return c.set_servers("10.0.0.2:2181"); });
        co_await when_dead("client.hpp with_session", zk,
                           [](client& c) { return c.with_session([](session) { return nothing(); }); });
        co_await when_dead("client.hpp next", zk.events(), [](session_events& e) { return e.next(); });
        co_await when_dead("client.hpp idle", zk, [](client& c) { return c.idle(); });
        co_await when_dead("client.hpp close", zk, [](client& c) { return c.close(); });
        co_await when_dead(
            "client.hpp hand_over", zk, [](client& c) { return c.hand_over(); }, errc::client_closed);
    };
    r.run(body);
}

TEST_CASE("what the last handle of a client returns may be awaited: the client is closed by then", "[dead]") {
    fake_server other;
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const auto inside = std::make_shared<core>(zk.get_executor(), rig::quick(), other.factory());
        co_await when_dead(
            "client.hpp connected", client_over(inside), [](client& c) { return c.connected(); }, errc::client_closed);
    };
    r.run(body);
}

TEST_CASE("operations may be awaited when what they were called on is gone", "[dead]") {
    rig r;
    r.server.knows_added_watches = true;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const auto try_all = [](operations on) -> asio::awaitable<void> {
            using ops = operations;
            const create_options protected_one = create_options().mode(create_mode::ephemeral_sequential).protection();
            const create_options parents = create_options().parents(missing_parents::create_persistent);
            co_await when_dead("operations.hpp create", on, [](ops& o) { return o.create("/a", "data"); });
            co_await when_dead("operations.hpp create", on, [&](ops& o) { return o.create("/a/b", "data", parents); });
            co_await when_dead("operations.hpp create", on,
                               [&](ops& o) { return o.create("/a/b-", "data", protected_one); });
            co_await when_dead("operations.hpp create_unless_exists", on,
                               [](ops& o) { return o.create_unless_exists("/a"); });
            co_await when_dead("operations.hpp create_or_set", on,
                               [](ops& o) { return o.create_or_set("/a", "data"); });
            co_await when_dead("operations.hpp get", on, [](ops& o) { return o.get("/a"); });
            co_await when_dead("operations.hpp set", on, [](ops& o) { return o.set("/a", "data"); });
            co_await when_dead("operations.hpp exists", on, [](ops& o) { return o.exists("/a"); });
            co_await when_dead("operations.hpp children", on, [](ops& o) { return o.children("/a"); });
            co_await when_dead("operations.hpp remove", on, [](ops& o) { return o.remove("/a"); });
            co_await when_dead("operations.hpp remove_recursive", on, [](ops& o) { return o.remove_recursive("/a"); });
            co_await when_dead("operations.hpp multi", on, [](ops& o) { return o.multi(transaction().check("/a")); });
            co_await when_dead("operations.hpp multi_read", on, [](ops& o) { return o.multi_read(read_list().get("/a")); });
            co_await when_dead("operations.hpp who_am_i", on, [](ops& o) { return o.who_am_i(); });
            co_await when_dead("operations.hpp ephemerals", on, [](ops& o) { return o.ephemerals("/a"); });
            co_await when_dead("operations.hpp count_below", on, [](ops& o) { return o.count_below("/a"); });
            co_await when_dead("operations.hpp sync", on, [](ops& o) { return o.sync(); });
            co_await when_dead("operations.hpp get_acl", on, [](ops& o) { return o.get_acl("/a"); });
            co_await when_dead("operations.hpp set_acl", on, [](ops& o) { return o.set_acl("/a", open_acl()); });
            co_await when_dead("operations.hpp get_and_watch", on, [](ops& o) { return o.get_and_watch("/a"); });
            co_await when_dead("operations.hpp exists_and_watch", on, [](ops& o) { return o.exists_and_watch("/a"); });
            co_await when_dead("operations.hpp children_and_watch", on,
                               [](ops& o) { return o.children_and_watch("/a"); });
            co_await when_dead("operations.hpp add_watch", on,
                               [](ops& o) { return o.add_watch("/a", watch_mode::recursive); });
            co_await when_dead("operations.hpp get_config", on, [](ops& o) { return o.get_config(); });
            co_await when_dead("operations.hpp config_and_watch", on, [](ops& o) { return o.config_and_watch(); });
            co_await when_dead("operations.hpp reconfigure", on, [](ops& o) { return o.reconfigure("4", ""); });
            const toolbox tools(on);
            co_await when_dead("toolbox.hpp connected", tools, [](toolbox& t) { return t.connected("get", "/a"); });
            co_await when_dead("toolbox.hpp current_session", tools,
                               [](toolbox& t) { return t.current_session("get", "/a"); });
            co_await when_dead("toolbox.hpp orphan_at", tools, [](toolbox& t) { return t.orphan_at("/a"); });
            co_await when_dead("toolbox.hpp own_session", tools,
                               [](toolbox& t) { return t.own_session("get", "/a"); });
            co_await when_dead("toolbox.hpp multi_behind", tools,
                               [](toolbox& t) { return t.multi_behind({}, transaction().check("/a"), "x"); });
            co_await when_dead("toolbox.hpp find_protected", tools,
                               [](toolbox& t) { return t.find_protected("/a", "dead-handle"); });
            const std::vector<std::string> ids(2, "dead-handle");
            co_await when_dead("toolbox.hpp find_all_protected", tools,
                               [&](toolbox& t) { return t.find_all_protected("/a", ids); });
        };
        co_await try_all(zk);
        co_await try_all(zk.session_now());
    };
    r.run(body);
}

TEST_CASE("what sessions and holds return may be awaited when they are gone", "[dead]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        r.loop.spawn(session_ends(s));
        // A hold that is destroyed has ended.
        co_await when_dead(
            "session.hpp confirmed", s.hold("/a"), [](session_hold& h) { return h.confirmed(); }, errc::lock_released);
        co_await when_dead("session.hpp lost", s.hold("/a"), [](session_hold& h) { return h.lost(); });
        co_await when_dead("session.hpp run", s.hold("/a"), [](session_hold& h) { return h.run(nothing); });
        // A loop that is destroyed is stopped.
        auto endless = [](session of) -> asio::awaitable<void> { co_await of.ended(); };
        co_await when_dead("session_loop.hpp stopped", run_in_each_session(zk, endless),
                           [](session_loop& l) { return l.stopped(); });
    };
    r.run(body);
}

TEST_CASE("what watches, one-shots and pending requests return may be awaited when they are gone", "[dead]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        one_shot_event fired = toolbox(zk).make_one_shot_event();
        fired.fire();
        co_await when_dead("events.hpp wait", fired, [](one_shot_event& o) { return o.wait(); });
        co_await when_dead("events.hpp run_until", toolbox(zk).make_one_shot_event(),
                           [](one_shot_event& o) { return o.run_until(nothing); });

        auto turn = std::make_unique<local_turn>(zk.session_now(), "/a", std::nullopt);
        co_await when_dead("local_turn.hpp come", std::move(turn),
                           [](std::unique_ptr<local_turn>& t) { return t->come("modify", "/a"); });

        co_await when_dead("back_off.hpp pause", toolbox(zk).make_back_off(), [](back_off& b) { return b.pause(); });

        co_await when_dead("pending.hpp answered", toolbox(zk).start_get("/a"),
                           [](pending& p) { return p.answered(); });
        co_await when_dead("pending.hpp result", toolbox(zk).start_create("/a", "", create_options()),
                           [](pending_create& p) { return p.result(); });
        co_await when_dead("pending.hpp result", toolbox(zk).start_children("/a"),
                           [](pending_children& p) { return p.result(); });
        co_await when_dead("pending.hpp result", toolbox(zk).start_get("/a"),
                           [](pending_data& p) { return p.result(); });
        co_await when_dead("pending.hpp result", toolbox(zk).ensure_removed("/a"),
                           [](pending_removal& p) { return p.result(); });

        auto seen = co_await zk.get_and_watch("/a");
        r.server.fire(node_event::data_changed, "/a");
        co_await when_dead("watch.hpp changed", std::move(seen.changes), [](watch& w) { return w.changed(); });
        CHECK(r.core->watches() == 0);

        r.server.knows_added_watches = true;
        watch_stream stream = co_await zk.add_watch("/a", watch_mode::recursive);
        co_await zk.add_auth("digest", "somebody:secret");  // a reason to look again
        co_await when_dead("watch_stream.hpp next", std::move(stream), [](watch_stream& w) { return w.next(); });
        watch_stream other = co_await zk.add_watch("/a", watch_mode::persistent);
        co_await when_dead("watch_stream.hpp close", std::move(other), [](watch_stream& w) { return w.close(); });
    };
    r.run(body);
}

TEST_CASE("a watch stays as long as somebody may await it", "[dead]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        auto seen = co_await zk.get_and_watch("/a");
        std::optional<watch> handle(std::move(seen.changes));
        auto change = handle->changed();
        handle.reset();
        co_await next_turns(r.server);
        CHECK(r.core->watches() == 1);
        r.server.fire(node_event::data_changed, "/a");
        const watch_event event = co_await std::move(change);
        CHECK(event.what == node_change::data_changed);

        auto again = co_await zk.get_and_watch("/a");
        handle.emplace(std::move(again.changes));
        {
            const auto never_awaited = handle->changed();
            handle.reset();
        }
        co_await r.server.until([&] { return r.core->watches() == 0; });
    };
    r.run(body);
}

// Whoever adds a member that returns an awaitable adds it to the tests here, or in
// tests/integration/dead_handles_test.cpp.
TEST_CASE("every public member that returns an awaitable is tried without its object", "[dead]") {
    const std::filesystem::path root = source_dir();
    std::string tried = read_file(root / "tests/unit/dead_handles_test.cpp") +
                        read_file(root / "tests/integration/dead_handles_test.cpp") +
                        read_file(root / "tests/integration/discovery_registry_test.cpp");
    tried = std::regex_replace(tried, std::regex("when_dead\\(\\s+"), "when_dead(");  // however it is laid out
    const std::set<std::string> kept_by_their_callers{"lock_claim.hpp gone", "events.hpp until"};

    const std::vector<std::string> members = public_awaitable_members();
    for (const std::string& name : members) {
        if (kept_by_their_callers.contains(name)) continue;
        INFO(name);
        CHECK(has(tried, "when_dead(\"" + name + '"'));
    }
    CHECK(members.size() > 60);
}
