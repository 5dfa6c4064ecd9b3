#include "integration/multi_locks.hpp"

#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/unfair_mutex.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <algorithm>
#include <functional>

using namespace zkasio;
using namespace zkasio::test;

namespace {

// a and b.
multi_mutex two(client zk, const std::string& dir) {
    multi_mutex both(zk);
    both.add(mutex(zk, dir + "/a")).add(mutex(zk, dir + "/b"));
    return both;
}

// The nodes of a lock's directory, in the order in which they came.
asio::awaitable<std::vector<std::string>> in_order(client zk, std::string directory) {
    std::vector<std::string> names = co_await children_of(zk, directory);
    std::sort(names.begin(), names.end(),
              [](const auto& a, const auto& b) { return a.substr(a.size() - 10) < b.substr(b.size() - 10); });
    for (std::string& name : names) name = directory + "/" + name;
    co_return names;
}

// A lock whose try_acquire() takes its time.
struct slow_lock {
    mutex inner;
    std::shared_ptr<bool> asked;
    one_shot_event go;
    const std::string& path() const { return inner.path(); }
    asio::awaitable<lock_guard> acquire() const { return inner.acquire(); }
    asio::awaitable<std::optional<lock_guard>> try_acquire() const { return when_told(*this); }
    static asio::awaitable<std::optional<lock_guard>> when_told(slow_lock self) {
        *self.asked = true;
        co_await self.go.wait();
        co_return co_await self.inner.try_acquire();
    }
};

}  // namespace

TEST_CASE("multi_mutex: a node that is deleted loses the guard, and the others are released with it") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "multi-loss");
        const multi_mutex all = three(zk, dir);
        std::optional<lock_guard> guard(co_await all.acquire());
        co_await zk.remove(guard->paths()[1]);
        const loss_reason why = co_await guard->lost();
        CHECK(why == loss_reason::node_deleted);
        CHECK_FALSE(guard->held());
        guard.reset();
        co_await until_free(zk, dir);
    };
    with_client(body);
}

TEST_CASE("multi_mutex: a node that is deleted while it waits comes back, or the loss is told") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "multi-waiting-deleted");
        const auto executor = co_await asio::this_coro::executor;
        const test_client other(executor, options());
        const mutex theirs(other, dir + "/b");
        // Of the lock that it waits for, and of one that is its own already.
        for (const char* name : {"/b", "/a"}) {
            lock_guard held = co_await theirs.acquire();
            taker all(executor, three(zk, dir).acquire());
            co_await until_queued(zk, dir + "/b", 2);
            co_await until_queued(zk, dir + "/a", 1);
            const std::vector<std::string> nodes = co_await children_of(zk, dir + name);
            for (const std::string& node : nodes) {
                const std::string path = dir + name + "/" + node;
                if (path != held.path()) co_await zk.remove(path);
            }
            co_await held.release();
            co_await all.got();
            std::int64_t newest = 0;
            auto whole = [&]() -> asio::awaitable<bool> {
                std::size_t there = 0;
                for (const std::string& path : all.guard().paths()) {
                    const auto node = co_await zk.exists(path);
                    if (node) ++there;
                    if (node) newest = std::max(newest, node->czxid);
                }
                co_return (there == 3) == all.guard().held();
            };
            co_await eventually(whole);
            if (all.guard().held()) CHECK(all.guard().token().value() == newest);
            all.release();
            co_await until_free(zk, dir);
        }
        co_await other.close();
    };
    with_client(body);
}

TEST_CASE("multi_mutex: three wait for the same locks, and one loses its place - all get them") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "multi-one-place");
        const auto executor = co_await asio::this_coro::executor;
        std::vector<test_client> others;
        for (int i = 0; i < 3; ++i) others.emplace_back(executor, options());
        for (const std::size_t loser : {0u, 1u, 2u}) {
            const std::string lock = dir + "/a";
            lock_guard held = co_await two(zk, dir).acquire();
            std::vector<taker> takers;
            for (const test_client& other : others) {
                takers.emplace_back(executor, two(other, dir).acquire());
                co_await until_queued(zk, lock, takers.size() + 1);
            }
            const std::vector<std::string> nodes = co_await in_order(zk, lock);
            REQUIRE(nodes.size() == 4);
            co_await zk.remove(nodes[1 + loser]);
            co_await held.release();
            int served = 0;
            auto all_served = [&]() -> asio::awaitable<bool> {
                for (taker& t : takers) {
                    if (!t.has_it()) continue;
                    CHECK(t.guard().held());
                    t.release();
                    ++served;
                }
                co_return served == 3;
            };
            co_await eventually(all_served, 10s);
            co_await until_free(zk, dir);
        }
        for (const test_client& other : others) co_await other.close();
    };
    with_client(body);
}

