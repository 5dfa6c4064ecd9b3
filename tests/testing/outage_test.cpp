// For each wait of each recipe, an outage at each of its steps, and a second one soon after: longer than an operation
// waits for a connection, and shorter than the session. What waits goes on waiting, and gets what it waits for.

#include "support/catch.hpp"
#include "support/test_client.hpp"

#include <zkasio/barriers/double_barrier.hpp>
#include <zkasio/cache/children_cache.hpp>
#include <zkasio/cache/node_cache.hpp>
#include <zkasio/cache/streams.hpp>
#include <zkasio/cache/tree_cache.hpp>
#include <zkasio/config/config_value.hpp>
#include <zkasio/election/leader_election.hpp>
#include <zkasio/error.hpp>
#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/slots.hpp>
#include <zkasio/locks/unfair_mutex.hpp>
#include <zkasio/membership/group.hpp>
#include <zkasio/membership/persistent_node.hpp>
#include <zkasio/testing/fake_ensemble.hpp>
#include <zkasio/testing/waits.hpp>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace outage_tests {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

// What keeps the wait waiting.
struct obstacle {
    fake_ensemble& ensemble;
    client theirs;
    std::optional<lock_guard> guard;
    std::optional<leadership> leader;
};

// A wait of a recipe.
struct wait {
    std::string name;
    std::function<asio::awaitable<void>(obstacle&)> block;
    std::function<asio::awaitable<void>(client)> begin;  // and gives back what it has got
    std::function<asio::awaitable<void>(obstacle&)> unblock;
};

asio::awaitable<void> nothing(obstacle&) { co_return; }

// ------------------------------------------------------------------------------------------------------- locks

using lock_ptr = std::shared_ptr<const lockable>;
using make_lock = std::function<lock_ptr(client)>;

template <class Lock>
lock_ptr one(Lock lock) {
    return std::make_shared<const Lock>(std::move(lock));
}

asio::awaitable<void> take(lock_ptr lock, obstacle& o) { o.guard.emplace(co_await lock->acquire()); }
asio::awaitable<void> give_back(obstacle& o) { co_await o.guard->release(); }
asio::awaitable<void> take_and_give_back(lock_ptr lock) {
    lock_guard guard = co_await lock->acquire();
    co_await guard.release();
}

wait for_lock(std::string name, const make_lock& theirs, const make_lock& ours) {
    return {std::move(name), [theirs](obstacle& o) { return take(theirs(o.theirs), o); },
            [ours](client zk) { return take_and_give_back(ours(zk)); }, &give_back};
}

std::vector<wait> waits_for_locks() {
    const make_lock a_mutex = [](client zk) { return one(mutex(zk, "/l/m")); };
    const make_lock a_writer = [](client zk) { return one(shared_mutex(zk, "/l/rw")); };
    const make_lock a_reader = [](client zk) { return one(shared_mutex(zk, "/l/rw").readers()); };
    const make_lock permits_of_two = [](client zk) { return one(semaphore(zk, "/l/s", permits::fixed(2)).request(2)); };
    const make_lock counted_permit = [](client zk) {
        return one(semaphore(zk, "/l/s", permits::counted_by("/count")).request(1));
    };
    const make_lock an_unfair_one = [](client zk) { return one(unfair_mutex(zk, "/l/u")); };
    const make_lock the_slot = [](client zk) { return one(slots(zk, "/l/n", 1)); };
    const make_lock quiet_slot = [](client zk) { return one(slots(zk, "/l/n", 1, slots_options().quiet(1s))); };
    const make_lock a_and_b = [](client zk) {
        multi_mutex all(zk);
        all.add(mutex(zk, "/l/a")).add(mutex(zk, "/l/b"));
        return one(std::move(all));
    };
    const make_lock a_then_b = [](client zk) {
        multi_mutex all(zk);
        all.add(mutex(zk, "/l/a")).add(unfair_mutex(zk, "/l/b"));
        return one(std::move(all));
    };
    const make_lock only_b = [](client zk) { return one(unfair_mutex(zk, "/l/b")); };
    return {for_lock("mutex", a_mutex, a_mutex),
            for_lock("shared_mutex, a writer", a_reader, a_writer),
            for_lock("shared_mutex, a reader", a_writer, a_reader),
            for_lock("semaphore", permits_of_two, permits_of_two),
            for_lock("semaphore, counted by a node", counted_permit, counted_permit),
            for_lock("unfair_mutex", an_unfair_one, an_unfair_one),
            for_lock("slots", the_slot, the_slot),
            for_lock("slots that rest", quiet_slot, quiet_slot),
            for_lock("multi_mutex", a_and_b, a_and_b),
            for_lock("multi_mutex, one after another", only_b, a_then_b)};
}

