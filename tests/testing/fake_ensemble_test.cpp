// Code of users over an ensemble in memory: what it does when things go wrong, in no time.

#include "support/catch.hpp"

#include <zkasio/locks/mutex.hpp>
#include <zkasio/operations.hpp>
#include <zkasio/testing/fake_ensemble.hpp>
#include <zkasio/testing/waits.hpp>
#include <zkasio/transaction.hpp>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/steady_timer.hpp>
#include <asio/strand.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <ratio>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using zkasio::client_options;
using zkasio::testing::fake_ensemble;

client_options ten_seconds() { return client_options("zk1:2181,zk2:2181").session_timeout(10s); }

template <class Task>
std::error_code code_of(fake_ensemble& ensemble, Task task) {
    try {
        static_cast<void>(ensemble.run(std::move(task)));
    } catch (const std::system_error& e) {
        return e.code();
    }
    return {};
}

// What a user might write: a job that runs under a lock, and says how it has ended.
asio::awaitable<std::string> guarded_job(zkasio::client zk, std::string lock, std::chrono::seconds work) {
    const zkasio::mutex once(zk, lock);
    std::string outcome = "done";
    auto body = [&](zkasio::lock_guard&) -> asio::awaitable<void> {
        asio::steady_timer timer(co_await asio::this_coro::executor, work);
        co_await timer.async_wait(asio::use_awaitable);
    };
    try {
        co_await once.with_lock(body);
    } catch (const zkasio::error& e) {
        outcome = e.code().message();
    }
    co_return outcome;
}

}  // namespace

TEST_CASE("fake ensemble: a job under a lock, and nothing is left of it", "[testing]") {
    const auto began = std::chrono::steady_clock::now();
    fake_ensemble ensemble;
    {
        const zkasio::client zk = ensemble.client(ten_seconds());
        CHECK(ensemble.run(guarded_job(zk, "/jobs/nightly", 3600s), 2h) == "done");
        CHECK(ensemble.now() > 3600s);
        CHECK(ensemble.now() < 3601s);
        CHECK(ensemble.children("/jobs/nightly").empty());
        CHECK(ensemble.sessions() == 1);
        CHECK(ensemble.run(zk.close()) == zkasio::close_result::confirmed);
    }
    CHECK(ensemble.sessions() == 0);
    CHECK(ensemble.watches() == 0);
    CHECK(ensemble.connections() == 0);
    // What it shows to others is the time of others.
    std::chrono::steady_clock::time_point elsewhere;
    std::thread([&] { elsewhere = std::chrono::steady_clock::now(); }).join();
    CHECK(elsewhere - began < 30min);
}

TEST_CASE("fake ensemble: a lock is lost when its connection stays down, before its session expires", "[testing]") {
    fake_ensemble ensemble;
    const zkasio::client zk = ensemble.client(ten_seconds());
    const zkasio::mutex lock(zk, "/locks/a");
    std::optional<zkasio::lock_guard> guard;
    ensemble.run([&]() -> asio::awaitable<void> {
        zkasio::lock_guard got = co_await lock.acquire();
        guard.emplace(std::move(got));
    });
    const std::string node = "/locks/a/" + ensemble.children("/locks/a").at(0);
    CHECK(ensemble.owns(zk, node));
    ensemble.hold_down(zk);
    const auto cut = ensemble.now();
    ensemble.run(guard->lost());
    CHECK(ensemble.now() - cut > 5s);
    CHECK(ensemble.now() - cut < 10s);
    CHECK_FALSE(guard->held());
    CHECK(ensemble.exists(node));  // nobody else can have it yet
    ensemble.run_for(10s);
    CHECK_FALSE(ensemble.exists(node));
    CHECK(ensemble.sessions() == 0);
    ensemble.let_in(zk);
    ensemble.run(zk.connected());
    CHECK(ensemble.is_connected(zk));
    CHECK(ensemble.sessions() == 1);
}

TEST_CASE("fake ensemble: the next in line gets the lock of a session that has expired", "[testing]") {
    fake_ensemble ensemble;
    const zkasio::client first = ensemble.client(ten_seconds()), second = ensemble.client(ten_seconds());
    std::vector<std::string> outcomes;
    const auto job = [&](zkasio::client zk) -> asio::awaitable<void> {
        const std::string outcome = co_await guarded_job(zk, "/jobs/x", 60s);
        outcomes.push_back(outcome);
    };
    asio::co_spawn(ensemble.context(), job(first), asio::detached);
    ensemble.run_for(1s);
    asio::co_spawn(ensemble.context(), job(second), asio::detached);
    ensemble.run_for(1s);
    CHECK(ensemble.watches(second) > 0);
    ensemble.expire(first);
    ensemble.run_for(1s);
    CHECK(outcomes == std::vector<std::string>{"lock lost"});
    CHECK(ensemble.owns(second, "/jobs/x/" + ensemble.children("/jobs/x").at(0)));
    ensemble.run_for(60s);
    CHECK(outcomes == std::vector<std::string>{"lock lost", "done"});
}

