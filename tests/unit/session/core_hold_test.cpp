#include "unit/support/rig.hpp"

#include "unit/support/error_of.hpp"

#include <asio/co_spawn.hpp>
#include <asio/post.hpp>
#include <asio/use_awaitable.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

TEST_CASE("core: without answers the lease ends, and with it every hold", "[core][hold]") {
    constexpr auto T = 900ms;
    rig r;
    r.server.session_timeout = T;
    r.server.answer = [](const request& q) { return is_heartbeat(q) ? std::nullopt : std::optional<reply>(reply{}); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const session_hold a = s.hold("/a"), whole = s.hold("");
        co_await a.confirmed();
        const auto end = a.held_until();
        CHECK(end == s.leased_until());
        CHECK(a.held());
        const loss_reason why = co_await a.lost();
        CHECK(why == loss_reason::lease_ended);
        CHECK(boot_clock::now() >= end);
        CHECK(s.leased_until() == end);  // a read, a ping, an open connection extend nothing
        CHECK_FALSE(a.held());
        const loss_reason same = co_await whole.lost();
        CHECK(same == loss_reason::lease_ended);
        const std::error_code confirmed = co_await code_of(a.confirmed());
        CHECK(confirmed == std::error_code());  // it was once
        CHECK_FALSE(s.over());                  // the server may be more patient
    };
    r.run(body);
}

TEST_CASE("core: a hold that begins when the lease is over waits for the next lease", "[core][hold]") {
    rig r;
    r.server.session_timeout = 200ms;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const session_hold old = s.hold("/old");
        co_await old.confirmed();
        while (boot_clock::now() < s.leased_until()) {  // no turn of the strand in between
        }
        const session_hold young = s.hold("/young");
        CHECK(old.reason() == loss_reason::lease_ended);
        co_await young.confirmed();
    };
    r.run(body);
}

TEST_CASE("core: reads do not extend the lease", "[core][hold]") {
    rig r;
    r.server.session_timeout = 300ms;
    r.server.answer = [](const request& q) { return is_heartbeat(q) ? std::nullopt : std::optional<reply>(reply{}); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const session_hold hold = s.hold("/a");
        co_await hold.confirmed();
        const auto end = hold.held_until();
        while (hold.reason() == loss_reason::none) {
            co_await s.get("/a");
            co_await s.exists("/a");
            co_await r.server.until([&, turn = r.server.turns] { return r.server.turns > turn; });
        }
        CHECK(hold.reason() == loss_reason::lease_ended);
        CHECK(s.leased_until() == end);
    };
    r.run(body);
}

TEST_CASE("core: a failed write does not extend the lease", "[core][hold]") {
    rig r;
    r.server.session_timeout = 300ms;
    r.server.answer = [](const request& q) { return is_write(q) ? refusal(zk_errc::no_auth) : reply{}; };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const session_hold hold = s.hold("");
        co_await hold.confirmed();
        const auto end = hold.held_until();
        const loss_reason why = co_await hold.lost();
        CHECK(why == loss_reason::lease_ended);
        CHECK(s.leased_until() == end);
    };
    r.run(body);
}

TEST_CASE("core: a lost connection is no loss with suspension_policy::keep", "[core][hold]") {
    rig r;
    r.server.session_timeout = 3s;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const session_hold hold = s.hold("/a");
        co_await hold.confirmed();
        const auto before = hold.held_until();
        r.server.drop();
        co_await r.server.until([&] { return zk.state() == session_state::suspended; });
        CHECK(hold.held());
        co_await zk.connected();
        CHECK(hold.held());
        CHECK(hold.held_until() > before);  // the new handshake
    };
    r.run(body);
}

TEST_CASE("core: a lost connection is the loss with suspension_policy::lose", "[core][hold]") {
    rig r(rig::quick().suspension(suspension_policy::lose));
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const session_hold hold = s.hold("/a");
        co_await hold.confirmed();
        CHECK(hold.held());
        r.server.drop();
        const loss_reason why = co_await hold.lost();
        CHECK(why == loss_reason::suspended);
        CHECK_FALSE(hold.held());
        co_await zk.connected();
        CHECK_FALSE(hold.held());
        CHECK_FALSE(s.over());
        const session_hold next = s.hold("/a");
        co_await next.confirmed();
        CHECK(next.held());
        r.server.reachable = false;
        r.server.drop();
        co_await next.lost();
        const session_hold while_suspended = s.hold("/a");
        const loss_reason at_once = co_await while_suspended.lost();
        CHECK(at_once == loss_reason::suspended);
    };
    r.run(body);
}

