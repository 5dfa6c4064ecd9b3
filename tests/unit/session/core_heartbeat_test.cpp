#include "support/texts.hpp"
#include "unit/support/rig.hpp"

#include "unit/support/error_of.hpp"

#include <asio/post.hpp>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

const multi_request& heartbeat(const fake_server::received& r) { return std::get<multi_request>(r.what); }

// The paths that a heartbeat asks about.
texts checked(const fake_server::received& r) {
    texts paths;
    for (const multi_op& op : heartbeat(r).ops) paths.push_back(std::get<check_op>(op).path);
    return paths;
}

// What a server answers to a heartbeat when one of the nodes is gone: the steps before it are fine, those behind it
// were not looked at.
reply gone(const request& r, const std::string& path) {
    reply a;
    for (const multi_op& op : std::get<multi_request>(r).ops) {
        multi_result result;
        if (a.code) result.code = zk_errc::runtime_inconsistency;
        if (!a.code && std::get<check_op>(op).path == path) a.code = result.code = zk_errc::no_node;
        a.results.push_back(result);
    }
    return a;
}

std::vector<fake_server::received> heartbeats(const fake_server& s) {
    std::vector<fake_server::received> beats = s.requests;
    std::erase_if(beats, [](const auto& r) { return !is_heartbeat(r.what); });
    return beats;
}

void answer_heartbeats(rig& r) {
    r.server.session_timeout = 1600ms;
    r.server.answer = [](const request& q) { return is_heartbeat(q) ? std::optional<reply>(reply{}) : std::nullopt; };
}

// Of which two fit into a heartbeat. @param names one letter each.
std::vector<session_hold> hold_large_nodes(const session& s, std::string_view names, texts& paths) {
    std::vector<session_hold> holds;
    for (const char name : names) {
        paths.push_back('/' + std::string(100'000, name));
        holds.push_back(s.hold(paths.back()));
    }
    return holds;
}

}  // namespace

TEST_CASE("core: nobody holds on, and there is no heartbeat", "[core][hold]") {
    rig r;
    r.server.session_timeout = 100ms;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const auto began = boot_clock::now();
        co_await r.server.until([&] { return boot_clock::now() - began > 150ms; });
        CHECK(r.server.requests.empty());
    };
    r.run(body);
}

TEST_CASE("core: heartbeats follow T/4 after the last acknowledged write was sent, for as long as somebody holds on",
          "[core][hold]") {
    constexpr auto T = 1200ms;
    rig r;
    r.server.session_timeout = T;
    const auto began = boot_clock::now();  // the client begins to connect while it is being made
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        std::optional<session_hold> hold(s.hold("/a"));
        co_await hold->confirmed();  // the handshake is lease enough
        CHECK(hold->held());
        CHECK(r.server.requests.empty());
        CHECK(hold->held_until() > began + T / 2);

        co_await r.server.until([&] { return r.server.count("multi") == 2; });
        // A write does as well as a heartbeat.
        const auto before_write = boot_clock::now();
        co_await s.set("/b", "x");
        co_await r.server.until([&] { return r.server.count("multi") == 3; });
        const auto beats = heartbeats(r.server);
        for (const auto& beat : beats) {
            CHECK(checked(beat) == texts{"/a"});
            CHECK(std::get<check_op>(heartbeat(beat).ops[0]).version == any_version);
        }
        CHECK(beats[0].at >= began + T / 4);
        CHECK(beats[1].at >= beats[0].at + T / 4);
        CHECK(beats[2].at >= before_write + T / 4);
        CHECK(hold->held());
        CHECK(hold->held_until() > beats[1].at + T / 4);

        hold.reset();
        const auto end = boot_clock::now();
        co_await r.server.until([&] { return boot_clock::now() - end > T / 2; });
        CHECK(r.server.count("multi") == 3);
    };
    r.run(body);
}

TEST_CASE("core: one heartbeat at a time, for all who hold on", "[core][hold]") {
    constexpr auto T = 400ms;
    rig r;
    r.server.session_timeout = T;
    r.server.answer = [](const request& q) { return is_heartbeat(q) ? std::nullopt : std::optional<reply>(reply{}); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const session_hold a = s.hold("/a"), b = s.hold("/b"), whole = s.hold("");
        co_await r.server.until([&] { return r.server.count("multi") == 1; });
        CHECK(checked(heartbeats(r.server)[0]) == texts{"/a", "/b"});
        const auto sent = boot_clock::now();
        co_await r.server.until([&] { return boot_clock::now() - sent > T / 2; });
        CHECK(r.server.count("multi") == 1);
    };
    r.run(body);
}

