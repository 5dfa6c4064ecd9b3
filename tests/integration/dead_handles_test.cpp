#include "support/dead_handle.hpp"
#include "support/test_client.hpp"

#include <zkasio/barriers/barrier.hpp>
#include <zkasio/barriers/double_barrier.hpp>
#include <zkasio/barriers/latch.hpp>
#include <zkasio/cache/streams.hpp>
#include <zkasio/cache/tree_cache.hpp>
#include <zkasio/config/config_value.hpp>
#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/counters/atomic_counter.hpp>
#include <zkasio/counters/id_allocator.hpp>
#include <zkasio/election/candidate.hpp>
#include <zkasio/election/leader_election.hpp>
#include <zkasio/locks/cohort_mutex.hpp>
#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/unfair_mutex.hpp>
#include <zkasio/membership/group.hpp>
#include <zkasio/membership/partitioner.hpp>
#include <zkasio/modify.hpp>
#include <zkasio/queues/work_queue.hpp>
#include <zkasio/recipe/node_follower.hpp>
#include <zkasio/recipe/receipts.hpp>
#include <zkasio/transact/transact.hpp>

using namespace zkasio;
using namespace zkasio::test;

namespace {

asio::awaitable<void> under_lock(lock_guard&) { co_return; }
asio::awaitable<void> while_leading(leadership&) { co_return; }
asio::awaitable<void> nothing() { co_return; }
int text_length(std::string_view text) { return static_cast<int>(text.size()); }
std::string as_text(int n) { return std::string(static_cast<std::size_t>(n), 'x'); }
int one_more(int n) { return n + 1; }
asio::awaitable<void> refuse_work(held_partition&) { throw error(errc::timed_out, "work"); co_return; }
asio::awaitable<std::shared_ptr<lock_claim>> refused() { co_return nullptr; }

template <class Lock>
asio::awaitable<void> try_lockable(Lock lock) {
    const auto limit = boot_clock::now() + 1h;
    co_await when_dead("lockable.hpp acquire", lock, [](Lock& l) { return l.acquire(); });
    co_await when_dead("lockable.hpp try_acquire", lock, [](Lock& l) { return l.try_acquire(); });
    co_await when_dead("lockable.hpp try_acquire_for", lock, [](Lock& l) { return l.try_acquire_for(1h); });
    co_await when_dead("lockable.hpp try_acquire_until", lock, [&](Lock& l) { return l.try_acquire_until(limit); });
    co_await when_dead("lockable.hpp with_lock", lock, [](Lock& l) { return l.with_lock(under_lock); });
}

}  // namespace

