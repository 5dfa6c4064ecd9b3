#include "support/busy_threads.hpp"
#include "support/fault_proxy.hpp"
#include "support/lock_checks.hpp"
#include "support/test_client.hpp"
#include "support/texts.hpp"
#include "support/tree_contents.hpp"

#include <zkasio/cache/children_cache.hpp>
#include <zkasio/cache/node_cache.hpp>
#include <zkasio/cache/tree_cache.hpp>

#include <atomic>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;

namespace {

// g++ 12 does not compile a list in braces within a coroutine.
tree_contents nodes(const std::string& path, const std::string& data) {
    tree_contents all;
    all[path] = data;
    return all;
}
tree_contents nodes(const std::string& path, const std::string& data, const std::string& path2,
                    const std::string& data2) {
    tree_contents all = nodes(path, data);
    all[path2] = data2;
    return all;
}

asio::awaitable<void> next_of(cache_changes changes) { co_await changes.next(); }

asio::awaitable<void> until_equal(const tree_cache& cache, tree_contents wanted) {
    const auto equal = [&]() -> asio::awaitable<bool> { co_return contents_of(cache.snapshot()) == wanted; };
    co_await eventually(equal);
}

}  // namespace

TEST_CASE("tree_cache: reads a tree, follows it, and leaves no watch") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "tree-cache");
        co_await zk.create(dir + "/a", "1");
        co_await zk.create(dir + "/a/b", "2");
        {
            const tree_cache cache(zk, dir);
            CHECK_FALSE(cache.snapshot().ready());
            CHECK(cache.snapshot().empty());
            co_await cache.ready();
            const tree_view first = cache.snapshot();
            CHECK(first.current());
            CHECK(first.size() == 3);
            CHECK(first.find(dir + "/a/b").data() == "2");
            CHECK(first.find(dir + "/a/b").stat().version == 0);
            CHECK(first.names(dir) == texts(1, "a"));
            CHECK_FALSE(first.contains(dir + "/x"));
            CHECK_FALSE(first.contains("/elsewhere"));

            co_await zk.set(dir + "/a/b", "3");
            co_await zk.create(dir + "/c", "4");
            co_await zk.remove_recursive(dir + "/a");
            co_await until_equal(cache, nodes(dir, "", dir + "/c", "4"));
            CHECK(first.find(dir + "/a/b").data() == "2");  // it does not change
            CHECK_FALSE(watched_below(dir).empty());
            co_await cache.close();
            CHECK(watched_below(dir).empty());
            CHECK_FALSE(cache.snapshot().current());
            CHECK(cache.snapshot().size() == 2);
            const std::error_code closed = co_await code_of(cache.changes().next());
            CHECK(closed == errc::client_closed);
            const std::string why = co_await message_of(cache.changes().next());
            CHECK(why == "cache " + dir + ": client closed (this cache was closed)");
        }
        {
            const tree_cache destroyed(zk, dir);
            co_await destroyed.ready();
        }
        co_await zk.idle();
        CHECK(watched_below(dir).empty());
        co_await until_quiet(zk, dir);
    };
    with_client(body);
}

TEST_CASE("tree_cache: a stream of changes begins with everything and misses nothing", "[any-server]") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "tree-cache-changes");
        const tree_cache cache(zk, dir);
        const cache_changes changes = cache.changes();
        cache_update update = co_await changes.next();
        CHECK(update.look_again);
        CHECK(update.changes.empty());
        tree_contents known = contents_of(update.now);
        for (int i = 0; i < 50; ++i) {
            const std::string path = dir + "/" + std::to_string(i % 10);
            co_await zk.create_or_set(path, std::to_string(i));
            if (i % 7 == 3) co_await zk.remove(path);
        }
        const tree_contents wanted = co_await fresh_listing(zk, dir);
        while (known != wanted) {
            update = co_await changes.next();
            CHECK_FALSE(update.look_again);
            for (const node_delta& d : update.changes) {
                CHECK((d.before ? known.contains(d.path) : !known.contains(d.path)));
                if (d.after)
                    known[d.path] = d.after.data();
                else
                    known.erase(d.path);
            }
            CHECK(known == contents_of(update.now));
        }
        co_await cache.close();
    };
    with_client(body);
}

