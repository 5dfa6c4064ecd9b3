#include "integration/lock_holder.hpp"
#include "support/lock_checks.hpp"
#include "support/lock_directory.hpp"
#include "support/test_client.hpp"

#include <zkasio/locks/shared_mutex.hpp>

#include <algorithm>
#include <random>

using namespace zkasio;
using namespace zkasio::test;

TEST_CASE("readers share, a writer is alone, and nobody overtakes a writer who waits", "[any-server]") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "shared-basics");
        const auto executor = co_await asio::this_coro::executor;
        const test_client other(executor, options());
        const shared_mutex lock(zk, dir), same(other, dir);
        for (const auto* writers_lock : {&lock, &same}) {
            lock_guard first = co_await lock.acquire_shared();
            lock_guard second = co_await same.acquire_shared();
            CHECK(first.held());
            CHECK(second.held());
            holder writer, late;
            const running w(executor, writer.write(*writers_lock));
            co_await until_queued(zk, dir, 3);
            const running l(executor, late.read(lock));
            co_await until_queued(zk, dir, 4);
            co_await first.release();
            CHECK_FALSE(writer.guard);
            co_await second.release();
            co_await until_granted(writer);
            CHECK_FALSE(late.guard);
            CHECK(writer.guard->token() > second.token());
            const auto nothing = co_await same.try_acquire_shared();
            CHECK_FALSE(nothing);
            co_await writer.guard->release();
            co_await until_granted(late);
            const auto also = co_await same.try_acquire_shared();
            CHECK(also);
            const auto no_writer = co_await lock.try_acquire();
            CHECK_FALSE(no_writer);
            co_await late.guard->release();
            co_await w.end();
            co_await l.end();
        }
        co_await until_queued(zk, dir, 0);
        co_await other.close();
    };
    with_client(body);
}

TEST_CASE("readers and writers: try_acquire and time limits leave nothing behind") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "shared-try");
        const test_client other(co_await asio::this_coro::executor, options());
        const shared_mutex lock(zk, dir), theirs(other, dir);
        const auto long_ago = boot_clock::now() - 1s;
        for (const bool writing : {true, false}) {
            asio::awaitable<std::optional<lock_guard>> acquiring =
                writing ? lock.try_acquire() : lock.try_acquire_shared();
            const auto free = co_await std::move(acquiring);
            REQUIRE(free);
            for (const shared_mutex& m : {lock, theirs}) {
                auto writer = co_await m.try_acquire();
                CHECK_FALSE(writer);
                writer = co_await m.try_acquire_for(30ms);
                CHECK_FALSE(writer);
                writer = co_await m.try_acquire_for(0ms);
                CHECK_FALSE(writer);
                writer = co_await m.try_acquire_until(long_ago);
                CHECK_FALSE(writer);
                co_await until_queued(zk, dir, 1);

                auto reader = co_await m.try_acquire_shared();
                CHECK(reader.has_value() == !writing);
                reader.reset();
                co_await until_queued(zk, dir, 1);
                const auto limit = writing ? 30ms : 10s;
                reader = co_await m.try_acquire_shared_for(limit);
                CHECK(reader.has_value() == !writing);
                reader.reset();
                reader = co_await m.try_acquire_shared_for(0ms);
                CHECK(reader.has_value() == !writing);
                reader.reset();
                reader = co_await m.try_acquire_shared_until(long_ago);
                CHECK(reader.has_value() == !writing);
                reader.reset();
                co_await until_queued(zk, dir, 1);
            }
            CHECK(free->held());
        }
        co_await until_queued(zk, dir, 0);
        co_await until_quiet(other, dir);
        co_await until_quiet(zk, dir);
        auto in_time = co_await theirs.try_acquire_for(10s);
        REQUIRE(in_time);
        co_await in_time->release();
        auto write = [&]() -> asio::awaitable<void> { co_await lock.try_acquire_for(-1s); };
        auto read = [&]() -> asio::awaitable<void> { co_await lock.try_acquire_shared_for(-1s); };
        std::error_code c = co_await code_of(write());
        CHECK(c == errc::invalid_argument);
        c = co_await code_of(read());
        CHECK(c == errc::invalid_argument);
        co_await other.close();
    };
    with_client(body);
}