// The rest: tests/unit/dead_handles_test.cpp.
TEST_CASE("what locks return may be awaited when the lock object is gone") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "dead-locks");
        const auto limit = boot_clock::now() + 1h;

        const mutex m(zk, dir + "/mutex");
        co_await try_lockable(m);
        co_await when_dead("lockable.hpp acquire", m,
                           [](mutex& l) { return l.acquire(acquire_options().owner(lock_owner())); });
        co_await when_dead("mutex.hpp contenders", m, [](mutex& l) { return l.contenders(); });
        const cohort_mutex cohort(zk, dir + "/cohort");
        co_await try_lockable(cohort);
        co_await when_dead("cohort_mutex.hpp contenders", cohort, [](cohort_mutex& l) { return l.contenders(); });

        const shared_mutex rw(zk, dir + "/shared");
        using rw_lock = shared_mutex;
        co_await when_dead("shared_mutex.hpp acquire", rw, [](rw_lock& l) { return l.acquire(); });
        co_await when_dead("shared_mutex.hpp acquire_shared", rw, [](rw_lock& l) { return l.acquire_shared(); });
        co_await when_dead("shared_mutex.hpp try_acquire", rw, [](rw_lock& l) { return l.try_acquire(); });
        co_await when_dead("shared_mutex.hpp try_acquire_shared", rw,
                           [](rw_lock& l) { return l.try_acquire_shared(); });
        co_await when_dead("shared_mutex.hpp try_acquire_for", rw, [](rw_lock& l) { return l.try_acquire_for(1h); });
        co_await when_dead("shared_mutex.hpp try_acquire_until", rw,
                           [&](rw_lock& l) { return l.try_acquire_until(limit); });
        co_await when_dead("shared_mutex.hpp try_acquire_shared_for", rw,
                           [](rw_lock& l) { return l.try_acquire_shared_for(1h); });
        co_await when_dead("shared_mutex.hpp try_acquire_shared_until", rw,
                           [&](rw_lock& l) { return l.try_acquire_shared_until(limit); });
        co_await when_dead("shared_mutex.hpp with_lock", rw, [](rw_lock& l) { return l.with_lock(under_lock); });
        co_await when_dead("shared_mutex.hpp with_shared_lock", rw,
                           [](rw_lock& l) { return l.with_shared_lock(under_lock); });
        co_await when_dead("shared_mutex.hpp contenders", rw, [](rw_lock& l) { return l.contenders(); });
        lock_guard writing = co_await rw.acquire();
        co_await when_dead("shared_mutex.hpp downgrade", rw,
                           [&](rw_lock& l) { return l.downgrade(std::move(writing)); });

        co_await try_lockable(rw.readers());

        const semaphore s(zk, dir + "/semaphore", permits::fixed(3));
        co_await when_dead("semaphore.hpp acquire", s, [](semaphore& l) { return l.acquire(2); });
        co_await when_dead("semaphore.hpp acquire_each", s, [](semaphore& l) { return l.acquire_each(2); });
        co_await when_dead("semaphore.hpp try_acquire", s, [](semaphore& l) { return l.try_acquire(2); });
        co_await when_dead("semaphore.hpp try_acquire_for", s, [](semaphore& l) { return l.try_acquire_for(1h, 2); });
        co_await when_dead("semaphore.hpp try_acquire_until", s,
                           [&](semaphore& l) { return l.try_acquire_until(limit, 2); });
        co_await when_dead("semaphore.hpp with_permit", s, [](semaphore& l) { return l.with_permit(under_lock); });
        co_await try_lockable(s.request(2));
        co_await when_dead("semaphore.hpp holders", s, [](semaphore& l) { return l.holders(); });
        co_await when_dead("semaphore.hpp waiting", s, [](semaphore& l) { return l.waiting(); });

        const unfair_mutex u(zk, dir + "/unfair");
        co_await try_lockable(u);
        co_await when_dead("unfair_mutex.hpp holder", u, [](unfair_mutex& l) { return l.holder(); });

        const mutex other(zk, dir + "/other");
        multi_mutex at_once(zk), one_by_one(zk);
        at_once.add(m).add(other);
        one_by_one.add(m).add(u).add(s, 2);
        co_await try_lockable(at_once);
        co_await try_lockable(one_by_one);

        const lock_owner me;
        co_await when_dead("lock_owner.hpp acquire", me,
                           [&](lock_owner& o) { return o.acquire(zk, "key", "/key", lock_kind::exclusive, refused); });
        co_await when_dead("lock_owner.hpp try_acquire", me, [&](lock_owner& o) {
            return o.try_acquire(zk, "key", "/key", lock_kind::exclusive, refused);
        });
    };
    with_client(body);
}

TEST_CASE("what receipts return may be awaited when they are gone") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "dead-receipts");
        const receipts alive(co_await zk.current_session(), dir + "/receipts");
        const transaction steps = transaction().set(dir, "written");
        co_await when_dead("receipts.hpp apply", alive, [&](receipts& r) { return r.apply(steps); });
        const node_data written = co_await zk.get(dir);
        CHECK(written.data == "written");
    };
    with_client(body);
}

TEST_CASE("what a unit returns may be awaited when the unit is gone, and transact() and modify() as well") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "dead-units");
        const auto reads = [&](unit& u) -> asio::awaitable<void> {
            const std::vector<std::string> both{dir, dir + "/missing"};
            co_await when_dead("transact.hpp get", u, [&](unit& one) { return one.get(dir); });
            co_await when_dead("transact.hpp get_all", u, [&](unit& one) { return one.get_all(both); });
        };
        co_await when_dead("transact.hpp transact", zk, [&](client& c) { return transact(c, reads); });
        const auto change = [](std::optional<node_data>) { return std::optional<std::string>("x"); };
        co_await when_dead("modify.hpp modify", zk, [&](client& c) { return modify(c, dir, change); });
    };
    with_client(body);
}

