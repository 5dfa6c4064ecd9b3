// Locks of every kind while connections are cut.

#include "support/bytes_before_session.hpp"
#include "support/fault_proxy.hpp"
#include "support/lock_checks.hpp"
#include "support/lock_directory.hpp"
#include "support/test_client.hpp"
#include "support/transport.hpp"

#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/unfair_mutex.hpp>

#include <algorithm>
#include <random>

using namespace zkasio;
using namespace zkasio::test;

namespace {

// Of all sessions, below the directory; sorted.
asio::awaitable<std::vector<std::string>> ephemeral_nodes(client zk, std::string dir) {
    std::vector<std::string> all{dir}, found;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const std::vector<std::string> names = co_await children_of(zk, all[i]);
        for (const std::string& name : names) all.push_back(all[i] + '/' + name);
    }
    for (const std::string& path : all) {
        const auto node = co_await zk.exists(path);
        if (node && node->ephemeral_owner != 0) found.push_back(path);
    }
    std::sort(found.begin(), found.end());
    co_return found;
}

// Ten coroutines of two clients; every few grants all connections are cut, at the grant and at any other moment.
// `acquire` tells how many places the grant takes, of `places`.
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
            if (++granted % 8 == 0) proxy.cut_all(granted % 16 ? fault_proxy::end::rst : fault_proxy::end::fin);
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
    bool over = false;
    auto cut = [&]() -> asio::awaitable<void> {
        std::minstd_rand random(7);
        while (!over) {
            const int from = granted;
            while (!over && granted < from + 5) co_await turns(1);
            co_await turns(static_cast<int>(random() % 40));
            proxy.cut_all(random() % 2 ? fault_proxy::end::rst : fault_proxy::end::fin);
        }
    };
    auto body = [&]() -> asio::awaitable<void> {
        dir = co_await fresh_directory(observer, name);
        const std::error_code ignored = co_await code_of(observer.create(dir + "-mark"));
        CHECK((!ignored || ignored == zk_errc::node_exists));
        std::vector<running> tasks;
        for (unsigned i = 0; i < 10; ++i)
            tasks.emplace_back(co_await asio::this_coro::executor, task(i % 2 ? a : b, i));
        const running cutting(co_await asio::this_coro::executor, cut());
        std::exception_ptr failed;
        for (const running& t : tasks) {
            const std::exception_ptr e = co_await t.end();
            if (e) failed = e;
        }
        over = true;
        co_await cutting.end();
        if (failed) std::rethrow_exception(failed);
        CHECK(granted == 150);
        // Nothing is left: no ephemeral node below the directory, no watch.
        auto quiet = [&]() -> asio::awaitable<bool> {
            const std::vector<std::string> left = co_await ephemeral_nodes(observer, dir);
            co_return left.empty() && a.inside().watches() == 0 && b.inside().watches() == 0;
        };
        co_await eventually(quiet);
        co_await a.close();
        co_await b.close();
        co_await observer.close();
    };
    loop.run(body());
}

}  // namespace

TEST_CASE(
    "a lock that is taken after an idle time survives round trips of 15 % of T and 0.3 T of silence at its first "
    "heartbeat",
    "[clear]") {
    const bool silent = GENERATE(false, true);
    fault_proxy proxy(first_server());
    auto body = [&](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "slow-link");
        const session s = co_await zk.current_session();
        const std::chrono::milliseconds T = s.timeout();
        if (!silent) proxy.delay(T * 15 / 200);
        auto nothing_left = [&]() -> asio::awaitable<bool> { co_return boot_clock::now() > s.leased_until() + T / 8; };
        co_await eventually(nothing_left);
        const mutex lock(zk, dir);
        const lock_guard guard = co_await lock.acquire();
        const auto began = boot_clock::now();
        auto end = [&]() -> asio::awaitable<bool> { co_return boot_clock::now() > began + T * 3 / 2 || !guard.held(); };
        if (silent) {
            auto heartbeat = [&]() -> asio::awaitable<bool> { co_return boot_clock::now() > began + T / 4 - 20ms; };
            co_await eventually(heartbeat);
            proxy.silence(true);
            auto over = [&, from = boot_clock::now()]() -> asio::awaitable<bool> {
                co_return boot_clock::now() > from + T * 3 / 10;
            };
            co_await eventually(over);
            proxy.silence(false);
        }
        co_await eventually(end);
        CHECK(guard.held());
        CHECK(guard.reason() == loss_reason::none);
    };
    with_client(options(proxy.address()).session_timeout(paced(10s)), body);
}

