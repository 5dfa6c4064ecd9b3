#include "support/catch.hpp"
#include "support/test_client.hpp"

#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>

#include <optional>
#include <string>

using namespace zkasio;
using namespace zkasio::test;

namespace {

asio::awaitable<lock_guard> made_elsewhere(std::string path, std::string kind) {
    const test_client zk(co_await asio::this_coro::executor, options().session_timeout(paced(30s)));
    const shared_mutex rw(zk, path);
    if (kind == "permits") co_return co_await semaphore(zk, path, permits::fixed(2)).acquire(2);
    if (kind == "downgraded") {
        lock_guard writing = co_await rw.acquire();
        co_return co_await rw.downgrade(std::move(writing));
    }
    if (kind == "owned") co_return co_await rw.acquire(acquire_options().owner(lock_owner()));
    co_return co_await mutex(zk, path).acquire();
}

}  // namespace

// The session timeout is longer than the test waits: the nodes go because they are removed.
TEST_CASE("a guard whose client was made by a function is held, and its session ends with it") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "guard-keeps-open");
        for (const char* kind : {"mutex", "permits", "downgraded", "owned"}) {
            INFO(kind);
            std::optional<lock_guard> guard(co_await made_elsewhere(dir + "/" + kind, kind));
            const std::string path = guard->path();
            const auto node = co_await zk.exists(path);
            REQUIRE(node);
            CHECK(node->ephemeral_owner != zk.session_now().id());
            transaction mark;
            mark.create(dir + "/mark-" + kind);
            co_await guard->commit(mark);
            CHECK(guard->held());
            guard.reset();
            auto gone = [&]() -> asio::awaitable<bool> { co_return !co_await zk.exists(path); };
            co_await eventually(gone);
        }
    };
    with_client(body);
}
