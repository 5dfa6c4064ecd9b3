#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "unit/locks/plain_claim.hpp"

#include <zkasio/locks/lock_guard.hpp>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;

TEST_CASE("lock_guard: held() and its like may be asked from any thread, also while it is released") {
    asio::io_context io;
    const client zk(io.get_executor(), options("127.0.0.1:1"));
    for (int round = 0; round < 20; ++round) {
        lock_guard guard(std::make_shared<plain_claim>(zk.session_now(), std::vector<std::string>{"/a"}));
        std::atomic<bool> asked{false};
        std::thread other([&] {
            while (guard.reason() != loss_reason::released) {
                asked = guard.held() || guard.held_until() == boot_clock::time_point();
            }
        });
        while (!asked) std::this_thread::yield();
        { const auto releasing = guard.release(); }
        CHECK_FALSE(guard.held());
        other.join();
    }
}