asio::awaitable<void> downgrade(client zk) {
    const shared_mutex rw(zk, "/l/rw");
    lock_guard writing = co_await rw.acquire();
    lock_guard reading = co_await rw.downgrade(std::move(writing));
    co_await reading.release();
}

asio::awaitable<void> hold_until_revoked(client zk) {
    lock_guard guard = co_await mutex(zk, "/l/m").acquire();
    co_await guard.revoke_requested();
    co_await guard.release();
}
asio::awaitable<void> revoke_it(obstacle& o) {
    co_await testing::until_exists(o.theirs, "/l/m");
    const auto one_child = [](const std::vector<std::string>& names) { return names.size() == 1; };
    co_await testing::until_children(o.theirs, "/l/m", one_child, 1h);
    co_await revoke(o.theirs, "/l/m/" + o.ensemble.children("/l/m").front());
}

// --------------------------------------------------------------------------------------------------- elections

asio::awaitable<void> have_led(obstacle& o) { o.leader.emplace(co_await leader_election(o.theirs, "/l/e").campaign()); }
asio::awaitable<void> resign(obstacle& o) { co_await o.leader->resign(); }

asio::awaitable<void> campaign(client zk) {
    leadership leader = co_await leader_election(zk, "/l/e").campaign();
    co_await leader.resign();
}
asio::awaitable<void> lead(client zk) {
    auto term = [](leadership&) -> asio::awaitable<void> { co_return; };
    co_await leader_election(zk, "/l/e").lead(term);
}
asio::awaitable<void> observe_leaders(client zk) {
    const leader_observer observer = leader_election(zk, "/l/e").observe();
    for (;;) {
        const leader_view seen = co_await observer.next();
        if (seen.leader) co_return;
    }
}

// ---------------------------------------------------------------------------------------------------- barriers

double_barrier of_two(client zk) { return {std::move(zk), "/l/b", 2}; }
asio::awaitable<void> enter_and_leave(client zk) {
    barrier_entry entry = co_await of_two(zk).enter();
    co_await entry.leave();
}
asio::awaitable<void> pass_through(obstacle& o) {
    asio::co_spawn(o.ensemble.get_executor(), enter_and_leave(o.theirs), asio::detached);
    co_return;
}

// --------------------------------------------------------------------------------------- what others have written

asio::awaitable<void> write_it(obstacle& o) {
    o.ensemble.create("/l/n/child", "7");
    co_return;
}

asio::awaitable<void> follow_value(client zk) {
    const value_stream values = watch_value(zk, "/l/n/child");
    for (;;) {
        const std::optional<node_data> value = co_await values.next();
        if (value) break;
    }
    co_await values.close();
}
asio::awaitable<void> follow_children(client zk) {
    const children_stream all = watch_children(zk, "/l/n");
    for (;;) {
        const std::optional<node_children> now = co_await all.next();
        if (now && now->names.size() == 1) break;
    }
    co_await all.close();
}
asio::awaitable<void> follow_config(client zk) {
    const auto as_it_is = [](std::string_view text) { return std::string(text); };
    const config_value<std::string> value(zk, "/l/n/child", as_it_is);
    const config_changes<std::string> changes = value.changes();
    while (!value.value()) co_await changes.next();
    co_await value.close();
}
asio::awaitable<void> follow_tree(client zk) {
    const tree_cache tree(zk, "/l");
    const cache_changes changes = tree.changes();
    co_await tree.ready();
    while (!tree.snapshot().find("/l/n/child")) co_await changes.next();
    co_await tree.close();
}
asio::awaitable<void> observe_group(client zk) {
    const group_observer observer = group(zk, "/l/n").observe();
    for (;;) {
        const group_view view = co_await observer.next();
        if (view.contains("child")) co_return;
    }
}

