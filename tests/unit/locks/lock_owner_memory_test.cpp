// What a lock_owner keeps of the locks that it had: nothing.

#include "unit/support/counting_new.hpp"
#include "unit/support/fake_tree.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/locks/mutex.hpp>

#include <string>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

#ifdef ZKASIO_TEST_COUNTS_NEW

TEST_CASE("lock_owner: a lock that it has given back costs it nothing any more", "[lock]") {
    const bool refused = GENERATE(false, true);
    rig r;
    fake_tree tree;
    r.server.answer = [&](const request& q) -> std::optional<reply> { return tree(q); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const lock_owner me;
        auto once = [&](int n) -> asio::awaitable<void> {
            const mutex lock(zk, "/locks/" + std::to_string(n));
            lock_guard stranger;
            if (refused) stranger = co_await lock.acquire();
            const auto guard = co_await lock.try_acquire(acquire_options().owner(me));
            CHECK(guard.has_value() == !refused);
        };
        // Of the fake server's, what it remembers; of the session's, what is looked through from time to time.
        auto left_after = [&](int first, int n) -> asio::awaitable<long> {
            for (int i = first; i < first + n; ++i) co_await once(i);
            co_await r.server.until([&] { return tree.size() == 0; });
            co_await next_turns(r.server);
            r.server.requests.clear();
            r.server.log.clear();
            co_return news - deletes;
        };
        const long before = co_await left_after(0, 100);
        const long after = co_await left_after(100, 500);
        CHECK(after - before < 500);
    };
    r.run(body);
}

#endif
