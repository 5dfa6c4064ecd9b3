#include "integration/lock_holder.hpp"
#include "support/lock_checks.hpp"
#include "support/lock_directory.hpp"
#include "support/test_client.hpp"

#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/shared_mutex.hpp>

using namespace zkasio;
using namespace zkasio::test;

TEST_CASE("a downgrade keeps the place and lets in the readers behind it, not the writer") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "shared-downgrade");
        const auto executor = co_await asio::this_coro::executor;
        const test_client other(executor, options());
        const shared_mutex lock(zk, dir), same(other, dir);
        for (const auto* others_lock : {&lock, &same}) {
            lock_guard writing = co_await lock.acquire();
            const auto number = sequence_of(writing);
            const auto token = writing.token();
            holder reader, writer, late;
            std::vector<running> tasks;
            tasks.emplace_back(executor, reader.read(*others_lock));
            co_await until_queued(zk, dir, 2);
            tasks.emplace_back(executor, writer.write(*others_lock));
            co_await until_queued(zk, dir, 3);
            tasks.emplace_back(executor, late.read(*others_lock));
            co_await until_queued(zk, dir, 4);

            lock_guard reading = co_await lock.downgrade(std::move(writing));
            CHECK(reading.held());
            CHECK(sequence_of(reading) == number);
            CHECK(reading.token() == token);
            CHECK(reading.path().find("__READ__") != std::string::npos);
            co_await until_granted(reader);
            CHECK_FALSE(writer.guard);
            co_await reader.guard->release();
            CHECK_FALSE(writer.guard);
            co_await reading.release();
            co_await until_granted(writer);
            CHECK_FALSE(late.guard);
            co_await writer.guard->release();
            co_await until_granted(late);
            co_await late.guard->release();
            for (const running& t : tasks) co_await t.end();
        }
        const std::size_t left = co_await count_children(zk, dir);
        CHECK(left == 0);
        co_await other.close();
    };
    with_client(body);
}

TEST_CASE("what cannot be downgraded says so, and is released") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "shared-no-downgrade");
        const shared_mutex lock(zk, dir + "/a"), another(zk, dir + "/b");
        lock_guard reading = co_await lock.acquire_shared();
        std::error_code code = co_await code_of(lock.downgrade(std::move(reading)));
        CHECK(code == errc::invalid_argument);
        lock_guard elsewhere = co_await another.acquire();
        code = co_await code_of(lock.downgrade(std::move(elsewhere)));
        CHECK(code == errc::invalid_argument);
        co_await until_queued(zk, dir + "/b", 0);
        // The names of kazoo's let a mutex share the directory of readers and writers, but they do not tell it what a
        // reader is.
        const mutex plain(zk, dir + "/c", mutex_options().names(name_scheme::kazoo()));
        const shared_mutex rw(zk, dir + "/c", shared_mutex_options().names(name_scheme::kazoo()));
        lock_guard unshared = co_await plain.acquire();
        code = co_await code_of(rw.downgrade(std::move(unshared)));
        CHECK(code == errc::invalid_argument);
        co_await until_queued(zk, dir + "/c", 0);

        lock_guard deleted = co_await lock.acquire();
        const std::string path = deleted.path();
        co_await zk.remove(path);
        code = co_await code_of(lock.downgrade(std::move(deleted)));
        CHECK(code == errc::lock_lost);
        co_await until_queued(zk, dir + "/a", 0);
    };
    with_client(body);
}

TEST_CASE("an upgrade is refused at once, where it can be noticed") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "shared-upgrade");
        const shared_mutex lock(zk, dir);
        acquire_options me;
        me.owner(lock_owner());
        lock_guard reading = co_await lock.acquire_shared(me);
        lock_guard again = co_await lock.acquire_shared(me);
        CHECK(again.path() == reading.path());
        std::string text = co_await message_of(lock.acquire(me));
        CHECK(text.find("upgrade") != std::string::npos);
        CHECK(text.find(reading.path()) != std::string::npos);
        co_await reading.release();
        CHECK(again.held());
        co_await again.release();

        auto body_of_reader = [&](lock_guard&) -> asio::awaitable<void> {
            const std::error_code code = co_await code_of(lock.acquire());
            CHECK(code == errc::would_deadlock);
            lock_guard beside = co_await lock.acquire_shared();
            CHECK(beside.held());
        };
        co_await lock.with_shared_lock(body_of_reader);
        // A writer may read: it has the lock.
        lock_guard writing = co_await lock.acquire(me);
        lock_guard as_reader = co_await lock.acquire_shared(me);
        CHECK(as_reader.path() == writing.path());
    };
    with_client(body);
}
