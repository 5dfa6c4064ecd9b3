#include "integration/kinds_of_lock.hpp"
#include "support/catch.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;

namespace {

// As a user writes it, for whichever lock.
asio::awaitable<int> seven_under(const lockable& lock) {
    auto body = [](lock_guard& guard) -> asio::awaitable<int> { co_return guard.held() ? 7 : 0; };
    co_return co_await lock.with_lock(body);
}

}  // namespace

TEST_CASE("lockable: one function works with locks of every kind") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "lockable");
        for (const any_lock& lock : one_of_each(zk, dir)) {
            INFO(lock->path());
            const int seven = co_await seven_under(*lock);
            CHECK(seven == 7);
            lock_guard guard = co_await lock->acquire();
            CHECK(guard.held());
            const auto second = co_await lock->try_acquire();
            CHECK_FALSE(second);
            const auto in_time = co_await lock->try_acquire_for(20ms);
            CHECK_FALSE(in_time);
            const auto late = co_await lock->try_acquire_until(boot_clock::now());
            CHECK_FALSE(late);
            co_await guard.release();
            const auto again = co_await lock->try_acquire();
            CHECK(again);
        }
    };
    with_client(body);
}

TEST_CASE("lockable: readers share, also as lockables") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "lockable-readers");
        const shared_mutex rw(zk, dir + "/rw");
        const any_lock readers = boxed(rw.readers()), writers = boxed(rw.as(lock_kind::exclusive));
        const lock_guard first = co_await readers->acquire();
        const auto second = co_await readers->try_acquire();
        CHECK(second);
        const auto writer = co_await writers->try_acquire();
        CHECK_FALSE(writer);
        CHECK(rw.readers().kind() == lock_kind::shared);
        CHECK(rw.kind() == lock_kind::exclusive);
    };
    with_client(body);
}
