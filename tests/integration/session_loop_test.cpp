#include "support/fault_proxy.hpp"
#include "support/lock_checks.hpp"
#include "support/test_client.hpp"

#include <zkasio/locks/mutex.hpp>
#include <zkasio/session_loop.hpp>

#include <set>

using namespace zkasio;
using namespace zkasio::test;

namespace {

// Has the lock in one session after another, and says in which.
asio::awaitable<void> hold_lock(session on, mutex lock, std::vector<std::int64_t>& held) {
    co_await lock.with_lock([&](lock_guard& guard) -> asio::awaitable<void> {
        held.push_back(on.id());
        co_await guard.lost();
        CHECK(on.over());
    });
}

}  // namespace

TEST_CASE("a session loop has a lock again in each session") {
    auto body = [](test_client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "session-loop");
        const test_client victim(co_await asio::this_coro::executor, options());
        std::vector<std::int64_t> held;
        auto work = [lock = mutex(victim, dir + "/lock"), &held](session on) { return hold_lock(on, lock, held); };
        session_loop loop = run_in_each_session(victim, work);
        for (std::size_t sessions = 1; sessions <= 3; ++sessions) {
            auto is_held = [&]() -> asio::awaitable<bool> { co_return held.size() == sessions; };
            co_await eventually(is_held);
            CHECK(held.back() == victim.session_now().id());
            if (sessions < 3) co_await expire_session(victim);
        }
        CHECK(std::set<std::int64_t>(held.begin(), held.end()).size() == 3);
        loop.stop();
        co_await loop.stopped();
        co_await victim.idle();
        const auto left = co_await children_of(zk, dir + "/lock");
        CHECK(left.empty());
        co_await until_quiet(victim, dir);
        co_await victim.close();
    };
    with_client(body);
}

TEST_CASE("a session loop goes on in the same session when the connection is cut") {
    auto body = [](test_client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "session-loop-cut");
        fault_proxy proxy(first_server());
        const test_client cut(co_await asio::this_coro::executor, options(proxy.address()));
        std::set<std::int64_t> sessions;
        int begun = 0, written = 0;
        auto work = [&](session on) -> asio::awaitable<void> {
            ++begun;
            sessions.insert(on.id());
            for (; written < 2000; ++written) co_await on.create_or_set(dir + "/node", std::to_string(written));
        };
        const session_loop loop = run_in_each_session(cut, work);
        for (int cuts = 0; cuts < 5; ++cuts) {
            auto more = [&, before = written]() -> asio::awaitable<bool> { co_return written > before + 20; };
            co_await eventually(more);
            proxy.cut_all();
        }
        co_await loop.stopped();
        CHECK(sessions.size() == 1);
        CHECK(begun > 1);
        const node_data last = co_await zk.get(dir + "/node");
        CHECK(last.data == "1999");
        co_await cut.close();
    };
    with_client(body);
}
