// A client of a server without a quorum, in virtual time: what is read, what is refused, and how it ends.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/cache/node_cache.hpp>
#include <zkasio/error.hpp>
#include <zkasio/membership/group.hpp>
#include <zkasio/modify.hpp>
#include <zkasio/queues/work_queue.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/this_coro.hpp>

#include <optional>
#include <string>
#include <vector>

namespace read_only_tests {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

client_options ordinary() { return client_options("zk1").session_timeout(10s).connection_timeout(5s); }
client_options reader() { return ordinary().read_only(); }

// g++ 12 refuses braces in an expression with a co_await.
const std::vector<std::string> only_b{"b"};
const std::vector<session_state> states_of_its_end{session_state::connected, session_state::suspended,
                                                   session_state::expired};

}  // namespace

TEST_CASE("read-only client: reads are answered, everything else is refused at once", "[testing]") {
    fake_ensemble ensemble;
    ensemble.create("/a/b", "old");
    const client zk = ensemble.client(reader());
    auto body = [&]() -> asio::awaitable<void> {
        CHECK(co_await code_of(zk.set("/a/b", "x")) == zk_errc::not_read_only);  // without a connection, too
        ensemble.lose_quorum(zk);
        ensemble.set("/a/b", "new");
        co_await zk.connected();
        CHECK(zk.state() == session_state::connected);
        CHECK((co_await zk.get("/a/b")).data == "old");
        CHECK(co_await zk.exists("/a"));
        CHECK((co_await zk.children("/a")).names == only_b);
        CHECK((co_await zk.get_acl("/a")).acl == open_acl());
        CHECK(co_await code_of(zk.get("/none")) == zk_errc::no_node);
        const session own = zk.session_now();
        CHECK((co_await own.get("/a/b")).data == "old");

        const auto began = ensemble.now();
        const std::size_t asked = ensemble.requests(zk);
        const std::string refused = co_await message_of(zk.set("/a/b", "x"));
        CHECK(refused ==
              "set /a/b: the server is read-only (a client with client_options::read_only() only reads: use one without "
              "it)");
        CHECK(co_await code_of(zk.create("/c")) == zk_errc::not_read_only);
        CHECK(co_await code_of(zk.remove("/a/b")) == zk_errc::not_read_only);
        CHECK(co_await code_of(zk.sync()) == zk_errc::not_read_only);
        CHECK(co_await code_of(zk.set_acl("/a", open_acl())) == zk_errc::not_read_only);
        create_options protectedly;
        protectedly.mode(create_mode::ephemeral_sequential).protection();
        const std::error_code not_protected = co_await code_of(zk.create("/c-", bytes(), protectedly));
        CHECK(not_protected == zk_errc::not_read_only);
        transaction steps;
        steps.create("/c").remove("/a/b");
        const std::error_code refused_steps = co_await code_of(zk.multi(std::move(steps)));
        CHECK(refused_steps == zk_errc::not_read_only);
        CHECK(ensemble.now() == began);
        CHECK(ensemble.requests(zk) == asked);
        CHECK(co_await code_of(zk.remove_recursive("/a/b")) == zk_errc::not_read_only);
        const close_result how = co_await zk.close();
        CHECK(how == close_result::confirmed);
    };
    ensemble.run(body());
    ensemble.run_dry();
    CHECK(ensemble.connections() == 0);
    CHECK(ensemble.watches() == 0);
}

// Locks: lock_features_test.
TEST_CASE("read-only client: recipes that write are refused, none waits", "[testing]") {
    fake_ensemble ensemble;
    ensemble.create("/dir");
    const client zk = ensemble.client(reader());
    auto body = [&]() -> asio::awaitable<void> {
        ensemble.lose_quorum(zk);
        co_await zk.connected();
        const auto began = ensemble.now();
        const auto refused = [&](std::string what, std::error_code code) {
            INFO(what);
            CHECK(code == zk_errc::not_read_only);
        };
        refused("group", co_await code_of(group(zk, "/dir/h").join("m")));
        refused("queue", co_await code_of(work_queue(zk, "/dir/i").put("item")));
        const auto change = [](const std::optional<node_data>&) { return std::optional<std::string>("x"); };
        refused("modify", co_await code_of(modify(zk, "/dir", change)));
        CHECK(ensemble.now() - began < 1s);
        co_await zk.close();
    };
    ensemble.run(body());
    ensemble.run_dry();
    CHECK(ensemble.children("/dir").empty());
    CHECK(ensemble.watches() == 0);
}

