// A client that is left with a server without a quorum, in virtual time: what is read, what is refused, and that
// nothing that belongs to a session relies on that server.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/cache/node_cache.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/modify.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <cstdint>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

client_options reader() { return client_options("zk1").session_timeout(10s).connection_timeout(5s).allow_read_only(); }

// g++ 12 refuses braces in an expression with a co_await.
const std::vector<std::string> only_b{"b"}, unchanged_paths{"/never", "/quiet", "/same"};
const std::vector<session_state> states_of_an_expiry{session_state::connected,  session_state::suspended,
                                                     session_state::read_only,  session_state::expired,
                                                     session_state::connecting, session_state::read_only};

asio::awaitable<void> until_state(client zk, session_state wanted) {
    while (zk.state() != wanted) co_await sleep_for(10ms);
}

}  // namespace

TEST_CASE("read-only server: reads of the client are answered, everything else is refused at once", "[testing]") {
    fake_ensemble ensemble;
    ensemble.create("/a/b", "old");
    const client zk = ensemble.client(reader());
    auto body = [&]() -> asio::awaitable<void> {
        co_await zk.connected();
        const session own = zk.session_now();
        const std::int64_t id = own.id();
        ensemble.lose_quorum(zk);
        co_await until_state(zk, session_state::read_only);
        ensemble.set("/a/b", "new");

        CHECK((co_await zk.get("/a/b")).data == "old");
        CHECK(co_await zk.exists("/a"));
        CHECK((co_await zk.children("/a")).names == only_b);
        CHECK((co_await zk.get_acl("/a")).acl == open_acl());
        CHECK(co_await code_of(zk.get("/none")) == zk_errc::no_node);

        const auto began = ensemble.now();
        const std::string refused = co_await message_of(zk.set("/a/b", "x"));
        CHECK(refused ==
              "set /a/b: the server is read-only (simulated:2181 has no quorum, and only reads: wait for "
              "client::connected())");
        CHECK(co_await code_of(zk.create("/c")) == zk_errc::not_read_only);
        CHECK(co_await code_of(zk.remove("/a/b")) == zk_errc::not_read_only);
        CHECK(co_await code_of(zk.remove_recursive("/none")) == zk_errc::not_read_only);
        CHECK(co_await code_of(zk.sync()) == zk_errc::not_read_only);
        transaction steps;
        steps.create("/c").remove("/a/b");
        const std::error_code refused_steps = co_await code_of(zk.multi(std::move(steps)));
        CHECK(refused_steps == zk_errc::not_read_only);
        CHECK(ensemble.now() == began);

        // What is bound to the session is not answered by a server that does not know the session.
        const std::error_code waited = co_await code_of(own.get("/a/b"));
        CHECK(waited == errc::not_connected);
        ensemble.let_in(zk);
        co_await zk.connected();
        CHECK(zk.session_now().id() == id);
        CHECK((co_await own.get("/a/b")).data == "new");
        CHECK((co_await zk.get("/a/b")).data == "new");
        CHECK(zk.stats().read_only_connections == 1);
        co_await zk.close();
    };
    ensemble.run(body());
    ensemble.run_dry();
    CHECK(ensemble.connections() == 0);
    CHECK(ensemble.watches() == 0);
}

TEST_CASE("read-only server: no read there decides what is written", "[testing]") {
    fake_ensemble ensemble;
    ensemble.create("/a", "old");
    const client zk = ensemble.client(reader()), other = ensemble.client(reader());
    auto body = [&]() -> asio::awaitable<void> {
        const mutex lock(other, "/lock");
        co_await zk.connected();
        ensemble.lose_quorum(zk);
        const lock_guard held = co_await lock.acquire();
        co_await until_state(zk, session_state::read_only);
        int called = 0;
        auto change = [&](const std::optional<node_data>&) {
            ++called;
            return std::optional<std::string>();  // "nothing to write"
        };
        const std::error_code modified = co_await code_of(modify(zk, "/a", change));
        CHECK(modified == zk_errc::not_read_only);
        CHECK(called == 0);
        // The server without a quorum has never heard of the lock, which is not gone for that reason.
        const std::error_code revoked = co_await code_of(revoke(zk, held.path(), holder_data::kept));
        CHECK(revoked == zk_errc::not_read_only);
        ensemble.let_in(zk);
        co_await zk.connected();
        co_await revoke(zk, held.path(), holder_data::kept);
        co_await held.revoke_requested();
    };
    ensemble.run(body());
}