TEST_CASE("three writers, then three readers: one after another, then together") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "shared-three");
        const auto executor = co_await asio::this_coro::executor;
        const test_client other(executor, options());
        const shared_mutex locks[] = {shared_mutex(zk, dir), shared_mutex(other, dir)};
        lock_guard gate = co_await locks[0].acquire();
        holder writers[3], readers[3];
        std::vector<running> tasks;
        for (std::size_t i = 0; i < 3; ++i) {
            tasks.emplace_back(executor, writers[i].write(locks[i % 2]));
            co_await until_queued(zk, dir, 2 + i);
        }
        for (std::size_t i = 0; i < 3; ++i) {
            tasks.emplace_back(executor, readers[i].read(locks[i % 2]));
            co_await until_queued(zk, dir, 5 + i);
        }
        co_await gate.release();
        for (std::size_t i = 0; i < 3; ++i) {
            co_await until_granted(writers[i]);
            for (std::size_t later = i + 1; later < 3; ++later) CHECK_FALSE(writers[later].guard);
            for (const holder& r : readers) CHECK_FALSE(r.guard);
            co_await writers[i].guard->release();
        }
        for (const holder& r : readers) co_await until_granted(r);
        for (const holder& r : readers) CHECK(r.guard->held());
        for (holder& r : readers) co_await r.guard->release();
        for (const running& t : tasks) co_await t.end();
        co_await other.close();
    };
    with_client(body);
}

TEST_CASE("eight clients, a hundred operations each, one in ten writes: writers are alone, readers overlap") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "shared-load");
        const auto executor = co_await asio::this_coro::executor;
        std::vector<test_client> clients;
        for (int i = 0; i < 8; ++i) clients.emplace_back(executor, options());
        int readers = 0, writers = 0, most_readers = 0, writes = 0;
        auto work = [&](const test_client& on, unsigned seed) -> asio::awaitable<void> {
            const shared_mutex lock(on, dir);
            std::minstd_rand random(seed);
            for (int i = 0; i < 100; ++i) {
                const bool write = random() % 10 == 0;
                asio::awaitable<lock_guard> acquiring = write ? lock.acquire() : lock.acquire_shared();
                lock_guard guard = co_await std::move(acquiring);
                (write ? writers : readers) += 1;
                writes += write;
                most_readers = std::max(most_readers, readers);
                CHECK((write ? writers == 1 && readers == 0 : writers == 0));
                CHECK(guard.held());
                asio::steady_timer moment(co_await asio::this_coro::executor,
                                          std::chrono::microseconds(random() % 500));
                co_await moment.async_wait(asio::use_awaitable);
                (write ? writers : readers) -= 1;
                if (random() % 2) co_await guard.release();
            }
        };
        std::vector<running> tasks;
        for (unsigned i = 0; i < 8; ++i) tasks.emplace_back(executor, work(clients[i], i + 1));
        for (const running& t : tasks) {
            const std::error_code code = co_await t.code();
            CHECK_FALSE(code);
        }
        CHECK(most_readers > 1);
        CHECK(writes > 20);
        co_await until_queued(zk, dir, 0);
        for (const test_client& c : clients) co_await c.close();
    };
    with_client_for(120s, options(), body);
}