TEST_CASE("core: who only holds the session has heartbeats, too", "[core][hold]") {
    rig r;
    r.server.session_timeout = 1200ms;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const session_hold hold = s.hold("");
        co_await r.server.until([&] { return r.server.count("multi") == 2; });
        CHECK(checked(heartbeats(r.server)[0]).empty());
    };
    r.run(body);
}

TEST_CASE("core: very many nodes take turns", "[core][hold]") {
    rig r;
    answer_heartbeats(r);
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        texts paths;
        std::vector<session_hold> holds = hold_large_nodes(s, "abc", paths);
        co_await r.server.until([&] { return r.server.count("multi") == 3; });
        const auto beats = heartbeats(r.server);
        CHECK(checked(beats[0]) == texts{paths[0], paths[1]});
        CHECK(checked(beats[1]) == texts{paths[2], paths[0]});
        CHECK(checked(beats[2]) == texts{paths[1], paths[2]});
        for (const session_hold& h : holds) CHECK(h.held());
    };
    r.run(body);
}

TEST_CASE("core: very many nodes of one hold take turns, too", "[core][hold]") {
    rig r;
    answer_heartbeats(r);
    texts paths;
    for (const char name : {'a', 'b', 'c', 'd', 'e'}) paths.push_back('/' + std::string(70'000, name));
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const session_hold many = s.hold(paths), one = s.hold("/one");
        co_await r.server.until([&] { return r.server.count("multi") == 3; });
        const auto beats = heartbeats(r.server);
        CHECK(checked(beats[0]) == texts{paths[0], paths[1], paths[2]});
        CHECK(checked(beats[1]) == texts{paths[3], paths[4], "/one", paths[0]});
        CHECK(checked(beats[2]) == texts{paths[1], paths[2], paths[3]});
        CHECK(many.held());
        CHECK(one.held());
    };
    r.run(body);
}

TEST_CASE("core: a node that is to be checked again and again leaves the others their turns", "[core][hold]") {
    rig r;
    answer_heartbeats(r);
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        texts paths;
        std::vector<session_hold> holds = hold_large_nodes(s, "abcd", paths);
        for (std::size_t n = 1; n <= 6; ++n) {
            co_await r.server.until([&] { return r.server.count("multi") >= n; });
            holds[0].check_node();
        }
        std::size_t first = 0, last = 0;
        for (const auto& beat : heartbeats(r.server)) {
            const texts paths_of_it = checked(beat);
            first += std::count(paths_of_it.begin(), paths_of_it.end(), paths.front()) > 0;
            last += std::count(paths_of_it.begin(), paths_of_it.end(), paths.back()) > 0;
        }
        CHECK(first >= 4);
        CHECK(last >= 1);
    };
    r.run(body);
}

TEST_CASE("core: a check that fails ends that hold and no other", "[core][hold]") {
    constexpr auto T = 4000ms;
    rig r;
    r.server.session_timeout = T;
    const std::string deleted = GENERATE("/a", "/b", "/c");
    r.server.answer = [&](const request& q) {
        if (!is_heartbeat(q)) return reply{};
        return gone(q, deleted);
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const session_hold a = s.hold("/a"), b = s.hold("/b"), c = s.hold("/c");
        const session_hold& lost_one = deleted == "/a" ? a : deleted == "/b" ? b : c;
        const loss_reason why = co_await lost_one.lost();
        CHECK(why == loss_reason::node_deleted);
        for (const session_hold* h : {&a, &b, &c}) CHECK(h->held() == (h != &lost_one));
        CHECK(lost_one.held_until() == boot_clock::time_point{});

        // The others follow at once: the steps behind the failed one were not looked at.
        co_await r.server.until([&] { return r.server.count("multi") == 2; });
        const auto beats = heartbeats(r.server);
        CHECK(beats[1].at - beats[0].at < T / 4);
        CHECK(beats[1].at - beats[0].at >= T / 32);  // but not in a tight loop
        texts others{"/a", "/b", "/c"};
        std::erase(others, deleted);
        texts second = checked(beats[1]);
        std::sort(second.begin(), second.end());
        CHECK(second == others);
    };
    r.run(body);
}

