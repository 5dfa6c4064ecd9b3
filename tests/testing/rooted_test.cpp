// Views of a client, client::rooted(): what its paths are, below and above; and that all views are one client, also for
// the locks of one node.

#include "support/catch.hpp"
#include "support/recording_observer.hpp"
#include "support/test_client.hpp"
#include "support/texts.hpp"
#include "testing/cost.hpp"
#include "testing/steps.hpp"

#include <zkasio/cache/tree_cache.hpp>
#include <zkasio/counters/atomic_counter.hpp>
#include <zkasio/detail/handles/access.hpp>
#include <zkasio/election/leader_election.hpp>
#include <zkasio/error.hpp>
#include <zkasio/locks/cohort_mutex.hpp>
#include <zkasio/locks/lock_owner.hpp>
#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/slots.hpp>
#include <zkasio/locks/unfair_mutex.hpp>
#include <zkasio/log_record.hpp>
#include <zkasio/membership/persistent_node.hpp>
#include <zkasio/queues/work_queue.hpp>
#include <zkasio/recipe/reports.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/testing/fake_ensemble.hpp>
#include <zkasio/transact/transact.hpp>

#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace rooted_tests {

using namespace std::chrono_literals;
using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

// The message of what the awaitable fails with.
template <class T>
asio::awaitable<std::string> text_of(asio::awaitable<T> failing) {
    try {
        (void)co_await std::move(failing);
    } catch (const std::exception& e) {
        co_return e.what();
    }
    co_return "no failure";
}
asio::awaitable<std::string> text_of(asio::awaitable<void> failing) {
    try {
        co_await std::move(failing);
    } catch (const std::exception& e) {
        co_return e.what();
    }
    co_return "no failure";
}

create_options with_parents() { return create_options().parents(missing_parents::create_persistent); }
create_options of_mode(create_mode mode) { return create_options().mode(mode); }

// The text, if it does not contain the part.
std::string unlike(std::string_view part, const std::string& text) { return has(text, part) ? "" : text; }

std::string problem_of(const client& zk, std::string_view root) {
    return failure_of([&] { (void)zk.rooted(root); });
}

}  // namespace

TEST_CASE("rooted: paths are below the root, and come back without it", "[rooted]") {
    fake_ensemble e;
    e.create("/app");
    const client zk = e.client(calm()), app = zk.rooted("/app");
    auto body = [&]() -> asio::awaitable<void> {
        const created made = co_await app.create("/a", "one");
        CHECK(made.path == "/a");
        CHECK(e.data("/app/a") == "one");
        const created numbered = co_await app.create("/n-", "", of_mode(create_mode::ephemeral_sequential));
        CHECK(numbered.path == "/n-0000000001");
        const created only_a_number = co_await app.create("/", "", of_mode(create_mode::persistent_sequential));
        CHECK(only_a_number.path == "/0000000002");
        const created safe = co_await app.create("/p", "", create_options().protection());
        CHECK(safe.path.starts_with("/_c_"));
        CHECK(e.exists("/app" + safe.path));
        const node_children below = co_await app.children("/");
        CHECK(below.names.size() == 4);
        const node_data read = co_await app.get("/a");
        CHECK(read.data == "one");
        co_await app.set("/a", "two");
        CHECK(e.data("/app/a") == "two");
        const auto none = co_await app.exists("/app");
        CHECK_FALSE(none);
        transaction steps;
        steps.create("/b", "").set("/a", "three").create("/c-", "", of_mode(create_mode::persistent_sequential));
        const std::vector<step_result> results = co_await app.multi(steps);
        CHECK(results.at(0).path == "/b");
        CHECK(results.at(2).path == "/c-0000000005");
        read_list reads;
        reads.get("/a").children("/");
        const std::vector<read_result> seen = co_await app.multi_read(reads);
        CHECK(seen.at(0).data == "three");
        CHECK(seen.at(1).names.size() == 6);
        co_await app.remove("/a");
        CHECK_FALSE(e.exists("/app/a"));
        co_await app.create("/x/y/z", "", with_parents());
        co_await app.remove_recursive("/x");
        CHECK_FALSE(e.exists("/app/x"));
        co_await zk.create("/apple", "", of_mode(create_mode::ephemeral));
        const std::vector<std::string> own = co_await app.ephemerals();
        CHECK(own == std::vector<std::string>(1, "/n-0000000001"));
    };
    e.run(body);
}

