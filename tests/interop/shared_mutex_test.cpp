#include "interop/contender.hpp"
#include "interop/load.hpp"
#include "support/lock_directory.hpp"

#include <zkasio/path.hpp>
#include <zkasio/recipes/shared_mutex.hpp>

using namespace zkasio;
using namespace zkasio::test;

namespace {

constexpr lock_kind reads = lock_kind::shared, writes = lock_kind::exclusive;

shared_mutex_options kazoo_names() {
    shared_mutex_options o;
    o.names(name_scheme::kazoo());
    return o;
}

std::string sequence(const std::string& node) { return node.substr(node.size() - 10); }

asio::awaitable<lock_guard> acquire(shared_mutex lock, lock_kind kind) {
    return kind == reads ? lock.acquire_shared() : lock.acquire();
}

// Readers and writers of both sides who come one after another. Curator and kazoo name their kinds alike.
class queue {
public:
    queue(client zk, peer& process, std::string path, shared_mutex_options o = shared_mutex_options())
        : zk_(std::move(zk)), process_(process), path_(std::move(path)), lock_(zk_, path_, o), options_(std::move(o)), ours_{zk_} {}

    asio::awaitable<void> ours(lock_kind kind) { return ours(kind, zk_); }
    asio::awaitable<void> ours(lock_kind kind, client zk) {
        const shared_mutex lock(zk, path_, options_);
        ours_.push_back(zk);
        return join(kind, std::make_unique<our_contender>(zk.get_executor(), [lock, kind] { return acquire(lock, kind); }));
    }
    asio::awaitable<void> theirs(lock_kind kind) {
        const std::string id = "q" + std::to_string(++ids_);
        return join(kind, std::make_unique<peer_contender>(process_, id, kind == reads ? "read" : "write", path_));
    }


    // The first `n` are let in, and nobody else.
    asio::awaitable<void> inside(std::size_t n) {
        std::vector<std::string> nodes;
        for (std::size_t i = 0; i < n; ++i) {
            std::string node = co_await line_[i].who->acquired();
            nodes.push_back(std::move(node));
        }
        co_await zk_.sync(path_);
        const std::vector<contender_info> list = co_await lock_.contenders();
        REQUIRE(list.size() == line_.size());
        for (std::size_t i = 0; i < n; ++i) CHECK(list[i].path == nodes[i]);
        for (std::size_t i = 0; i < line_.size(); ++i) CHECK(list[i].kind == line_[i].kind);
        co_await only(n);
    }
    asio::awaitable<void> only(std::size_t n) const {
        for (const client& c : ours_) co_await told_all(c, path_);
        for (std::size_t i = n; i < line_.size(); ++i) CHECK_FALSE(line_[i].who->has_it());
    }

    asio::awaitable<void> release(std::size_t i) {
        co_await line_[i].who->release();
        line_.erase(line_.begin() + static_cast<std::ptrdiff_t>(i));
        co_await until_queued(zk_, path_, line_.size());
    }

    // Lets all of them have it: each writer alone, the readers between two writers together.
    asio::awaitable<void> drain() {
        while (!line_.empty()) {
            std::size_t together = 0;
            while (together < line_.size() && line_[together].kind == reads) ++together;
            co_await inside(std::max<std::size_t>(together, 1));
            for (; together > 1; --together) {  // the last of them lets the next writer in, whoever it is
                co_await release(together / 2);
                co_await only(together - 1);
            }
            co_await release(0);
        }
    }

private:
    struct member {
        lock_kind kind;
        std::unique_ptr<contender> who;
    };
    asio::awaitable<void> join(lock_kind kind, std::unique_ptr<contender> next) {
        next->join();
        line_.push_back({kind, std::move(next)});
        return until_queued(zk_, path_, line_.size());
    }

    client zk_;
    peer& process_;
    std::string path_;
    shared_mutex lock_;
    shared_mutex_options options_;
    std::vector<client> ours_;
    std::vector<member> line_;
    int ids_ = 0;
};

struct load {
    load(std::string p, shared_mutex_options o) : path(std::move(p)), record(path + "-record"), names(std::move(o)) {}
    std::string path, record;
    shared_mutex_options names;
    int violations = 0, readers = 0, most_readers = 0;
    static constexpr int rounds = 40;

