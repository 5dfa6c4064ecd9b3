#include "support/lock_checks.hpp"

#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>

#include <algorithm>

using namespace zkasio;
using namespace zkasio::test;

namespace {

using positions = std::vector<queue_position>;

// Everything that was told is kept in `seen`, which outlives the acquire.
acquire_options telling(positions& seen) {
    acquire_options how;
    how.on_position([&seen](const queue_position& p) { seen.push_back(p); });
    return how;
}

std::vector<std::size_t> ahead(const positions& seen) {
    std::vector<std::size_t> all;
    for (const queue_position& p : seen) all.push_back(p.ahead);
    return all;
}

asio::awaitable<void> until_told(const positions& seen, std::size_t n) {
    auto told = [&]() -> asio::awaitable<bool> { co_return !seen.empty() && seen.back().ahead == n; };
    co_await eventually(told);
}

std::vector<std::string> paths_of(const std::vector<contender_info>& all) {
    std::vector<std::string> paths;
    for (const contender_info& c : all) paths.push_back(c.path);
    return paths;
}

}  // namespace

TEST_CASE("queue insight: positions go down one by one while local waiters ahead are served") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "insight-local");
        const auto executor = co_await asio::this_coro::executor;
        const mutex lock(zk, dir);
        lock_guard holder = co_await lock.acquire();
        std::vector<taker> between;
        for (std::size_t i = 0; i < 3; ++i) {
            between.emplace_back(executor, lock.acquire());
            co_await until_queued(zk, dir, i + 2);
        }
        positions seen;
        taker last(executor, lock.acquire(telling(seen)));
        co_await until_told(seen, 4);
        const std::vector<std::string> queue = paths_of(co_await lock.contenders());
        REQUIRE(queue.size() == 5);
        CHECK(seen.back().predecessor == queue[3]);
        taker behind(executor, lock.acquire());  // which changes nothing for us
        co_await until_queued(zk, dir, 6);
        co_await holder.release();
        for (std::size_t i = 0; i < 3; ++i) {
            co_await between[i].got();
            co_await until_told(seen, 3 - i);
            CHECK(seen.back().predecessor == queue[3]);
            CHECK_FALSE(last.has_it());
            between[i].release();
        }
        co_await last.got();
        CHECK(ahead(seen) == std::vector<std::size_t>{4, 3, 2, 1});
        CHECK(last.guard().path() == queue[4]);
    };
    with_client(body);
}

TEST_CASE("queue insight: positions are right with waiters of other clients in between", "[any-server]") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "insight-remote");
        const auto executor = co_await asio::this_coro::executor;
        const test_client other(executor, options());
        const mutex ours(zk, dir), theirs(other, dir);
        lock_guard holder = co_await theirs.acquire();
        positions seen;
        std::vector<taker> between;
        for (std::size_t i = 0; i < 4; ++i) {
            between.emplace_back(executor, (i % 2 ? ours : theirs).acquire());
            co_await until_queued(zk, dir, i + 2);
        }
        taker last(executor, ours.acquire(telling(seen)));
        co_await until_queued(zk, dir, 6);
        co_await until_told(seen, 5);
        const std::vector<std::string> queue = paths_of(co_await ours.contenders());
        REQUIRE(queue.size() == 6);
        CHECK(seen.back().predecessor == queue[4]);
        co_await holder.release();
        for (taker& t : between) {
            co_await t.got();
            t.release();
        }
        co_await last.got();
        const std::vector<std::size_t> told = ahead(seen);
        CHECK(std::is_sorted(told.rbegin(), told.rend()));
        CHECK(std::adjacent_find(told.begin(), told.end()) == told.end());  // only when it has changed
        CHECK(told.front() == 5);
        for (const queue_position& p : seen) CHECK((p.ahead == 0 || p.predecessor == queue[4]));
        co_await other.close();
    };
    with_client(body);
}

TEST_CASE("queue insight: a predecessor that gives up is replaced by the one before it") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "insight-gives-up");
        const auto executor = co_await asio::this_coro::executor;
        const mutex lock(zk, dir);
        lock_guard holder = co_await lock.acquire();
        taker between(executor, lock.acquire());
        co_await until_queued(zk, dir, 2);
        positions seen;
        taker last(executor, lock.acquire(telling(seen)));
        co_await until_told(seen, 2);
        CHECK(seen.back().predecessor != holder.path());
        between.cancel();
        co_await until_told(seen, 1);
        CHECK(seen.back().predecessor == holder.path());
        co_await holder.release();
        co_await last.got();
    };
    with_client(body);
}

TEST_CASE("queue insight: an observer that is alone in a queue of its client is told, too") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "insight-alone");
        const auto executor = co_await asio::this_coro::executor;
        const test_client other(executor, options());
        const mutex ours(zk, dir), theirs(other, dir);
        positions seen;
        {
            const lock_guard at_once = co_await ours.acquire(telling(seen));
            CHECK(at_once.held());
        }
        for (const queue_position& p : seen) CHECK(p == queue_position());  // nobody was ahead
        co_await until_queued(zk, dir, 0);
        seen.clear();
        lock_guard holder = co_await theirs.acquire();
        taker behind(executor, theirs.acquire());
        co_await until_queued(zk, dir, 2);
        taker last(executor, ours.acquire(telling(seen)));
        co_await until_told(seen, 2);
        behind.cancel();
        co_await behind.code();
        co_await until_told(seen, 1);
        CHECK(seen.back().predecessor == holder.path());
        co_await holder.release();
        co_await last.got();
        // Nothing is told to those who have gone.
        const std::size_t told = seen.size();
        last.release();
        co_await until_queued(zk, dir, 0);
        CHECK(seen.size() == told);
        co_await other.close();
    };
    with_client(body);
}

