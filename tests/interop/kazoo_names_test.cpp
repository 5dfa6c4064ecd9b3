#include "interop/library.hpp"
#include "interop/line_up.hpp"
#include "interop/load.hpp"
#include "support/lock_directory.hpp"

#include <zkasio/path.hpp>

using namespace zkasio;
using namespace zkasio::test;

namespace {

mutex_options kazoo_names() {
    mutex_options o;
    o.names(name_scheme::kazoo());
    return o;
}

}  // namespace

TEST_CASE("kazoo's own names: in line with its Lock and its WriteLock") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-kazoo");
        const auto executor = co_await asio::this_coro::executor;
        const test_client second(executor, options());
        peer kazoo(executor, "kazoo");
        co_await kazoo.ready();
        const library lock(kazoo, "lock", true), write(kazoo, "write", true);
        const mutex_options names = kazoo_names();
        line_up line(zk, dir, names);
        co_await line.ours();
        co_await line.theirs(lock);
        co_await line.theirs(write);
        co_await line.ours();
        co_await line.ours();
        co_await line.ours(second);
        co_await line.theirs(lock);
        co_await line.ours();
        co_await line.drain();
        co_await kazoo.exit();
        co_await second.close();
    };
    with_client(body);
}

TEST_CASE("kazoo's own names: under load nobody is inside with us, or before their turn") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-kazoo-load");
        const auto executor = co_await asio::this_coro::executor;
        const test_client second(executor, options());
        peer kazoo(executor, "kazoo");
        co_await kazoo.ready();
        const std::vector<library> theirs{library(kazoo, "lock", true)};
        const mutex_options names = kazoo_names();
        const int violations = co_await load_all(zk, second, dir, theirs, names);
        CHECK(violations == 0);
        co_await kazoo.exit();
        co_await second.close();
    };
    with_client_for(180s, options(), body);
}

TEST_CASE("kazoo's own names: a directory with Curator's is refused") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-kazoo-refused");
        peer curator(co_await asio::this_coro::executor, "curator");
        co_await curator.ready();
        curator.send("a acquire mutex " + dir);
        const std::string node = co_await curator.acquired("a");
        co_await zk.sync(dir);
        const mutex_options names = kazoo_names();
        const mutex lock(zk, dir, names);
        auto attempt = [&]() -> asio::awaitable<void> { (void)co_await lock.acquire(); };
        const std::string text = co_await message_of(attempt());
        CHECK(text.find(std::string(node_name(node))) != std::string::npos);
        co_await until_queued(zk, dir, 1);
        co_await curator.exit();
    };
    with_client(body);
}