TEST_CASE("rooted: errors have the paths of the view", "[rooted]") {
    fake_ensemble e;
    e.create("/app/full/child");
    const client zk = e.client(calm()), app = zk.rooted("/app");
    auto body = [&]() -> asio::awaitable<void> {
        CHECK((co_await text_of(app.get("/none"))) == "get /none: no such node");
        CHECK(unlike("create /none/a: no such node (the parent", co_await text_of(app.create("/none/a", ""))) == "");
        CHECK(unlike("remove /full: node has children", co_await text_of(app.remove("/full"))) == "");
        CHECK(unlike("create /full: node exists", co_await text_of(app.create("/full", ""))) == "");
        CHECK(unlike("get none: invalid path", co_await text_of(app.get("none"))) == "");
        CHECK(unlike("remove /: invalid argument", co_await text_of(app.remove("/"))) == "");
        transaction steps;
        steps.check("/full").remove("/none");
        CHECK(unlike("multi /none: no such node (step 2, remove", co_await text_of(app.multi(steps))) == "");
        CHECK(unlike("get /none: no such node", co_await text_of(toolbox(app).start_get("/none").result())) == "");
        const std::vector<std::string> needed(1, "/gone");
        const pending_removal removal = toolbox(app).ensure_removed("/full/child", needed);
        CHECK(unlike("remove /gone", co_await text_of(removal.result())) == "");
        const std::string long_path = "/" + std::string(client::max_request, 'a');
        CHECK(unlike("too large", co_await text_of(app.exists(long_path))) == "");
        e.create("/app/lock/no contender");
        const std::string foreign = "contenders /lock: ";
        CHECK(unlike(foreign, co_await text_of(mutex(app, "/lock").contenders())) == "");
        CHECK(unlike(foreign, co_await text_of(shared_mutex(app, "/lock").contenders())) == "");
    };
    e.run(body);
}

TEST_CASE("rooted: views of views, the view itself, and bad roots", "[rooted]") {
    fake_ensemble e;
    e.create("/a/b/c");
    const client zk = e.client(calm());
    const client inner = zk.rooted("/a").rooted("/b");
    auto body = [&]() -> asio::awaitable<void> {
        const auto there = co_await inner.exists("/c");
        CHECK(there);
        const client same = inner.rooted(""), same_too = inner.rooted("/");
        CHECK(co_await same.exists("/c"));
        CHECK(co_await same_too.exists("/c"));
        const session s = co_await inner.current_session();
        CHECK(co_await s.exists("/c"));
        CHECK(co_await inner.session_now().patient().exists("/c"));
        auto in_session = [](const session& on) -> asio::awaitable<bool> {
            const auto found = co_await on.exists("/c");
            co_return found.has_value();
        };
        CHECK(co_await inner.with_session(in_session));
        CHECK(s.id() == zk.session_now().id());
        CHECK(unlike("rooted a: invalid path", problem_of(zk, "a")) == "");
        CHECK(unlike("rooted /a/: invalid path", problem_of(zk, "/a/")) == "");
        CHECK(unlike("rooted /zookeeper/quota: invalid path", problem_of(zk, "/zookeeper/quota")) == "");
        CHECK(unlike("invalid path", problem_of(inner, "/../x")) == "");
        // Below a root, this is a node like others.
        co_await inner.create("/zookeeper", "");
        CHECK(e.exists("/a/b/zookeeper"));
        client gone = inner;
        const client moved = std::move(gone);
        CHECK(unlike("moved from", problem_of(gone, "/x")) == "");
        CHECK(unlike("moved from", co_await text_of(gone.get("/x"))) == "");
    };
    e.run(body);
}

