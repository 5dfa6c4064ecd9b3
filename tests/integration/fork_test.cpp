// Clients, locks and loops in a process that was forked. All that the child does must leave the parent's session alone.

#include "support/fork_child.hpp"
#include "support/lock_checks.hpp"
#include "support/test_client.hpp"

#include <zkasio/locks/cohort_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/membership/persistent_node.hpp>
#include <zkasio/session_loop.hpp>

#include <algorithm>
#include <cstdlib>

#include <sys/wait.h>

using namespace zkasio;
using namespace zkasio::test;

namespace {

asio::awaitable<void> until_ended(pid_t pid) {
    int status = 0;
    auto ended = [&]() -> asio::awaitable<bool> { co_return ::waitpid(pid, &status, WNOHANG) == pid; };
    co_await eventually(ended, 30s);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == EXIT_SUCCESS);
}

// What the parent has when it forks. On the heap: the child destroys it when it likes.
struct parent {
    asio::io_context io;
    std::optional<client> zk{std::in_place, io.get_executor(), options().session_timeout(paced(4s))};
    std::optional<lock_guard> guard;
    std::optional<cohort_mutex> cohort;
    std::optional<lock_guard> turn;
    std::optional<session> on;
    std::optional<session_loop> loop;
    std::optional<persistent_node> member;
    std::vector<std::unique_ptr<running>> waiting;

    void run(asio::awaitable<void> task) {
        std::exception_ptr failed;
        bool ended = false;
        asio::co_spawn(io, std::move(task), [&](std::exception_ptr e) {
            failed = e;
            ended = true;
        });
        io.restart();
        while (!ended && io.run_one_for(30s) != 0) {
        }
        if (failed) std::rethrow_exception(failed);
        REQUIRE(ended);
    }

    // The session lives on, the lock stays ours, and whatever was under way goes on.
    asio::awaitable<void> goes_on(std::string dir) {
        CHECK(guard->held());
        const created node = co_await zk->create(dir + "/after");
        const node_data lock = co_await zk->get(guard->path());
        CHECK(lock.stat.ephemeral_owner == on->id());
        asio::steady_timer more_than_a_session(io, 5s);  // what keeps it alive is not a matter of one request
        co_await more_than_a_session.async_wait(asio::use_awaitable);
        CHECK(guard->held());
        CHECK(turn->held());
        CHECK_FALSE(on->over());
        const std::optional<node_stat> member_node = co_await zk->exists(member->path());
        CHECK(member_node);
        CHECK(member_node->ephemeral_owner == on->id());
        const client other(io.get_executor(), options());
        const auto seen = co_await other.exists(guard->path());
        CHECK(seen);
        CHECK(seen->ephemeral_owner == on->id());
        co_await other.close();
    }
};

// What else is in the loop may go on for ever.
template <class Condition>
void run_until(asio::io_context& io, Condition reached) {
    const auto give_up = std::chrono::steady_clock::now() + 5s;
    io.restart();
    while (!reached() && io.run_one_until(give_up) != 0) {
    }
}

template <class T>
std::string fails_with_forked(asio::io_context& io, asio::awaitable<T> operation, const char* name) {
    std::string wrong = std::string(name) + " does not end";
    bool ended = false;
    std::function<asio::awaitable<void>()> task = [&]() -> asio::awaitable<void> {
        try {
            (void)co_await std::move(operation);
            wrong = std::string(name) + " succeeds";
        } catch (const error& e) {
            wrong = e.code() == errc::forked && e.code() == condition::session_ended
                        ? ""
                        : std::string(name) + ": " + e.what();
        }
    };
    asio::co_spawn(io, task(), [&](std::exception_ptr) { ended = true; });
    run_until(io, [&] { return ended; });
    return wrong;
}

std::string says_forked(asio::io_context& io, const lock_guard& guard) {
    std::string wrong = "lost does not end";
    bool ended = false;
    std::function<asio::awaitable<void>()> task = [&]() -> asio::awaitable<void> {
        const loss_reason why = co_await guard.lost();
        wrong = why == loss_reason::forked ? "" : "lost: " + std::string(to_string(why));
    };
    asio::co_spawn(io, task(), [&](std::exception_ptr) { ended = true; });
    run_until(io, [&] { return ended; });
    return wrong;
}

