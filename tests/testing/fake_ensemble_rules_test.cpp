// What a fake_ensemble does as a server does. That it does so in all that zkasio needs is shown by the integration
// tests, which run against both.

#include "support/catch.hpp"
#include "support/test_client.hpp"

#include <zkasio/acl.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/create_options.hpp>
#include <zkasio/error.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/operations.hpp>
#include <zkasio/session.hpp>
#include <zkasio/testing/fake_ensemble.hpp>
#include <zkasio/transaction.hpp>

#include <asio/steady_timer.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace std::chrono_literals;
using test::code_of;
using testing::fake_ensemble;

namespace {

client_options lasting(std::chrono::milliseconds session_timeout) {
    return client_options("zk1").session_timeout(session_timeout);
}

asio::awaitable<std::chrono::milliseconds> granted(client zk) {
    const session s = co_await zk.current_session();
    co_return s.timeout();
}

}  // namespace

TEST_CASE("fake ensemble: session timeouts are granted within bounds", "[testing]") {
    fake_ensemble ensemble;
    const client brief = ensemble.client(lasting(100ms)), usual = ensemble.client(lasting(10s)),
                 long_one = ensemble.client(lasting(1h));
    CHECK(ensemble.run(granted(brief)) == 4s);
    CHECK(ensemble.run(granted(usual)) == 10s);
    CHECK(ensemble.run(granted(long_one)) == 40s);
    ensemble.session_timeouts(1s, 10s);
    CHECK(ensemble.run(granted(ensemble.client(lasting(100ms)))) == 1s);
    CHECK(ensemble.run(granted(ensemble.client(lasting(1h)))) == 10s);
    CHECK_THROWS_AS(ensemble.session_timeouts(0ms, 1s), error);
    CHECK_THROWS_AS(ensemble.session_timeouts(2s, 1s), error);
}

// The leader sets the end of the session at each handshake, and so does the client's lease.
TEST_CASE("fake ensemble: a handshake renews the session, also if the server hangs up behind it", "[testing]") {
    for (const bool cut_when_connected : {false, true})
        for (std::uint64_t seed = 1; seed <= 10; ++seed) {
            INFO("seed " << seed << (cut_when_connected ? ", cut when connected" : ""));
            fake_ensemble ensemble(seed);
            client one = ensemble.client(lasting(10s)), two = ensemble.client(lasting(10s));
            std::optional<lock_guard> mine, theirs;
            const auto take = [](client zk, std::optional<lock_guard>& to) -> asio::awaitable<void> {
                lock_guard guard = co_await mutex(zk, "/lock").acquire();
                to.emplace(std::move(guard));
            };
            ensemble.run(take(one, mine));
            test::running waits(ensemble.get_executor(), take(two, theirs));
            ensemble.run_for(3s);
            auto last_handshake = ensemble.now();
            bool both = false, connected = false;
            int cuts = 0;  // at each connection, in no time
            ensemble.on_step([&](std::string_view step) {
                if (step.find("connect 0") != step.npos) last_handshake = ensemble.now();
                const bool cut = std::exchange(connected, step.find("deliver 0: connected") != step.npos);
                if (cut && cut_when_connected) ++cuts < 50 ? ensemble.cut(one) : ensemble.hold_down(one);
                both = both || (theirs && theirs->held() && mine->held());
            });
            if (cut_when_connected)
                ensemble.cut(one);
            else
                ensemble.hang_up(one);
            while (!theirs && ensemble.now() < 3min) {
                ensemble.run_for(50ms);
                both = both || (theirs && theirs->held() && mine->held());
                if (ensemble.now() - last_handshake < 9900ms) CHECK_FALSE(theirs);
            }
            CHECK_FALSE(both);
            ensemble.on_step(nullptr);
            ensemble.let_in(one);
            waits.cancel();
            mine.reset();
            theirs.reset();
            for (client* zk : {&one, &two}) ensemble.run(zk->close());
        }
}

TEST_CASE("fake ensemble: silence lasts for two thirds of the session timeout that was granted", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(lasting(1h));
    ensemble.run(zk.connected());
    ensemble.silence(zk);
    ensemble.run_for(26s);
    CHECK(ensemble.is_connected(zk));
    ensemble.run_for(1s);
    CHECK_FALSE(ensemble.is_connected(zk));
    ensemble.run_for(14s);
    CHECK(ensemble.sessions() == 0);
}

TEST_CASE("fake ensemble: a request that is too large ends the connection, and is not carried out", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client();
    ensemble.run(zk.create("/large", std::string(1'000'000, 'x')));
    ensemble.max_request(2000);
    ensemble.run(zk.set("/large", std::string(1000, 'y')));
    const std::error_code code = ensemble.run(code_of(zk.set("/large", std::string(3000, 'z'))));
    CHECK(code == condition::outcome_unknown);
    CHECK(ensemble.data("/large") == std::string(1000, 'y'));
    ensemble.run(zk.connected());
    CHECK(ensemble.sessions() == 1);
}