TEST_CASE("core: who comes after the end of the lease is confirmed by a heartbeat", "[core][hold]") {
    constexpr auto T = 1200ms;
    rig r;
    r.server.session_timeout = T;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        co_await r.server.until([&] { return boot_clock::now() > s.leased_until(); });
        const session_hold hold = s.hold("/a");
        CHECK_FALSE(hold.held());
        CHECK(hold.reason() == loss_reason::none);  // not lost: not confirmed yet
        co_await hold.confirmed();
        REQUIRE(r.server.requests.size() == 1);
        CHECK(checked(r.server.requests[0]) == texts{"/a"});
        CHECK(s.leased_until() > r.server.requests[0].at + T / 3);
        CHECK(s.leased_until() <= r.server.requests[0].at + T * 3 / 4);
    };
    r.run(body);
}

TEST_CASE("core: a node that is gone before the first heartbeat", "[core][hold]") {
    rig r;
    r.server.session_timeout = 300ms;
    r.server.answer = [](const request& q) { return gone(q, "/a"); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        co_await r.server.until([&] { return boot_clock::now() > s.leased_until(); });
        const session_hold hold = s.hold("/a");
        const std::error_code code = co_await code_of(hold.confirmed());
        CHECK(code == errc::lock_lost);
        CHECK(hold.reason() == loss_reason::node_deleted);
    };
    r.run(body);
}

TEST_CASE("core: a node that we may not check any more is held all the same", "[core][hold]") {
    constexpr auto T = 1600ms;
    rig r;
    r.server.session_timeout = T;
    r.server.answer = [](const request& q) {
        reply a;
        if (!is_heartbeat(q)) return a;
        for (const multi_op& op : std::get<multi_request>(q).ops) {
            multi_result result;
            if (a.code) result.code = zk_errc::runtime_inconsistency;
            if (!a.code && std::get<check_op>(op).path == "/b") a.code = result.code = zk_errc::no_auth;
            a.results.push_back(result);
        }
        return a;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const session_hold a = s.hold("/a"), b = s.hold("/b"), c = s.hold("/c");
        co_await r.server.until([&] { return r.server.count("multi") == 4; });
        const auto beats = heartbeats(r.server);
        CHECK(checked(beats[0]) == texts{"/a", "/b", "/c"});
        for (std::size_t i = 1; i < 4; ++i) CHECK(checked(beats[i]).size() == 2);
        for (const session_hold* h : {&a, &b, &c}) CHECK(h->held());
        CHECK(s.leased_until() > beats[2].at + T / 2);
    };
    r.run(body);
}

TEST_CASE("core: an idle session reads every T/4, or T/8 when it has had a hold, and one that is not idle does not",
          "[core][hold]") {
    constexpr auto T = 2400ms;
    rig r;
    r.server.session_timeout = T;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const auto began = boot_clock::now();
        co_await r.server.until([&] { return r.server.own_reads == 4; });
        CHECK(boot_clock::now() - began >= T * 3 / 4);
        CHECK(r.server.requests.empty());
        CHECK(r.core->pending_operations() == 0);

        s.hold("");
        const auto then = boot_clock::now();
        co_await r.server.until([&] { return r.server.own_reads == 8; });
        CHECK(boot_clock::now() - then >= T * 3 / 8);
        CHECK(boot_clock::now() - then < T * 7 / 8);
        CHECK(r.server.requests.size() <= 1);  // a heartbeat

        // As often as that while one asks for something else all the time.
        const std::size_t before = r.server.own_reads;
        for (int i = 0; i < 20; ++i) {
            co_await zk.get("/a");
            const auto answered = boot_clock::now();
            co_await r.server.until([&] { return boot_clock::now() - answered > T / 40; });
        }
        CHECK(r.server.own_reads <= before + 1);  // one, if this machine is busy
    };
    r.run(body);
}

TEST_CASE("core: a read of our own that is not answered: closing does not wait for it", "[core][hold]") {
    rig r(rig::quick().close_timeout(5s));
    r.server.session_timeout = 400ms;
    r.server.answers_own_reads = false;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        co_await r.server.until([&] { return r.server.own_reads == 2; });
        const auto began = boot_clock::now();
        const close_result how = co_await zk.close();
        CHECK(how == close_result::confirmed);
        CHECK(boot_clock::now() - began < 2s);
    };
    r.run(body);
}

