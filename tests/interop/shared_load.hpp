#pragma once

#include "interop/contender.hpp"
#include "interop/load.hpp"
#include "support/lock_directory.hpp"

#include <zkasio/locks/shared_mutex.hpp>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace zkasio::test {

/// Load on the lock `path`, from two clients of ours and a peer: its writers do what `load` in peers/README.md
/// does.
struct shared_load {
    shared_load(std::string p, shared_mutex_options o)
        : path(std::move(p)), record(path + "-record"), names(std::move(o)) {}
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
    // Nobody may write as long as somebody reads.
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
            if (i < their_readers)
                tasks.emplace_back(executor, read(on, reader(process, "r" + std::to_string(i)), rounds));
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

}  // namespace zkasio::test