TEST_CASE("fake ensemble: nodes that are refused for want of permission have another ACL by then", "[testing]") {
    fake_ensemble ensemble;
    ensemble.create("/a/b");
    ensemble.create("/c");
    const auto versions = [&] {
        return std::pair(ensemble.stat("/a")->aversion, ensemble.stat("/a/b")->aversion);
    };
    ensemble.refuse("/a", zk_errc::no_auth);
    CHECK(versions() == std::pair(1, 1));
    ensemble.refuse("/a", zk_errc::no_auth);  // as it was
    CHECK(versions() == std::pair(1, 1));
    ensemble.accept("/a");
    ensemble.accept("/a");
    CHECK(versions() == std::pair(2, 2));
    ensemble.refuse("/a", zk_errc::throttled);  // not for its ACL
    ensemble.accept("/a");
    CHECK(versions() == std::pair(2, 2));
    CHECK(ensemble.stat("/c")->aversion == 0);
}

TEST_CASE("fake ensemble: a session goes with the client that takes it over", "[testing]") {
    fake_ensemble ensemble;
    const client first = ensemble.client();
    const session_credentials mine = ensemble.run(first.credentials());
    const client heir = ensemble.client(client_options("zk1").resume(mine));
    ensemble.hold_down(first);
    ensemble.run(heir.connected());
    CHECK(ensemble.session_id(heir) == mine.id());
    CHECK(ensemble.sessions() == 1);
    const client thief = ensemble.client(client_options("zk1").resume({mine.id(), "fedcba9876543210"}));
    ensemble.run(thief.connected());
    CHECK(ensemble.session_id(thief) != mine.id());
}

TEST_CASE("fake ensemble: which nodes are watched, and how much was asked", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client();
    ensemble.run(zk.connected());
    const std::size_t before = ensemble.requests(zk);
    ensemble.create("/b");
    auto b = ensemble.run(zk.children_and_watch("/b"));
    auto a = ensemble.run(zk.exists_and_watch("/a"));
    CHECK(ensemble.requests(zk) == before + 2);
    CHECK(ensemble.watched_paths() == std::vector<std::string>{"/a", "/b"});
    ensemble.expire(zk);
    ensemble.run_for(1min);
    ensemble.run(zk.connected());
    CHECK(ensemble.requests(zk) >= before + 2);  // in all sessions
}

TEST_CASE("fake ensemble: an ACL names addresses one by one, or whole networks", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client();
    const auto created_with = [&](const std::string& id) {
        std::error_code code;
        const auto create = [&]() -> asio::awaitable<void> {
            create_options how;
            how.acl(acl(1, acl_entry(permission::all, ip_address(id))));
            code = co_await code_of(zk.create("/by/" + id.substr(0, id.find('/')), "", how));
        };
        ensemble.run(create());
        return code;
    };
    ensemble.create("/by");
    for (const auto& [id, may_read] : std::vector<std::pair<std::string, bool>>{
             {"127.0.0.1", true}, {"127.0.0.2", false}, {"127.1.0.0/8", true}, {"10.0.0.0/8", false}}) {
        INFO(id);
        REQUIRE_FALSE(created_with(id));
        std::error_code code;
        const auto get = [&]() -> asio::awaitable<void> {
            code = co_await code_of(zk.get("/by/" + id.substr(0, id.find('/'))));
        };
        ensemble.run(get());
        CHECK(code == (may_read ? std::error_code() : zk_errc::no_auth));
    }
}

TEST_CASE("fake ensemble: it runs dry when nothing is left, or says what is", "[testing]") {
    fake_ensemble ensemble;
    std::optional<client> zk(ensemble.client());
    ensemble.run(zk->connected());
    CHECK_THROWS_AS(ensemble.run_dry(10s), std::runtime_error);
    zk.reset();
    ensemble.run_dry(10s);
    CHECK(ensemble.sessions() == 0);
    bool fired = false;
    asio::steady_timer timer(ensemble.context(), 1h);
    timer.async_wait([&](std::error_code) { fired = true; });
    ensemble.run_dry(2h);
    CHECK(fired);
}

TEST_CASE("fake ensemble: a loop that stands still loses its lock, and what it writes then is refused", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(lasting(10s));
    ensemble.create("/account", "100");
    std::error_code how;
    bool held_before = false, held_after = true;
    const auto body = [&]() -> asio::awaitable<void> {
        const mutex lock(zk, "/lock");
        lock_guard guard = co_await lock.acquire();
        held_before = guard.held();
        const auto begin = boot_clock::now();
        const std::string node = guard.path();
        ensemble.stall(12s);
        CHECK(boot_clock::now() - begin == 12s);
        CHECK_FALSE(ensemble.exists(node));  // the session has expired at the servers
        held_after = guard.held();
        transaction t;
        t.set("/account", "90");
        how = co_await code_of(guard.commit(t));
    };
    ensemble.run(body());
    CHECK(held_before);
    CHECK_FALSE(held_after);
    CHECK(how == errc::lock_lost);
    CHECK(ensemble.data("/account") == "100");
    ensemble.run(zk.close());
    ensemble.run_dry();
}

TEST_CASE("fake ensemble: a session outlives a stall that is shorter than its timeout", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(lasting(10s));
    ensemble.run(zk.connected());
    const std::int64_t before = ensemble.session_id(zk);
    ensemble.stall(9s);
    ensemble.run(zk.exists("/"));
    CHECK(ensemble.session_id(zk) == before);
    ensemble.run(zk.close());
    ensemble.run_dry();
}

// That and other rules for credentials and ACLs: tests/integration/operations_refused_test.cpp.
TEST_CASE("fake ensemble: a credential of an unknown scheme is refused", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(lasting(10s));
    CHECK(ensemble.run(code_of(zk.add_auth("nope", "x"))) == zk_errc::auth_failed);
}