TEST_CASE("twenty readers and eight writers are listed by kind, in order") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "shared-list");
        const auto executor = co_await asio::this_coro::executor;
        shared_mutex_options named;
        named.data("host-7");
        const shared_mutex lock(zk, dir, named);
        std::vector<std::unique_ptr<holder>> all;
        std::vector<running> tasks;
        for (int i = 0; i < 28; ++i) {
            all.push_back(std::make_unique<holder>());
            tasks.emplace_back(executor, i % 7 < 5 ? all.back()->read(lock) : all.back()->write(lock));
        }
        co_await until_queued(zk, dir, 28);
        const auto list = co_await lock.contenders();
        REQUIRE(list.size() == 28);
        const session s = co_await zk.current_session();
        for (std::size_t i = 0; i < list.size(); ++i) {
            CHECK(list[i].kind == (i % 7 < 5 ? lock_kind::shared : lock_kind::exclusive));
            CHECK(list[i].position == i);
            CHECK(list[i].session_id == s.id());
            CHECK(list[i].data == "host-7");
            CHECK(std::abs(list[i].age().count()) < 60'000);
        }
        for (std::size_t i = 0; i < all.size(); ++i) {
            co_await until_granted(*all[i]);
            all[i]->guard.reset();
        }
        for (const running& t : tasks) co_await t.end();
        co_await until_queued(zk, dir, 0);
    };
    with_client(body);
}

TEST_CASE("a release wakes only those who go next: readers behind another writer watch that one") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "shared-herd");
        const auto executor = co_await asio::this_coro::executor;
        const test_client other(executor, options());
        const shared_mutex lock(zk, dir), same(other, dir);
        lock_guard first = co_await lock.acquire();
        holder writer;
        const running w(executor, writer.write(lock));
        co_await until_queued(zk, dir, 2);
        std::vector<std::unique_ptr<holder>> readers;
        std::vector<running> tasks;
        for (std::size_t i = 0; i < 10; ++i) {
            readers.push_back(std::make_unique<holder>());
            tasks.emplace_back(executor, readers.back()->read(same));
        }
        co_await until_queued(zk, dir, 12);
        // One watch of the other session, on the last writer, for all of its readers.
        auto watched = [&]() -> asio::awaitable<bool> {
            co_return watched_below(dir).size() == 1;
        };
        co_await eventually(watched);
        co_await first.release();
        co_await until_granted(writer);
        for (const auto& r : readers) CHECK_FALSE(r->guard);
        co_await writer.guard->release();
        for (const auto& r : readers) co_await until_granted(*r);
        readers.clear();
        for (const running& t : tasks) co_await t.end();
        co_await w.end();
        co_await other.close();
    };
    with_client(options().session_timeout(paced(10s)), body);  // after a quarter of that a holder watches its node
}

TEST_CASE("a reader or writer that is cancelled at any moment leaves nothing, and nobody waits for it") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "shared-cancel");
        const auto executor = co_await asio::this_coro::executor;
        const test_client other(executor, options());
        const shared_mutex lock(zk, dir), same(other, dir);
        lock_guard first = co_await same.acquire_shared();
        for (int steps = 0; steps < 40; ++steps) {
            holder writer, reader;
            running w(executor, writer.write(lock));
            running r(executor, reader.read(lock));
            for (int i = 0; i < steps; ++i) co_await asio::post(executor, asio::use_awaitable);
            w.cancel();
            co_await w.end();
            co_await until_granted(reader);
            co_await r.end();
            reader.guard.reset();
            co_await until_queued(zk, dir, 1);
        }
        co_await first.release();
        co_await other.close();
    };
    with_client(body);
}

TEST_CASE("the session of a writer ends: the readers go on, the writer is told") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "shared-expiry");
        const auto executor = co_await asio::this_coro::executor;
        const test_client other(executor, options());
        const shared_mutex lock(zk, dir), same(other, dir);
        lock_guard writing = co_await same.acquire();
        holder readers[2];
        const running a(executor, readers[0].read(lock)), b(executor, readers[1].read(lock));
        co_await until_queued(zk, dir, 3);
        co_await expire_session(other);
        const loss_reason why = co_await writing.lost();
        CHECK(why == loss_reason::session_expired);
        for (const holder& r : readers) co_await until_granted(r);
        for (holder& r : readers) co_await r.guard->release();
        co_await a.end();
        co_await b.end();
        co_await other.close();
    };
    with_client(body);
}