TEST_CASE("core: no read of our own without a connection", "[core][hold]") {
    constexpr auto T = 1200ms;
    rig r;
    r.server.session_timeout = T;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        co_await r.server.until([&] { return r.server.own_reads == 1; });
        r.server.reachable = false;
        r.server.drop();
        const auto dropped = boot_clock::now();
        while (boot_clock::now() - dropped < T / 2) co_await asio::post(asio::use_awaitable);
        CHECK(zk.state() == session_state::suspended);
        CHECK(r.server.own_reads <= 2);
        r.server.reachable = true;
        co_await r.server.until([&] { return r.server.own_reads == 4; });
    };
    r.run(body);
}

TEST_CASE("core: reads that are not answered prove nothing", "[core][hold]") {
    constexpr auto T = 600ms;
    rig r;
    r.server.session_timeout = T;
    r.server.answers_own_reads = false;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        co_await r.server.until([&] { return boot_clock::now() > s.leased_until(); });
        const auto before = s.leased_until();
        co_await s.set("/a", "x");
        CHECK(s.leased_until() == before);
        const session_hold hold = s.hold("/a");
        co_await hold.confirmed();
        // The first write was one that is known to the leader, when the next came half a tick later.
        CHECK(r.server.count("multi") == 1);
        CHECK(boot_clock::now() >= r.server.requests[0].at + T / 4);
        CHECK(s.leased_until() <= r.server.requests.back().at + T * 3 / 4);
    };
    r.run(body);
}

TEST_CASE("core: a lock that is taken after an idle time survives a slow link", "[core][hold]") {
    constexpr auto T = 1600ms;
    const bool silent = GENERATE(false, true);  // one silence, instead of long round trips
    rig r;
    r.server.session_timeout = T;
    if (!silent) r.server.delay = T / 10;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        co_await r.server.until([&] { return boot_clock::now() > s.leased_until() + T / 5; });
        co_await s.set("/a", "x");
        const auto began = boot_clock::now();
        const session_hold hold = s.hold("/a");
        CHECK(hold.held());
        if (silent) {
            co_await r.server.until([&] { return r.server.count("multi") == 1; });
            r.server.quiet_until = boot_clock::now() + T / 5;
        }
        co_await r.server.until([&] { return boot_clock::now() > began + 2 * T || !hold.held(); });
        CHECK(hold.held());
        CHECK(hold.reason() == loss_reason::none);
    };
    r.run(body);
}

TEST_CASE("core: a tick that is known lengthens leases, and what was granted is looked at", "[core][hold]") {
    struct expectation {
        client_options::duration asked_for, granted, tick;
        int worth;  // per mille of T, at least, of a handshake's successor
        std::string logged;
    };
    const auto given =
        GENERATE(values<expectation>({{1600ms, 1600ms, 160ms, 625, ""},
                                      {1600ms, 1600ms, 800ms, 375, ""},
                                      {1600ms, 1600ms, 1000ms, 325, "is below two ticks of 1000 ms; leases are short"},
                                      {800ms, 1600ms, 800ms, 375, ""},
                                      {800ms, 1600ms, 160ms, 375, "160 ms is not used"}}));
    std::string logged;
    rig r(rig::quick().session_timeout(given.asked_for).tick(given.tick).log([&](std::string_view line) {
        if (line.starts_with("tick: ")) logged += line;
    }));
    r.server.session_timeout = given.granted;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        co_await r.server.until([&] { return boot_clock::now() > s.leased_until(); });
        const auto sent = boot_clock::now();
        co_await s.set("/a", "x");
        const auto worth = s.leased_until() - sent;
        CHECK(worth > given.granted * given.worth / 1000);
        const auto half_tick = given.logged.ends_with("not used") ? given.granted / 4 : given.tick / 2;
        CHECK(worth <= given.granted - half_tick);
        CHECK((given.logged.empty() ? logged.empty() : logged.find(given.logged) != std::string::npos));
    };
    r.run(body);
    CHECK_THROWS_AS(rig(rig::quick().tick(-1ms)), error);
}

TEST_CASE("core: how often a lease is renewed is an option, which is checked", "[core][hold]") {
    constexpr auto T = 1600ms;
    const auto often = GENERATE(lease_renewal::quarter, lease_renewal::third, lease_renewal::half);
    rig r(rig::quick().lease_renewal(often));
    r.server.session_timeout = T;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        CHECK(s.renewal_interval() == boot_clock::duration(T) / static_cast<int>(often));
        const session_hold hold = s.hold("/a");
        co_await r.server.until([&] { return r.server.count("multi") == 3; });
        const auto beats = heartbeats(r.server);
        // The client reckons from when it has looked at the clock, the server from when it was asked.
        for (std::size_t i = 1; i < beats.size(); ++i) {
            CHECK(beats[i].at - beats[i - 1].at >= s.renewal_interval() * 9 / 10);
        }
        CHECK(hold.held());
    };
    r.run(body);
    CHECK(session().renewal_interval() == boot_clock::duration());
    for (const int wrong : {-1, 0, 1, 5}) {
        const auto make = [&] { rig(rig::quick().lease_renewal(static_cast<lease_renewal>(wrong))); };
        const std::optional<error> refused = error_of(make);
        REQUIRE(refused);
        CHECK(refused->code() == errc::invalid_argument);
        const std::string text = refused->what();
        CHECK(text.find("lease_renewal must be a quarter, a third or a half") != std::string::npos);
    }
}

