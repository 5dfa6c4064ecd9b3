// A refused try keeps nobody out once it has ended.

#include "support/catch.hpp"
#include "support/test_client.hpp"

#include <zkasio/coroutines/result.hpp>
#include <zkasio/error.hpp>
#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

using lock_ptr = std::shared_ptr<const lockable>;

struct kind {
    std::string name;
    std::function<lock_ptr(client)> holder;  ///< held by one client
    std::function<lock_ptr(client)> wanted;  ///< which a try of another one is refused for
    std::function<lock_ptr(client)> free;    ///< which a third one may have then
    bool release_first;                      ///< the holder leaves before the third one comes
};

lock_ptr both(client zk) {
    multi_mutex all(zk);
    all.add(mutex(zk, "/x"));
    all.add(mutex(zk, "/y"));
    return std::make_shared<const multi_mutex>(all);
}

std::vector<kind> kinds() {
    const auto one = [](std::string path) {
        return [path](client zk) -> lock_ptr { return std::make_shared<const mutex>(zk, path); };
    };
    const auto permits_of = [](int n) {
        return [n](client zk) -> lock_ptr {
            return std::make_shared<const permit_request>(semaphore(zk, "/s", permits::fixed(2)).request(n));
        };
    };
    const auto reader = [](client zk) -> lock_ptr {
        return std::make_shared<const shared_mutex_side>(shared_mutex(zk, "/r").readers());
    };
    const auto writer = [](client zk) -> lock_ptr { return std::make_shared<const shared_mutex>(zk, "/r"); };
    return {{"mutex", one("/m"), one("/m"), one("/m"), true},
            {"readers behind a writer's try", reader, writer, reader, false},
            {"multi_mutex, the first is free", one("/y"), both, one("/x"), false},
            {"multi_mutex, the last is free", one("/x"), both, one("/y"), false},
            {"semaphore", permits_of(1), permits_of(2), permits_of(1), false}};
}

}  // namespace

TEST_CASE("a refused try keeps nobody out when it has ended", "[locks]") {
    for (const kind& k : kinds())
        for (std::uint64_t seed = 1; seed <= 20; ++seed) {
            INFO(k.name << ", seed " << seed);
            fake_ensemble ensemble(seed);
            const client a = ensemble.client(), b = ensemble.client(), c = ensemble.client();
            ensemble.run([&]() -> asio::awaitable<void> {
                co_await b.connected();
                co_await c.connected();
                lock_guard held = co_await k.holder(a)->acquire();
                const std::optional<lock_guard> refused = co_await k.wanted(b)->try_acquire();
                CHECK_FALSE(refused);
                if (k.release_first) co_await held.release();
                const std::optional<lock_guard> third = co_await k.free(c)->try_acquire();
                CHECK(third);
            });
        }
}

TEST_CASE("a refused try of several locks gives all back at the same time", "[locks]") {
    bool together = false;
    for (std::uint64_t seed = 1; seed <= 20 && !together; ++seed) {
        fake_ensemble ensemble(seed);
        const client a = ensemble.client(), b = ensemble.client();
        std::string last;
        ensemble.on_step([&](std::string_view line) {
            const std::string step(line.substr(line.find(" s ") + 3));
            together = together || (step.starts_with("apply 1: remove /m/") && last.starts_with("apply 1: remove /m/"));
            last = step;
        });
        ensemble.run([&]() -> asio::awaitable<void> {
            co_await b.connected();
            const lock_guard held = co_await mutex(a, "/m/z").acquire();
            multi_mutex all(b);
            for (const char* path : {"/m/a", "/m/b", "/m/c", "/m/z"}) all.add(mutex(b, path));
            const std::optional<lock_guard> refused = co_await all.try_acquire();
            CHECK_FALSE(refused);
            for (const char* path : {"/m/a", "/m/b", "/m/c"}) CHECK(ensemble.children(path).empty());
        });
    }
    CHECK(together);
}

TEST_CASE("several locks: a lock of another client is refused before any is acquired", "[locks]") {
    fake_ensemble ensemble;
    const client a = ensemble.client(), b = ensemble.client();
    ensemble.run([&]() -> asio::awaitable<void> {
        const semaphore permits_of_a(a, "/s", permits::fixed(1));
        const shared_mutex readers_of_a(a, "/r");
        const lock_guard permit = co_await permits_of_a.acquire(), writer = co_await readers_of_a.acquire();
        for (const bool reader : {false, true}) {
            multi_mutex mixed(b);
            mixed.add(mutex(b, "/m"));
            if (reader)
                mixed.add_shared(readers_of_a);
            else
                mixed.add(permits_of_a, 1);
            const result<lock_guard> refused = co_await as_result(mixed.acquire());
            REQUIRE_FALSE(refused.has_value());
            CHECK(refused.error().code() == errc::invalid_argument);
            CHECK(ensemble.children("/m").empty());
        }
    });
}