TEST_CASE("tree_cache: a reader that falls behind is told to look again") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "tree-cache-behind");
        tree_cache_options few;
        few.remembered_changes(5);
        const tree_cache cache(zk, dir, few);
        const cache_changes changes = cache.changes();
        co_await changes.next();
        for (int i = 0; i < 20; ++i) co_await zk.create(dir + "/" + std::to_string(i));
        const auto seen = [&]() -> asio::awaitable<bool> { co_return cache.snapshot().size() == 21; };
        co_await eventually(seen);
        const cache_update update = co_await changes.next();
        CHECK(update.look_again);
        CHECK(update.changes.empty());
        CHECK(update.now.size() == 21);
        co_await zk.remove(dir + "/3");
        const cache_update last = co_await changes.next();
        CHECK_FALSE(last.look_again);
        REQUIRE(last.changes.size() == 1);
        CHECK(last.changes.front().path == dir + "/3");
        CHECK_FALSE(last.changes.front().after);
        co_await cache.close();
    };
    with_client(body);
}

TEST_CASE("tree_cache: a missing root, made and removed and made again") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "tree-cache-root");
        const std::string root = dir + "/root";
        const tree_cache cache(zk, root);
        co_await cache.ready();
        CHECK(cache.snapshot().empty());
        for (int i = 0; i < 3; ++i) {
            co_await zk.create(root, std::to_string(i));
            co_await zk.create(root + "/x", std::to_string(i));
            co_await until_equal(cache, nodes(root, std::to_string(i), root + "/x", std::to_string(i)));
            co_await zk.remove_recursive(root);
            co_await until_equal(cache, tree_contents());
        }
        co_await cache.close();
        CHECK(watched_below(dir).empty());
    };
    with_client(body);
}

TEST_CASE("tree_cache: the session expires, and it goes on with the next") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "tree-cache-expiry");
        co_await zk.create(dir + "/a", "1");
        const tree_cache cache(zk, dir);
        const cache_changes changes = cache.changes();
        cache_update update = co_await changes.next();
        co_await expire_session(zk);
        while (update.now.current()) update = co_await changes.next();
        CHECK(update.now.find(dir + "/a").data() == "1");
        while (!update.now.current()) update = co_await changes.next();
        co_await zk.set(dir + "/a", "2");
        while (update.now.find(dir + "/a").data() != "2") update = co_await changes.next();
        co_await cache.close();
        CHECK(watched_below(dir).empty());
    };
    with_client(body);
}

TEST_CASE("tree_cache: closing the client ends it") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "tree-cache-close");
        const tree_cache cache(zk, dir);
        co_await cache.ready();
        const cache_changes changes = cache.changes();
        co_await changes.next();
        const running waiting(co_await asio::this_coro::executor, next_of(changes));
        co_await zk.close();
        const std::error_code code = co_await waiting.code();
        CHECK(code == errc::client_closed);
        const std::error_code ready = co_await code_of(tree_cache(zk, dir).ready());
        CHECK(ready == errc::client_closed);
    };
    with_client(body);
}