TEST_CASE("multi_mutex: directories are deleted under those who wait, again and again - all get the locks in the end") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "multi-no-directory");
        const auto executor = co_await asio::this_coro::executor;
        std::vector<test_client> clients;
        for (int i = 0; i < 3; ++i) clients.emplace_back(executor, options());
        int served = 0, met = 0;
        auto task = [&](client c) -> asio::awaitable<void> {
            for (int round = 0; round < 5 || met == 0; ++round) {
                const lock_guard guard = co_await two(c, dir).acquire();
                co_await turns(20);
                ++served;
            }
        };
        std::vector<running> tasks;
        for (int i = 0; i < 9; ++i) tasks.emplace_back(executor, task(clients[static_cast<std::size_t>(i % 3)]));
        for (int i = 0; i < 12 || met == 0; ++i) {
            co_await turns(30);
            const std::string which = dir + (i % 2 ? "/a" : "/b");
            const std::vector<std::string> there = co_await children_of(zk, which);
            const std::error_code code = co_await code_of(zk.remove_recursive(which));
            met += there.size() > 1 && !code;
        }
        for (const running& t : tasks) {
            const std::exception_ptr e = co_await t.end();
            CHECK_FALSE(e);
        }
        CHECK(served >= 45);
        co_await until_free(zk, dir);
        for (const test_client& c : clients) co_await c.close();
    };
    with_client(body);
}

TEST_CASE("multi_mutex: whoever loses a lock of any kind while it waits for the next gives it up, and starts over") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string top = co_await fresh_directory(zk, "multi-lost-first");
        const auto executor = co_await asio::this_coro::executor;
        const test_client waiting(executor, options().session_timeout(paced(4s)));
        auto lost_first = [&](std::string kind) -> asio::awaitable<void> {
            const std::string dir = top + "/" + kind, first = dir + "/a";
            multi_mutex all(waiting);
            std::string nodes = first;
            std::function<asio::awaitable<lock_guard>()> take_first = [&] { return mutex(zk, first).acquire(); };
            if (kind == "mutex") all.add(mutex(waiting, first));
            if (kind == "owner") all.add(mutex(waiting, first), acquire_options().owner(lock_owner()));
            if (kind == "readers") {
                all.add_shared(shared_mutex(waiting, first));
                take_first = [&] { return shared_mutex(zk, first).acquire(); };
            }
            if (kind == "semaphore") {
                all.add(semaphore(waiting, first, permits::fixed(1)));
                nodes = first + "/leases";
                take_first = [&] { return semaphore(zk, first, permits::fixed(1)).acquire(); };
            }
            if (kind == "unfair") {
                all.add(unfair_mutex(waiting, first + "/flag"));
                take_first = [&] { return unfair_mutex(zk, first + "/flag").acquire(); };
            }
            all.add(mutex(waiting, dir + "/z"));

            lock_guard last = co_await mutex(zk, dir + "/z").acquire();
            taker both(executor, all.acquire());
            co_await until_queued(zk, nodes, 1);
            co_await until_queued(zk, dir + "/z", 2);
            const std::vector<std::string> ours = co_await children_of(zk, nodes);
            REQUIRE(ours.size() == 1);
            const pending_removal gone = toolbox(zk).ensure_removed(nodes + "/" + ours[0]);
            lock_guard theirs = co_await take_first();
            co_await gone.result();
            co_await until_queued(zk, dir + "/z", 1);  // who does not have the first lock does not wait for the second
            co_await last.release();
            CHECK_FALSE(both.has_it());
            CHECK(theirs.held());
            co_await theirs.release();
            co_await both.got();
            CHECK(both.guard().held());
            for (const std::string& path : both.guard().paths()) {
                const auto there = co_await zk.exists(path);
                CHECK(there);
            }
            both.release();
            co_await until_queued(zk, nodes, 0);
            co_await until_queued(zk, dir + "/z", 0);
        };
        std::vector<running> kinds;
        for (const char* kind : {"mutex", "owner", "readers", "semaphore", "unfair"})
            kinds.emplace_back(executor, lost_first(kind));
        for (const running& kind : kinds) {
            const std::exception_ptr e = co_await kind.end();
            if (e) std::rethrow_exception(e);
        }
        co_await waiting.close();
    };
    with_client(body);
}

