// Caches of what is large, and of what one may not read.

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

template <class Cache>
asio::awaitable<void> until_data(const Cache& cache, std::string path, std::string wanted) {
    auto reached = [&]() -> asio::awaitable<bool> { co_return cache.snapshot().find(path).data() == wanted; };
    co_await eventually(reached);
}

asio::awaitable<void> create_children(client zk, std::string dir, int from, int step, int end) {
    for (int i = from; i < end; i += step) co_await zk.create(dir + "/child-" + std::to_string(i), std::to_string(i));
}

}  // namespace

TEST_CASE("tree_cache: a node as large as servers allow") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "tree-cache-large");
        const std::string path = dir + "/large";
        const std::string small = "small", large(operations::max_request - 200, 'x'), other(large.size(), 'y');
        co_await zk.create(path, large);
        const tree_cache cache(zk, dir);
        const node_cache alone(zk, path);
        co_await cache.ready();
        co_await alone.ready();
        CHECK(cache.snapshot().find(path).data() == large);
        CHECK(alone.get().data() == large);
        const tree_view before = cache.snapshot();
        co_await zk.set(path, other);
        co_await until_data(cache, path, other);
        co_await zk.set(path, small);
        co_await until_data(cache, path, small);
        CHECK(before.find(path).data() == large);
        co_await cache.close();
        co_await alone.close();
        CHECK(watched_below(dir).empty());
    };
    with_client(body);
}

TEST_CASE("caches: 5000 children in one directory") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        constexpr int children = 5000, makers = 50;
        const auto executor = co_await asio::this_coro::executor;
        const std::string dir = co_await fresh_directory(zk, "tree-cache-5000");
        const tree_cache early(zk, dir);  // sees them come
        co_await early.ready();
        std::vector<running> making;
        for (int i = 0; i < makers; ++i) making.emplace_back(executor, create_children(zk, dir, i, makers, children));
        for (const running& r : making) {
            const std::error_code failed = co_await r.code();
            REQUIRE(!failed);
        }
        const tree_cache tree(zk, dir);
        const children_cache names(zk, dir);
        co_await tree.ready();
        co_await names.ready();
        CHECK(tree.snapshot().size() == children + 1);
        CHECK(names.snapshot().size() == children);
        auto all_come = [&]() -> asio::awaitable<bool> { co_return early.snapshot().size() == children + 1; };
        co_await eventually(all_come, 60s);
        int wrong = 0;
        for (int i = 0; i < children; ++i)
            wrong += tree.snapshot().find(dir + "/child-" + std::to_string(i)).data() != std::to_string(i);
        CHECK(wrong == 0);

        const std::string last = dir + "/child-4999";
        co_await zk.remove(last);
        auto gone = [&]() -> asio::awaitable<bool> {
            co_return !tree.snapshot().contains(last) && names.snapshot().size() == children - 1 &&
                early.snapshot().size() == children;
        };
        co_await eventually(gone, 60s);
        co_await zk.remove_recursive(dir);
        auto empty = [&]() -> asio::awaitable<bool> {
            co_return tree.snapshot().empty() && early.snapshot().empty() && names.snapshot().size() == 0;
        };
        co_await eventually(empty, 60s);
        co_await tree.close();
        co_await names.close();
        co_await early.close();
        CHECK(watched_below(dir).empty());
    };
    with_client_for(240s, options(), body);
}

TEST_CASE("tree_cache: nodes that may not be read are there without data and hide what is below them") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "tree-cache-acl");
        const auto executor = co_await asio::this_coro::executor;
        const test_client owner(executor, options());
        co_await owner.add_auth("digest", "owner:secret");
        for (const std::string name : {"/open", "/closed", "/closed/below", "/later"}) {
            co_await owner.create(dir + name, name);
        }
        co_await owner.set_acl(dir + "/closed", creator_all_acl());
        const tree_cache cache(zk, dir);
        co_await cache.ready();
        tree_view now = cache.snapshot();
        CHECK(now.find(dir + "/open").data() == "/open");
        CHECK(now.find(dir + "/later").readable());
        CHECK(now.contains(dir + "/closed"));
        CHECK_FALSE(now.find(dir + "/closed").readable());
        CHECK(now.find(dir + "/closed").data().empty());
        CHECK_FALSE(now.contains(dir + "/closed/below"));
        // Servers from 3.8.4 on refuse the stat, too, and set no watch with it.
        const std::error_code unseen = co_await code_of(zk.exists(dir + "/closed"));

        // Who owns it sees all of it.
        const tree_cache owners(owner, dir);
        co_await owners.ready();
        CHECK(owners.snapshot().find(dir + "/closed").data() == "/closed");
        CHECK(owners.snapshot().contains(dir + "/closed/below"));

        // Opened, and changed, it is to be seen; forbidden since, it is not shown any more with the next connection.
        co_await owner.set_acl(dir + "/closed", open_acl());
        co_await owner.set(dir + "/closed", "opened");
        if (unseen) co_await expire_session(zk);
        co_await until_data(cache, dir + "/closed", "opened");
        co_await owner.set_acl(dir + "/later", creator_all_acl());
        co_await expire_session(zk);
        auto hidden = [&]() -> asio::awaitable<bool> {
            const tree_view seen = cache.snapshot();
            co_return seen.current() && seen.contains(dir + "/later") && !seen.find(dir + "/later").readable();
        };
        co_await eventually(hidden);
        CHECK(cache.snapshot().find(dir + "/later").data().empty());
        CHECK(cache.snapshot().find(dir + "/closed").data() == "opened");

        co_await cache.close();
        co_await owners.close();
        CHECK(watched_below(dir).empty());
        co_await owner.remove_recursive(dir);
        co_await owner.close();
    };
    with_client(body);
}