TEST_CASE("rooted: missing parents may be above the root", "[rooted]") {
    fake_ensemble e;
    const client zk = e.client(calm()), app = zk.rooted("/services/app");
    auto body = [&]() -> asio::awaitable<void> {
        CHECK(unlike("create /x: no such node", co_await text_of(app.create("/x", ""))) == "");
        const created made = co_await app.create("/x", "", with_parents());
        CHECK(made.path == "/x");
        CHECK(e.exists("/services/app/x"));
        const mutex lock(zk.rooted("/other/app"), "/lock");
        lock_guard guard = co_await lock.acquire();
        CHECK(guard.path().starts_with("/lock/"));
        CHECK(e.children("/other/app/lock").size() == 1);
    };
    e.run(body);
}

TEST_CASE("rooted: watches and streams tell paths of the view", "[rooted]") {
    fake_ensemble e;
    e.create("/app/a");
    const client zk = e.client(calm()), app = zk.rooted("/app");
    auto body = [&]() -> asio::awaitable<void> {
        const watched<node_data> seen = co_await app.get_and_watch("/a");
        const watched<node_data> same = co_await zk.get_and_watch("/app/a");
        CHECK(e.watches(zk) == 1);
        CHECK(seen.changes.path() == "/a");
        const watch_stream all = co_await app.add_watch("/", watch_mode::recursive);
        CHECK(all.path() == "/");
        e.set("/app/a", "new");
        const watch_event fired = co_await seen.changes.changed();
        CHECK(fired.path == "/a");
        CHECK((co_await same.changes.changed()).path == "/app/a");
        const watched_event told_1 = co_await all.next();
        CHECK(told_1.path == "/a");
        e.create("/app/a/b");
        const watched_event told_2 = co_await all.next();
        CHECK(told_2.path == "/a/b");
        e.cut(zk);
        const watched_event told_3 = co_await all.next();
        CHECK(told_3.path == "/");
        co_await all.close();
        CHECK(unlike("add_watch /: client closed", co_await text_of(all.next())) == "");
    };
    e.run(body);
}

TEST_CASE("rooted: caches show paths of the view, and share one watch with the client", "[rooted]") {
    fake_ensemble e;
    e.create("/app/tree/a", "1");
    const client zk = e.client(calm()), app = zk.rooted("/app");
    auto body = [&]() -> asio::awaitable<void> {
        const tree_cache whole(zk, "/app/tree"), cache(app, "/tree");
        co_await whole.ready();
        co_await cache.ready();
        CHECK(e.watches(zk) == 1);
        CHECK(cache.path() == "/tree");
        CHECK(cache.snapshot().find("/tree/a").data() == "1");
        CHECK_FALSE(cache.snapshot().find("/app/tree/a"));
        CHECK(whole.snapshot().find("/app/tree/a").data() == "1");
        const cache_changes changes = cache.changes();
        const cache_update begin = co_await changes.next();
        CHECK(begin.look_again);
        e.set("/app/tree/a", "2");
        const cache_update update = co_await changes.next();
        CHECK(update.changes.at(0).path == "/tree/a");
        CHECK(cache.snapshot().find("/tree/a").data() == "2");
    };
    e.run(body);
}