TEST_CASE("read-only client: ends with its connection, when the server has a quorum again", "[testing]") {
    fake_ensemble ensemble;
    ensemble.create("/config/a", "1");
    const client zk = ensemble.client(reader()), own = ensemble.client(ordinary());
    auto body = [&]() -> asio::awaitable<void> {
        co_await own.connected();
        ensemble.lose_quorum(zk);
        co_await zk.connected();
        const session_events events = zk.events();
        const session old = zk.session_now();
        const node_cache cached(zk, "/config/a");
        co_await cached.ready();
        CHECK(cached.get().data() == "1");
        const watched<node_data> seen = co_await zk.get_and_watch("/config/a");
        const auto until_changed = [&]() -> asio::awaitable<void> { co_await seen.changes.changed(); };
        running waits(co_await asio::this_coro::executor, until_changed());
        ensemble.set("/config/a", "2");
        co_await sleep_for(1s);
        CHECK(cached.get().data() == "1");
        CHECK_FALSE(waits.ended());

        ensemble.let_in(zk);
        co_await old.ended();
        CHECK(co_await waits.code() == errc::session_expired);
        CHECK(zk.state() == session_state::expired);
        CHECK(co_await code_of(zk.get("/config/a")) == errc::session_expired);
        CHECK(co_await code_of(zk.connected()) == errc::session_expired);
        std::vector<session_state> states;
        std::string why;
        while (states.size() < states_of_its_end.size()) {
            session_event e = co_await events.next();
            states.push_back(e.state);
            why = e.reason;
        }
        CHECK(states == states_of_its_end);
        CHECK(why.find("ends with its connection") != std::string::npos);
        CHECK(cached.get().data() == "1");
        CHECK_FALSE(cached.snapshot().current());
        CHECK((co_await own.get("/config/a")).data == "2");  // the ensemble's own session knows nothing of it
        co_await zk.close();
        co_await own.close();
    };
    ensemble.run(body());
    ensemble.run_dry();
    CHECK(ensemble.connections() == 0);
}

TEST_CASE("read-only client: servers with a quorum are left, at growing pauses", "[testing]") {
    fake_ensemble ensemble;
    ensemble.create("/a", "x");
    const client zk = ensemble.client(reader());
    auto body = [&]() -> asio::awaitable<void> {
        const std::error_code none = co_await code_of(zk.get("/a"));
        CHECK(none == errc::not_connected);
        CHECK(zk.state() == session_state::connecting);
        ensemble.lose_quorum(zk);
        co_await zk.connected();
        CHECK((co_await zk.get("/a")).data == "x");
        co_await zk.close();
    };
    ensemble.run(body());
}

TEST_CASE("read-only client: cuts, lost answers and cancellations leave nothing", "[testing]") {
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
        INFO("seed " << seed);
        fake_ensemble ensemble(seed);
        ensemble.create("/a", "x");
        const client zk = ensemble.client(reader());
        auto body = [&]() -> asio::awaitable<void> {
            ensemble.lose_quorum(zk);
            std::vector<running> all;
            const auto read = [&]() -> asio::awaitable<void> {
                for (int i = 0; i < 20; ++i) co_await zk.get("/a");
            };
            for (int i = 0; i < 5; ++i) all.emplace_back(co_await asio::this_coro::executor, read());
            co_await sleep_for(std::chrono::milliseconds(seed));
            all[0].cancel();
            co_await sleep_for(std::chrono::milliseconds(seed));
            ensemble.cut(zk);
            for (running& one : all) co_await one.code();
            co_await zk.close();
        };
        ensemble.run(body());
        ensemble.run_dry();
        CHECK(ensemble.connections() == 0);
    }
}

TEST_CASE("read-only client: has no session to resume", "[testing]") {
    fake_ensemble ensemble;
    const session_credentials given(7, std::string(16, 'x'));
    try {
        ensemble.client(reader().resume(given));
        FAIL("it was made");
    } catch (const error& e) {
        CHECK(e.code() == errc::invalid_argument);
    }
}

}  // namespace read_only_tests