TEST_CASE("what counters and barriers return may be awaited when they are gone", "[any-server]") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "dead-counters");
        const atomic_counter n(zk, dir + "/n");
        using counter = atomic_counter;
        co_await when_dead("atomic_counter.hpp add", n, [](counter& c) { return c.add(2); });
        co_await when_dead("atomic_counter.hpp get", n, [](counter& c) { return c.get(); });
        co_await when_dead("atomic_counter.hpp compare_and_set", n, [](counter& c) { return c.compare_and_set(2, 3); });
        co_await when_dead("atomic_counter.hpp initialize", n, [](counter& c) { return c.initialize(9); });
        co_await when_dead("atomic_counter.hpp add", counter(zk, dir + "/n"), [](counter& c) { return c.add(1); });
        const std::int64_t sum = co_await n.get();
        CHECK(sum == 4);
        co_await when_dead("id_allocator.hpp next", id_allocator(zk, dir + "/ids"),
                           [](id_allocator& i) { return i.next(); });
        const barrier gate(zk, dir + "/gate");
        co_await when_dead("barrier.hpp set", gate, [](barrier& b) { return b.set(); });
        co_await when_dead("barrier.hpp is_set", gate, [](barrier& b) { return b.is_set(); });
        co_await when_dead("barrier.hpp remove", gate, [](barrier& b) { return b.remove(); });
        co_await when_dead("barrier.hpp wait", gate, [](barrier& b) { return b.wait(); });
        const double_barrier alone(zk, dir + "/double", 1);
        co_await when_dead("double_barrier.hpp enter", alone, [](double_barrier& b) { return b.enter(); });
        auto inside = [](barrier_entry&) -> asio::awaitable<void> { co_return; };
        co_await when_dead("double_barrier.hpp run", alone, [&](double_barrier& b) { return b.run(inside); });
        barrier_entry entry = co_await alone.enter();
        co_await when_dead("double_barrier.hpp leave", std::move(entry), [](barrier_entry& e) { return e.leave(); });
        barrier_entry other = co_await alone.enter();
        co_await when_dead("double_barrier.hpp lost", std::move(other), [](barrier_entry& e) { return e.lost(); });
        const latch one(zk, dir + "/latch", 1);
        co_await when_dead("latch.hpp remaining", one, [](latch& l) { return l.remaining(); });
        co_await when_dead("latch.hpp count_down", one, [](latch& l) { return l.count_down("a"); });
        co_await when_dead("latch.hpp wait", one, [](latch& l) { return l.wait(); });
    };
    with_client(body);
}