TEST_CASE("rooted: a mutex of the view is that of the client", "[rooted]") {
    fake_ensemble e;
    const client zk = e.client(calm()), app = zk.rooted("/app");
    const mutex whole(zk, "/app/lock"), lock(app, "/lock");
    CHECK(lock.path() == "/lock");
    auto body = [&]() -> asio::awaitable<void> {
        std::optional<lock_guard> guard(co_await whole.acquire());
        const auto refused = co_await lock.try_acquire();
        CHECK_FALSE(refused);
        std::optional<lock_guard> next;
        auto wait = [&]() -> asio::awaitable<void> { next.emplace(co_await lock.acquire()); };
        asio::co_spawn(e.context(), wait(), asio::detached);
        co_await sleep_for(1s);
        // The lock is handed over in this session: the successor has it as soon as the removal is sent.
        const std::size_t before = e.requests(zk);
        co_await guard->release();
        co_await sleep_for(1s);
        REQUIRE(next);
        CHECK(e.requests(zk) - before <= 2);
        CHECK(next->held());
        CHECK(next->path().starts_with("/lock/"));
        CHECK(next->paths().size() == 1);
        CHECK(next->sequence());
        transaction steps;
        steps.create("/done", "");
        co_await next->commit(steps);
        CHECK(e.exists("/app/done"));
        const auto queue = co_await lock.contenders();
        CHECK(queue.at(0).path == next->path());
        // An operator removes the node.
        e.remove("/app" + next->path());
        const std::string path = next->path();
        CHECK((co_await next->lost()) == loss_reason::node_deleted);
        transaction more;
        more.create("/more", "");
        CHECK(has(co_await text_of(next->commit(more)), "commit " + path + ": lock lost"));
    };
    e.run(body);
}

TEST_CASE("rooted: work under a lock that acquires it through another view would wait for itself", "[rooted]") {
    fake_ensemble e;
    e.create("/app");
    const client zk = e.client(calm()), app = zk.rooted("/app");
    auto body = [&]() -> asio::awaitable<void> {
        const mutex whole(zk, "/app/m"), view(app, "/m");
        auto again = [&](lock_guard&) -> asio::awaitable<std::string> { co_return co_await text_of(view.acquire()); };
        CHECK(unlike("acquire /m: the caller holds the lock", co_await whole.with_lock(again)) == "");
        auto back = [&](lock_guard&) -> asio::awaitable<std::string> { co_return co_await text_of(whole.acquire()); };
        CHECK(unlike("acquire /app/m: the caller holds the lock", co_await view.with_lock(back)) == "");

        const cohort_mutex whole_cohort(zk, "/app/c"), cohort(app, "/c");
        auto turn = [&](lock_guard& g) -> asio::awaitable<std::string> {
            CHECK(g.path().starts_with("/app/c/"));
            co_return co_await text_of(cohort.acquire());
        };
        CHECK(unlike("acquire /c: the caller holds the lock", co_await whole_cohort.with_lock(turn)) == "");
        auto other_turn = [&](lock_guard& g) -> asio::awaitable<std::string> {
            CHECK(g.path().starts_with("/c/"));
            co_return co_await text_of(whole_cohort.acquire());
        };
        CHECK(unlike("acquire /app/c: the caller holds the lock", co_await cohort.with_lock(other_turn)) == "");

        const unfair_mutex whole_node(zk, "/app/u"), node(app, "/u");
        auto one_node = [&](lock_guard&) -> asio::awaitable<std::string> {
            co_return co_await text_of(node.acquire());
        };
        CHECK(unlike("acquire /u: the caller holds the lock", co_await whole_node.with_lock(one_node)) == "");

        const slots whole_slots(zk, "/app/s", 1), numbers(app, "/s", 1);
        auto number = [&](lock_guard& g) -> asio::awaitable<std::string> {
            CHECK(g.path() == "/s/0");
            CHECK(g.slot() == 0u);
            co_return co_await text_of(whole_slots.acquire());
        };
        CHECK(unlike("acquire /app/s: the caller holds the lock", co_await numbers.with_lock(number)) == "");
    };
    e.run(body);
}