TEST_CASE("read-only server: without the option, an outage is as ever", "[testing]") {
    fake_ensemble ensemble;
    ensemble.create("/a");
    const client zk = ensemble.client(reader().allow_read_only(false));
    auto body = [&]() -> asio::awaitable<void> {
        co_await zk.connected();
        ensemble.lose_quorum(zk);
        const std::error_code got = co_await code_of(zk.get("/a")), set = co_await code_of(zk.set("/a", "x"));
        CHECK(got == errc::not_connected);
        CHECK(set == errc::not_connected);
        CHECK(zk.state() == session_state::suspended);
        CHECK(ensemble.connections() == 1);
        co_await zk.close();
    };
    ensemble.run(body());
}

TEST_CASE("read-only server: its answers renew no lease, and the lock is another client's afterwards", "[testing]") {
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        INFO("seed " << seed);
        fake_ensemble ensemble(seed);
        const client zk = ensemble.client(reader()), other = ensemble.client(reader());
        auto body = [&]() -> asio::awaitable<void> {
            const mutex mine(zk, "/lock"), theirs(other, "/lock");
            const lock_guard held = co_await mine.acquire();
            co_await sleep_for(std::chrono::milliseconds(seed * 150));
            co_await other.connected();
            ensemble.lose_quorum(zk);
            co_await until_state(zk, session_state::suspended);
            const boot_clock::time_point lease = held.held_until();
            auto take_over = [&]() -> asio::awaitable<void> {
                const lock_guard next = co_await theirs.acquire();  // the session has expired
                CHECK_FALSE(held.held());
                CHECK(next.token() > held.token());
            };
            running other_takes_over(co_await asio::this_coro::executor, take_over());
            co_await until_state(zk, session_state::read_only);
            REQUIRE(held.held());
            int reads = 0;
            while (held.held()) {
                co_await sleep_for(50ms);
                co_await zk.exists("/lock");
                ++reads;
                if (held.held()) CHECK(held.held_until() == lease);
            }
            CHECK(reads > 3);
            CHECK(boot_clock::now() <= lease + 100ms);
            CHECK(held.reason() == loss_reason::lease_ended);
            CHECK(co_await other_takes_over.code() == std::error_code());
            const lock_guard next = co_await theirs.acquire();
            const std::error_code no_connection = co_await code_of(mine.try_acquire_for(1s));
            CHECK(no_connection == errc::not_connected);
            ensemble.let_in(zk);
            co_await zk.connected();
            const std::optional<lock_guard> taken = co_await mine.try_acquire_for(1s);
            CHECK_FALSE(taken);
            co_await zk.close();
            co_await other.close();
        };
        ensemble.run(body());
    }
}

TEST_CASE("read-only server: a lock is kept if the quorum is back in time", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(reader());
    auto body = [&]() -> asio::awaitable<void> {
        const mutex lock(zk, "/lock");
        const lock_guard held = co_await lock.acquire();
        co_await sleep_for(20s);
        ensemble.lose_quorum(zk);
        co_await until_state(zk, session_state::read_only);
        CHECK(held.held());
        ensemble.let_in(zk);
        co_await zk.connected();
        co_await sleep_for(20s);
        CHECK(held.held());
        transaction steps;
        steps.create("/under-the-lock");
        co_await held.commit(std::move(steps));
        co_await zk.close();
    };
    ensemble.run(body());
}

TEST_CASE("read-only server: an owner's queue is not read there, whatever it shows", "[testing]") {
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
        INFO("seed " << seed);
        fake_ensemble ensemble(seed);
        ensemble.lag();
        const client zk = ensemble.client(reader()), other = ensemble.client(reader());
        auto body = [&]() -> asio::awaitable<void> {
            const mutex mine(zk, "/lock"), theirs(other, "/lock");
            lock_guard first = co_await theirs.acquire();
            auto acquire = [&]() -> asio::awaitable<void> {
                const lock_guard second = co_await mine.acquire();
                CHECK(second.token() > first.token());
                CHECK_FALSE(first.held());
            };
            running waits(co_await asio::this_coro::executor, acquire());
            while (ensemble.children("/lock").size() < 2) co_await sleep_for(1ms);
            ensemble.lose_quorum(zk);
            co_await until_state(zk, session_state::read_only);
            co_await first.release();
            co_await sleep_for(1s);
            CHECK_FALSE(waits.ended());
            ensemble.let_in(zk);
            CHECK(co_await waits.code() == std::error_code());
            co_await zk.close();
            co_await other.close();
        };
        ensemble.run(body());
    }
}