TEST_CASE("core: heartbeats check few of the nodes that are watched, in turns", "[core][hold]") {
    rig r;
    r.server.session_timeout = 800ms;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        texts paths;
        std::vector<session_hold> holds;
        for (int i = 100; i < 200; ++i) {
            paths.push_back('/' + std::string(171, 'a') + std::to_string(i));
            holds.push_back(s.hold(paths.back()));
        }
        co_await r.server.until([&] { return r.server.count("multi") >= 1; });
        CHECK(checked(heartbeats(r.server)[0]) == paths);  // before they are watched
        co_await r.server.until([&] { return r.server.watched(paths.back()); });
        const std::size_t before = r.server.count("multi");
        co_await r.server.until([&] { return r.server.count("multi") == before + 5; });
        texts seen;
        const auto beats = heartbeats(r.server);
        for (std::size_t i = before; i < beats.size(); ++i) {
            const texts some = checked(beats[i]);
            CHECK(some.size() == 20);  // of 200 bytes each
            seen.insert(seen.end(), some.begin(), some.end());
        }
        std::sort(seen.begin(), seen.end());
        CHECK(seen == paths);
        // A node whose watch has fired is checked again, whose turn it is or not.
        r.server.answer = [](const request& q) {
            const bool watches = std::holds_alternative<get_request>(q);
            return watches ? std::nullopt : std::optional<reply>(reply{});
        };
        r.server.fire(node_event::data_changed, paths[7]);
        co_await r.server.until([&] { return r.server.count("multi") == before + 7; });
        for (const auto& beat : {heartbeats(r.server)[before + 5], heartbeats(r.server)[before + 6]}) {
            const texts some = checked(beat);
            CHECK(std::count(some.begin(), some.end(), paths[7]) == 1);
        }
        for (const session_hold& h : holds) CHECK(h.held());
    };
    r.run(body);
}

TEST_CASE("core: a node that is watched was there when a write was sent that has been acknowledged", "[core][hold]") {
    rig r;
    r.server.session_timeout = 1600ms;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const session_hold hold = s.hold("/a");
        co_await next_turns(r.server);
        const auto began = hold.node_checked();
        co_await s.set("/b", "x");
        CHECK(hold.node_checked() == began);  // not watched yet
        const auto watch_and_write = [&]() -> asio::awaitable<void> {
            asio::post(s.get_executor(), [&] { hold.watch_nodes(); });
            co_await r.server.until([&] { return r.server.watched("/a"); });
            co_await next_turns(r.server);
            const auto before = boot_clock::now();
            co_await s.set("/b", "x");
            CHECK(hold.node_checked() >= before);
            // It counts from its sending.
            r.server.answer = [](const request&) -> std::optional<reply> { return std::nullopt; };
            const std::size_t sent = r.server.count("set /b");
            running writing(co_await asio::this_coro::executor, set(s, "/b"));
            co_await r.server.until([&] { return r.server.count("set /b") > sent; });
            const auto asked = boot_clock::now();
            co_await r.server.until([&] { return boot_clock::now() - asked > 5ms; });
            r.server.answer = [](const request&) { return reply{}; };
            r.server.reply_to_all();
            co_await writing.end();
            CHECK(hold.node_checked() <= asked);
        };
        co_await watch_and_write();
        // Neither a refused write, nor a read.
        const auto known = hold.node_checked();
        r.server.answer = [](const request& q) {
            reply a;
            if (is_write(q)) a.code = zk_errc::no_node;
            return a;
        };
        (void)co_await code_of(s.set("/b", "x"));
        co_await s.get("/b");
        CHECK(hold.node_checked() == known);
        // What was proven stays so; more only when the watch is set again, and known to be.
        r.server.answer = [](const request& q) {
            return is_heartbeat(q) ? std::nullopt : std::optional<reply>(reply{});
        };
        r.server.drop();
        co_await r.server.until([&] { return r.server.connections == 2 && r.server.watched("/a"); });
        co_await s.set("/b", "x");
        CHECK(hold.node_checked() == known);
        r.server.answer = [](const request&) { return reply{}; };
        r.server.reply_to_all();
        co_await r.server.until([&] { return hold.node_checked() > known; });
        const auto before = boot_clock::now();
        co_await s.set("/b", "x");
        const auto again = hold.node_checked();
        CHECK(again >= before);
        r.server.answer = [](const request& q) {
            reply a;
            if (std::holds_alternative<get_request>(q)) a.code = zk_errc::no_auth;
            return a;
        };
        r.server.fire(node_event::data_changed, "/a");
        co_await r.server.until([&] { return !r.server.watched("/a"); });
        co_await s.set("/b", "x");
        CHECK(hold.node_checked() == again);
        r.server.answer = [](const request&) { return reply{}; };
        co_await watch_and_write();
        // When the hold has ended, nothing more is proven.
        const auto last = hold.node_checked();
        hold.end();
        co_await next_turns(r.server);
        co_await s.set("/b", "x");
        CHECK(hold.node_checked() <= last);
    };
    r.run(body);
}