TEST_CASE("what queues and deliveries return may be awaited when they are gone: the item is given back by then",
          "[any-server]") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "dead-queues");
        const work_queue q(zk, dir + "/q");
        co_await when_dead("work_queue.hpp create", q, [](work_queue& w) { return w.create(); });
        co_await when_dead("work_queue.hpp put", work_queue(zk, dir + "/q"), [](work_queue& w) { return w.put("a"); });
        co_await when_dead("work_queue.hpp put_all", q, [](work_queue& w) { return w.put_all({"b", "c"}); });
        co_await when_dead("work_queue.hpp receive", q, [](work_queue& w) { return w.receive(); });
        co_await when_dead("work_queue.hpp take", work_queue(zk, dir + "/q"), [](work_queue& w) { return w.take(); });
        co_await when_dead("work_queue.hpp try_take", q, [](work_queue& w) { return w.try_take(); });
        co_await when_dead("work_queue.hpp info", q, [](work_queue& w) { return w.info(); });
        co_await when_dead("work_queue.hpp dead", q, [](work_queue& w) { return w.dead(); });
        co_await when_dead(
            "work_queue.hpp revive", q, [](work_queue& w) { return w.revive("a"); }, errc::invalid_argument);
        const auto failing = [](delivery&) -> asio::awaitable<void> {
            throw error(errc::invalid_argument, "job");
            co_return;
        };
        const auto brief = [&](work_queue& w) { return timeout(100ms, w.consume(failing)); };
        co_await when_dead("work_queue.hpp consume", work_queue(zk, dir + "/q"), brief, errc::timed_out);
        co_await q.put_all(std::vector<std::string>(5, "job"));
        delivery first = co_await q.receive();
        co_await when_dead("delivery.hpp lost", std::move(first), [](delivery& d) { return d.lost(); });
        delivery second = co_await q.receive();
        co_await when_dead(
            "delivery.hpp run", std::move(second), [](delivery& d) { return d.run(nothing); }, errc::lock_released);
        delivery third = co_await q.receive();
        co_await when_dead(
            "delivery.hpp done", std::move(third), [](delivery& d) { return d.done(); }, errc::lock_released);
        delivery fourth = co_await q.receive();
        co_await when_dead(
            "delivery.hpp reject", std::move(fourth), [](delivery& d) { return d.reject("no"); }, errc::lock_released);
        delivery fifth = co_await q.receive();
        co_await when_dead("delivery.hpp again", std::move(fifth), [](delivery& d) { return d.again(); });
    };
    with_client(body);
}

TEST_CASE("what guards return may be awaited when the guard is gone: the lock is released by then") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "dead-guards");
        const mutex m(zk, dir + "/mutex");
        lock_guard first = co_await m.acquire();
        co_await when_dead("lock_guard.hpp lost", std::move(first), [](lock_guard& g) { return g.lost(); });
        lock_guard second = co_await m.acquire();
        co_await when_dead(
            "lock_guard.hpp commit", std::move(second),
            [](lock_guard& g) { return g.commit(transaction().check("/")); }, errc::lock_released);
        lock_guard third = co_await m.acquire();
        co_await when_dead(
            "lock_guard.hpp run", std::move(third), [](lock_guard& g) { return g.run(nothing); }, errc::lock_released);
        lock_guard fourth = co_await m.acquire();
        co_await when_dead(
            "lock_guard.hpp revoke_requested", std::move(fourth), [](lock_guard& g) { return g.revoke_requested(); },
            errc::lock_released);
        lock_guard fifth = co_await m.acquire();
        co_await when_dead(
            "lock_guard.hpp lease_extended", std::move(fifth),
            [](lock_guard& g) { return g.lease_extended(boot_clock::time_point::max()); }, errc::lock_released);
        lock_guard sixth = co_await m.acquire();
        co_await when_dead("lock_guard.hpp release", std::move(sixth), [](lock_guard& g) { return g.release(); });
    };
    with_client(body);
}

TEST_CASE("what caches return may be awaited when they are gone") {
    auto body = [](client zk) -> asio::awaitable<void> {
        // A cache that is destroyed is closed.
        co_await when_dead(
            "cache.hpp ready", tree_cache(zk, "/"), [](tree_cache& c) { return c.ready(); }, errc::client_closed);
        co_await when_dead("cache.hpp close", tree_cache(zk, "/"), [](tree_cache& c) { return c.close(); });
        const tree_cache cache(zk, "/zookeeper");
        co_await when_dead("cache.hpp next", cache.changes(), [](cache_changes& c) { return c.next(); });
    };
    with_client(body);
}

