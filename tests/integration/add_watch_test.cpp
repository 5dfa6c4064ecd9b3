// Streams of operations::add_watch(), beside caches and one-shot watches at the same node.

#include "support/surroundings.hpp"
#include "support/test_client.hpp"
#include "support/test_server.hpp"

#include <zkasio/cache/tree_cache.hpp>

#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

namespace add_watch_test {

using namespace zkasio;
using namespace zkasio::test;

namespace {

using texts = std::vector<std::string>;

std::string text_of(const watched_event& e, const std::string& dir) {
    static const texts names{"created", "removed", "changed", "children of", "look again at"};
    const bool is_below = e.path.starts_with(dir);
    return names.at(static_cast<std::size_t>(e.what)) + ' ' + (is_below ? '.' + e.path.substr(dir.size()) : e.path);
}

asio::awaitable<texts> next_of(const watch_stream& from, std::string dir, std::size_t n) {
    texts all;
    while (all.size() < n) {
        const watched_event event = co_await from.next();
        all.push_back(text_of(event, dir));
    }
    co_return all;
}

bool servers_tell_zxids() {
    if (!surroundings::current().has_real_time()) return true;  // in memory
    const std::string text = ask_first_server("srvr");
    const std::size_t at = text.find("version: ");
    int major = 0, minor = 0;
    REQUIRE(at != text.npos);
    REQUIRE(std::sscanf(text.c_str() + at, "version: %d.%d", &major, &minor) == 2);
    return major > 3 || minor >= 9;
}

}  // namespace

TEST_CASE("watch_stream: tells of each change, in order, and leaves no watch") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "watch_stream");
        const watch_stream narrow = co_await zk.add_watch(dir, watch_mode::persistent);
        co_await zk.create(dir + "/a");
        texts told = co_await next_of(narrow, dir, 1);
        CHECK(told == texts{"children of ."});
        const watch_stream wide = co_await zk.add_watch(dir, watch_mode::recursive);
        told = co_await next_of(narrow, dir, 1);  // it was asked for again
        CHECK(told == texts{"children of ."});
        co_await zk.create(dir + "/a/b", "1");
        co_await zk.set(dir + "/a/b", "2");
        co_await zk.set(dir, "3");
        co_await zk.remove(dir + "/a/b");
        co_await zk.remove(dir + "/a");
        told = co_await next_of(wide, dir, 5);
        CHECK(told == texts{"created ./a/b", "changed ./a/b", "changed .", "removed ./a/b", "removed ./a"});
        told = co_await next_of(narrow, dir, 2);
        CHECK(told == texts{"changed .", "children of ."});
        co_await wide.close();
        co_await zk.create(dir + "/c");
        told = co_await next_of(narrow, dir, 1);
        CHECK(told == texts{"children of ."});
        co_await narrow.close();
    };
    with_client(body);
}

TEST_CASE("watch_stream: each change has the zxid that its node tells, from 3.9 on") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "watch_stream-zxid");
        const watch_stream all = co_await zk.add_watch(dir, watch_mode::recursive);
        const created made = co_await zk.create(dir + "/a");
        const node_stat changed = co_await zk.set(dir + "/a", "1");
        const bool is_told = servers_tell_zxids();
        watched_event event = co_await all.next();
        CHECK(event.zxid == (is_told ? made.stat.czxid : 0));
        event = co_await all.next();
        CHECK(event.zxid == (is_told ? changed.mzxid : 0));
        co_await all.close();
    };
    with_client(body);
}

TEST_CASE("watch_stream: one-shot watches at its node fire again and again, and it goes on") {
    const watch_mode mode = GENERATE(watch_mode::persistent, watch_mode::recursive);
    auto body = [mode](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "watch_stream-shots");
        const bool is_recursive = mode == watch_mode::recursive;
        watched<node_children> names = co_await zk.children_and_watch(dir);
        const watch_stream all = co_await zk.add_watch(dir, mode);
        for (int round = 0; round < 5; ++round) {
            const std::string child = "/n" + std::to_string(round);
            watched<node_data> data = co_await zk.get_and_watch(dir);
            co_await zk.create(dir + child);
            watch_event fired = co_await names.changes.changed();
            CHECK(fired.what == node_change::children_changed);
            co_await zk.set(dir, child);
            fired = co_await data.changes.changed();
            CHECK(fired.what == node_change::data_changed);
            const texts told = co_await next_of(all, dir, 2);
            CHECK(told == texts{is_recursive ? "created ." + child : "children of .", "changed ."});
            names = co_await zk.children_and_watch(dir);
        }
        co_await all.close();
        co_await zk.create(dir + "/last");
        const watch_event fired = co_await names.changes.changed();
        CHECK(fired.what == node_change::children_changed);
    };
    with_client(body);
}

TEST_CASE("watch_stream: beside a cache of the same root, whoever leaves first") {
    const bool cache_leaves_first = GENERATE(true, false);
    auto body = [cache_leaves_first](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "watch_stream-cache");
        const watch_stream all = co_await zk.add_watch(dir, watch_mode::persistent);
        const tree_cache cache(zk, dir);
        co_await cache.ready();
        co_await next_of(all, dir, 1);
        const cache_changes changes = cache.changes();
        co_await changes.next();
        co_await zk.create(dir + "/a", "1");
        co_await changes.next();
        CHECK(cache.snapshot().find(dir + "/a").data() == "1");
        texts told = co_await next_of(all, dir, 1);
        CHECK(told == texts{"children of ."});
        if (cache_leaves_first) {
            co_await cache.close();
            co_await zk.remove(dir + "/a");
            told = co_await next_of(all, dir, 1);
            CHECK(told == texts{"children of ."});
            co_await all.close();
        } else {
            co_await all.close();
            co_await zk.remove(dir + "/a");
            while (cache.snapshot().find(dir + "/a")) co_await changes.next();
            co_await cache.close();
        }
    };
    with_client(body);
}

TEST_CASE("watch_stream: says look_again in the next session") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "watch_stream-session");
        const session first = co_await zk.current_session();
        const watch_stream all = co_await zk.add_watch(dir, watch_mode::recursive);
        const watch_stream ours = co_await first.add_watch(dir, watch_mode::recursive);
        co_await expire_session(zk);
        texts told = co_await next_of(all, dir, 1);
        CHECK(told == texts{"look again at ."});
        std::error_code ended;
        while (!ended) ended = co_await code_of(ours.next());
        CHECK(ended == errc::session_expired);
        co_await zk.create(dir + "/a");
        told = co_await next_of(all, dir, 1);
        CHECK(told == texts{"created ./a"});
    };
    with_client(body);
}

}  // namespace add_watch_test