TEST_CASE("readers and writers under cuts: a writer is alone, nobody waits for ever, nothing is left") {
    survives_cuts("cut-shared", 100, true,
                  [](client zk, std::string dir, std::uint32_t random) -> asio::awaitable<grant> {
                      const shared_mutex lock(zk, dir);
                      const bool write = random % 3 == 0;
                      asio::awaitable<lock_guard> acquiring = write ? lock.acquire() : lock.acquire_shared();
                      lock_guard guard = co_await std::move(acquiring);
                      co_return grant{std::move(guard), write ? 100 : 1};
                  });
}

TEST_CASE("a semaphore under cuts: never more permits than there are, nobody waits for ever, nothing is left") {
    survives_cuts("cut-semaphore", 3, true,
                  [](client zk, std::string dir, std::uint32_t random) -> asio::awaitable<grant> {
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
        unfair_mutex_options eager;  // so that something is under way whenever a connection is cut
        eager.back_off(0ms, 0ms);
        const unfair_mutex lock(zk, dir + "/flag", eager);
        lock_guard guard = co_await lock.acquire();
        co_return grant{std::move(guard), 1};
    });
}

TEST_CASE(
    "locks of every kind: cut within any answer, twice in quick succession, there is one contender, nothing is left") {
    test_server servers(3);
    fault_proxy first(servers.endpoint(0));
    fault_proxy second(servers.endpoint(1));
    const std::size_t handshake = bytes_before_session(first, false) + 41;
    // No answer is shorter than its header, of 20 bytes; and no record of TLS than 42.
    const std::size_t step = transport::current().is_secure() ? 35 : 15;
    test_loop loop(300s);
    const auto patient =
        options(first.address() + ',' + second.address()).session_timeout(paced(20s)).retry(retry_policy::forever());
    const test_client zk(loop.executor(), patient);
    const test_client observer(loop.executor(), options(servers.connect_string()).session_timeout(paced(20s)));
    using acquire_kind = std::function<asio::awaitable<lock_guard>(client on, std::string dir)>;
    const std::vector<acquire_kind> kinds{
        [](client on, std::string dir) { return mutex(on, dir).acquire(); },
        [](client on, std::string dir) { return shared_mutex(on, dir).acquire(); },
        [](client on, std::string dir) { return semaphore(on, dir, permits::fixed(2)).acquire(2); },
        [](client on, std::string dir) {
            return multi_mutex(on).add(mutex(on, dir + "/a")).add(mutex(on, dir + "/b")).acquire();
        },
        [](client on, std::string dir) { return unfair_mutex(on, dir + "/flag").acquire(); },
    };
    auto body = [&]() -> asio::awaitable<void> {
        const std::string above = co_await fresh_directory(observer, "cut-answers");
        for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
            const std::string dir = above + '/' + std::to_string(kind);
            co_await observer.create(dir);
            for (std::size_t n = 0; n < 600; n += step) {
                INFO("kind " << kind << ", cut after " << n << " bytes");
                std::optional<lock_guard> ahead;
                if (n % 2) ahead.emplace(co_await kinds[kind](observer, dir));
                const std::size_t before = first.connections() + second.connections();
                // The next connection to each server ends when so many bytes have followed the handshake.
                for (fault_proxy* proxy : {&first, &second})
                    proxy->plan_connections([=, next = proxy->connections()](std::size_t connection) {
                        fault_proxy::plan p;
                        if (connection == next) p.cut_replies_after = handshake + n;
                        return p;
                    });
                first.cut_all();
                second.cut_all();
                taker one(co_await asio::this_coro::executor, kinds[kind](zk, dir));
                if (ahead) {
                    auto asked = [&]() -> asio::awaitable<bool> {
                        co_return first.connections() + second.connections() > before;
                    };
                    co_await eventually(asked);
                    CHECK_FALSE(one.ended());
                    co_await ahead->release();
                }
                co_await one.got();
                co_await observer.sync(dir);
                std::vector<std::string> expected = one.guard().paths();
                std::sort(expected.begin(), expected.end());
                auto only_these =
                    [&]() -> asio::awaitable<bool> {  // what the semaphore asked with goes in the background
                    const std::vector<std::string> there = co_await ephemeral_nodes(observer, dir);
                    co_return there == expected;
                };
                co_await eventually(only_these);
                co_await one.guard().release();
                expected.clear();
                co_await eventually(only_these);
            }
        }
        co_await zk.close();
        co_await observer.close();
    };
    loop.run(body());
}