TEST_CASE("what streams of one node return may be awaited when they are gone") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::error_code closed = errc::client_closed;  // one that is destroyed is closed
        using values = value_stream;
        using children = children_stream;
        co_await when_dead("streams.hpp next", watch_value(zk, "/"), [](values& s) { return s.next(); }, closed);
        co_await when_dead(
            "streams.hpp settled", watch_value(zk, "/"), [](values& s) { return s.settled(0s); }, closed);
        co_await when_dead("streams.hpp close", watch_value(zk, "/"), [](values& s) { return s.close(); });
        co_await when_dead(
            "streams.hpp next", watch_children(zk, "/"), [](children& s) { return s.next(); }, closed);
        co_await when_dead(
            "streams.hpp settled", watch_children(zk, "/"), [](children& s) { return s.settled(0s); }, closed);
        co_await when_dead("streams.hpp close", watch_children(zk, "/"),
                           [](children& s) { return s.close(); });
        using follower = node_follower;
        co_await when_dead("node_follower.hpp next", follower(zk, "/", node_read::data),
                           [](follower& f) { return f.next(std::nullopt); });  // says that it has ended
        co_await when_dead("node_follower.hpp close", follower(zk, "/", node_read::data),
                           [](follower& f) { return f.close(); });
    };
    with_client(body);
}

TEST_CASE("what configuration returns may be awaited when it is gone") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string path = co_await fresh_directory(zk, "dead-config");
        const std::error_code closed = errc::client_closed;
        using config = config_value<int>;
        const config_format<int> format(text_length, as_text);
        co_await when_dead(
            "config_value.hpp ready", config(zk, path, format), [](config& c) { return c.ready(); }, closed);
        co_await when_dead("config_value.hpp initialize", config(zk, path, format),
                           [](config& c) { return c.initialize(3); });
        co_await when_dead("config_value.hpp set", config(zk, path, format), [](config& c) { return c.set(3); });
        co_await when_dead("config_value.hpp update", config(zk, path, format),
                           [](config& c) { return c.update(one_more); });
        co_await when_dead("config_value.hpp close", config(zk, path, format), [](config& c) { return c.close(); });
        const config alive(zk, path, format);
        co_await when_dead("config_value.hpp next", alive.changes(), [](config_changes<int>& c) { return c.next(); });
        const node_data written = co_await zk.get(path);
        CHECK(written.data == "xxxx");
    };
    with_client(body);
}

TEST_CASE("what elections and observers return may be awaited when they are gone") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "dead-elections");
        const auto limit = boot_clock::now() + 1h;
        using election = leader_election;
        const election e(zk, dir);
        co_await when_dead("leader_election.hpp campaign", e, [](election& l) { return l.campaign(); });
        co_await when_dead("leader_election.hpp try_campaign", e, [](election& l) { return l.try_campaign(); });
        co_await when_dead("leader_election.hpp try_campaign_for", e,
                           [](election& l) { return l.try_campaign_for(1h); });
        co_await when_dead("leader_election.hpp try_campaign_until", e,
                           [&](election& l) { return l.try_campaign_until(limit); });
        co_await when_dead("leader_election.hpp lead", e, [](election& l) { return l.lead(while_leading); });
        co_await when_dead("leader_election.hpp candidates", e, [](election& l) { return l.candidates(); });
        co_await when_dead("leader_observer.hpp next", e.observe(), [](leader_observer& o) { return o.next(); });
    };
    with_client(body);
}

TEST_CASE("what candidates return may be awaited when they are gone: they have left by then") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "dead-candidates");
        const auto fresh = [&] { return candidate(zk, dir); };
        const auto led = [](const leadership&) -> asio::awaitable<void> { co_return; };
        co_await when_dead("candidate.hpp next", fresh(), [](candidate& c) { return c.next(); });
        co_await when_dead("candidate.hpp run", fresh(), [&](candidate& c) { return c.run(led); });
        co_await when_dead("candidate.hpp step_down", fresh(), [](candidate& c) { return c.step_down(); });
        co_await when_dead("candidate.hpp close", fresh(), [](candidate& c) { return c.close(); });
        co_await zk.idle();
    };
    with_client(body);
}

