// A process that holds a lock and is stopped (SIGSTOP) until its session is over.

#include "support/lock_checks.hpp"
#include "support/test_client.hpp"

#include <zkasio/locks/mutex.hpp>

#include <csignal>

#include <sys/wait.h>
#include <unistd.h>

using namespace zkasio;
using namespace zkasio::test;

namespace {

const std::string lock_path = "/test-stopped/lock", record = "/test-stopped/record";
const std::chrono::milliseconds timeout = paced(4s);

// What the process that is stopped reports with its end: 0, or what it has done wrong.
enum verdict { right = 0, broken = 1, still_held = 2, committed = 4, wrong_reason = 8 };

// Holds the lock, reads and writes all the time, and ends when it has lost it.
asio::awaitable<int> hold_and_write(client zk, int ready) {
    const mutex lock(zk, lock_path);
    const lock_guard guard = co_await lock.acquire();
    int result = right;
    bool told = false;
    auto wait = [&]() -> asio::awaitable<void> {
        const loss_reason why = co_await guard.lost();
        told = true;
        if (why != loss_reason::lease_ended && why != loss_reason::session_expired) result |= wrong_reason;
    };
    // Whenever the process is stopped, an answer is about to come: it waits in the socket meanwhile, and must not
    // count.
    auto read = [&]() -> asio::awaitable<void> {
        while (!told) co_await code_of(zk.get(record));
    };
    // What runs first afterwards, before anybody can have said anything.
    auto look = [&]() -> asio::awaitable<void> {
        auto last = boot_clock::now();
        while (!told) {
            co_await turns(1);
            const auto now = boot_clock::now();
            if (now - last > timeout && guard.held()) result |= still_held;
            last = now;
        }
    };
    std::vector<running> tasks;
    tasks.emplace_back(co_await asio::this_coro::executor, wait());
    tasks.emplace_back(co_await asio::this_coro::executor, look());
    for (int i = 0; i < 4; ++i) tasks.emplace_back(co_await asio::this_coro::executor, read());
    for (std::error_code written; written != errc::lock_lost;) {
        transaction mine;
        mine.set(record, "old holder");
        written = co_await code_of(guard.commit(mine));
        if (const char go = 'x'; !written) (void)!::write(ready, &go, 1);
    }
    for (const running& t : tasks) {
        const std::exception_ptr e = co_await t.end();
        if (e) result |= broken;
    }
    transaction late;
    late.set(record, "old holder");
    const std::error_code refused = co_await code_of(guard.commit(late));
    if (refused != errc::lock_lost) result |= committed;
    co_return result;
}

int run_holder(int ready) {
    int result = broken;
    try {
        test_loop loop(60s);
        const client zk(loop.executor(), options().session_timeout(timeout));
        auto all = [&]() -> asio::awaitable<void> {
            const int verdict = co_await hold_and_write(zk, ready);
            co_await zk.close();
            result = verdict;
        };
        asio::co_spawn(loop.context(), all(), [](std::exception_ptr e) {
            if (e) ::_exit(broken);
        });
        loop.context().run_for(60s);
    } catch (...) {
    }
    return result;
}

}  // namespace

TEST_CASE(
    "a process that is stopped for two session timeouts does not hold its lock any more, and none of its writes passes "
    "commit") {
    auto prepare = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "stopped");
        co_await zk.create(record);
    };
    with_client(prepare);
    int ready[2];
    REQUIRE(::pipe(ready) == 0);
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(run_holder(ready[1]));  // no Catch2 in there: it would report what the parent does
    REQUIRE(pid > 0);
    ::close(ready[1]);
    char go = 0;
    for (int writes = 0; writes < 20; ++writes) REQUIRE(::read(ready[0], &go, 1) == 1);
    ::kill(pid, SIGSTOP);  // in the middle of whatever it does
    const auto stopped_at = boot_clock::now();
    auto body = [&](client zk) -> asio::awaitable<void> {
        const mutex lock(zk, lock_path);
        const lock_guard guard = co_await lock.acquire();
        transaction mine;
        mine.set(record, "new holder");
        const std::vector<step_result> written = co_await guard.commit(mine);
        auto long_enough = [&]() -> asio::awaitable<bool> { co_return boot_clock::now() > stopped_at + 2 * timeout; };
        co_await eventually(long_enough);
        ::kill(pid, SIGCONT);
        int status = 0;
        auto ended = [&]() -> asio::awaitable<bool> { co_return ::waitpid(pid, &status, WNOHANG) == pid; };
        co_await eventually(ended, 30s);
        CHECK(WIFEXITED(status));
        CHECK(WEXITSTATUS(status) == right);
        const node_data now = co_await zk.get(record);
        CHECK(now.data == "new holder");
        CHECK(now.stat.version == written.front().new_stat->version);
        CHECK(guard.held());
    };
    with_client(body);
    ::close(ready[0]);
}