TEST_CASE("rooted: readers and writers, permits, owners and positions", "[rooted]") {
    fake_ensemble e;
    e.create("/app/count", std::string("\0\0\0\1", 4));
    const client zk = e.client(calm()), app = zk.rooted("/app");
    auto body = [&]() -> asio::awaitable<void> {
        const shared_mutex whole(zk, "/app/rw"), lock(app, "/rw");
        lock_guard writing = co_await whole.acquire();
        lock_guard reading = co_await lock.downgrade(std::move(writing));
        CHECK(reading.path().starts_with("/rw/"));
        const lock_guard second = co_await whole.acquire(lock_kind::shared);
        CHECK(second.path().starts_with("/app/rw/"));
        lock_guard third = co_await lock.acquire(lock_kind::shared);
        CHECK_FALSE(co_await lock.try_acquire());
        co_await third.release();

        const lock_owner me;
        const mutex whole_mutex(zk, "/app/m"), view_mutex(app, "/m");
        const lock_guard first_guard = co_await whole_mutex.acquire(acquire_options().owner(me));
        const lock_guard same_owner = co_await view_mutex.acquire(acquire_options().owner(me));
        CHECK(same_owner.path() == first_guard.path().substr(4));

        const semaphore permits_of(app, "/sem", permits::counted_by("/count"));
        lock_guard permit = co_await permits_of.acquire();
        CHECK(permit.path().starts_with("/sem/leases/"));
        const semaphore whole_sem(zk, "/app/sem", permits::counted_by("/app/count"));
        CHECK_FALSE(co_await whole_sem.try_acquire());
        CHECK((co_await permits_of.holders()).at(0).path == permit.path());
        co_await permit.release();
        const std::vector<lock_guard> each = co_await permits_of.acquire_each(1);
        CHECK(each.at(0).path().starts_with("/sem/leases/"));
        const semaphore of_none(app, "/sem", permits::counted_by("/none"));
        CHECK(unlike("acquire /sem: no such node (/app/none has the number", co_await text_of(of_none.acquire())) == "");

        std::vector<std::string> predecessors;
        acquire_options observed;
        auto observe = [&](const queue_position& at) { predecessors.push_back(at.predecessor); };
        observed.on_position(observe);
        CHECK_FALSE(co_await view_mutex.try_acquire_for(1s, observed));
        CHECK(predecessors.at(0) == same_owner.path());
    };
    e.run(body);
}

TEST_CASE("rooted: objects that work together are of one view", "[rooted]") {
    fake_ensemble e;
    e.create("/app");
    const client zk = e.client(calm()), app = zk.rooted("/app");
    auto body = [&]() -> asio::awaitable<void> {
        multi_mutex all(app);
        all.add(mutex(app, "/a")).add(mutex(app, "/b"));
        lock_guard both = co_await all.acquire();
        CHECK(both.paths().at(1).starts_with("/b/"));
        CHECK(e.children("/app/a").size() == 1);
        e.remove("/app" + both.paths().at(1));
        CHECK((co_await both.lost()) == loss_reason::node_deleted);
        const std::string lost = both.paths().at(1);
        transaction steps;
        steps.create("/x", "");
        CHECK(has(co_await text_of(both.commit(steps)), "commit " + lost + ": lock lost"));

        multi_mutex mixed(app);
        mixed.add(mutex(app, "/c")).add(mutex(zk, "/app/d"));
        CHECK(unlike("another view's", co_await text_of(mixed.acquire())) == "");

        const mutex whole(zk, "/app/e");
        const lock_guard guard = co_await whole.acquire();
        auto nothing = [](unit) -> asio::awaitable<void> { co_return; };
        CHECK(unlike("another view", co_await text_of(transact(app, nothing, transact_options().under(guard)))) == "");
        auto copy = [](unit u) -> asio::awaitable<void> {
            const auto from = co_await u.get("/from");
            u.create("/to", from.value().data);
        };
        e.create("/app/from", "text");
        co_await transact(app, copy);
        CHECK(e.data("/app/to") == "text");
    };
    e.run(body);
}