TEST_CASE("core: writes prove a watched node for as long as a session timeout after a heartbeat", "[core][hold]") {
    constexpr auto T = 400ms;
    rig r;
    r.server.session_timeout = T;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const session_hold hold = s.hold("/a");
        asio::post(s.get_executor(), [&] { hold.watch_nodes(); });
        co_await r.server.until([&] { return r.server.watched("/a"); });
        co_await r.server.until([&] { return r.server.count("multi") >= 1; });
        co_await next_turns(r.server);
        const std::size_t beats = r.server.count("multi");
        const auto began = boot_clock::now();
        auto proven = began;
        while (boot_clock::now() - began < T * 3 / 2) {
            co_await s.set("/b", "x");
            proven = hold.node_checked();
        }
        if (r.server.count("multi") == beats) CHECK(boot_clock::now() - proven > T / 4);
        CHECK(proven > began);
    };
    r.run(body);
}

TEST_CASE("core: nodes of holds of many nodes take turns, and those that are not watched do not", "[core][hold]") {
    rig r;
    r.server.session_timeout = 800ms;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        texts paths;
        for (int i = 100; i < 200; ++i) paths.push_back('/' + std::string(171, 'a') + std::to_string(i));
        r.server.answer = [&](const request& q) {
            const bool watches = std::holds_alternative<get_request>(q) && path_of(q) == paths[10];
            return watches ? std::nullopt : std::optional<reply>(reply{});
        };
        const session_hold all = s.hold(paths), other = s.hold(paths[0]);
        co_await r.server.until([&] { return r.server.watched(paths.back()); });
        co_await next_turns(r.server);
        const std::size_t before = r.server.count("multi");
        asio::post(s.get_executor(), [&] { other.check_node(); });
        co_await r.server.until([&] { return r.server.count("multi") == before + 5; });
        std::set<std::string> seen;
        const auto beats = heartbeats(r.server);
        for (std::size_t i = before; i < beats.size(); ++i) {
            const texts some = checked(beats[i]);
            CHECK(std::count(some.begin(), some.end(), paths[10]) == 1);
            CHECK(some.size() <= 23);
            seen.insert(some.begin(), some.end());
        }
        CHECK(seen.size() == paths.size());
        r.server.answer = [](const request&) { return reply{}; };
        r.server.reply_to_all();
    };
    r.run(body);
}

TEST_CASE("core: a heartbeat that has failed is repeated before the lease ends", "[core][hold]") {
    constexpr auto T = 4s;  // a ninth of it is left when a heartbeat is sent
    rig r(rig::quick().lease_renewal(lease_renewal::half));
    r.server.session_timeout = T;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const session_hold hold = s.hold("/a");
        co_await r.server.until([&] { return r.server.count("multi") >= 2; });
        std::size_t refused = 0;
        r.server.answer = [&](const request& q) {
            reply a;
            if (is_heartbeat(q) && refused < 2) {
                ++refused;
                a.code = zk_errc::throttled;
            }
            return a;
        };
        const std::size_t before = r.server.count("multi");
        co_await r.server.until([&] { return r.server.count("multi") >= before + 4; });
        CHECK(refused == 2);
        CHECK(hold.held());
    };
    r.run(body);
}