// Every kind of operation, of what was made before the fork; on `io`.
std::string all_fail(parent& p, asio::io_context& io, const mutex& lock) {
    if (p.guard->held() || p.guard->held_until() != boot_clock::time_point()) return "the child holds the lock";
    if (p.turn->held()) return "the child has its turn";
    if (p.zk->state() != session_state::closed) return "state()";
    if (!p.on->over()) return "over()";
    std::string wrong;
    const auto check = [&](std::string found) {
        if (wrong.empty()) wrong = std::move(found);
    };
    check(fails_with_forked(io, p.zk->get("/"), "get"));
    check(fails_with_forked(io, p.cohort->acquire(), "cohort_mutex"));
    check(fails_with_forked(io, p.cohort->try_acquire(), "cohort_mutex, try"));
    check(says_forked(io, *p.turn));
    check(fails_with_forked(io, p.zk->create("/test-fork/by-child"), "create"));
    check(fails_with_forked(io, p.on->set("/test-fork", "x"), "set"));
    check(fails_with_forked(io, p.zk->connected(), "connected"));
    check(fails_with_forked(io, p.zk->close(), "close"));
    check(fails_with_forked(io, p.zk->credentials(), "credentials"));
    check(fails_with_forked(io, p.zk->add_auth("digest", "a:b"), "add_auth"));
    check(fails_with_forked(io, p.zk->set_servers("127.0.0.1:1"), "set_servers"));
    check(fails_with_forked(io, lock.acquire(), "acquire"));
    check(says_forked(io, *p.guard));
    check(fails_with_forked(io, p.loop->stopped(), "stopped"));
    check(fails_with_forked(io, p.guard->release(), "release"));
    check(fails_with_forked(io, p.member->ended(), "ended"));
    check(fails_with_forked(io, p.member->set_data("by the child"), "set_data"));
    return wrong;
}

// A client of the child's own works; so do its locks.
std::string own_client_works(asio::io_context& io) {
    const std::string dir = "/test-fork";
    const client zk(io.get_executor(), options());
    std::string wrong = "the child's own client does nothing";
    std::function<asio::awaitable<void>()> task = [&]() -> asio::awaitable<void> {
        const mutex lock(zk, dir + "/lock");
        const std::optional<lock_guard> taken = co_await lock.try_acquire();
        wrong = taken ? "the parent's lock was free" : "";
        const mutex another(zk, dir + "/another");
        lock_guard guard = co_await another.acquire();
        co_await guard.release();
        co_await zk.close();
    };
    bool ended = false;
    asio::co_spawn(io, task(), [&](std::exception_ptr e) {
        if (e) wrong = "the child's own client fails";
        ended = true;
    });
    io.restart();
    while (!ended && io.run_one_for(10s) != 0) {
    }
    return ended ? wrong : "the child's own client hangs";
}

