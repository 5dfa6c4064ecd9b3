#include "support/catch.hpp"
#include "support/lock_checks.hpp"

#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/unfair_mutex.hpp>

#include <memory>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;

namespace {

using some_lock = std::shared_ptr<const lockable>;

template <class Lock>
some_lock shared_copy(Lock lock) {
    return std::make_shared<const Lock>(std::move(lock));
}

// Of every kind, below `dir`. Where they wait when somebody has them: the directory, and how many nodes are in it then.
struct waited_for {
    some_lock lock;
    std::string directory;
    std::size_t nodes;
};
std::vector<waited_for> all_kinds(const client& zk, const std::string& dir) {
    multi_mutex several(zk);
    several.add(mutex(zk, dir + "/o/a")).add(semaphore(zk, dir + "/o/b", permits::fixed(1)), 1);
    const shared_mutex rw(zk, dir + "/rw");
    std::vector<waited_for> all;
    all.push_back({shared_copy(mutex(zk, dir + "/mutex")), dir + "/mutex", 2});
    all.push_back({shared_copy(rw), dir + "/rw", 2});
    all.push_back({shared_copy(semaphore(zk, dir + "/s", permits::fixed(2)).request(2)), dir + "/s/leases", 4});
    all.push_back({shared_copy(several), dir + "/o/a", 2});
    return all;
}

}  // namespace

TEST_CASE("whoever survives the expiry of the session gets a lock of any kind with the next one") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "survive-expiry");
        const auto executor = co_await asio::this_coro::executor;
        const test_client victim(executor, options());
        const auto how = acquire_options().survive_expiry();
        std::vector<lock_guard> held;
        std::vector<taker> waiting, failing;
        const auto ours = all_kinds(zk, dir), theirs = all_kinds(victim, dir);
        for (const waited_for& kind : ours) held.push_back(co_await kind.lock->acquire());
        for (const waited_for& kind : theirs) waiting.emplace_back(executor, kind.lock->acquire(how));
        for (const waited_for& kind : theirs) co_await until_queued(zk, kind.directory, kind.nodes);
        failing.emplace_back(executor, mutex(victim, dir + "/mutex").acquire());
        co_await until_queued(zk, dir + "/mutex", 3);
        const std::int64_t before = victim.session_now().id();

        co_await expire_session(victim);
        const std::error_code without = co_await failing.front().code();
        CHECK(without == errc::session_expired);
        for (const waited_for& kind : theirs) co_await until_queued(zk, kind.directory, kind.nodes);
        for (const taker& t : waiting) CHECK_FALSE(t.ended());
        for (lock_guard& guard : held) co_await guard.release();
        for (taker& t : waiting) {
            co_await t.got();
            CHECK(t.guard().held());
            CHECK(t.guard().claim()->on().id() != before);
            t.release();
        }
        co_await victim.close();
    };
    with_client(body);
}

TEST_CASE("whoever survives the expiry of the session has a flag, too, when its holder leaves") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "survive-expiry-flag");
        const test_client victim(co_await asio::this_coro::executor, options());
        lock_guard held = co_await unfair_mutex(zk, dir + "/flag").acquire();
        const auto how = acquire_options().survive_expiry();
        taker waiting(co_await asio::this_coro::executor, unfair_mutex(victim, dir + "/flag").acquire(how));
        co_await turns(5);
        co_await expire_session(victim);
        CHECK_FALSE(waiting.ended());
        co_await held.release();
        co_await waiting.got();
        CHECK(waiting.guard().held());
        waiting.release();
        co_await victim.close();
    };
    with_client(body);
}