TEST_CASE("core: what confirmed() fails with", "[core][hold]") {
    const bool expire = GENERATE(true, false);
    rig r;
    r.server.session_timeout = 300ms;
    r.server.answer = [](const request&) { return std::nullopt; };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        co_await r.server.until([&] { return boot_clock::now() > s.leased_until(); });
        const session_hold hold = s.hold("/a");
        auto confirm = [&]() -> asio::awaitable<void> { co_await hold.confirmed(); };
        const running confirming(r.loop.executor(), confirm());
        co_await r.server.until([&] { return r.server.count("multi") == 1; });
        if (expire)
            r.server.expire();
        else
            co_await zk.close();
        const std::error_code code = co_await confirming.code();
        CHECK(code == (expire ? errc::session_expired : errc::client_closed));
    };
    r.run(body);
}

TEST_CASE("core: releasing a hold", "[core][hold]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        session_hold hold = s.hold("/a");
        CHECK(hold.reason() == loss_reason::none);
        session_hold moved = std::move(hold);
        CHECK_FALSE(hold.held());
        CHECK(hold.reason() == loss_reason::released);
        moved.end();
        moved.end();
        CHECK_FALSE(moved.held());
        CHECK(moved.reason() == loss_reason::released);
        const loss_reason why = co_await moved.lost();
        CHECK(why == loss_reason::released);
        const std::error_code code = co_await code_of(moved.confirmed());
        CHECK(code == errc::lock_released);
    };
    r.run(body);
}

TEST_CASE("core: a hold of several is over as soon as one of them is, in the same turn and for the same reason",
          "[core][hold]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const session_hold a = s.hold("/a"), b = s.hold("/b");
        const session_hold both = s.hold_all({a, b}), also_a = s.hold_all({a}), all = s.hold_all({both});
        co_await all.confirmed();
        CHECK(both.held());
        CHECK(all.held());
        CHECK(both.held_until() == a.held_until());
        CHECK(both.lost_path().empty());
        std::string order;
        asio::post(s.get_executor(), [&] {
            for (const session_hold* h : {&all, &both, &a})
                h->on_lost([&, h](loss_reason) { order += h == &all ? "all " : h == &both ? "both " : "a "; });
            b.on_lost([&](loss_reason) { order += "b "; });
            asio::post(s.get_executor(), [&] { order += "next turn"; });
            b.lose(loss_reason::node_deleted);
        });
        co_await both.lost();
        co_await r.server.until([&] { return has(order, "next turn"); });
        CHECK(order == "all both b next turn");
        for (const session_hold* h : {&all, &both, &b}) {
            CHECK_FALSE(h->held());
            CHECK(h->reason() == loss_reason::node_deleted);
            CHECK(h->lost_path() == "/b");
        }
        CHECK(a.held());
        CHECK(also_a.held());
        const session_hold late = s.hold_all({a, b});  // one of them is over already
        const loss_reason why = co_await late.lost();
        CHECK(why == loss_reason::node_deleted);
        r.server.expire();
        const loss_reason over = co_await also_a.lost();
        CHECK(over == loss_reason::session_expired);
        const session next = co_await zk.current_session();
        CHECK_THROWS_AS(next.hold_all({a}), error);
    };
    r.run(body);
}

TEST_CASE("core: who finds that the node of one of several is gone tells that at once, wherever he runs",
          "[core][hold]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const session_hold a = s.hold("/a"), b = s.hold("/b");
        const session_hold both = s.hold_all({a, b});
        co_await both.confirmed();
        both.lose(loss_reason::node_deleted, "/b");  // not on the strand
        CHECK_FALSE(both.held());
        CHECK_FALSE(b.held());
        CHECK(both.reason() == loss_reason::node_deleted);
        CHECK(both.lost_path() == "/b");
        CHECK(both.held_until() == boot_clock::time_point());
        CHECK(a.held());
        const loss_reason why = co_await both.lost();
        CHECK(why == loss_reason::node_deleted);
        CHECK(a.held());
        b.end();
        CHECK(b.reason() == loss_reason::node_deleted);
        const session_hold two = s.hold(std::vector<std::string>{"/c", "/d"});
        two.lose(loss_reason::node_deleted, "/d");
        two.lose(loss_reason::node_deleted, "/c");
        CHECK(two.lost_path() == "/d");  // the first report's
    };
    r.run(body);
}

TEST_CASE("core: a hold of several costs no heartbeat more, and a deleted node ends it", "[core][hold]") {
    rig r;
    r.server.session_timeout = 300ms;
    std::size_t checks = 0;
    r.server.answer = [&](const request& q) {
        const auto* beat = std::get_if<multi_request>(&q);
        if (!beat) return reply{};
        checks = beat->ops.size();
        reply gone = refusal(zk_errc::no_node);
        gone.results.resize(beat->ops.size());
        for (std::size_t i = 0; i < beat->ops.size(); ++i)
            gone.results[i].code =
                std::get<check_op>(beat->ops[i]).path == "/b" ? zk_errc::no_node : zk_errc::runtime_inconsistency;
        return gone;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const session_hold a = s.hold("/a"), b = s.hold("/b");
        const session_hold both = s.hold_all({a, b});
        const loss_reason why = co_await both.lost();
        CHECK(why == loss_reason::node_deleted);
        CHECK(both.lost_path() == "/b");
        CHECK(checks == 2);
        CHECK(a.reason() == loss_reason::none);
    };
    r.run(body);
}