    asio::awaitable<void> write(client zk) {
        const shared_mutex lock(zk, path, names);
        for (int i = 0; i < rounds; ++i) {
            lock_guard guard = co_await lock.acquire();
            const bool violated = co_await violates_record(zk, record, guard.path());
            violations += violated;
            co_await guard.release();
        }
    }
    asio::awaitable<void> peer_writes(peer& process, std::string id) {
        process.send(id + " load write " + path + " " + std::to_string(rounds) + " " + record);
        const std::string answer = co_await process.expect(id);
        const std::string done = "done " + std::to_string(rounds) + " ";
        if (!answer.starts_with(done)) throw std::runtime_error(answer);
        violations += std::stoi(answer.substr(done.size()));
    }
    // Nobody writes as long as somebody reads.
    asio::awaitable<void> read(client zk, std::unique_ptr<contender> reader, int times) {
        for (int i = 0; i < times; ++i) {
            reader->join();
            co_await reader->acquired();
            most_readers = std::max(most_readers, ++readers);
            co_await zk.sync(record);
            const node_data first = co_await zk.get(record);
            for (int again = 0; again < 3; ++again) {
                const node_data now = co_await zk.get(record);
                violations += now.stat.version != first.stat.version;
            }
            --readers;
            co_await reader->release();
        }
    }
    std::unique_ptr<contender> reader(client zk) {
        const shared_mutex lock(zk, path, names);
        return std::make_unique<our_contender>(zk.get_executor(), [lock] { return lock.acquire_shared(); });
    }
    std::unique_ptr<contender> reader(peer& process, std::string id) {
        return std::make_unique<peer_contender>(process, std::move(id), "read", path);
    }

    // Two writers and two readers of each side; `their_readers`: those of the peer.
    asio::awaitable<void> run(client zk, client second, peer& process, int their_readers) {
        const auto executor = co_await asio::this_coro::executor;
        co_await zk.create(record, "0 -");
        std::vector<running> tasks;
        for (int i = 0; i < 2; ++i) {
            const client& on = i == 0 ? zk : second;
            tasks.emplace_back(executor, write(on));
            tasks.emplace_back(executor, read(on, reader(on), 2 * rounds));
            tasks.emplace_back(executor, peer_writes(process, "w" + std::to_string(i)));
            if (i < their_readers) tasks.emplace_back(executor, read(on, reader(process, "r" + std::to_string(i)), rounds));
        }
        for (const running& t : tasks) {
            const std::exception_ptr failed = co_await t.end();
            if (failed) std::rethrow_exception(failed);
        }
        co_await zk.sync(path);
        const node_data written = co_await zk.get(record);
        CHECK(std::stoi(written.data) == 4 * rounds);
        CHECK(violations == 0);
        CHECK(most_readers > 1);
        const std::size_t left = co_await count_children(zk, path);
        CHECK(left == 0);
    }
};

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
        queue line(zk, curator, dir + "/ours-first");
        co_await line.ours(writes);
        co_await line.theirs(reads);
        co_await line.ours(reads);
        co_await line.ours(reads, second);
        co_await line.theirs(reads);
        co_await line.theirs(writes);
        co_await line.ours(reads);
        co_await line.ours(writes, second);
        co_await line.theirs(writes);
        co_await line.ours(writes);
        co_await line.theirs(reads);
        co_await line.theirs(reads);
        co_await line.ours(reads, second);
        co_await line.ours(writes);
        co_await line.theirs(reads);
        co_await line.drain();

        queue other(zk, curator, dir + "/peer-first");
        co_await other.theirs(reads);
        co_await other.ours(reads);
        co_await other.ours(writes, second);
        co_await other.theirs(reads);
        co_await other.ours(reads);
        co_await other.theirs(writes);
        co_await other.ours(writes);
        co_await other.theirs(reads);
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
        load all(dir + "/lock", shared_mutex_options());
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
            for (const char* waiter : {"r1 acquire read ", "r2 acquire read ", "w acquire write ", "late acquire read "}) {
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

// CURATOR-621: before 5.5 the reader's node is a new one, behind those who wait. So their writer, and ours, is granted the lock
// while Curator still believes that it reads: by the order of the nodes it is the writer's turn.
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
            const created w = co_await theirs.create(dir + "/_c_6dd3aa8c-2c94-4c5c-a7cb-6a4e7fa8dc4a-__WRIT__", "", sequential);
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
        const shared_mutex_options names = kazoo_names();
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
        const shared_mutex_options names = kazoo_names();
        queue line(zk, kazoo, dir, names);
        co_await line.theirs(writes);
        co_await line.ours(reads);
        co_await line.ours(writes);
        co_await line.theirs(writes);
        co_await line.ours(reads, second);
        co_await line.ours(reads);
        co_await line.ours(writes, second);
        co_await line.theirs(reads);
        co_await line.ours(reads);
        co_await line.theirs(reads);
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
        const shared_mutex_options names = kazoo_names();
        const shared_mutex lock(zk, dir, names);
        lock_guard first = co_await lock.acquire();
        kazoo.send("r acquire read " + dir);
        co_await until_queued(zk, dir, 2);
        auto write = [&]() -> asio::awaitable<void> { co_await lock.acquire(); };
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
        const shared_mutex_options names = kazoo_names();
        load all(dir + "/lock", names);
        co_await all.run(zk, second, kazoo, 0);  // without its readers, see above
        co_await kazoo.exit();
        co_await second.close();
    };
    with_client_for(180s, options(), body);
}