TEST_CASE("rooted: members, elections, counters and work queues", "[rooted]") {
    fake_ensemble e;
    e.create("/app");
    const client zk = e.client(calm().log(nullptr)), app = zk.rooted("/app");
    auto body = [&]() -> asio::awaitable<void> {
        persistent_node node(app, "/node", "data");
        co_await node.created();
        CHECK(node.standing_path() == "/node");
        CHECK(e.data("/app/node") == "data");
        persistent_node same(zk, "/app/node", "other");
        CHECK(unlike("another persistent_node", co_await text_of(same.created())) == "");

        const leader_election whole(zk, "/app/leader"), election(app, "/leader");
        leadership leads = co_await election.campaign();
        CHECK(leads.path().starts_with("/leader/"));
        CHECK((co_await whole.candidates()).size() == 1);

        const atomic_counter counter(app, "/n"), whole_counter(zk, "/app/n");
        co_await counter.add(2);
        co_await whole_counter.add(3);
        CHECK((co_await counter.get()) == 5);

        const work_queue queue(app, "/work"), whole_queue(zk, "/app/work");
        co_await queue.put("one");
        co_await whole_queue.put("two");
        delivery first = co_await whole_queue.receive();
        delivery second = co_await queue.receive();
        CHECK(first.item() == "one");
        CHECK(second.item() == "two");
        co_await first.done();
        co_await second.done();

    };
    e.run(body);
}

TEST_CASE("rooted: two views of a client take each item of a queue once, with lost connections", "[rooted]") {
    constexpr std::size_t items = 20;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        INFO("seed " << seed);
        fake_ensemble e(seed);
        e.create("/app");
        const client zk = e.client(calm().log(nullptr)), app = zk.rooted("/app");
        const work_queue whole(zk, "/app/work"), below(app, "/work");
        auto fill = [&]() -> asio::awaitable<void> {
            for (std::size_t i = 0; i < items; ++i) co_await whole.put(std::to_string(i));
        };
        e.run(fill);
        e.lose_connections(5);
        std::vector<std::string> taken;
        auto consume = [&](work_queue from) -> asio::awaitable<void> {
            while (taken.size() < items) {
                std::optional<delivery> got;
                try {
                    got.emplace(co_await from.receive());
                    co_await got->done();
                    taken.push_back(got->item());
                } catch (const error& failed) {
                    // Of an item that was given back, or is done although nobody was told.
                    if (failed.code() == errc::client_closed) co_return;
                    if (got && failed.outcome_unknown()) taken.push_back(got->item());
                }
            }
        };
        asio::co_spawn(e.context(), consume(whole), asio::detached);
        asio::co_spawn(e.context(), consume(below), asio::detached);
        e.run_for(10min);
        e.lose_connections(0);
        std::sort(taken.begin(), taken.end());
        CHECK(std::adjacent_find(taken.begin(), taken.end()) == taken.end());
        CHECK(taken.size() == items);
        e.run(zk.close());
    }
}

TEST_CASE("rooted: a view costs no request", "[rooted]") {
    const auto requests_through = [](std::string_view root) {
        fake_ensemble e;
        e.create("/app");
        const client zk = e.client(calm());
        auto body = [&]() -> asio::awaitable<void> {
            const client view = zk.rooted(root);
            const std::string below = root.empty() ? "/app" : "";
            const mutex lock(view, below + "/lock");
            for (int i = 0; i < 3; ++i) {
                lock_guard guard = co_await lock.acquire();
                co_await guard.release();
            }
            co_await view.create(below + "/a/b", "", with_parents());
            co_await view.get(below + "/a/b");
        };
        e.run(body);
        return e.requests(zk);
    };
    CHECK(requests_through("/app") == requests_through(""));
}

TEST_CASE("rooted: observers and logs are the client's, and have whole paths", "[rooted]") {
    fake_ensemble e;
    e.create("/app");
    const auto seen = std::make_shared<recording_observer>();
    std::vector<std::string> log;
    auto note = [&](const log_record& r) {
        if (!has(r.text(), "a line")) return;
        for (const log_field& f : r.fields()) log.push_back(std::string(f.key) + '=' + f.value);
    };
    const client zk = e.client(calm().observer(seen, e.get_executor()).log(note)), app = zk.rooted("/app");
    auto body = [&]() -> asio::awaitable<void> {
        const slots numbers(app, "/s", 1);
        lock_guard guard = co_await numbers.acquire();
        co_await guard.release();
        const atomic_counter counter(app, "/n");
        co_await counter.add(1);
        log_warning(app, "a line", {{"path", "/n"}, {"name", "/n"}});
    };
    e.run(body);
    e.run_for(1s);
    REQUIRE(seen->waits.size() == 1);
    CHECK(seen->waits.front().path == "/app/s");
    REQUIRE(seen->commits.size() == 1);
    CHECK(seen->commits.front().path == "/app/n");
    CHECK(log == std::vector<std::string>{"path=/app/n", "name=/n", "root=/app"});
}

