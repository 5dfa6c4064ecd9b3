#include "integration/semaphore_nodes.hpp"
#include "support/lock_checks.hpp"

#include <zkasio/path.hpp>

#include <algorithm>

using namespace zkasio;
using namespace zkasio::test;

TEST_CASE("semaphore: a waiting lease that an operator deletes is created anew") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "semaphore-waiting-deleted");
        const auto executor = co_await asio::this_coro::executor;
        const semaphore s(zk, dir, permits::fixed(2));
        lock_guard holder = co_await s.acquire();
        taker waiting(executor, s.acquire(2));
        co_await until_queued(zk, leases(s), 3);
        const std::vector<std::string> before = co_await children_of(zk, leases(s));
        const std::string victim = before[0] == node_name(holder.path()) ? before[1] : before[0];
        co_await zk.remove(join_path(leases(s), victim));
        auto renewed = [&]() -> asio::awaitable<bool> {
            const std::vector<std::string> now = co_await children_of(zk, leases(s));
            co_return now.size() == 3 && std::find(now.begin(), now.end(), victim) == now.end();
        };
        co_await eventually(renewed);
        CHECK(holder.held());
        CHECK_FALSE(waiting.has_it());
        co_await holder.release();
        co_await waiting.got();
        co_await until_queued(zk, leases(s), 2);
    };
    with_client(body);
}

TEST_CASE("semaphore: a place in the line that an operator deletes does not block the others") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "semaphore-place-deleted");
        const auto executor = co_await asio::this_coro::executor;
        const test_client other(executor, options());
        const semaphore s(zk, dir, permits::fixed(1)), theirs(other, dir, permits::fixed(1));
        lock_guard holder = co_await s.acquire();
        auto use = [](semaphore one) -> asio::awaitable<void> { (void)co_await one.acquire(); };
        const running first(executor, use(s));
        co_await until_queued(zk, leases(s), 2);
        const running second(executor, use(theirs));
        co_await until_queued(zk, locks(s), 2);
        std::vector<std::string> places = co_await children_of(zk, locks(s));
        std::sort(places.begin(), places.end(),
                  [](const auto& a, const auto& b) { return a.substr(a.size() - 10) < b.substr(b.size() - 10); });
        co_await zk.remove(join_path(locks(s), places[0]));
        // The second one is let in, and most often has a lease of its own there before the first looks again: if the
        // first kept its lease, both would wait for each other.
        co_await holder.release();
        for (const running* each : {&first, &second}) {
            const std::exception_ptr failed = co_await each->end();
            CHECK_FALSE(failed);
        }
        co_await until_free(zk, s);
        co_await other.close();
    };
    with_client(body);
}

TEST_CASE("semaphore: its directory is deleted under those who wait, again and again - they start over") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "semaphore-no-directory");
        const auto executor = co_await asio::this_coro::executor;
        std::vector<test_client> clients;
        for (int i = 0; i < 3; ++i) clients.emplace_back(executor, options().session_timeout(paced(4s)));
        int served = 0, met = 0;
        auto task = [&](client c, bool each) -> asio::awaitable<void> {
            const semaphore s(c, dir + "/s", permits::fixed(2));
            for (int round = 0; round < 4 || met == 0; ++round) {
                std::vector<lock_guard> guards;
                if (each)
                    guards = co_await s.acquire_each(2);
                else
                    guards.push_back(co_await s.acquire());
                co_await turns(20);
                ++served;
            }
        };
        std::vector<running> tasks;
        for (int i = 0; i < 6; ++i)
            tasks.emplace_back(executor, task(clients[static_cast<std::size_t>(i % 3)], i == 0));
        for (int i = 0; i < 15 || met == 0; ++i) {
            co_await turns(20);
            const char* which[] = {"/s/leases", "/s", "/s/locks"};
            const std::vector<std::string> there = co_await children_of(zk, dir + which[i % 3]);
            const std::error_code code = co_await code_of(zk.remove_recursive(dir + which[i % 3]));
            met += !there.empty() && !code;
        }
        for (const running& t : tasks) {
            const std::exception_ptr e = co_await t.end();
            CHECK_FALSE(e);
        }
        CHECK(served >= 24);
        co_await until_free(zk, semaphore(zk, dir + "/s", permits::fixed(2)));
        for (const test_client& c : clients) co_await c.close();
    };
    with_client(body);
}

TEST_CASE("semaphore: whoever waits when the directory is deleted has a permit a few requests later") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "semaphore-directory-once");
        const auto executor = co_await asio::this_coro::executor;
        const test_client waiting(executor, options());
        const semaphore theirs(zk, dir + "/s", permits::fixed(1)), s(waiting, dir + "/s", permits::fixed(1));
        const lock_guard held = co_await theirs.acquire();
        taker next(executor, s.acquire());
        co_await until_queued(zk, leases(s), 2);
        const session on = co_await waiting.current_session();
        const long before = requests_of(on);
        co_await zk.remove_recursive(leases(s));
        co_await next.got();
        CHECK(next.guard().held());
        CHECK(requests_of(on) - before < 30);
        next.release();
        co_await until_free(zk, s);
        co_await waiting.close();
    };
    with_client(body);
}

TEST_CASE("semaphore: a held lease that an operator deletes is lost, and all of its request with it") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "semaphore-held-deleted");
        const semaphore s(zk, dir, permits::fixed(3));
        lock_guard one = co_await s.acquire(), two = co_await s.acquire(2);
        co_await zk.remove(two.paths()[1]);
        const loss_reason why = co_await two.lost();
        CHECK(why == loss_reason::node_deleted);
        CHECK(two.reason() == loss_reason::node_deleted);
        CHECK_FALSE(two.held());
        CHECK(one.held());
        transaction t;
        t.create(dir + "/late");
        const std::error_code c = co_await code_of(two.commit(t));
        CHECK(c == errc::lock_lost);
        co_await two.release();
        const std::vector<std::string> left = co_await children_of(zk, leases(s));
        REQUIRE(left.size() == 1);
        CHECK(left[0] == node_name(one.path()));
    };
    with_client(body);
}

TEST_CASE("semaphore: the permits of a session that expires are free again") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "semaphore-expiry");
        const auto executor = co_await asio::this_coro::executor;
        const test_client victim(executor, options());
        const semaphore theirs(victim, dir, permits::fixed(2)), ours(zk, dir, permits::fixed(2));
        const lock_guard lost = co_await theirs.acquire(2);
        taker waiting(executor, ours.acquire(2)), theirs_too(executor, theirs.acquire());
        co_await until_queued(zk, locks(ours), 2);
        co_await expire_session(victim);
        const loss_reason why = co_await lost.lost();
        CHECK(why == loss_reason::session_expired);
        CHECK_FALSE(lost.held());
        co_await waiting.got();
        CHECK(waiting.guard().token() > lost.token());
        const std::error_code c = co_await theirs_too.code();
        CHECK(c == errc::session_expired);
        co_await until_queued(zk, leases(ours), 2);
        co_await victim.close();
    };
    with_client(body);
}
