// A nightly batch in several processes that begin together and end together: batch_barrier 127.0.0.1:2181
#include "expect.hpp"

#include <zkasio/barriers/double_barrier.hpp>
#include <zkasio/coroutines/timeout.hpp>

#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/this_coro.hpp>

#include <iostream>
#include <string>

using namespace std::chrono_literals;

int loaded = 0, merged = 0;  // what the tables are in a real batch

// [batch]
// Each of three workers loads its part. Merging begins when all parts are loaded, and nobody goes home, or begins the
// next night, before all have merged.
asio::awaitable<void> worker(zkasio::client zk, std::string name) {
    const zkasio::double_barrier all_loaded(zk, "/batch-example/merge", 3);
    ++loaded;
    auto merge = [&](zkasio::barrier_entry&) -> asio::awaitable<void> {
        expect(loaded == 3, "all have loaded");
        std::cout << name << " merges\n";
        ++merged;
        co_return;
    };
    // The body is cancelled when this worker's session is lost: the others do not wait for it then.
    co_await all_loaded.run(merge);
    expect(merged == 3, "all have merged");
}
// [/batch]

// [late]
// A worker that does not want to wait for ever leaves nothing behind: the others go on waiting for three.
asio::awaitable<void> impatient(zkasio::client zk) {
    const zkasio::double_barrier all_loaded(zk, "/batch-example/alone", 3);
    try {
        co_await zkasio::timeout(200ms, all_loaded.enter());
    } catch (const zkasio::error& e) {
        std::cout << "nobody else came: " << e.what() << "\n";
    }
}
// [/late]

asio::awaitable<void> example(zkasio::client zk) {
    const auto executor = co_await asio::this_coro::executor;
    asio::co_spawn(executor, worker(zk, "alice"), rethrow);
    asio::co_spawn(executor, worker(zk, "bob"), rethrow);
    co_await worker(zk, "carol");
    co_await impatient(zk);
}

void all(std::string servers) {
    asio::io_context io;
    asio::co_spawn(io, example({io, zkasio::client_options(servers)}), rethrow);
    io.run();
}

int main(int argc, char** argv) { return run_example(argc, argv, all); }