// @param child is given the parent's things, and the mutex.
void fork_with_lock_held(const std::function<std::string(std::unique_ptr<parent>&, std::optional<mutex>&)>& child,
                         bool notify) {
    auto p = std::make_unique<parent>();
    std::string dir;
    std::optional<mutex> lock;
    auto begin = [&]() -> asio::awaitable<void> {
        dir = co_await fresh_directory(*p->zk, "fork");
        lock.emplace(*p->zk, dir + "/lock");
        p->guard = co_await lock->acquire();
        p->on = p->zk->session_now();
        // Something of each kind is under way when it forks.
        auto wait = [](lock_guard& g) -> asio::awaitable<void> { co_await g.lost(); };
        p->waiting.push_back(std::make_unique<running>(p->io.get_executor(), wait(*p->guard)));
        p->loop.emplace(run_in_each_session(*p->zk, [](session s) -> asio::awaitable<void> { co_await s.ended(); }));
        auto queue = [](mutex m) -> asio::awaitable<void> { (void)co_await m.acquire(); };
        p->waiting.push_back(std::make_unique<running>(p->io.get_executor(), queue(*lock)));
        p->cohort.emplace(*p->zk, dir + "/cohort");
        p->turn = co_await p->cohort->acquire();
        auto next = [](cohort_mutex m) -> asio::awaitable<void> { (void)co_await m.acquire(); };
        p->waiting.push_back(std::make_unique<running>(p->io.get_executor(), next(*p->cohort)));
        co_await until_queued(*p->zk, dir + "/lock", 2);
        p->member.emplace(*p->zk, dir + "/node", "by the parent");
        co_await p->member->created();
    };
    p->run(begin());
    if (notify) p->io.notify_fork(asio::io_context::fork_prepare);
    const pid_t pid = fork_child([&] {
        if (notify) p->io.notify_fork(asio::io_context::fork_child);
        return child(p, lock);
    });
    REQUIRE(pid > 0);
    if (notify) p->io.notify_fork(asio::io_context::fork_parent);
    auto end = [&]() -> asio::awaitable<void> {
        co_await until_ended(pid);
        co_await p->goes_on(dir);
        for (const auto& w : p->waiting) w->cancel();
        for (const auto& w : p->waiting) co_await w->end();
        auto goes_on = p->loop->stopped();
        co_await p->member->leave();
        p->loop->stop();
        co_await std::move(goes_on);
        co_await p->guard->release();
        co_await p->turn->release();
        co_await p->zk->remove_recursive(dir);
        const close_result how = co_await p->zk->close();
        CHECK(how == close_result::confirmed);
    };
    p->run(end());
    p->guard.reset();
    p->turn.reset();
    p->cohort.reset();
    p->on.reset();
    p->loop.reset();
    p->member.reset();
    lock.reset();
    p->waiting.clear();
    p->zk.reset();
    p->io.restart();
    p->io.run_for(10s);
    CHECK(p->io.stopped());
}

}  // namespace

TEST_CASE("fork: a child that runs the loop gets errors, and the parent's session and lock live on", "[real-process]") {
    const auto child = [](std::unique_ptr<parent>& p, std::optional<mutex>& lock) {
        if (std::string wrong = all_fail(*p, p->io, *lock); !wrong.empty()) return wrong;
        const auto all_ended = [&] {
            return std::all_of(p->waiting.begin(), p->waiting.end(), [](const auto& w) { return w->ended(); });
        };
        run_until(p->io, all_ended);
        if (!all_ended()) return std::string("what was under way does not end");
        p->io.restart();
        p->io.run_for(300ms);
        return own_client_works(p->io);
    };
    fork_with_lock_held(child, true);
}

TEST_CASE("fork: a child whose loop was not told, and does not run", "[real-process]") {
    const auto child = [](std::unique_ptr<parent>& p, std::optional<mutex>& lock) {
        asio::io_context own;
        if (std::string wrong = all_fail(*p, own, *lock); !wrong.empty()) return wrong;
        return own_client_works(own);
    };
    fork_with_lock_held(child, false);
}

TEST_CASE("fork: a child that destroys all that it got harms nobody", "[real-process]") {
    const bool notify = GENERATE(true, false);
    INFO((notify ? "its loop was told" : "its loop was not told"));
    SECTION("guards and clients before the loop") {
        const auto child = [&](std::unique_ptr<parent>& p, std::optional<mutex>&) {
            p->guard.reset();
            p->turn.reset();
            p->cohort.reset();
            p->waiting.clear();
            p->on.reset();
            p->loop.reset();
            p->member.reset();
            p->zk.reset();
            if (notify) p->io.poll();  // what that has left to do
            return std::string();
        };
        fork_with_lock_held(child, notify);
    }
    SECTION("the loop, with everything in it") {
        const auto child = [](std::unique_ptr<parent>& p, std::optional<mutex>& lock) {
            p->guard.reset();
            p->turn.reset();
            p->cohort.reset();
            p->on.reset();
            p->loop.reset();
            p->member.reset();
            p->zk.reset();
            lock.reset();
            p.reset();
            return std::string();
        };
        fork_with_lock_held(child, notify);
    }
}

TEST_CASE("fork: a child that forks again", "[real-process]") {
    const auto child = [](std::unique_ptr<parent>& p, std::optional<mutex>& lock) {
        const pid_t grandchild = fork_child([&] {
            asio::io_context own;
            return all_fail(*p, own, *lock);
        });
        int status = 0;
        if (::waitpid(grandchild, &status, 0) != grandchild || status != 0) return std::string("the grandchild failed");
        asio::io_context own;
        return own_client_works(own);
    };
    fork_with_lock_held(child, false);
}
