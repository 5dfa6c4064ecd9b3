// A cache on a connection that is cut all the time, of a tree that others change all the time.

#include "support/fault_proxy.hpp"
#include "support/lock_checks.hpp"
#include "support/test_client.hpp"
#include "support/tree_contents.hpp"

#include <zkasio/cache/tree_cache.hpp>

#include <random>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;

namespace {

constexpr int all_changes = 100'000, all_cuts = 200, change_makers = 40;

// One of those who make changes: at random, and each counts that a server has accepted.
asio::awaitable<void> change_at_random(client zk, std::string dir, unsigned seed, std::shared_ptr<int> made) {
    std::minstd_rand random(seed);
    random.discard(7);
    while (*made < all_changes) {
        std::string path = dir;
        for (auto levels = 1 + random() % 3; levels > 0; --levels) path += "/" + std::to_string(random() % 8);
        const std::string data = std::to_string(random());
        std::error_code refused;
        switch (random() % 8) {
            case 0: refused = co_await code_of(zk.remove(path)); break;
            case 1:
            case 2: refused = co_await code_of(zk.create(path, data)); break;
            default: refused = co_await code_of(zk.set(path, data)); break;
        }
        if (!refused) ++*made;
    }
}

// Somebody who knows no more than what the cache has told him.
struct cache_follower {
    explicit cache_follower(cache_changes c) : changes(std::move(c)) {}
    cache_changes changes;
    tree_contents known;
    int updates = 0, looked_again = 0, wrong = 0;

    asio::awaitable<void> follow(int slowness) {
        for (;;) {
            const cache_update update = co_await changes.next();
            ++updates;
            looked_again += update.look_again;
            if (update.look_again) known = contents_of(update.now);
            for (const node_delta& d : update.changes) {
                wrong += static_cast<bool>(d.before) != known.contains(d.path);
                if (d.after) known[d.path] = d.after.data();
                else known.erase(d.path);
            }
            wrong += known.size() != update.now.size();
            if (slowness > 0) co_await turns(slowness);
        }
    }
};

// Each knows in the end what the servers know, and was never told nonsense.
asio::awaitable<void> until_all_know(const std::vector<std::unique_ptr<cache_follower>>& followers,
                                     const tree_contents& wanted) {
    for (const auto& f : followers) {
        auto knows = [&]() -> asio::awaitable<bool> { co_return f->known == wanted; };
        co_await eventually(knows);
        CHECK(f->wrong == 0);
        CHECK(f->updates > all_cuts);
    }
}

asio::awaitable<void> cut_during_changes(fault_proxy& proxy, std::shared_ptr<int> made) {
    for (int cut = 1; cut <= all_cuts; ++cut) {
        const int at = all_changes / (all_cuts + 1) * cut;
        auto reached = [&]() -> asio::awaitable<bool> { co_return *made >= at; };
        co_await eventually(reached, 100s);
        proxy.cut_all(cut % 2 ? fault_proxy::end::rst : fault_proxy::end::fin);
    }
}

}  // namespace

TEST_CASE("tree_cache: 200 cuts during 100000 random changes and all readers know in the end what the servers know",
          "[clear]") {
    fault_proxy proxy(first_server());
    auto body = [&](const test_client& writer) -> asio::awaitable<void> {
        const auto executor = co_await asio::this_coro::executor;
        const test_client reader(executor, options(proxy.address()).session_timeout(paced(10s)));
        const std::string dir = co_await fresh_directory(writer, "cache-cuts");
        const tree_cache cache(reader, dir);
        co_await cache.ready();

        std::vector<std::unique_ptr<cache_follower>> followers;
        std::vector<running> following;
        for (int i = 0; i < 8; ++i) {
            followers.push_back(std::make_unique<cache_follower>(cache.changes()));
            following.emplace_back(executor, followers.back()->follow(i * 3));
        }
        const auto made = std::make_shared<int>(0);
        std::vector<running> changing;
        for (unsigned i = 0; i < change_makers; ++i)
            changing.emplace_back(executor, change_at_random(writer, dir, i, made));
        co_await cut_during_changes(proxy, made);
        for (const running& r : changing) {
            const std::exception_ptr failed = co_await r.end();
            if (failed) std::rethrow_exception(failed);
        }
        CHECK(proxy.connections() > all_cuts / 2);

        const tree_contents wanted = co_await fresh_listing(writer, dir);
        CHECK(wanted.size() > 100);
        auto equal = [&]() -> asio::awaitable<bool> {
            co_return cache.snapshot().current() && contents_of(cache.snapshot()) == wanted;
        };
        co_await eventually(equal);
        co_await until_all_know(followers, wanted);
        for (running& r : following) {
            r.cancel();
            co_await r.code();
        }
        co_await cache.close();
        CHECK(watched_below(dir).empty());
        co_await reader.close();
        CHECK(reader.inside().pending_operations() == 0);
        co_await writer.remove_recursive(dir);
    };
    with_client_for(200s, options().session_timeout(paced(20s)), body);
}