TEST_CASE("rooted: the budget of ephemeral nodes knows each node once", "[rooted]") {
    fake_ensemble e;
    e.create("/app/d");
    const client zk = e.client(calm().ephemeral_budget(40)), app = zk.rooted("/app");
    auto body = [&]() -> asio::awaitable<void> {
        const std::string name = "/d/" + std::string(20, 'n');
        co_await app.create(name, "", of_mode(create_mode::ephemeral));
        const std::string text = co_await text_of(app.create("/d/other", "", of_mode(create_mode::ephemeral)));
        CHECK(unlike("create /d/other: ", text) == "");
        CHECK(unlike("ephemeral", text) == "");
        co_await zk.remove("/app" + name);
        co_await app.create("/d/other-one", "", of_mode(create_mode::ephemeral));
    };
    e.run(body);
}

TEST_CASE("rooted: a lock_owner's grant is shared by views of several clients", "[rooted]") {
    fake_ensemble e;
    e.create("/app");
    const client one = e.client(calm()), other = e.client(calm()), elsewhere = one.rooted("/x");
    auto body = [&]() -> asio::awaitable<void> {
        lock_guard kept;
        {
            const client app = other.rooted("/app");
            const mutex whole(one, "/app/lock"), below(app, "/lock");
            const lock_owner owner;
            const lock_guard first = co_await whole.acquire(acquire_options().owner(owner));
            kept = co_await below.acquire(acquire_options().owner(owner));
            // The root of each client's view is that client's: the other one may be gone before.
            const session shared = one.session_now().in_view_of(app);
            CHECK(detail::access::root_of(shared) != detail::access::root_of(app));
            CHECK(*detail::access::root_of(shared) == "/app");
        }
        CHECK(kept.path().starts_with("/lock/"));
        transaction steps;
        steps.create("/under", "");
        co_await kept.commit(steps);
        CHECK(e.exists("/app/under"));
    };
    e.run(body);
}

TEST_CASE("rooted: a lock_owner knows two views of a path apart", "[rooted]") {
    fake_ensemble e;
    e.create("/a");
    e.create("/b");
    const client zk = e.client(calm()), a = zk.rooted("/a"), b = zk.rooted("/b");
    const lock_owner owner;
    auto take = [&owner](const client& view) {
        std::function<asio::awaitable<std::shared_ptr<lock_claim>>()> acquire =
            [view]() -> asio::awaitable<std::shared_ptr<lock_claim>> {
            const mutex lock(view, "/lock");
            lock_guard got = co_await lock.acquire();
            co_return got.take_claim();
        };
        return owner.acquire(view, "mine /lock", "/lock", lock_kind::exclusive, std::move(acquire));
    };
    auto body = [&]() -> asio::awaitable<void> {
        const std::shared_ptr<lock_claim> first = co_await take(a), second = co_await take(b), again = co_await take(b);
        CHECK(e.children("/a/lock").size() == 1);
        CHECK(e.children("/b/lock").size() == 1);
        CHECK(again->paths() == second->paths());
    };
    e.run(body);
}

TEST_CASE("rooted: a number as a node's name, where the root is missing", "[rooted]") {
    fake_ensemble e;
    const client app = e.client(calm()).rooted("/s/app");
    auto body = [&]() -> asio::awaitable<void> {
        const created made = co_await app.create("/", "", with_parents().mode(create_mode::persistent_sequential));
        CHECK(made.path == "/0000000000");
        CHECK(e.exists("/s/app/0000000000"));
    };
    e.run(body);
}