TEST_CASE("what leaders return may be awaited when they are gone: they have resigned by then") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "dead-leaders");
        const leader_election e(zk, dir);
        leadership first = co_await e.campaign();
        co_await when_dead("leader_election.hpp lost", std::move(first), [](leadership& l) { return l.lost(); });
        leadership second = co_await e.campaign();
        co_await when_dead(
            "leader_election.hpp commit", std::move(second),
            [](leadership& l) { return l.commit(transaction().check("/")); }, errc::lock_released);
        leadership third = co_await e.campaign();
        co_await when_dead(
            "leader_election.hpp proclaim", std::move(third), [](leadership& l) { return l.proclaim("x"); },
            errc::lock_released);
        leadership fourth = co_await e.campaign();
        co_await when_dead(
            "leader_election.hpp run", std::move(fourth), [](leadership& l) { return l.run(nothing); },
            errc::lock_released);
        leadership fifth = co_await e.campaign();
        co_await when_dead("leader_election.hpp resign", std::move(fifth), [](leadership& l) { return l.resign(); });
    };
    with_client(body);
}

TEST_CASE("what persistent nodes return may be awaited when they are gone: they have left by then") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "dead-nodes");
        using node = persistent_node;
        const auto fresh = [&] { return persistent_node(zk, dir + "/node"); };
        const auto standing = persistent_node_state::standing;
        co_await when_dead(
            "persistent_node.hpp created", fresh(), [](node& n) { return n.created(); }, errc::client_closed);
        co_await when_dead(
            "persistent_node.hpp set_data", fresh(), [](node& n) { return n.set_data("x"); }, errc::client_closed);
        co_await when_dead("persistent_node.hpp state_after", fresh(),
                           [&](node& n) { return n.state_after(standing); });
        co_await when_dead("persistent_node.hpp ended", fresh(), [](node& n) { return n.ended(); });
        co_await when_dead("persistent_node.hpp leave", fresh(), [](node& n) { return n.leave(); });
    };
    with_client(body);
}

TEST_CASE("what groups and their members return may be awaited when they are gone") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "dead-groups");
        const group g(zk, dir);
        co_await when_dead("group.hpp join", g, [](group& o) { return o.join("me"); });
        co_await when_dead("group.hpp members", g, [](group& o) { return o.members(); });
        co_await when_dead(
            "group.hpp ready", g.observe(), [](group_observer& o) { return o.ready(); }, errc::client_closed);
        co_await when_dead(
            "group.hpp next", g.observe(), [](group_observer& o) { return o.next(); }, errc::client_closed);
        co_await when_dead(
            "group.hpp settled", g.observe(), [](group_observer& o) { return o.settled(0s); },
            errc::client_closed);

        using member = group_membership;
        const auto standing = persistent_node_state::standing;
        group_membership first = co_await g.join("1");
        co_await when_dead(
            "group.hpp set_data", std::move(first), [](member& m) { return m.set_data("x"); },
            errc::client_closed);
        group_membership second = co_await g.join("2");
        co_await when_dead("group.hpp state_after", std::move(second),
                           [&](member& m) { return m.state_after(standing); });
        group_membership third = co_await g.join("3");
        co_await when_dead("group.hpp ended", std::move(third), [](member& m) { return m.ended(); });
        group_membership fourth = co_await g.join("4");
        co_await when_dead("group.hpp leave", std::move(fourth), [](member& m) { return m.leave(); });
    };
    with_client(body);
}

TEST_CASE("what partitioners and partitions return may be awaited when they are gone") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "dead-partitioners");
        const std::vector<std::string> one(1, "p0");
        const partitioner p(zk, dir, one, partitioner_options().settle(0ms));
        co_await when_dead(
            "partitioner.hpp run", p, [](partitioner& o) { return o.run(refuse_work); }, errc::timed_out);

        leadership term = co_await leader_election(zk, dir + "/election").campaign();
        using partition = std::unique_ptr<held_partition>;
        co_await when_dead(
            "partitioner.hpp commit", std::make_unique<held_partition>("p0", term),
            [](partition& o) { return o->commit(transaction().check("/missing")); }, zk_errc::no_node);
        auto lost = std::make_unique<held_partition>("p0", term)->lost();
        co_await term.resign();
        const loss_reason why = co_await std::move(lost);
        CHECK(why == loss_reason::released);
        co_await when_dead("partitioner.hpp lost", std::make_unique<held_partition>("p0", term),
                           [](partition& o) { return o->lost(); });
    };
    with_client(body);
}