// --------------------------------------------------------------------------------------------- nodes of our own

asio::awaitable<void> join_and_leave(client zk) {
    const group_membership me = co_await group(zk, "/l/g").join("me", "data");
    co_await me.leave();
}
asio::awaitable<void> stand_and_write(client zk) {
    const persistent_node node(zk, "/l/p/n", "first");
    co_await node.created();
    co_await node.set_data("second");
    co_await node.leave();
}
asio::awaitable<void> create_it(obstacle& o) {
    o.ensemble.create("/l/p/n", "in the way");
    co_return;
}
asio::awaitable<void> remove_it(obstacle& o) {
    o.ensemble.remove("/l/p/n");
    co_return;
}

std::vector<wait> other_waits() {
    return {{"downgrade()", &nothing, &downgrade, &nothing},
            {"revoke_requested()", &nothing, &hold_until_revoked, &revoke_it},
            {"campaign()", &have_led, &campaign, &resign},
            {"lead()", &have_led, &lead, &resign},
            {"leader_observer", &nothing, &observe_leaders, &have_led},
            {"double_barrier", &nothing, &enter_and_leave, &pass_through},
            {"value_stream", &nothing, &follow_value, &write_it},
            {"children_stream", &nothing, &follow_children, &write_it},
            {"config_value", &nothing, &follow_config, &write_it},
            {"tree_cache", &nothing, &follow_tree, &write_it},
            {"group_observer", &nothing, &observe_group, &write_it},
            {"group", &nothing, &join_and_leave, &nothing},
            {"persistent_node", &create_it, &stand_and_write, &remove_it}};
}

// ----------------------------------------------------------------------------------------------------- the test

constexpr std::size_t never = static_cast<std::size_t>(-1);

// After so many steps that the servers take for the client; the second one, after as many of those that follow the
// first.
struct outages {
    std::size_t first = never, second = never;
    bool delete_nodes = false;  // an operator deletes the client's nodes when an outage begins
};

struct outcome {
    std::string said = "waits still";
    std::size_t steps = 0;
    bool same_session = false;
};

class outage_scene {
public:
    explicit outage_scene(std::uint64_t seed, suspension_policy held = suspension_policy::keep)
        : ensemble_(seed), ours_(ensemble_.client(options().suspension(held))) {}

    outcome play(const wait& w, outages when, int throttled = 0) {
        ensemble_.run([&] { return played(w, when, throttled); }, 10h);
        return result_;
    }

private:
    static client_options options() {
        // A request waits for a connection for 1 s; an outage lasts 20 s; the session lives for 60 s, and its lease for
        // more than half of that.
        return client_options("zk1").session_timeout(60s).connection_timeout(1s);
    }
    static asio::awaitable<void> pass(std::chrono::nanoseconds time) {
        asio::steady_timer timer(co_await asio::this_coro::executor, time);
        co_await timer.async_wait(asio::use_awaitable);
    }

    asio::awaitable<void> waiting(const wait& w) {
        try {
            co_await w.begin(ours_);
            result_.said = "had";
        } catch (const std::exception& e) {
            result_.said = e.what();
        }
    }

