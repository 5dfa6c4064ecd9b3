#include "support/lock_checks.hpp"
#include "support/test_client.hpp"

#include <zkasio/cache/children_cache.hpp>
#include <zkasio/cache/node_cache.hpp>
#include <zkasio/cache/tree_cache.hpp>

#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;

namespace {

std::string joined(const std::vector<std::string>& names) {
    std::string all;
    for (const std::string& name : names) all += name + ' ';
    return all;
}

}  // namespace

TEST_CASE("children_cache: the children of one node with their data") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "children-cache");
        co_await zk.create(dir + "/b", "2");
        co_await zk.create(dir + "/a", "1");
        co_await zk.create(dir + "/a/deeper", "x");
        const children_cache cache(zk, dir);
        co_await cache.ready();
        const children_view view = cache.snapshot();
        CHECK(view.exists());
        CHECK(joined(view.names()) == "a b ");
        CHECK(view.find("a").data() == "1");
        CHECK_FALSE(view.find("c"));
        create_options of_the_session;
        of_the_session.mode(create_mode::ephemeral);
        co_await zk.create(dir + "/c", "3", of_the_session);
        const auto third = [&]() -> asio::awaitable<bool> { co_return cache.snapshot().find("c").data() == "3"; };
        co_await eventually(third);
        CHECK(cache.snapshot().size() == 3);
        CHECK(cache.snapshot().find("c").stat().ephemeral_owner == zk.session_now().id());
        co_await cache.close();
        CHECK(watched_below(dir).empty());
    };
    with_client(body);
}

TEST_CASE("node_cache: one node, and none below it") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "node-cache");
        co_await zk.create(dir + "/n", "1");
        co_await zk.create(dir + "/n/below", "x");
        const node_cache cache(zk, dir + "/n");
        co_await cache.ready();
        CHECK(cache.get().data() == "1");
        CHECK(cache.snapshot().size() == 1);
        co_await zk.remove_recursive(dir + "/n");
        const auto gone = [&]() -> asio::awaitable<bool> { co_return !cache.get(); };
        co_await eventually(gone);
        const std::string large(1000 * 1000, 'x');
        co_await zk.create(dir + "/n", large);
        const auto there = [&]() -> asio::awaitable<bool> { co_return cache.get().data() == large; };
        co_await eventually(there);
        co_await cache.close();
        CHECK(watched_below(dir).empty());
    };
    with_client(body);
}

TEST_CASE("caches: bad paths and options, and one that was moved from", "[real-server]") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        CHECK_THROWS_AS(tree_cache(zk, "no/slash"), error);
        CHECK_THROWS_AS(node_cache(zk, "/x", node_cache_options().remembered_changes(0)), error);
        CHECK_THROWS_AS(children_cache(zk, "/x", children_cache_options().reads_at_a_time(0)), error);
        tree_cache cache(zk, "/zookeeper");
        tree_cache other = std::move(cache);
        co_await other.ready();
        CHECK(other.snapshot().contains("/zookeeper/config"));
        CHECK(cache.snapshot().empty());
        const std::error_code moved = co_await code_of(cache.ready());
        CHECK(moved == errc::invalid_argument);
        cache = std::move(other);
        co_await cache.ready();
        asio::awaitable<void> later = cache.close();
        { const tree_cache gone = std::move(cache); }
        co_await std::move(later);
    };
    with_client(body);
}