TEST_CASE("multi_mutex: a lock that is lost while try_acquire is at the next is reported at once") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "multi-try-lost");
        const auto executor = co_await asio::this_coro::executor;
        const test_client trying(executor, options().session_timeout(paced(4s)));
        const slow_lock slow{mutex(trying, dir + "/z"), std::make_shared<bool>(false),
                             toolbox(trying).make_one_shot_event()};
        multi_mutex both(trying);
        both.add(mutex(trying, dir + "/a")).add(slow);
        auto attempt = [&]() -> asio::awaitable<void> { co_await both.try_acquire(); };
        const running tried(executor, attempt());
        auto asked = [&]() -> asio::awaitable<bool> { co_return *slow.asked; };
        co_await eventually(asked);
        const std::vector<std::string> nodes = co_await in_order(zk, dir + "/a");
        REQUIRE(nodes.size() == 1);
        co_await zk.remove(nodes[0]);
        const std::error_code c = co_await tried.code();
        CHECK(c == errc::lock_lost);
        co_await until_free(zk, dir);
        co_await trying.close();
    };
    with_client(body);
}

TEST_CASE("multi_mutex: a node that a commit finds gone is named, and the guard is lost at once") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "multi-commit-lost");
        const lock_owner me;
        for (const std::size_t i : {0u, 1u, 2u}) {
            multi_mutex all(zk);
            for (const char* name : {"/a", "/b", "/c"}) all.add(mutex(zk, dir + name), acquire_options().owner(me));
            lock_guard guard = co_await all.acquire();
            lock_guard same = co_await mutex(zk, dir + "/b").acquire(acquire_options().owner(me));
            const pending_removal gone = toolbox(zk).ensure_removed(guard.paths()[i]);
            transaction late;
            late.create(dir + "/late");
            const std::string text = co_await message_of(guard.commit(late));
            CHECK_FALSE(guard.held());
            CHECK(guard.reason() == loss_reason::node_deleted);
            CHECK(same.held() == (i != 1));  // another guard of the same lock
            CHECK(text == "commit " + guard.paths()[i] + ": lock lost (node deleted)");
            const std::string again = co_await message_of(guard.commit(late));
            CHECK(again == text);
            co_await gone.result();
        }
        const auto late = co_await zk.exists(dir + "/late");
        CHECK_FALSE(late);
    };
    with_client(body);
}

TEST_CASE("multi_mutex: commit checks every node") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "multi-commit");
        for (std::size_t i = 0; i < 3; ++i) {
            const lock_guard guard = co_await three(zk, dir).acquire();
            transaction good;
            good.create(dir + "/good-" + std::to_string(i));
            const std::vector<step_result> done = co_await guard.commit(good);
            CHECK(done.size() == 1);
            transaction refused;
            refused.set(dir, "x").remove(dir + "/missing");
            const std::string text = co_await message_of(guard.commit(refused));
            CHECK(text == "commit " + dir + "/missing: no such node (step 2, remove)");
            transaction bad;
            bad.set("no/path", "x");
            const std::string nonsense = co_await message_of(guard.commit(bad));
            CHECK(nonsense.starts_with("commit (step 1) no/path: invalid path"));
            // Sent together: we cannot have noticed.
            const pending_removal gone = toolbox(zk).ensure_removed(guard.paths()[i]);
            transaction late;
            late.create(dir + "/late");
            const std::error_code c = co_await code_of(guard.commit(late));
            CHECK(c == errc::lock_lost);
            co_await gone.result();
        }
        const auto late = co_await zk.exists(dir + "/late");
        CHECK_FALSE(late);
    };
    with_client(body);
}

TEST_CASE("multi_mutex: expiry of the session loses all, and ends an acquire that waits") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "multi-expiry");
        const auto executor = co_await asio::this_coro::executor;
        const test_client victim(executor, options());
        lock_guard held = co_await three(victim, dir).acquire();
        taker theirs(executor, three(victim, dir).acquire()), ours(executor, three(zk, dir).acquire());
        co_await until_queued(zk, dir + "/a", 3);
        co_await expire_session(victim);
        const loss_reason why = co_await held.lost();
        CHECK(why == loss_reason::session_expired);
        const std::error_code c = co_await theirs.code();
        CHECK(c == errc::session_expired);
        co_await ours.got();
        CHECK(ours.guard().token() > held.token());
        co_await victim.close();
    };
    with_client(body);
}