TEST_CASE("queue insight: readers and writers see where they stand") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "insight-shared");
        const auto executor = co_await asio::this_coro::executor;
        const test_client other(executor, options());
        const shared_mutex ours(zk, dir), theirs(other, dir);
        lock_guard reading = co_await theirs.acquire_shared();
        positions writer, reader;
        taker write(executor, ours.acquire(telling(writer)));
        co_await until_told(writer, 1);
        CHECK(writer.back().predecessor == reading.path());
        taker read(executor, ours.acquire_shared(telling(reader)));
        co_await until_told(reader, 2);
        const std::vector<contender_info> all = co_await ours.contenders();
        REQUIRE(all.size() == 3);
        CHECK(reader.back().predecessor == all[1].path);
        co_await reading.release();
        co_await write.got();
        co_await until_told(reader, 1);
        write.release();
        co_await read.got();
        co_await other.close();
    };
    with_client(body);
}

TEST_CASE("queue insight: who waits for permits sees who is served before it") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "insight-semaphore");
        const auto executor = co_await asio::this_coro::executor;
        const semaphore s(zk, dir, permits::fixed(1));
        lock_guard out = co_await s.acquire();
        taker served(executor, s.acquire());
        co_await until_queued(zk, dir + "/leases", 2);
        taker next(executor, s.acquire());
        co_await until_queued(zk, dir + "/locks", 2);
        positions seen;
        taker last(executor, s.acquire(1, telling(seen)));
        co_await until_told(seen, 2);
        const std::vector<std::string> line = paths_of(co_await s.waiting());
        REQUIRE(line.size() == 3);
        CHECK(seen.back().predecessor == line[1]);
        co_await out.release();
        co_await served.got();
        co_await until_told(seen, 1);
        served.release();
        co_await next.got();
        next.release();
        co_await last.got();
        CHECK(ahead(seen) == std::vector<std::size_t>{2, 1});
    };
    with_client(body);
}

TEST_CASE("queue insight: an observed acquire that is cancelled is not told any more") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "insight-cancel");
        const auto executor = co_await asio::this_coro::executor;
        const mutex lock(zk, dir);
        lock_guard holder = co_await lock.acquire();
        taker between(executor, lock.acquire());
        co_await until_queued(zk, dir, 2);
        auto seen = std::make_shared<positions>();
        const std::weak_ptr<positions> observed = seen;
        acquire_options how;
        auto note = [seen](const queue_position& p) { seen->push_back(p); };
        how.on_position(moved(note));  // `note` does not keep what it was told
        taker last(executor, lock.acquire(std::move(how)));
        how = acquire_options();
        co_await until_told(*seen, 2);
        last.cancel();
        const std::error_code c = co_await last.code();
        CHECK(c == condition::cancelled);
        const std::size_t told = seen->size();
        co_await until_queued(zk, dir, 2);
        co_await holder.release();
        co_await between.got();
        between.release();
        co_await until_queued(zk, dir, 0);
        co_await until_quiet(zk, dir);
        CHECK(seen->size() == told);
        seen.reset();
        CHECK(observed.expired());  // the observer is let go
    };
    with_client(body);
}

TEST_CASE("queue insight: contenders() shows kind, session, data, age and order") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "insight-contenders");
        const auto executor = co_await asio::this_coro::executor;
        const test_client other(executor, options());
        const session here = co_await zk.current_session(), there = co_await other.current_session();
        shared_mutex_options mine, their;
        mine.data("mine");
        their.data("theirs");
        const shared_mutex ours(zk, dir, mine), theirs(other, dir, their);
        const lock_guard reading = co_await ours.acquire_shared();
        const lock_guard also_reading = co_await theirs.acquire_shared();
        taker writing(executor, theirs.acquire());
        co_await until_queued(zk, dir, 3);
        taker last(executor, ours.acquire_shared());
        co_await until_queued(zk, dir, 4);
        const std::vector<contender_info> all = co_await ours.contenders();
        REQUIRE(all.size() == 4);
        const std::vector<lock_kind> kinds{lock_kind::shared, lock_kind::shared, lock_kind::exclusive,
                                           lock_kind::shared};
        const std::vector<std::int64_t> sessions{here.id(), there.id(), there.id(), here.id()};
        const std::vector<std::string> data{"mine", "theirs", "theirs", "mine"};
        for (std::size_t i = 0; i < 4; ++i) {
            CHECK(all[i].kind == kinds[i]);
            CHECK(all[i].session_id == sessions[i]);
            CHECK(all[i].data == data[i]);
            CHECK(all[i].position == i);
            const auto node = co_await zk.exists(all[i].path);
            REQUIRE(node);
            CHECK(all[i].created_ms == node->ctime);
            CHECK(all[i].age() >= 0ms);
            CHECK(all[i].age() < 60s);
        }
        CHECK(all[0].path == reading.path());
        CHECK(all[1].path == also_reading.path());
        CHECK(all[0].created_ms <= all[3].created_ms);
        writing.cancel();
        last.cancel();
        co_await writing.code();
        co_await last.code();
        co_await other.close();
    };
    with_client(body);
}