TEST_CASE("core: a hold of what cannot be a node is refused at once", "[core][hold]") {
    const std::vector<std::string> bad{"a", "/a/", "/a//b", std::string("/a\0b", 4)};
    const std::string too_long = '/' + std::string(operations::max_request, 'a');
    const std::vector<std::string> empty(1), good_and_bad{"/good", "bad"};
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        for (const std::string& path : bad) CHECK(code_thrown_by([&] { s.hold(path); }) == errc::invalid_path);
        CHECK(code_thrown_by([&] { s.hold(too_long); }) == errc::too_large);
        CHECK(code_thrown_by([&] { s.hold(empty); }) == errc::invalid_path);
        const auto e = error_of([&] { s.hold(good_and_bad); });
        CHECK(e);
        if (e) CHECK(std::string(e->what()) == "hold bad: invalid path (a path starts with '/')");
        const session_hold good = s.hold("/good");
        co_await good.confirmed();
        CHECK(good.held());
    };
    r.run(body);
}

TEST_CASE("core: who asks to be told of a loss that has happened is told at once", "[core][hold]") {
    rig r(rig::quick().suspension(suspension_policy::lose));
    std::vector<loss_reason> told;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        r.server.reachable = false;
        r.server.drop();
        co_await r.server.until([&] { return zk.state() == session_state::suspended; });
        std::function<asio::awaitable<void>()> on_strand = [&]() -> asio::awaitable<void> {
            const session_hold lost = s.hold("/a"), released = s.hold("/b");
            lost.on_lost([&](loss_reason why) { told.push_back(why); });
            CHECK(told.size() == 1);
            released.end();
            CHECK(released.reason() == loss_reason::suspended);  // it was over before
            co_return;
        };
        co_await asio::co_spawn(zk.get_executor(), on_strand(), asio::use_awaitable);
        r.server.reachable = true;
        co_await zk.connected();
        std::function<asio::awaitable<void>()> release = [&]() -> asio::awaitable<void> {
            const session_hold released = s.hold("/b");
            released.end();
            released.on_lost([&](loss_reason why) { told.push_back(why); });
            co_return;
        };
        co_await asio::co_spawn(zk.get_executor(), release(), asio::use_awaitable);
    };
    r.run(body);
    CHECK(told == std::vector<loss_reason>{loss_reason::suspended});
}

TEST_CASE("core: nothing is held of a session that is over, also before the strand has seen the hold", "[core][hold]") {
    rig r;
    std::optional<session> s;
    auto body = [&](client zk) -> asio::awaitable<void> {
        s = co_await zk.current_session();
        const session_hold hold = s->hold("/a");
        co_await hold.confirmed();
    };
    r.run(body);
    CHECK(s->leased_until() > boot_clock::now());
    {
        const session_hold late = s->hold("/a");  // the loop does not run
        CHECK_FALSE(late.held());
        CHECK(late.held_until() == boot_clock::time_point());
    }
    r.loop.run();
}

TEST_CASE("core: a hold whose lease has ended is over for whoever looks, before the strand has looked",
          "[core][hold]") {
    rig r;
    r.server.session_timeout = 200ms;
    const bool asks_reason_first = GENERATE(false, true);
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const session_hold one = s.hold("/one"), part = s.hold("/part");
        const session_hold whole = s.hold_all({one, part});
        co_await whole.confirmed();
        CHECK(one.reason() == loss_reason::none);
        while (boot_clock::now() < s.leased_until()) {  // no turn of the strand in between
        }
        if (asks_reason_first) CHECK(one.reason() == loss_reason::lease_ended);
        CHECK_FALSE(one.held());
        CHECK(one.held_until() == boot_clock::time_point());
        CHECK(one.reason() == loss_reason::lease_ended);
        CHECK(one.lost_path() == "/one");
        CHECK(whole.reason() == loss_reason::lease_ended);
        // An answer that is read later does not bring it back.
        const loss_reason why = co_await one.lost();
        CHECK(why == loss_reason::lease_ended);
        const session_hold next = s.hold("/next");
        co_await next.confirmed();
        CHECK(next.held());
        CHECK_FALSE(one.held());
        CHECK(one.reason() == loss_reason::lease_ended);
    };
    r.run(body);
}

TEST_CASE("core: a hold that no lease has covered yet is not over", "[core][hold]") {
    rig r;
    r.server.session_timeout = 200ms;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const session_hold old = s.hold("/old");
        co_await old.confirmed();
        while (boot_clock::now() < s.leased_until()) {
        }
        const session_hold young = s.hold("/young");
        CHECK(young.reason() == loss_reason::none);
        CHECK_FALSE(young.held());
        co_await young.confirmed();
        CHECK(young.held());
    };
    r.run(body);
}
