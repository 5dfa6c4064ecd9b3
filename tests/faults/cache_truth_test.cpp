// Caches of a tree that others change at random, over cuts, kills of servers, ACLs that close and open nodes, and roots
// that are removed and re-created. In each pause they show exactly what a fresh listing shows.

#include "faults/truth.hpp"
#include "support/lock_checks.hpp"

#include <zkasio/acl.hpp>
#include <zkasio/cache/children_cache.hpp>
#include <zkasio/cache/tree_cache.hpp>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;

namespace {

// What is known of each node, by path.
using node_truths = std::map<std::string, std::string>;
const std::string closed_node = "closed";

std::string truth_of(const std::string& data, const node_stat& stat) {
    return data + ", czxid " + std::to_string(stat.czxid) + ", mzxid " + std::to_string(stat.mzxid);
}
std::string truth_of(const cached_node& node) {
    return node.readable() ? truth_of(node.data(), node.stat()) : closed_node;
}

node_truths shown_by(const tree_cache& cache) {
    node_truths all;
    cache.snapshot().for_each([&](const std::string& path, const cached_node& n) { all[path] = truth_of(n); });
    return all;
}
node_truths shown_by(const children_cache& cache) {
    node_truths all;
    cache.snapshot().for_each([&](std::string_view name, const cached_node& n) {
        all[cache.path() + "/" + std::string(name)] = truth_of(n);
    });
    return all;
}

asio::awaitable<void> list_below(client zk, std::string path, int levels, node_truths& all) {
    std::error_code refused;
    try {
        const node_data node = co_await zk.get(path);
        all[path] = truth_of(node.data, node.stat);
        if (levels == 0) co_return;
        const node_children children = co_await zk.children(path);
        for (const std::string& name : children.names) co_await list_below(zk, path + "/" + name, levels - 1, all);
    } catch (const error& e) {
        refused = e.code();
        if (refused != zk_errc::no_node && refused != zk_errc::no_auth) throw;
    }
    if (refused == zk_errc::no_auth) all[path] = closed_node;
}

// As a client without credentials sees it now. Of servers that come back, as soon as they answer.
asio::awaitable<node_truths> listing_of(client zk, std::string path, int levels = 100) {
    for (;;) {
        node_truths all;
        std::error_code failed;
        try {
            co_await zk.sync(path);
            co_await list_below(zk, path, levels, all);
        } catch (const error& e) {
            failed = e.code();
            if (failed != condition::retryable) throw;
        }
        if (!failed) co_return all;
    }
}

// ------------------------------------------------------------------------------------------------------- who writes
struct tree_unrest : unrest {
    std::string root;
    bool with_acls = false;

    std::string some_path() {
        std::string path = root;
        for (unsigned levels = 1 + below(3); levels > 0; --levels) path += "/" + std::to_string(below(5));
        return path;
    }
};

asio::awaitable<void> change_something(client owner, tree_unrest& of) {
    const std::string path = of.some_path(), data = std::to_string(of.random());
    const unsigned what = of.below(100);
    const create_options with_parents = create_options().parents(missing_parents::create_persistent);
    if (what < 40) co_await owner.set(path, data);
    else if (what < 75) co_await owner.create(path, data, with_parents);
    else if (what < 80) co_await owner.create_or_set(path, data, with_parents);
    else if (what < 95) co_await owner.remove_recursive(path);
    else if (what < 96 || !of.with_acls) co_await owner.remove_recursive(of.root);
    else {
        acl whose = creator_all_acl();
        if (what >= 98) whose = open_acl();
        co_await owner.set_acl(path, std::move(whose));
    }
    ++of.changes;
}

asio::awaitable<void> change_until_over(client owner, tree_unrest& of) {
    while (!of.over) {
        const std::error_code refused = co_await code_of(change_something(owner, of));
        const bool by_the_tree = refused == zk_errc::no_node || refused == zk_errc::node_exists ||
                                 refused == zk_errc::not_empty || refused == condition::retryable;
        if (refused && !by_the_tree) FAIL("a change has failed: " << refused.message());
    }
}

// ------------------------------------------------------------------------------------------------------- who reads
// No node is shown in an older state than before.
asio::awaitable<void> look_for_steps_back(cache_changes changes, int& back) {
    std::map<std::string, std::int64_t> newest;
    for (;;) {
        const cache_update update = co_await changes.next();
        const auto look = [&](const std::string& path, const cached_node& node) {
            if (!node || !node.readable()) return;
            std::int64_t& last = newest[path];
            back += node.stat().mzxid < last;
            last = node.stat().mzxid;
        };
        if (update.look_again) update.now.for_each(look);
        for (const node_delta& d : update.changes) look(d.path, d.after);
    }
}

template <class Cache>
asio::awaitable<void> until_true(const Cache& cache, node_truths wanted) {
    const auto view = [&] { return std::pair(cache.snapshot().current(), shown_by(cache)); };
    return until_shown("a cache", view, std::move(wanted));
}

}  // namespace