TEST_CASE("read-only server: watches that were asked for there are set by the next connection, or fire", "[testing]") {
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
        INFO("seed " << seed);
        fake_ensemble ensemble(seed);
        for (const char* path : {"/same", "/set", "/gone", "/parent", "/quiet"}) ensemble.create(path, "old");
        const bool begins_there = seed % 2 == 0;
        const client zk = ensemble.client(reader());
        auto body = [&]() -> asio::awaitable<void> {
            if (!begins_there) co_await zk.connected();
            ensemble.lose_quorum(zk);
            co_await until_state(zk, session_state::read_only);
            const watched<node_data> same = co_await zk.get_and_watch("/same");
            const watched<node_data> set = co_await zk.get_and_watch("/set");
            std::optional<watched<node_data>> left = co_await zk.get_and_watch("/set");
            const watched<node_data> gone = co_await zk.get_and_watch("/gone");
            const watched<node_children> parent = co_await zk.children_and_watch("/parent");
            const watched<std::optional<node_stat>> later = co_await zk.exists_and_watch("/later");
            const watched<std::optional<node_stat>> never = co_await zk.exists_and_watch("/never");
            const watched<node_children> quiet = co_await zk.children_and_watch("/quiet");
            left.reset();
            ensemble.set("/set", "new");
            ensemble.remove("/gone");
            ensemble.create("/parent/child");
            ensemble.create("/later");
            ensemble.let_in(zk);
            co_await zk.connected();
            CHECK((co_await set.changes.changed()).what == node_change::data_changed);
            CHECK((co_await gone.changes.changed()).what == node_change::removed);
            CHECK((co_await parent.changes.changed()).what == node_change::children_changed);
            CHECK((co_await later.changes.changed()).what == node_change::created);
            auto until_changed = [&]() -> asio::awaitable<void> { co_await same.changes.changed(); };
            running unchanged(co_await asio::this_coro::executor, until_changed());
            co_await sleep_for(5s);
            CHECK_FALSE(unchanged.ended());
            CHECK(ensemble.watched_paths() == unchanged_paths);
            ensemble.set("/same", "new");
            ensemble.create("/quiet/child");
            ensemble.create("/never");
            CHECK(co_await unchanged.code() == std::error_code());
            CHECK((co_await quiet.changes.changed()).what == node_change::children_changed);
            CHECK((co_await never.changes.changed()).what == node_change::created);
            CHECK(ensemble.watches() == 0);
            co_await zk.close();
        };
        ensemble.run(body());
    }
}

TEST_CASE("read-only server: a new cache is filled there and is not current, a filled one does not go back", "[testing]") {
    fake_ensemble ensemble;
    ensemble.create("/config", "1");
    const client zk = ensemble.client(reader()), begins = ensemble.client(reader());
    auto body = [&]() -> asio::awaitable<void> {
        const node_cache filled(zk, "/config");
        co_await filled.ready();
        ensemble.lose_quorum(begins);
        ensemble.set("/config", "2");
        while (filled.get().data() != "2") co_await sleep_for(1ms);
        CHECK(filled.snapshot().current());
        ensemble.lose_quorum(zk);
        const node_cache fresh(begins, "/config");
        co_await fresh.ready();
        CHECK(begins.state() == session_state::read_only);
        CHECK(fresh.get().data() == "1");
        CHECK_FALSE(fresh.snapshot().current());
        co_await until_state(zk, session_state::read_only);
        co_await sleep_for(1s);
        CHECK(filled.get().data() == "2");
        CHECK_FALSE(filled.snapshot().current());
        ensemble.set("/config", "3");
        ensemble.let_in(zk);
        ensemble.let_in(begins);
        while (!fresh.snapshot().current() || !filled.snapshot().current()) co_await sleep_for(10ms);
        CHECK(fresh.get().data() == "3");
        CHECK(filled.get().data() == "3");
        co_await zk.close();
        co_await begins.close();
    };
    ensemble.run(body());
}

TEST_CASE("read-only server: events, and a session that expires meanwhile", "[testing]") {
    fake_ensemble ensemble;
    ensemble.create("/a", "x");
    const client zk = ensemble.client(reader());
    auto body = [&]() -> asio::awaitable<void> {
        co_await zk.connected();
        const std::int64_t id = zk.session_now().id();
        const session_events events = zk.events();
        ensemble.lose_quorum(zk);
        std::vector<session_state> seen;
        while (seen.size() < 6 || seen.back() != session_state::read_only) {
            const session_event e = co_await events.next();
            seen.push_back(e.state);
        }
        CHECK(seen == states_of_an_expiry);
        CHECK((co_await zk.get("/a")).data == "x");
        ensemble.let_in(zk);
        co_await zk.connected();
        CHECK(zk.session_now().id() != id);
        co_await zk.close();
    };
    ensemble.run(body());
}

