// Locks of every kind while connections are cut.

#include "support/fault_proxy.hpp"
#include "support/lock_directory.hpp"
#include "support/test_client.hpp"

#include <zkasio/recipes/multi_mutex.hpp>
#include <zkasio/recipes/mutex.hpp>
#include <zkasio/recipes/semaphore.hpp>
#include <zkasio/recipes/shared_mutex.hpp>
#include <zkasio/recipes/unfair_mutex.hpp>

#include <algorithm>
#include <random>

using namespace zkasio;
using namespace zkasio::test;

namespace {

// Ten coroutines of two clients; every few grants all connections are cut, at whatever moment that is. `acquire` tells how many
// places the grant takes, of `places`.
struct grant {
    lock_guard guard;
    int takes;
};
using acquire_function = std::function<asio::awaitable<grant>(client zk, std::string dir, std::uint32_t random)>;

void survives_cuts(const std::string& name, int places, bool proves, acquire_function acquire) {
    fault_proxy proxy(first_server());
    test_loop loop(200s);
    const test_client a(loop.executor(), options(proxy.address()).retry(retry_policy::forever()));
    const test_client b(loop.executor(), options(proxy.address()).retry(retry_policy::forever()));
    const test_client observer(loop.executor(), options());
    int taken = 0, granted = 0;
    std::string dir;
    auto task = [&](const test_client& on, unsigned seed) -> asio::awaitable<void> {
        std::minstd_rand random(seed + 1);
        for (int i = 0; i < 15; ++i) {
            grant g = co_await acquire(on, dir, static_cast<std::uint32_t>(random()));
            taken += g.takes;
            CHECK(taken <= places);
            if (++granted % 4 == 0) proxy.cut_all(granted % 8 ? fault_proxy::end::rst : fault_proxy::end::fin);
            asio::steady_timer turn(co_await asio::this_coro::executor, std::chrono::microseconds(random() % 2000));
            co_await turn.async_wait(asio::use_awaitable);
            if (proves && random() % 4 == 0) {  // what is committed was ours; a lost answer is no failure
                transaction mark;
                mark.set(dir + "-mark", "x");
                const std::error_code code = co_await code_of(g.guard.commit(mark));
                CHECK((!code || code == condition::retryable));
            }
            taken -= g.takes;
            if (random() % 2) co_await g.guard.release();
        }
    };
    auto body = [&]() -> asio::awaitable<void> {
        dir = co_await fresh_directory(observer, name);
        const std::error_code ignored = co_await code_of(observer.create(dir + "-mark"));
        CHECK((!ignored || ignored == zk_errc::node_exists));
        std::vector<running> tasks;
        for (unsigned i = 0; i < 10; ++i) tasks.emplace_back(co_await asio::this_coro::executor, task(i % 2 ? a : b, i));
        for (const running& t : tasks) {
            const std::exception_ptr e = co_await t.end();
            if (e) std::rethrow_exception(e);
        }
        CHECK(granted == 150);
        // Nothing is left: no ephemeral node below the directory, no watch.
        auto quiet = [&]() -> asio::awaitable<bool> {
            std::vector<std::string> all{dir};
            for (std::size_t i = 0; i < all.size(); ++i) {
                node_children found;
                auto list = [&]() -> asio::awaitable<void> { found = co_await observer.children(all[i]); };
                const std::error_code code = co_await code_of(list());
                if (code) continue;
                for (const std::string& child : found.names) all.push_back(all[i] + '/' + child);
            }
            for (const std::string& path : all) {
                const auto node = co_await observer.exists(path);
                if (node && node->ephemeral_owner != 0) co_return false;
            }
            co_return a.inside().watches() == 0 && b.inside().watches() == 0;
        };
        co_await eventually(quiet);
        co_await a.close();
        co_await b.close();
        co_await observer.close();
    };
    loop.run(body());
}

}  // namespace

TEST_CASE("readers and writers under cuts: a writer is alone, nobody waits for ever, nothing is left") {
    survives_cuts("cut-shared", 100, true, [](client zk, std::string dir, std::uint32_t random) -> asio::awaitable<grant> {
        const shared_mutex lock(zk, dir);
        const bool write = random % 3 == 0;
        asio::awaitable<lock_guard> acquiring = write ? lock.acquire() : lock.acquire_shared();
        lock_guard guard = co_await std::move(acquiring);
        co_return grant{std::move(guard), write ? 100 : 1};
    });
}

TEST_CASE("a semaphore under cuts: never more permits than there are, nobody waits for ever, nothing is left") {
    survives_cuts("cut-semaphore", 3, true, [](client zk, std::string dir, std::uint32_t random) -> asio::awaitable<grant> {
        const semaphore sem(zk, dir, permits::fixed(3));
        const int n = 1 + static_cast<int>(random % 3);
        lock_guard guard = co_await sem.acquire(n);
        co_return grant{std::move(guard), n};
    });
}

TEST_CASE("several locks at once under cuts: all or none, nobody waits for ever, nothing is left") {
    survives_cuts("cut-multi", 1, true, [](client zk, std::string dir, std::uint32_t random) -> asio::awaitable<grant> {
        multi_mutex all(zk);
        all.add(mutex(zk, dir + "/b"));  // everybody wants this one
        all.add(mutex(zk, dir + (random % 2 ? "/a" : "/c")));
        lock_guard guard = co_await all.acquire();
        co_return grant{std::move(guard), 1};
    });
}

TEST_CASE("the simple lock under cuts: one holder at a time, nobody waits for ever, nothing is left") {
    survives_cuts("cut-unfair", 1, false, [](client zk, std::string dir, std::uint32_t) -> asio::awaitable<grant> {
        const unfair_mutex lock(zk, dir + "/flag");
        lock_guard guard = co_await lock.acquire();
        co_return grant{std::move(guard), 1};
    });
}