TEST_CASE("caches: in each pause of random changes and cuts and kills and ACLs they are equal to a fresh listing") {
    troubled_servers some;
    const std::string root = "/cache-truth", credential = "owner:secret";
    const client_options patient = options(some.servers.connect_string()).session_timeout(paced(20s));
    int rounds = 0, closed_roots = 0, back = 0;
    tree_unrest changes;
    changes.root = root;
    test_loop loop(how_long() + 180s);
    auto body = [&]() -> asio::awaitable<void> {
        const auto executor = co_await asio::this_coro::executor;
        const test_client reader(executor, options(some.proxies()).session_timeout(paced(20s)));
        const test_client lister(executor, patient), one(executor, patient), another(executor, patient);
        co_await one.add_auth("digest", credential);
        co_await another.add_auth("digest", credential);
        const std::vector<const test_client*> writers{&one, &one, &another, &another};
        const tree_cache whole(reader, root), flat(reader, root, tree_cache_options().depth(1));
        const children_cache children(reader, root + "/0");
        std::vector<running> looking;
        looking.emplace_back(executor, look_for_steps_back(whole.changes(), back));
        looking.emplace_back(executor, look_for_steps_back(flat.changes(), back));

        const auto end = std::chrono::steady_clock::now() + how_long();
        for (; std::chrono::steady_clock::now() < end; ++rounds) {
            const unsigned what = changes.below(8);
            changes.over = false;
            changes.with_acls = what > 5;
            std::vector<running> writing;
            for (const test_client* writer : writers)
                writing.emplace_back(executor, change_until_over(*writer, changes));
            co_await some.trouble(what, changes);
            changes.over = true;
            co_await until_ended(writing);
            // Servers tell nobody that an ACL was changed, nor who may not read of changes: the next connection shows
            // all. Without ACLs, nothing is to hide what an event should have told.
            if (changes.with_acls) {
                const acl nobody_else = creator_all_acl();
                if (changes.below(2) == 0) co_await code_of(one.set_acl(root, nobody_else));
                some.first.cut_all();
                some.second.cut_all();
            }
            node_truths wanted = co_await listing_of(lister, root);
            closed_roots += wanted.contains(root) && wanted[root] == closed_node;
            co_await until_true(whole, wanted);
            wanted = co_await listing_of(lister, root, 1);
            co_await until_true(flat, wanted);
            wanted = co_await listing_of(lister, root + "/0", 1);
            wanted.erase(root + "/0");
            co_await until_true(children, wanted);
            if (changes.with_acls) co_await code_of(one.remove_recursive(root));
        }
        for (running& r : looking) {
            r.cancel();
            co_await r.code();
        }
        co_await whole.close();
        co_await flat.close();
        co_await children.close();
        co_await one.remove_recursive(root);
        co_await reader.close();
        co_await lister.close();
        co_await one.close();
        co_await another.close();
        CHECK(reader.inside().pending_operations() == 0);
    };
    loop.run(body());
    CHECK(back == 0);
    CHECK(rounds > 0);
    if (std::getenv("ZKASIO_CACHE_TRUTH_SECONDS"))
        WARN(rounds << " pauses, " << some.kills << " kills, " << changes.changes << " changes, " << closed_roots
                    << " times the root was closed");
}
