// Ids that are unique in a cluster without a request for each, in the manner of Snowflake: worker_ids 127.0.0.1:2181
#include "expect.hpp"

#include <zkasio/locks/slots.hpp>

#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <set>
#include <string>

using namespace std::chrono_literals;

// [ids]
// 41 bits of milliseconds, 10 of the worker, 12 of a counter.
class id_generator {
public:
    explicit id_generator(std::uint32_t worker) : worker_(worker) {}

    std::uint64_t next() {
        const auto now = std::chrono::system_clock::now().time_since_epoch();
        const auto ms = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
        // A clock that was set back, or 4096 ids in one millisecond: the counter runs over into the time.
        last_ = std::max(last_ + 1, ms << 12);
        return (last_ >> 12) << 22 | std::uint64_t{worker_} << 12 | (last_ & 0xfff);
    }

private:
    const std::uint32_t worker_;
    std::uint64_t last_ = 0;  // time and counter
};

// Each process has a number of its own, 0 to 1023, as long as it lives. A number of a process that has gone rests for
// 10 s, longer than the clocks of two machines differ: then no id comes twice.
asio::awaitable<void> serve(zkasio::client zk) {
    const zkasio::slots workers(zk, "/ids-example/workers", 1024, zkasio::slots_options().quiet(10s));
    auto body = [](zkasio::lock_guard& guard) -> asio::awaitable<void> {
        id_generator ids(*guard.slot());
        std::set<std::uint64_t> all;
        while (all.size() < 10'000 && guard.held()) all.insert(ids.next());  // without a request
        expect(all.size() == 10'000, "no id twice");
        std::cout << "worker " << *guard.slot() << " has made " << all.size() << " ids\n";
        co_return;
    };
    co_await workers.with_lock(body);  // ends when the number is lost
}
// [/ids]

asio::awaitable<void> example(zkasio::client zk) {
    co_await serve(zk);
    co_await serve(zk);  // the number rests: this one gets another
    co_await zk.remove_recursive("/ids-example");
}

void all(std::string servers) {
    asio::io_context io;
    asio::co_spawn(io, example({io, zkasio::client_options(servers)}), rethrow);
    io.run();
}

int main(int argc, char** argv) { return run_example(argc, argv, all); }