TEST_CASE("fake ensemble: silence is noticed by the client after two thirds of the session timeout", "[testing]") {
    fake_ensemble ensemble;
    const zkasio::client zk = ensemble.client(ten_seconds());
    ensemble.run(zk.connected());
    const auto session = ensemble.session_id(zk);
    ensemble.silence(zk);
    ensemble.run_for(6s);
    CHECK(zk.state() == zkasio::session_state::connected);
    ensemble.run_for(1s);
    CHECK(zk.state() == zkasio::session_state::suspended);
    ensemble.let_in(zk);
    ensemble.run(zk.connected());
    CHECK(ensemble.session_id(zk) == session);  // in time

    ensemble.silence(zk);
    ensemble.run_for(1s);
    ensemble.let_in(zk);
    ensemble.run_for(20s);
    CHECK(zk.state() == zkasio::session_state::connected);
    CHECK(ensemble.session_id(zk) == session);
}

TEST_CASE("fake ensemble: an operation without a connection fails after its time, which takes none", "[testing]") {
    fake_ensemble ensemble;
    const zkasio::client zk = ensemble.client(ten_seconds().connection_timeout(30s));
    ensemble.hold_down(zk);
    CHECK(code_of(ensemble, zk.exists("/a")) == zkasio::errc::not_connected);
    CHECK(ensemble.now() >= 30s);
    CHECK(ensemble.now() < 31s);
}

TEST_CASE("fake ensemble: the answer to a create is lost", "[testing]") {
    fake_ensemble ensemble;
    const zkasio::client zk = ensemble.client(ten_seconds());
    ensemble.lose_answer(zk, "create /orders");
    bool unknown = false;
    try {
        ensemble.run(zk.create("/orders"));
    } catch (const zkasio::error& e) {
        unknown = e.outcome_unknown();
    }
    CHECK(unknown);
    CHECK(ensemble.exists("/orders"));
    ensemble.run(zk.create("/orders/2"));  // once only
    CHECK(ensemble.paths() == std::vector<std::string>{"/orders", "/orders/2"});
}

TEST_CASE("fake ensemble: what is refused, and throttled", "[testing]") {
    fake_ensemble ensemble;
    const zkasio::client zk = ensemble.client(ten_seconds());
    ensemble.create("/secret/door", "closed");
    ensemble.refuse("/secret", zkasio::zk_errc::no_auth);
    CHECK(code_of(ensemble, zk.get("/secret/door")) == zkasio::zk_errc::no_auth);
    CHECK(code_of(ensemble, zk.exists("/secrets")) == std::error_code());
    zkasio::transaction both;
    both.create("/free");
    both.set("/secret/door", "open");
    CHECK(code_of(ensemble, zk.multi(both)) == zkasio::zk_errc::no_auth);
    CHECK_FALSE(ensemble.exists("/free"));
    ensemble.accept("/secret");
    CHECK(ensemble.run(zk.get("/secret/door")).data == "closed");
    ensemble.throttle(100);
    CHECK(code_of(ensemble, zk.set("/secret/door", "open")) == zkasio::zk_errc::throttled);
    CHECK(ensemble.data("/secret/door") == "closed");
}

TEST_CASE("fake ensemble: what is changed behind a client's back fires its watch", "[testing]") {
    fake_ensemble ensemble;
    ensemble.create("/config", "old");
    const zkasio::client zk = ensemble.client(ten_seconds());
    auto seen = ensemble.run(zk.get_and_watch("/config"));
    CHECK(seen.value.data == "old");
    CHECK(ensemble.watches() == 1);
    ensemble.set("/config", "new");
    CHECK(ensemble.run(seen.changes.changed()).what == zkasio::node_change::data_changed);
    ensemble.remove("/config");
    CHECK_FALSE(ensemble.data("/config"));
    CHECK(ensemble.stat("/config") == std::nullopt);
    std::string text;
    try {
        ensemble.set("/config", "x");
    } catch (const zkasio::error& e) {
        text = e.what();
    }
    CHECK(text == "fake_ensemble::set /config: no such node");
}

TEST_CASE("fake ensemble: a chroot is in front of what a client sees", "[testing]") {
    fake_ensemble ensemble;
    ensemble.create("/app");
    const zkasio::client zk = ensemble.client(client_options("zk1,zk2/app"));
    auto root = ensemble.run(zk.children_and_watch("/"));
    CHECK(root.value.names.empty());
    const auto made = ensemble.run(zk.create("/a-", "x", zkasio::create_options().mode(
                                                             zkasio::create_mode::persistent_sequential)));
    CHECK(made.path == "/a-0000000000");
    CHECK(ensemble.exists("/app/a-0000000000"));
    const auto change = ensemble.run(root.changes.changed());
    CHECK(change.path == "/");
    zkasio::transaction both;
    both.create("/b");
    both.create("/b/c");
    const auto steps = ensemble.run(zk.multi(both));
    CHECK(steps.at(1).path == "/b/c");
    CHECK(ensemble.exists("/app/b/c"));
}

