// docs/recipes.md: members, work that is divided, nodes in memory, candidates.
#include "guide.hpp"

#include <zkasio/cache/children_cache.hpp>
#include <zkasio/cache/tree_cache.hpp>
#include <zkasio/client.hpp>
#include <zkasio/coroutines/task_scope.hpp>
#include <zkasio/election/candidate.hpp>
#include <zkasio/membership/group.hpp>
#include <zkasio/membership/partitioner.hpp>
#include <zkasio/membership/persistent_node.hpp>

#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <iostream>
#include <string>

using namespace std::chrono_literals;

namespace recipes_page {
namespace {

// [group]
asio::awaitable<zkasio::group_membership> appear(zkasio::client zk, std::string id, std::string address) {
    const zkasio::group servers(zk, "/guide/servers");
    co_return co_await servers.join(id, address);  // a member until this object is destroyed, or leave()s
}

asio::awaitable<void> until_there(zkasio::client zk, std::size_t how_many) {
    const zkasio::group_observer servers = zkasio::group(zk, "/guide/servers").observe();
    for (;;) {
        const zkasio::group_view now = co_await servers.next();  // at first, and after each change
        for (const zkasio::member_info& m : now.members) std::cout << m.id << " at " << m.data << "\n";
        if (now.current && now.members.size() >= how_many) break;  // not current: the members before a cut
    }
}

// Who is there when all have started: the members, once they have not changed for a second.
asio::awaitable<zkasio::group_view> all_there(zkasio::client zk) {
    const zkasio::group_observer servers = zkasio::group(zk, "/guide/servers").observe();
    co_return co_await servers.settled(1s);
}
// [/group]

// [node]
// Exists as long as the returned object: re-created in each session, and after another client has removed it.
zkasio::persistent_node open_sign(const zkasio::client& zk, std::string text) {
    return zkasio::persistent_node(zk, "/guide/open", text);
}
// [/node]

// [partitioner]
// In each of several processes: together these serve all shards, each shard in one process.
zkasio::partitioner shards_of(const zkasio::client& zk) {
    zkasio::partitioner_options how;
    how.settle(100ms);  // from the last change of the members to the next division; 1 s by default
    return zkasio::partitioner(zk, "/guide/shards", {"north", "south", "west"}, how);
}

asio::awaitable<void> serve(zkasio::partitioner shards) {
    auto body = [](zkasio::held_partition& shard) -> asio::awaitable<void> {
        std::cout << "serving " << shard.name() << ", with token " << shard.token().value() << "\n";
        asio::steady_timer work(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
        co_await work.async_wait(asio::use_awaitable);  // throws when the shard is lost, or assigned to another process
    };
    co_await shards.run(body);  // one body for each shard of this process, until this is cancelled
}
// [/partitioner]

asio::awaitable<void> serve_until_all_are_ours(zkasio::client zk) {
    const zkasio::partitioner shards = shards_of(zk);
    auto scope = [&](zkasio::task_scope& tasks) -> asio::awaitable<void> {
        tasks.spawn(serve(shards));
        while (shards.owned().size() < 3) co_await zk.sync();
        tasks.cancel();
    };
    co_await zkasio::with_task_scope(scope);
    co_await zk.idle();
}

// [cache]
// The shard of each customer: a node for each customer.
class customers {
public:
    explicit customers(const zkasio::client& zk) : nodes_(zk, "/guide/customers") {}

    asio::awaitable<void> ready() const { return nodes_.ready(); }
    zkasio::cache_changes changes() const { return nodes_.changes(); }

    std::string shard_of(const std::string& customer) const {  // on any thread, for each request
        const zkasio::cached_node node = nodes_.snapshot().find(customer);
        return node ? node.data() : "nowhere";
    }

private:
    zkasio::children_cache nodes_;
};
// [/cache]

// [parsed]
// The limit of each customer: parsed once, when the node was read. Orders, which stand below, are not read.
class limits {
public:
    explicit limits(const zkasio::client& zk) : nodes_(zk, "/guide/limits", how()) {}

    asio::awaitable<void> ready() const { return nodes_.ready(); }

    int of(const std::string& customer) const {  // on any thread
        const zkasio::cached_node node = nodes_.snapshot().find("/guide/limits/" + customer);
        const int* const limit = node ? node.parsed<int>() : nullptr;  // null also if the parser has thrown
        return limit ? *limit : 0;
    }

private:
    static zkasio::tree_cache_options how() {
        zkasio::tree_cache_options options;
        options.filter_below([](const std::string& path) { return !path.ends_with("/orders"); });
        options.parse([](const std::string&, const std::string& data) { return std::stoi(data); });
        return options;
    }

    zkasio::tree_cache nodes_;
};
// [/parsed]

// [changes]
asio::awaitable<void> print_moves(zkasio::cache_changes changes, int moves) {
    while (moves > 0) {
        const zkasio::cache_update update = co_await changes.next();
        if (update.look_again) continue;  // at first, and after too many unread changes: see update.now
        for (const zkasio::node_delta& d : update.changes) {
            std::cout << d.path << ": " << d.before.data() << " -> " << d.after.data() << "\n";  // "": no node
            --moves;
        }
    }
}
// [/changes]

asio::awaitable<void> in_memory(zkasio::client zk) {
    co_await zk.create_or_set("/guide/customers/alice", "north", zkasio::with_parents());
    const customers all(zk);
    co_await all.ready();
    expect(all.shard_of("alice") == "north", "the cache has read the node");
    expect(all.shard_of("nobody") == "nowhere", "and there is no other one");
    const zkasio::cache_changes changes = all.changes();
    co_await changes.next();  // all there is
    co_await zk.set("/guide/customers/alice", "south");
    co_await print_moves(changes, 1);
    expect(all.shard_of("alice") == "south", "what changes is here soon after");
    co_await zk.create_or_set("/guide/limits/alice", "250", zkasio::with_parents());
    co_await zk.create_or_set("/guide/limits/bob", "many", zkasio::with_parents());
    const limits known(zk);
    co_await known.ready();
    expect(known.of("alice") == 250 && known.of("bob") == 0, "a limit is a number");
}

// [each_change]
asio::awaitable<void> print_each_change(zkasio::client zk) {
    const zkasio::watch_stream changes = co_await zk.add_watch("/guide/audited", zkasio::watch_mode::recursive);
    for (;;) {
        const zkasio::watched_event event = co_await changes.next();
        switch (event.what) {
            case zkasio::watched_change::created: std::cout << "created " << event.path << "\n"; break;
            case zkasio::watched_change::removed: std::cout << "removed " << event.path << "\n"; break;
            case zkasio::watched_change::data_changed: std::cout << "written " << event.path << "\n"; break;
            case zkasio::watched_change::children_changed: break;  // only with watch_mode::persistent
            case zkasio::watched_change::look_again: std::cout << "perhaps more\n"; break;  // after a reconnect
        }
        if (event.path == "/guide/audited/end") co_return;
    }
}
// [/each_change]

asio::awaitable<void> audited(zkasio::client zk) {
    auto scope = [&](zkasio::task_scope& tasks) -> asio::awaitable<void> {
        tasks.spawn(print_each_change(zk));
        // Until the watch is set, and this change is told.
        while (tasks.size() > 0) {
            co_await zk.create_or_set("/guide/audited/end", "1", zkasio::with_parents());
            co_await zk.sync();
        }
    };
    co_await zkasio::with_task_scope(scope);
}

// [candidate]
class schedulers {
public:
    explicit schedulers(const zkasio::client& zk) : me_(zk, "/guide/schedulers") {}

    bool leads() const { return me_.leads(); }  // on any thread, for each request
    asio::awaitable<void> hand_over() const { return me_.step_down(); }  // another candidate's turn, if there is one

    asio::awaitable<void> work() const {
        auto body = [](const zkasio::leadership& term) -> asio::awaitable<void> {
            std::cout << "leads with token " << term.token().value() << "\n";
            asio::steady_timer work(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
            co_await work.async_wait(asio::use_awaitable);  // throws when the term is over
        };
        co_await me_.run(body, 1s);  // in each term; with a second to stop in
    }
    asio::awaitable<zkasio::candidate_status> next_change() const { return me_.next(); }
    asio::awaitable<void> close() const { return me_.close(); }

private:
    zkasio::candidate me_;
};
// [/candidate]

asio::awaitable<void> in_the_background(zkasio::client zk) {
    const schedulers me(zk);
    auto scope = [&](zkasio::task_scope& tasks) -> asio::awaitable<void> {
        tasks.spawn(me.work());
        while (!me.leads()) co_await me.next_change();
        co_await me.hand_over();
        while (!me.leads()) co_await me.next_change();  // there is no other candidate
        co_await me.close();
    };
    co_await zkasio::with_task_scope(scope);
}

asio::awaitable<void> in_coroutines(zkasio::client zk) {
    {
        const zkasio::group_membership a = co_await appear(zk, "a", "10.0.0.7:80");
        const zkasio::group_membership b = co_await appear(zk, "b", "10.0.0.8:80");
        co_await until_there(zk, 2);
        const zkasio::group_view now = co_await all_there(zk);
        expect(now.members.size() == 2, "nobody else comes");
    }
    const zkasio::persistent_node sign = open_sign(zk, "until 18:00");
    co_await sign.created();
    co_await sign.set_data("until 17:00");
    const zkasio::node_data read = co_await zk.get(sign.path());
    expect(read.data == "until 17:00", "the sign stands");
    co_await sign.leave();
    co_await serve_until_all_are_ours(zk);
    co_await in_memory(zk);
    co_await in_the_background(zk);
    co_await audited(zk);
    co_await zk.close();
}

}  // namespace
}  // namespace recipes_page

void guide_recipes(std::string servers) {
    asio::io_context io;
    const zkasio::client zk(io, zkasio::client_options(servers).session_timeout(10s));
    asio::co_spawn(io, recipes_page::in_coroutines(zk), rethrow);
    io.run();
}