    // Steps are those of the client with the number 0.
    void count(std::string_view step, outages when) {
        if (!counting_ || down_ || step.find(" 0: ") == step.npos) return;
        ++result_.steps;
        const std::size_t begun = ups_ == 0 ? when.first : when.second;
        if (ups_ > 1 || begun == never || steps_since_up_++ != begun) return;
        down_ = true;
        ensemble_.hold_down(ours_);
        if (!when.delete_nodes) return;
        for (const std::string& path : ensemble_.paths())
            if (ensemble_.owns(ours_, path)) ensemble_.remove(path);
    }

    asio::awaitable<void> played(const wait& w, outages when, int throttled) {
        co_await ours_.connected();
        co_await theirs_.connected();
        ensemble_.create("/count", std::string("\0\0\0\1", 4));
        ensemble_.create("/l");
        obstacle o{ensemble_, theirs_, std::nullopt, std::nullopt};
        co_await w.block(o);
        const std::int64_t session = ensemble_.session_id(ours_);
        ensemble_.on_step([this, when](std::string_view step) { count(step, when); });
        ensemble_.throttle(throttled);
        counting_ = true;
        running one(ensemble_.get_executor(), waiting(w));
        bool unblocked = false;
        for (int seconds = 0; !one.ended() && seconds < 300; ++seconds) {
            // The outage has begun within this second.
            if (down_) co_await pass(20s);
            if (!unblocked && seconds >= 2) {
                unblocked = true;
                ensemble_.throttle(0);
                co_await w.unblock(o);
                ensemble_.throttle(throttled);
            }
            co_await pass(500ms);
            if (down_) {
                down_ = false;
                ++ups_;
                steps_since_up_ = 0;
                ensemble_.let_in(ours_);
            }
            co_await pass(500ms);
        }
        counting_ = false;
        ensemble_.on_step(nullptr);
        ensemble_.throttle(0);
        if (!one.ended()) one.cancel();
        co_await one.end();
        o.guard.reset();
        o.leader.reset();
        result_.same_session = ensemble_.session_id(ours_) == session;
        co_await ours_.idle();
        co_await theirs_.idle();
    }

    fake_ensemble ensemble_;
    const client ours_, theirs_ = ensemble_.client(options());
    outcome result_;
    bool counting_ = false, down_ = false;
    int ups_ = 0;
    std::size_t steps_since_up_ = 0;
};

enum class nodes { stay, may_be_deleted };

void check_survives(const wait& w, nodes meanwhile, suspension_policy held = suspension_policy::keep) {
    INFO(w.name);
    const outcome calm = outage_scene(1, held).play(w, {});
    REQUIRE(calm.said == "had");
    std::size_t failures = 0;
    const auto check = [&](outages when, std::uint64_t seed) {
        const outcome is = outage_scene(seed, held).play(w, when);
        if (is.said == "had" && is.same_session) return;
        INFO("outages after " << when.first << " and " << when.second << " steps, seed " << seed
                              << (when.delete_nodes ? ", nodes are deleted" : ""));
        CHECK(is.said == "had");
        CHECK(is.same_session);
        ++failures;
    };
    for (std::size_t first = 0; first < calm.steps && failures < 3; ++first) {
        for (const bool deleted : {false, true}) {
            if (deleted && meanwhile == nodes::stay) continue;
            check({first, never, deleted}, 1);
            for (std::size_t second = 0; second < 4 && failures < 3; ++second)
                check({first, second, deleted}, 1 + second);
        }
    }
}

}  // namespace

TEST_CASE("an outage that the session survives does not end an acquire, at whichever step it begins", "[outage]") {
    for (const wait& w : waits_for_locks()) check_survives(w, nodes::may_be_deleted);
}

TEST_CASE("an outage that takes locks away does not end an acquire, at whichever step it begins", "[outage]") {
    for (const wait& w : waits_for_locks()) check_survives(w, nodes::may_be_deleted, suspension_policy::lose);
}

