#include "interop/contender.hpp"
#include "interop/shared_line_up.hpp"
#include "interop/shared_load.hpp"
#include "support/lock_directory.hpp"

#include <zkasio/locks/shared_mutex.hpp>

using namespace zkasio;
using namespace zkasio::test;

namespace {

shared_mutex_options kazoo_shared_names() {
    shared_mutex_options o;
    o.names(name_scheme::kazoo());
    return o;
}

std::string sequence(const std::string& node) { return node.substr(node.size() - 10); }

}  // namespace

TEST_CASE("Curator's readers and writers: readers of both sides hold together, and keep writers of both out") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-shared");
        peer curator(co_await asio::this_coro::executor, "curator");
        co_await curator.ready();
        const shared_mutex lock(zk, dir);

        lock_guard reading = co_await lock.acquire_shared();
        curator.send("r acquire read " + dir);
        co_await curator.acquired("r");
        CHECK(reading.held());
        curator.send("w try 300 write " + dir);
        co_await curator.expect("w", "timeout");
        const auto no_writer = co_await lock.try_acquire();
        CHECK_FALSE(no_writer);
        co_await reading.release();
        const auto still_none = co_await lock.try_acquire();
        CHECK_FALSE(still_none);
        const auto beside = co_await lock.try_acquire_shared();
        CHECK(beside);
        co_await curator.exit();
    };
    with_client(body);
}

TEST_CASE("Curator's readers and writers: nobody is inside with a writer of either side") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-shared-writers");
        peer curator(co_await asio::this_coro::executor, "curator");
        co_await curator.ready();
        const shared_mutex lock(zk, dir);
        lock_guard writing = co_await lock.acquire();
        curator.send("a try 300 read " + dir);
        curator.send("b try 300 write " + dir);
        co_await curator.expect("a", "timeout");
        co_await curator.expect("b", "timeout");
        co_await writing.release();
        curator.send("b acquire write " + dir);
        co_await curator.acquired("b");
        const auto reader = co_await lock.try_acquire_shared();
        CHECK_FALSE(reader);
        const auto writer = co_await lock.try_acquire();
        CHECK_FALSE(writer);
        co_await until_queued(zk, dir, 1);
        co_await curator.exit();
    };
    with_client(body);
}

TEST_CASE("Curator's readers and writers: all who queue with us get the lock in the order in which they came") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-shared-fifo");
        const auto executor = co_await asio::this_coro::executor;
        const test_client second(executor, options());
        peer curator(executor, "curator");
        co_await curator.ready();
        shared_line_up line(zk, curator, dir + "/ours-first");
        co_await line.ours(writes);
        co_await line.theirs(reading);
        co_await line.ours(reading);
        co_await line.ours(reading, second);
        co_await line.theirs(reading);
        co_await line.theirs(writes);
        co_await line.ours(reading);
        co_await line.ours(writes, second);
        co_await line.theirs(writes);
        co_await line.ours(writes);
        co_await line.theirs(reading);
        co_await line.theirs(reading);
        co_await line.ours(reading, second);
        co_await line.ours(writes);
        co_await line.theirs(reading);
        co_await line.drain();

        shared_line_up other(zk, curator, dir + "/peer-first");
        co_await other.theirs(reading);
        co_await other.ours(reading);
        co_await other.ours(writes, second);
        co_await other.theirs(reading);
        co_await other.ours(reading);
        co_await other.theirs(writes);
        co_await other.ours(writes);
        co_await other.theirs(reading);
        co_await other.drain();
        co_await curator.exit();
        co_await second.close();
    };
    with_client(body);
}

TEST_CASE("Curator's readers and writers: under load nobody is inside with a writer, or writes before his turn") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-shared-load");
        const auto executor = co_await asio::this_coro::executor;
        const test_client second(executor, options());
        peer curator(executor, "curator");
        co_await curator.ready();
        shared_load all(dir + "/lock", shared_mutex_options());
        co_await all.run(zk, second, curator, 2);
        co_await curator.exit();
        co_await second.close();
    };
    with_client_for(180s, options(), body);
}