TEST_CASE("rooted: a hold on nodes of a view is lost by their paths", "[rooted]") {
    fake_ensemble e;
    e.create("/app");
    const client app = e.client(calm()).rooted("/app");
    auto body = [&]() -> asio::awaitable<void> {
        co_await app.create("/a", "", of_mode(create_mode::ephemeral));
        co_await app.create("/b", "", of_mode(create_mode::ephemeral));
        const session on = co_await app.current_session();
        const session_hold a = on.hold("/a"), b = on.hold("/b"), both = on.hold_all({a, b});
        co_await both.confirmed();
        both.lose(loss_reason::node_deleted, "/b");
        CHECK(both.reason() == loss_reason::node_deleted);
        CHECK(b.reason() == loss_reason::node_deleted);
        CHECK(a.reason() == loss_reason::none);
        CHECK(both.lost_path() == "/b");

        const mutex lock(app, "/lock");
        const lock_guard guard = co_await lock.acquire();
        const session_hold& hold = guard.claim()->hold();
        hold.lose(loss_reason::node_deleted, guard.path());
        CHECK(hold.lost_path() == guard.path());
        CHECK(guard.reason() == loss_reason::node_deleted);
    };
    e.run(body);
}

TEST_CASE("rooted: no path is taken for one below a root", "[rooted]") {
    fake_ensemble e;
    e.create("/app");
    const client zk = e.client(calm()), app = zk.rooted("/app");
    const atomic_counter odd(zk, "/n below /app"), below(app, "/n");
    auto body = [&]() -> asio::awaitable<void> {
        co_await odd.add(2);
        co_await below.add(3);
        CHECK((co_await odd.get()) == 2);
        CHECK((co_await below.get()) == 3);
    };
    e.run(body);
}

TEST_CASE("rooted: a unit of work sees that nothing is there where the root is missing", "[rooted]") {
    fake_ensemble e;
    const client app = e.client(calm()).rooted("/none");
    bool is_there = true;
    auto look = [&](unit u) -> asio::awaitable<void> {
        const auto found = co_await u.get("/x");
        is_there = found.has_value();
    };
    e.run(transact(app, look));
    CHECK_FALSE(is_there);
    is_there = true;
    e.run(transact(app.rooted("/a/b"), look));
    CHECK_FALSE(is_there);
    auto write = [&](unit u) -> asio::awaitable<void> {
        co_await u.get("/x");
        u.create("/y", "");
    };
    CHECK(unlike("transact /x: no such node", failure_of([&] { e.run(transact(app, write)); })) == "");
}

TEST_CASE("rooted: a unit of work that writes runs again when the root was removed since its reads", "[rooted]") {
    fake_ensemble e;
    e.create("/app/read");
    const client app = e.client(calm()).rooted("/app");
    int runs = 0;
    auto body = [&](unit u) -> asio::awaitable<void> {
        if (++runs == 2) e.create("/app");
        const auto none = co_await u.get("/none");
        const auto read = co_await u.get("/read");
        CHECK_FALSE(none);
        CHECK(read.has_value() == (runs == 1));
        if (runs == 1) {
            e.remove("/app/read");
            e.remove("/app");
        }
        u.create("/written", "");
    };
    e.run(transact(app, body));
    CHECK(runs == 2);
    CHECK(e.exists("/app/written"));
}

TEST_CASE("rooted: a lock that was moved from is refused, also when its client is gone", "[rooted]") {
    fake_ensemble e;
    mutex gone(e.client(calm()).rooted("/app"), "/lock");
    { const mutex last = std::move(gone); }
    auto body = [&]() -> asio::awaitable<void> {
        CHECK(unlike("moved from", co_await text_of(gone.acquire())) == "");
        CHECK(unlike("moved from", co_await text_of(gone.contenders())) == "");
    };
    e.run(body);
}

}  // namespace rooted_tests