TEST_CASE("read-only server: a protected create whose answer is lost is not looked for there", "[testing]") {
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
        INFO("seed " << seed);
        fake_ensemble ensemble(seed);
        ensemble.create("/dir");
        const client zk = ensemble.client(reader());
        auto body = [&]() -> asio::awaitable<void> {
            co_await zk.connected();
            ensemble.lose_answer(zk, "create ");
            auto create = [&]() -> asio::awaitable<void> {
                create_options how;
                how.mode(create_mode::persistent_sequential).protection();
                co_await zk.create("/dir/x-", bytes(), how);
            };
            running making(co_await asio::this_coro::executor, create());
            while (ensemble.children("/dir").empty()) co_await sleep_for(1ms);
            ensemble.lose_quorum(zk);
            co_await until_state(zk, session_state::read_only);
            co_await sleep_for(1s);
            ensemble.let_in(zk);
            co_await zk.connected();
            const std::error_code failed = co_await making.code();
            co_await zk.idle();
            CHECK(ensemble.children("/dir").size() == (failed ? 0u : 1u));
            co_await zk.close();
        };
        ensemble.run(body());
    }
}

namespace {

// Clients that share one lock, and read all the time, while one after the other is left with a read-only server.
struct contest {
    explicit contest(std::uint64_t seed) : ensemble(seed), random(seed) {}

    asio::awaitable<void> compete(client zk) {
        const mutex lock(zk, "/lock");
        while (!over) {
            try {
                const lock_guard guard = co_await lock.acquire(acquire_options().survive_expiry());
                CHECK(guard.token().value() > last);
                last = guard.token().value();
                for (const lock_guard* other : owners) CHECK_FALSE(other->held());
                owners.insert(&guard);
                co_await sleep_for(std::chrono::milliseconds(random() % 15'000));  // longer than a lease
                owners.erase(&guard);
                ++grants;
            } catch (const error& e) {
                if (e.code() != errc::not_connected && e.code() != errc::session_expired) throw;
            }
        }
    }

    asio::awaitable<void> read(client zk) {
        while (!over) {
            co_await sleep_for(std::chrono::milliseconds(20 + random() % 200));
            const bool read_only = zk.state() == session_state::read_only;
            const std::error_code failed = co_await code_of(zk.children("/lock"));
            if (read_only && !failed) ++reads;
        }
    }

    asio::awaitable<void> disturb(std::vector<client> all) {
        for (int i = 0; i < 12; ++i) {
            co_await sleep_for(std::chrono::milliseconds(random() % 2000));
            const client& victim = all[random() % all.size()];
            ensemble.lose_quorum(victim);
            co_await sleep_for(std::chrono::milliseconds(random() % 14'000));
            ensemble.let_in(victim);
        }
        over = true;
    }

    fake_ensemble ensemble;
    std::mt19937 random;
    std::set<const lock_guard*> owners;
    std::int64_t last = 0;
    int grants = 0, reads = 0;
    bool over = false;
};

}  // namespace

TEST_CASE("read-only server: a lock has one owner, whichever client is left with such a server", "[testing]") {
    int reads = 0;
    for (std::uint64_t seed = 1; seed <= 15; ++seed) {
        INFO("seed " << seed);
        contest c(seed);
        c.ensemble.create("/lock");
        c.ensemble.lag();
        std::vector<client> all;
        for (int i = 0; i < 3; ++i) all.push_back(c.ensemble.client(reader()));
        auto body = [&]() -> asio::awaitable<void> {
            const auto executor = co_await asio::this_coro::executor;
            std::vector<running> tasks;
            for (const client& zk : all) {
                tasks.emplace_back(executor, c.compete(zk));
                tasks.emplace_back(executor, c.read(zk));
            }
            co_await c.disturb(all);
            for (const running& task : tasks) CHECK(co_await task.code() == std::error_code());
            for (const client& zk : all) co_await zk.close();
        };
        c.ensemble.run(body());
        CHECK(c.grants > 5);
        reads += c.reads;
    }
    CHECK(reads > 100);
}