TEST_CASE("fake ensemble: with lost connections a lock still has one owner at a time, at any seed", "[testing]") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        INFO("seed " << seed);
        fake_ensemble ensemble(seed);
        ensemble.lose_connections(3);
        ensemble.lag();
        int inside = 0, times = 0;
        const auto contend = [&](zkasio::client zk) -> asio::awaitable<void> {
            const zkasio::mutex lock(zk, "/locks/a");
            for (int n = 0; n < 5; ++n) {
                const auto how = zkasio::acquire_options().survive_expiry();
                zkasio::lock_guard guard = co_await lock.acquire(how);
                CHECK(++inside == 1);
                asio::steady_timer pause(ensemble.context(), 10ms);
                co_await pause.async_wait(asio::use_awaitable);
                --inside;
                ++times;
            }
        };
        for (int n = 0; n < 4; ++n)
            asio::co_spawn(ensemble.context(), contend(ensemble.client(ten_seconds())), asio::detached);
        ensemble.run_for(60s);
        CHECK(times == 20);
        CHECK(ensemble.sessions() == 0);
    }
}

TEST_CASE("fake ensemble: the same seed does the same, another one something else", "[testing]") {
    const auto story = [](std::uint64_t seed) {
        std::string text;
        fake_ensemble ensemble(seed);
        ensemble.on_step([&](std::string_view line) { (text += line) += '\n'; });
        ensemble.lose_connections(5);
        const zkasio::client first = ensemble.client(ten_seconds()), second = ensemble.client(ten_seconds());
        asio::co_spawn(ensemble.context(), guarded_job(first, "/jobs/x", 5s), asio::detached);
        ensemble.run(guarded_job(second, "/jobs/x", 5s));
        return text;
    };
    const std::string one = story(1);
    CHECK(one.find("create /jobs/x/_c_") != std::string::npos);
    CHECK(one == story(1));
    CHECK(one != story(2));
}

TEST_CASE("fake ensemble: servers look for empty containers, and clients on strands are clients", "[testing]") {
    fake_ensemble ensemble;
    const zkasio::client zk = ensemble.client(asio::make_strand(ensemble.context()), ten_seconds());
    CHECK(ensemble.run(guarded_job(zk, "/jobs/x", 1s)) == "done");
    CHECK(ensemble.exists("/jobs/x"));
    ensemble.run_for(2min);
    CHECK_FALSE(ensemble.exists("/jobs/x"));
}

TEST_CASE("fake ensemble: a node goes when its time to live has passed since it was written", "[testing]") {
    fake_ensemble ensemble;
    const zkasio::client zk = ensemble.client(ten_seconds());
    const auto how = zkasio::create_options().mode(zkasio::create_mode::persistent_ttl).ttl(90s);
    for (const char* path : {"/left", "/written", "/parent"}) ensemble.run(zk.create(path, "", how));
    const std::optional<zkasio::node_stat> stat = ensemble.stat("/left");
    CHECK(stat.value().ephemeral_owner == 0);  // servers do not show how long it lives
    ensemble.create("/parent/child");
    ensemble.run_for(70s);
    ensemble.set("/written", "again");
    ensemble.run_for(60s);
    CHECK_FALSE(ensemble.exists("/left"));
    CHECK(ensemble.exists("/written"));
    ensemble.run_for(60s);
    CHECK_FALSE(ensemble.exists("/written"));
    CHECK(ensemble.exists("/parent"));
    ensemble.remove("/parent/child");
    ensemble.run_for(60s);
    CHECK_FALSE(ensemble.exists("/parent"));

    // What has the name of one that went lives as long as it is to.
    ensemble.create("/left");
    ensemble.run_for(5min);
    CHECK(ensemble.exists("/left"));
}

TEST_CASE("fake ensemble: a slow ensemble lets time limits pass", "[testing]") {
    fake_ensemble ensemble;
    const zkasio::client zk = ensemble.client(ten_seconds());
    ensemble.run(zk.connected());
    ensemble.step_time(2s);
    const auto before = ensemble.now();
    CHECK_FALSE(ensemble.run(zk.exists("/a")));
    CHECK(ensemble.now() - before >= 4s);
}

TEST_CASE("fake ensemble: durations are of any unit, and as long as they like", "[testing]") {
    constexpr auto for_ever = std::chrono::hours::max();
    fake_ensemble ensemble;
    ensemble.session_timeouts(1s, for_ever);
    ensemble.check_containers_every(for_ever);
    const zkasio::client zk = ensemble.client(ten_seconds());
    ensemble.run(zk.connected(), for_ever);
    ensemble.create("/a");
    ensemble.run(zkasio::testing::until_exists(zk, "/a", for_ever), for_ever);
    const auto before = ensemble.now();
    ensemble.run_for(std::chrono::duration<double, std::ratio<60>>(1.5));
    CHECK(ensemble.now() - before == 90s);
}