namespace {

// A lock whose acquire ends in an outage.
struct cutting_lock {
    asio::awaitable<lock_guard> acquire() const { return cut_after(inner, zk, ensemble); }
    asio::awaitable<std::optional<lock_guard>> try_acquire() const { return inner.try_acquire(); }
    const std::string& path() const { return inner.path(); }

    static asio::awaitable<lock_guard> cut_after(mutex inner, client zk, fake_ensemble* ensemble) {
        lock_guard guard = co_await inner.acquire();
        ensemble->hold_down(zk);
        asio::steady_timer timer(co_await asio::this_coro::executor);
        while (zk.state() == session_state::connected) {
            timer.expires_after(1ms);
            co_await timer.async_wait(asio::use_awaitable);
        }
        co_return guard;
    }

    mutex inner;
    client zk;
    fake_ensemble* ensemble;
};

}  // namespace

TEST_CASE("an outage that begins between two locks of a multi_mutex does not end its acquire", "[outage]") {
    fake_ensemble ensemble;
    const client zk =
        ensemble.client(client_options("zk1").session_timeout(60s).connection_timeout(1s).retry(retry_policy::never()));
    ensemble.run([&]() -> asio::awaitable<void> {
        co_await zk.connected();
        const std::int64_t session = ensemble.session_id(zk);
        multi_mutex both(zk);
        both.add(cutting_lock{mutex(zk, "/l/a"), zk, &ensemble}).add(mutex(zk, "/l/b"));
        running one(ensemble.get_executor(), take_and_give_back(std::make_shared<const multi_mutex>(both)));
        asio::steady_timer timer(ensemble.get_executor(), 20s);
        co_await timer.async_wait(asio::use_awaitable);
        CHECK_FALSE(one.ended());
        ensemble.let_in(zk);
        const std::exception_ptr failed = co_await one.end();
        CHECK_FALSE(failed);
        CHECK(ensemble.session_id(zk) == session);
        co_await zk.idle();
        CHECK(ensemble.children("/l/a").empty());
        CHECK(ensemble.children("/l/b").empty());
    });
}

// A server answers so when the session has gone on with another server.
TEST_CASE("a server that refuses for a while because the session has moved does not end an acquire", "[outage]") {
    for (const wait& w : waits_for_locks()) {
        INFO(w.name);
        fake_ensemble ensemble;
        const client_options options = client_options("zk1").session_timeout(60s);
        const client ours = ensemble.client(options), theirs = ensemble.client(options);
        ensemble.run([&]() -> asio::awaitable<void> {
            co_await ours.connected();
            co_await theirs.connected();
            ensemble.create("/count", std::string("\0\0\0\1", 4));
            obstacle o{ensemble, theirs, std::nullopt, std::nullopt};
            co_await w.block(o);
            asio::steady_timer timer(ensemble.get_executor());
            ensemble.refuse("/l", zk_errc::session_moved);
            running one(ensemble.get_executor(), w.begin(ours));
            timer.expires_after(5s);
            co_await timer.async_wait(asio::use_awaitable);
            ensemble.accept("/l");
            timer.expires_after(5s);
            co_await timer.async_wait(asio::use_awaitable);
            if (!one.ended()) co_await w.unblock(o);
            const std::exception_ptr failed = co_await one.end();
            CHECK_FALSE(failed);
            o.guard.reset();
            co_await ours.idle();
            co_await theirs.idle();
        });
    }
}

TEST_CASE("an outage that the session survives does not end any other wait, at whichever step it begins", "[outage]") {
    for (const wait& w : other_waits()) check_survives(w, nodes::stay);
}

TEST_CASE("a server that has too much to do for a while does not end a wait", "[outage]") {
    for (const std::vector<wait>& all : {waits_for_locks(), other_waits()})
        for (const wait& w : all)
            for (std::uint64_t seed = 1; seed <= 5; ++seed) {
                INFO(w.name << ", seed " << seed);
                const outcome is = outage_scene(seed).play(w, {}, 50);
                CHECK(is.said == "had");
            }
}

}  // namespace outage_tests
