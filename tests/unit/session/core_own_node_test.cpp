#include "unit/support/rig.hpp"

#include <optional>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

// A quarter of it is the moment after which a held node is watched.
constexpr auto T = 1200ms;
// A quarter of it is longer than a test lasts.
constexpr auto long_T = 400s;

bool has_watch(const fake_server& s, std::size_t times = 1) { return s.count("get /a") == times && s.watched("/a"); }

}  // namespace

TEST_CASE("core: a node that is held for longer than a moment is watched", "[core][hold][watch]") {
    rig r;
    r.server.session_timeout = T;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const auto began = boot_clock::now();
        const session_hold hold = s.hold("/a"), whole = s.hold("");
        co_await r.server.until([&] { return has_watch(r.server); });
        CHECK(boot_clock::now() >= began + T / 4);
        CHECK(r.core->watches() == 1);

        r.server.fire(node_event::data_changed, "/a");  // harmless: watched anew
        co_await r.server.until([&] { return has_watch(r.server, 2); });
        CHECK(hold.held());

        r.server.fire(node_event::removed, "/a");
        const loss_reason why = co_await hold.lost();
        CHECK(why == loss_reason::node_deleted);
        CHECK_FALSE(hold.held());
        CHECK(whole.held());
        CHECK(r.core->watches() == 0);
    };
    r.run(body);
}

TEST_CASE("core: a node that turns out to be gone when it is watched", "[core][hold][watch]") {
    rig r;
    r.server.session_timeout = T;
    r.server.answer = [](const request& q) {
        return std::holds_alternative<get_request>(q) ? refusal(zk_errc::no_node) : reply{};
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const session_hold hold = s.hold("/a");
        const loss_reason why = co_await hold.lost();
        CHECK(why == loss_reason::node_deleted);
        CHECK(r.server.count("get /a") == 1);
    };
    r.run(body);
}

TEST_CASE("core: a watch on a held node that cannot be set is tried again", "[core][hold][watch]") {
    rig r;
    r.server.session_timeout = T;
    int refusals = 2;
    r.server.answer = [&](const request& q) {
        const bool refuse = std::holds_alternative<get_request>(q) && refusals-- > 0;
        return refuse ? refusal(zk_errc::throttled) : reply{};
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const session_hold hold = s.hold("/a");
        co_await r.server.until([&] { return has_watch(r.server, 3); });
        CHECK(hold.held());
    };
    r.run(body);
}

TEST_CASE("core: the watch on a held node goes with the hold", "[core][hold][watch]") {
    const bool node_goes_away = GENERATE(false, true);
    rig r;
    r.server.session_timeout = T;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        session_hold hold = s.hold("/a");
        co_await r.server.until([&] { return has_watch(r.server); });
        hold.end(node_goes_away);
        if (node_goes_away) {
            co_await s.remove("/a");
            r.server.fire(node_event::removed, "/a");
        }
        co_await r.server.until([&] { return r.core->watches() == 0; });
        CHECK(r.server.count("remove watch /a") == (node_goes_away ? 0 : 1));
    };
    r.run(body);
}

TEST_CASE("core: a hold that ends while its watch is being set leaves no watch", "[core][hold][watch]") {
    rig r;
    r.server.session_timeout = T;
    r.server.answer = [](const request& q) {
        return std::holds_alternative<get_request>(q) ? std::nullopt : std::optional<reply>(reply{});
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        session_hold hold = s.hold("/a");
        co_await r.server.until([&] { return r.server.count("get /a") == 1; });
        hold.end();
        r.server.reply_to_all();
        co_await zk.sync();
        co_await zk.sync();
        co_await zk.sync();
        CHECK(r.core->watches() == 0);
        CHECK_FALSE(r.server.watched("/a"));
    };
    r.run(body);
}

TEST_CASE("core: a watch on a held node proves nothing any more after a loss of the connection",
          "[core][hold][watch]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const session_hold hold = s.hold("/a");
        CHECK_FALSE(hold.nodes_watched());
        hold.watch_nodes();
        co_await r.server.until([&] { return hold.nodes_watched(); });
        r.server.reachable = false;
        r.server.drop();
        co_await r.server.until([&] { return zk.state() == session_state::suspended; });
        CHECK(hold.held());
        CHECK_FALSE(hold.nodes_watched());
        r.server.reachable = true;
    };
    r.run(body);
}

TEST_CASE("core: held nodes that were watched are watched again as soon as there is a connection",
          "[core][hold][watch]") {
    rig r;
    r.server.session_timeout = long_T;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const session_hold hold = s.hold("/a");
        std::optional<session_hold> gives_up(s.hold("/b"));
        hold.watch_nodes();
        gives_up->watch_nodes();
        co_await r.server.until([&] { return hold.nodes_watched() && gives_up->nodes_watched(); });
        r.server.reachable = false;
        r.server.drop();
        co_await r.server.until([&] { return zk.state() == session_state::suspended; });
        CHECK_FALSE(hold.nodes_watched());
        CHECK_FALSE(r.server.watched("/a"));
        r.server.reachable = true;
        co_await r.server.until([&] { return hold.nodes_watched() && gives_up->nodes_watched(); });
        CHECK(r.server.count("get /b") == 1);
        CHECK(r.server.count("exists /b") == 1);
        gives_up.reset();
        co_await r.server.until([&] { return !r.server.watched("/b"); });
        r.server.fire(node_event::removed, "/a");
        const loss_reason why = co_await hold.lost();
        CHECK(why == loss_reason::node_deleted);
    };
    r.run(body);
}

TEST_CASE("core: held nodes that are to be watched during a suspension are watched as soon as there is a connection",
          "[core][hold][watch]") {
    rig r;
    r.server.session_timeout = long_T;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const session_hold hold = s.hold("/a");
        r.server.reachable = false;
        r.server.drop();
        co_await r.server.until([&] { return zk.state() == session_state::suspended; });
        hold.watch_nodes();
        CHECK(r.server.count("get /a") == 0);
        r.server.reachable = true;
        co_await r.server.until([&] { return hold.nodes_watched(); });
    };
    r.run(body);
}