TEST_CASE("our downgrade lets Curator's readers in, and its writer when we have released") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-downgrade");
        peer curator(co_await asio::this_coro::executor, "curator");
        co_await curator.ready();
        const shared_mutex lock(zk, dir);
        for (int round = 0; round < 3; ++round) {
            lock_guard writing = co_await lock.acquire();
            for (const char* waiter :
                 {"r1 acquire read ", "r2 acquire read ", "w acquire write ", "late acquire read "}) {
                const std::size_t there = co_await count_children(zk, dir);
                curator.send(waiter + dir);
                co_await until_queued(zk, dir, there + 1);
            }
            lock_guard reading = co_await lock.downgrade(std::move(writing));
            co_await curator.acquired("r1");
            co_await curator.acquired("r2");
            for (const std::string reader : {"r2", "r1"}) {
                CHECK_FALSE(curator.answered("w"));
                CHECK_FALSE(curator.answered("late"));
                curator.send(reader + " release");
                co_await curator.expect(reader, "released");
            }
            co_await zk.sync(dir);
            const std::vector<contender_info> list = co_await lock.contenders();
            REQUIRE(list.size() == 3);
            CHECK(list[0].path == reading.path());
            CHECK(reading.held());
            CHECK_FALSE(curator.answered("w"));
            co_await reading.release();
            const std::string node = co_await curator.acquired("w");
            CHECK(node == list[1].path);
            CHECK_FALSE(curator.answered("late"));
            for (const std::string next : {"w", "late"}) {
                if (next == "late") co_await curator.acquired(next);
                curator.send(next + " release");
                co_await curator.expect(next, "released");
            }
            co_await until_queued(zk, dir, 0);
        }
        co_await curator.exit();
    };
    with_client(body);
}

TEST_CASE("Curator's downgrade lets our reader in, and a writer who comes later when both have released") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-their-downgrade");
        peer curator(co_await asio::this_coro::executor, "curator");
        co_await curator.ready();
        curator.send("d acquire write " + dir);
        co_await curator.acquired("d");
        const shared_mutex lock(zk, dir);
        const auto executor = co_await asio::this_coro::executor;
        our_contender reader(executor, [lock] { return lock.acquire_shared(); });
        our_contender writer(executor, [lock] { return lock.acquire(); });
        reader.join();
        co_await until_queued(zk, dir, 2);
        co_await told_all(zk, dir);
        CHECK_FALSE(reader.has_it());
        curator.send("d downgrade");
        const std::string answer = co_await curator.expect("d");
        CHECK(answer.starts_with("downgraded " + dir + "/_c_"));
        CHECK(answer.find("__READ__") != std::string::npos);
        co_await reader.acquired();
        writer.join();
        co_await until_queued(zk, dir, 3);
        co_await reader.release();
        co_await told_all(zk, dir);
        CHECK_FALSE(writer.has_it());
        curator.send("d release");
        co_await curator.expect("d", "released");
        co_await writer.acquired();
        co_await writer.release();
        co_await curator.exit();
    };
    with_client(body);
}

// CURATOR-621: before 5.5 the reader's node is a new one, behind those who wait. So their writer, and ours, is granted
// the lock while Curator still believes that it reads: by the order of the nodes it is the writer's turn.
TEST_CASE("Curator's downgrade while our writer waits: we go by the order of the nodes") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-their-downgrade-waiting");
        const auto executor = co_await asio::this_coro::executor;
        peer curator(executor, "curator");
        co_await curator.ready();
        curator.send("d acquire write " + dir);
        co_await curator.acquired("d");
        const shared_mutex lock(zk, dir);
        our_contender reader(executor, [lock] { return lock.acquire_shared(); });
        our_contender writer(executor, [lock] { return lock.acquire(); });
        reader.join();
        co_await until_queued(zk, dir, 2);
        writer.join();
        co_await until_queued(zk, dir, 3);
        co_await told_all(zk, dir);
        CHECK_FALSE(reader.has_it());
        CHECK_FALSE(writer.has_it());
        curator.send("d downgrade");
        const std::string downgraded = co_await curator.expect("d");
        const std::string ahead = co_await reader.acquired();
        co_await told_all(zk, dir);
        CHECK_FALSE(writer.has_it());
        const bool behind = sequence(downgraded) > sequence(ahead);
        co_await reader.release();
        if (!behind) {
            co_await told_all(zk, dir);
            CHECK_FALSE(writer.has_it());
            curator.send("d release");
            co_await curator.expect("d", "released");
        }
        const std::string node = co_await writer.acquired();
        co_await zk.sync(dir);
        const std::vector<contender_info> list = co_await lock.contenders();
        REQUIRE(list.size() == (behind ? 2U : 1U));
        CHECK(list[0].path == node);
        const auto no_reader = co_await lock.try_acquire_shared();
        CHECK_FALSE(no_reader);
        co_await writer.release();
        co_await curator.exit();
        co_await until_queued(zk, dir, 0);
    };
    with_client(body);
}