TEST_CASE("tree_cache: a connection that is cut all the time while others write ends equal to a fresh listing") {
    fault_proxy proxy(first_server());
    test_loop loop(120s);
    auto body = [&]() -> asio::awaitable<void> {
        const test_client writer(co_await asio::this_coro::executor, options());
        const test_client reader(co_await asio::this_coro::executor, options(proxy.address()));
        const std::string dir = co_await fresh_directory(writer, "tree-cache-cuts");
        const tree_cache cache(reader, dir);
        co_await cache.ready();
        const cache_changes changes = cache.changes();
        cache_update update = co_await changes.next();
        tree_contents known = contents_of(update.now);
        std::mt19937 random(7);
        const create_options with_parents = create_options().parents(missing_parents::create_persistent);
        for (int cut = 0; cut < 25; ++cut) {
            for (int i = 0; i < 60; ++i) {
                std::string path = dir;
                for (auto levels = 1 + random() % 3; levels > 0; --levels)
                    path += "/" + std::to_string(random() % 4);
                const std::string data = std::to_string(random());
                try {
                    if (random() % 4 == 0)
                        co_await writer.remove_recursive(path);
                    else
                        co_await writer.create_or_set(path, data, with_parents);
                } catch (const error& e) {
                    const bool on_loaded_machine = e.code() == condition::retryable;
                    if (!on_loaded_machine && e.code() != zk_errc::no_node && e.code() != zk_errc::not_empty) throw;
                }
            }
            proxy.cut_all(cut % 2 ? fault_proxy::end::rst : fault_proxy::end::fin);
        }
        const tree_contents wanted = co_await fresh_listing(writer, dir);
        CHECK(wanted.size() > 10);
        while (known != wanted) {
            update = co_await changes.next();
            if (update.look_again) known = contents_of(update.now);
            for (const node_delta& d : update.changes) {
                if (d.after) known[d.path] = d.after.data();
                else known.erase(d.path);
            }
            CHECK(known == contents_of(update.now));
        }
        co_await until_equal(cache, wanted);
        co_await cache.close();
        auto none_watched = [&]() -> asio::awaitable<bool> { co_return watched_below(dir).empty(); };
        co_await eventually(none_watched);
        co_await reader.close();
        co_await writer.close();
        CHECK(reader.inside().pending_operations() == 0);
    };
    loop.run(body());
}

TEST_CASE("tree_cache: users' own watches and other caches of the same nodes") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "tree-cache-shared");
        co_await zk.create(dir + "/a", "1");
        const tree_cache all(zk, dir);
        const node_cache one(zk, dir + "/a");
        co_await all.ready();
        co_await one.ready();
        {
            const auto own = co_await zk.get_and_watch(dir + "/a");
            co_await zk.set(dir + "/a", "2");
            co_await own.changes.changed();
            const auto unused = co_await zk.get_and_watch(dir + "/a");  // left at the end of this block
        }
        co_await zk.idle();
        co_await zk.set(dir + "/a", "3");  // the caches still hear of it
        co_await until_equal(all, nodes(dir, "", dir + "/a", "3"));
        const auto third = [&]() -> asio::awaitable<bool> { co_return one.get().data() == "3"; };
        co_await eventually(third);
        co_await one.close();  // and the other one still does
        co_await zk.set(dir + "/a", "4");
        co_await until_equal(all, nodes(dir, "", dir + "/a", "4"));
        const auto own = co_await zk.get_and_watch(dir + "/a");
        co_await all.close();
        co_await zk.set(dir + "/a", "5");  // and so does a watch that somebody has
        const watch_event event = co_await own.changes.changed();
        CHECK(event.what == node_change::data_changed);
        co_await zk.idle();
    };
    with_client(body);
}

TEST_CASE("tree_cache: other threads read snapshots while it goes on", "[threads]") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "tree-cache-threads");
        const tree_cache cache(zk, dir);
        co_await cache.ready();
        std::atomic<int> wrong{0};
        busy_threads readers([&, version = std::uint64_t(0)]() mutable {
            const tree_view view = cache.snapshot();
            std::size_t count = 0;
            view.for_each([&](const std::string& path, const cached_node& node) {
                ++count;
                if (path != dir && node.data() != path) ++wrong;
            });
            if (count != view.size() || view.version() < version) ++wrong;
            version = view.version();
        });
        for (int i = 0; i < 200; ++i) {
            const std::string path = dir + "/" + std::to_string(i % 70);
            if (i % 3 == 2)
                co_await zk.remove_recursive(path);
            else
                co_await zk.create_or_set(path, path);
        }
        const tree_contents wanted = co_await fresh_listing(zk, dir);
        co_await until_equal(cache, wanted);
        readers.end();
        CHECK(wrong == 0);
        co_await cache.close();
    };
    with_client(body);
}