// Done by hand: Debian's Curator is 5.4.
TEST_CASE("the downgrade of Curator 5.5: for a moment both nodes have the same number") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-new-downgrade");
        const auto executor = co_await asio::this_coro::executor;
        const test_client theirs(executor, options());
        const shared_mutex lock(zk, dir);
        for (const bool reader_waits : {true, false}) {
            create_options ephemeral, sequential;
            ephemeral.mode(create_mode::ephemeral);
            sequential.mode(create_mode::ephemeral_sequential);
            const created w =
                co_await theirs.create(dir + "/_c_6dd3aa8c-2c94-4c5c-a7cb-6a4e7fa8dc4a-__WRIT__", "", sequential);
            our_contender reader(executor, [lock] { return lock.acquire_shared(); });
            our_contender writer(executor, [lock] { return lock.acquire(); });
            if (reader_waits) {
                reader.join();
                co_await until_queued(zk, dir, 2);
            }
            writer.join();
            co_await until_queued(zk, dir, reader_waits ? 3 : 2);
            const std::string r = dir + "/_c_0f6c1d9e-93b1-4b05-8a55-0d3b7c1f2e44-__READ__" + sequence(w.path);
            co_await theirs.create(r, "", ephemeral);
            co_await theirs.remove(w.path);
            if (reader_waits) {
                co_await reader.acquired();
                CHECK_FALSE(writer.has_it());
                co_await reader.release();
            }
            co_await until_queued(zk, dir, 2);
            co_await told_all(zk, dir);
            CHECK_FALSE(writer.has_it());
            co_await theirs.remove(r);
            co_await writer.acquired();
            co_await writer.release();
        }
        co_await theirs.close();
    };
    with_client(body);
}

TEST_CASE("kazoo's ReadLock and WriteLock: readers of both sides hold together, and keep writers of both out") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-kazoo-shared");
        peer kazoo(co_await asio::this_coro::executor, "kazoo");
        co_await kazoo.ready();
        const shared_mutex_options names = kazoo_shared_names();
        const shared_mutex lock(zk, dir, names);
        kazoo.send("r acquire read " + dir);
        co_await kazoo.acquired("r");
        co_await zk.sync(dir);
        lock_guard reading = co_await lock.acquire_shared();
        kazoo.send("w try 300 write " + dir);
        co_await kazoo.expect("w", "timeout");
        const auto no_writer = co_await lock.try_acquire();
        CHECK_FALSE(no_writer);
        kazoo.send("r release");
        co_await kazoo.expect("r", "released");
        kazoo.send("w acquire write " + dir);
        co_await until_queued(zk, dir, 2);
        CHECK_FALSE(kazoo.answered("w"));
        co_await reading.release();
        co_await kazoo.acquired("w");
        const auto no_reader = co_await lock.try_acquire_shared();
        CHECK_FALSE(no_reader);
        co_await kazoo.exit();
    };
    with_client(body);
}

// A reader of kazoo's waits for the writers behind it, too (kazoo#649): here none comes behind one that waits.
TEST_CASE("kazoo's ReadLock and WriteLock: all who queue with us get the lock in the order in which they came") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-kazoo-shared-fifo");
        const auto executor = co_await asio::this_coro::executor;
        const test_client second(executor, options());
        peer kazoo(executor, "kazoo");
        co_await kazoo.ready();
        const shared_mutex_options names = kazoo_shared_names();
        shared_line_up line(zk, kazoo, dir, names);
        co_await line.theirs(writes);
        co_await line.ours(reading);
        co_await line.ours(writes);
        co_await line.theirs(writes);
        co_await line.ours(reading, second);
        co_await line.ours(reading);
        co_await line.ours(writes, second);
        co_await line.theirs(reading);
        co_await line.ours(reading);
        co_await line.theirs(reading);
        co_await line.drain();
        co_await kazoo.exit();
        co_await second.close();
    };
    with_client(body);
}

TEST_CASE("kazoo's ReadLock with a writer of ours behind it: nobody moves (kazoo#649) until ours gives up") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-kazoo-649");
        const auto executor = co_await asio::this_coro::executor;
        peer kazoo(executor, "kazoo");
        co_await kazoo.ready();
        const shared_mutex_options names = kazoo_shared_names();
        const shared_mutex lock(zk, dir, names);
        lock_guard first = co_await lock.acquire();
        kazoo.send("r acquire read " + dir);
        co_await until_queued(zk, dir, 2);
        auto write = [&]() -> asio::awaitable<void> { (void)co_await lock.acquire(); };
        running writer(executor, write());
        co_await until_queued(zk, dir, 3);
        co_await first.release();
        co_await until_queued(zk, dir, 2);
        co_await told_all(zk, dir);
        CHECK_FALSE(writer.ended());
        writer.cancel();
        const std::error_code code = co_await writer.code();
        CHECK(code == condition::cancelled);
        co_await kazoo.acquired("r");
        const auto beside = co_await lock.try_acquire_shared();
        CHECK(beside);
        co_await kazoo.exit();
    };
    with_client(body);
}

TEST_CASE("kazoo's WriteLock: under load nobody is inside with a writer, or writes before his turn") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-kazoo-shared-load");
        const auto executor = co_await asio::this_coro::executor;
        const test_client second(executor, options());
        peer kazoo(executor, "kazoo");
        co_await kazoo.ready();
        const shared_mutex_options names = kazoo_shared_names();
        shared_load all(dir + "/lock", names);
        co_await all.run(zk, second, kazoo, 0);  // without its readers, see above
        co_await kazoo.exit();
        co_await second.close();
    };
    with_client_for(180s, options(), body);
}
