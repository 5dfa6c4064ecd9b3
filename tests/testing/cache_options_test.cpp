// What a cache looks at, what it makes of data, and when states have settled, over an ensemble in memory.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/cache/children_cache.hpp>
#include <zkasio/cache/node_cache.hpp>
#include <zkasio/cache/streams.hpp>
#include <zkasio/cache/tree_cache.hpp>
#include <zkasio/error.hpp>
#include <zkasio/membership/group.hpp>
#include <zkasio/membership/persistent_node.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

using words = std::vector<std::string>;

struct price {
    int cents = 0;
};

}  // namespace

TEST_CASE("tree_cache: a node without the nodes below it", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    for (const char* const path : {"/t/a/x", "/t/b/y", "/t/c"}) ensemble.create(path, "data");
    tree_cache_options options;
    options.filter_below([](const std::string& path) { return path != "/t/a"; });
    const tree_cache cache(zk, "/t", options);
    ensemble.run(cache.ready());
    CHECK(cache.snapshot().contains("/t/a"));
    CHECK_FALSE(cache.snapshot().contains("/t/a/x"));
    CHECK(cache.snapshot().contains("/t/b/y"));
    ensemble.create("/t/a/z");
    ensemble.create("/t/b/z");
    ensemble.set("/t/a", "other");
    ensemble.run_for(1s);
    CHECK_FALSE(cache.snapshot().contains("/t/a/z"));
    CHECK(cache.snapshot().contains("/t/b/z"));
    CHECK(cache.snapshot().find("/t/a").data() == "other");
    for (const std::string& path : ensemble.watched_paths()) CHECK_FALSE(path.starts_with("/t/a/"));
    ensemble.expire(zk);
    ensemble.run_for(20s);
    CHECK(cache.snapshot().current());
    CHECK_FALSE(cache.snapshot().contains("/t/a/x"));
    CHECK(cache.snapshot().contains("/t/b/y"));

    // Of the root, and with a function that throws.
    tree_cache_options none;
    none.filter_below([](const std::string&) -> bool { throw std::runtime_error("refused"); });
    const tree_cache alone(zk, "/t", none);
    ensemble.run(alone.ready());
    CHECK(alone.snapshot().size() == 1);
}

TEST_CASE("caches: data are parsed once for each state", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    ensemble.create("/p/a", "7");
    ensemble.create("/p/b", "no number");
    std::size_t calls = 0;
    children_cache_options options;
    options.parse([&calls](const std::string& path, const std::string& data) {
        CHECK(path.starts_with("/p/"));
        ++calls;
        return price{std::stoi(data)};
    });
    const children_cache cache(zk, "/p", options);
    ensemble.run(cache.ready());
    CHECK(calls == 2);
    const cached_node a = cache.snapshot().find("a");
    REQUIRE(a.parsed<price>());
    CHECK(a.parsed<price>()->cents == 7);
    CHECK(a.parsed<price>() == cache.snapshot().find("a").parsed<price>());  // the same object for all readers
    CHECK_FALSE(a.parsed<int>());                                            // of another type
    CHECK(cache.snapshot().find("b"));
    CHECK_FALSE(cache.snapshot().find("b").parsed<price>());  // the parser has thrown
    CHECK_FALSE(cache.snapshot().find("c").parsed<price>());  // there is no node

    ensemble.set("/p/a", "8");
    ensemble.run_for(1s);
    CHECK(cache.snapshot().find("a").parsed<price>()->cents == 8);
    CHECK(a.parsed<price>()->cents == 7);  // that state does not change
    ensemble.create("/p/a/child");         // another stat, the same data
    ensemble.run_for(1s);
    ensemble.expire(zk);
    ensemble.run_for(20s);
    CHECK(cache.snapshot().current());
    CHECK(cache.snapshot().find("a").parsed<price>()->cents == 8);
    CHECK(calls == 3);

    node_cache_options unpacked;
    unpacked.parse([](const std::string&, const std::string& data) { return data + data; });
    const node_cache one(zk, "/p/a", unpacked);
    ensemble.run(one.ready());
    CHECK(*one.get().parsed<std::string>() == "88");
    const node_cache plain(zk, "/p/a");
    ensemble.run(plain.ready());
    CHECK_FALSE(plain.get().parsed<std::string>());
}

TEST_CASE("caches: a change says what kind it is", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    ensemble.create("/t/a", "1");
    const tree_cache cache(zk, "/t");
    const cache_changes changes = cache.changes();
    ensemble.run(changes.next());
    const auto next = [&] {
        ensemble.run_for(1s);
        std::vector<node_change> kinds;
        for (const node_delta& d : ensemble.run(changes.next()).changes) kinds.push_back(d.kind());
        return kinds;
    };
    ensemble.create("/t/b");
    CHECK(next() == std::vector{node_change::created});
    ensemble.set("/t/a", "2");
    CHECK(next() == std::vector{node_change::data_changed});
    ensemble.remove("/t/b");
    CHECK(next() == std::vector{node_change::removed});
    ensemble.remove("/t/a");
    ensemble.create("/t/a", "2");
    CHECK(next() == std::vector{node_change::removed, node_change::created});
}

TEST_CASE("streams: settled() tells of many changes once", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    ensemble.create("/t");
    const children_stream names = watch_children(zk, "/t");
    const value_stream values = watch_value(zk, "/t");
    std::optional<node_children> seen;
    std::optional<node_data> value;
    auto read = [&]() -> asio::awaitable<void> { seen = co_await names.settled(5s); };
    auto read_value = [&]() -> asio::awaitable<void> { value = co_await values.settled(5s); };
    running first(ensemble.get_executor(), read()), first_value(ensemble.get_executor(), read_value());
    ensemble.run_for(4900ms);
    CHECK_FALSE(first.ended());  // the first state has to settle, too
    ensemble.run_for(1s);
    CHECK(first.ended());
    CHECK(first_value.ended());
    CHECK(seen->names.empty());

    running second(ensemble.get_executor(), read()), second_value(ensemble.get_executor(), read_value());
    ensemble.run_for(1min);
    CHECK_FALSE(second.ended());  // no news
    for (int i = 0; i < 10; ++i) {
        ensemble.create("/t/" + std::to_string(i));
        ensemble.set("/t", std::to_string(i));
        ensemble.run_for(4s);
        CHECK_FALSE(second.ended());
        CHECK_FALSE(second_value.ended());
    }
    ensemble.run_for(1100ms);
    CHECK(second.ended());
    CHECK(second_value.ended());
    CHECK(seen->names.size() == 10);
    CHECK(value->data == "9");

    // Changes that do not end are told all the same.
    auto read_in_time = [&]() -> asio::awaitable<void> { seen = co_await names.settled(5s, 10s); };
    running third(ensemble.get_executor(), read_in_time());
    const auto began = ensemble.now();
    for (int i = 10; i < 100 && !third.ended(); ++i) {
        ensemble.create("/t/" + std::to_string(i));
        ensemble.run_for(1s);
    }
    CHECK(ensemble.now() - began <= 12s);
    CHECK(seen->names.size() >= 18);

    ensemble.remove("/t/5");
    const std::optional<node_children> at_once = ensemble.run(names.settled(0s));
    CHECK(at_once->names == ensemble.children("/t"));
    CHECK(ensemble.run(code_of(names.settled(-1s))) == errc::invalid_argument);
    CHECK(ensemble.run(code_of(names.settled(1s, -1s))) == errc::invalid_argument);
}

TEST_CASE("streams: a settled() that is cancelled has told nothing", "[testing]") {
    std::size_t steps = 0;
    for (std::size_t at = 0; at <= steps && at < 40; ++at) {
        CAPTURE(at);
        fake_ensemble ensemble(at + 1);
        const client zk = ensemble.client(calm());
        ensemble.create("/t/a");
        const children_stream names = watch_children(zk, "/t");
        const group_observer members(zk, "/t");
        auto read = [&]() -> asio::awaitable<void> { co_await names.settled(5s); };
        auto read_members = [&]() -> asio::awaitable<void> { co_await members.settled(5s); };
        running first(ensemble.get_executor(), read()), second(ensemble.get_executor(), read_members());
        at_step(ensemble, steps, at, [&] {
            first.cancel();
            second.cancel();
        });
        ensemble.run_for(4s);
        if (steps <= at) {
            first.cancel();
            second.cancel();
        }
        ensemble.on_step(nullptr);
        CHECK(ensemble.run(first.code()) == asio::error::operation_aborted);
        CHECK(ensemble.run(second.code()) == asio::error::operation_aborted);
        CHECK(ensemble.run(names.next())->names == words{"a"});
        CHECK(ensemble.run(members.next()).members.size() == 1);
    }
    CHECK(steps > 4);
}

TEST_CASE("group_observer: settled() tells of members that start together once", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    const group_observer observer(zk, "/g");
    std::optional<group_view> seen;
    auto read = [&]() -> asio::awaitable<void> { seen = co_await observer.settled(5s); };
    running first(ensemble.get_executor(), read());
    for (int i = 0; i < 5; ++i) {
        ensemble.create("/g/" + std::to_string(i));
        ensemble.run_for(3s);
        CHECK_FALSE(first.ended());
    }
    CHECK_FALSE(ensemble.run(first.code()));
    CHECK(seen->members.size() == 5);
    // A member that has come and gone.
    running second(ensemble.get_executor(), read());
    ensemble.run_for(10s);
    CHECK_FALSE(second.ended());
    ensemble.create("/g/5");
    ensemble.run_for(1s);
    ensemble.remove("/g/5");
    CHECK_FALSE(ensemble.run(second.code()));
    CHECK(seen->members.size() == 5);
    CHECK(ensemble.run(code_of(observer.settled(-1s))) == errc::invalid_argument);
}

TEST_CASE("group_observer: settled() tells of members whose observer's connection never lasts that long", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    const group_observer observer(zk, "/g");
    ensemble.create("/g/a");
    ensemble.run(observer.ready());
    const bool changes_first = GENERATE(true, false);
    if (!changes_first) ensemble.run(observer.settled(5s));
    std::optional<group_view> seen;
    auto read = [&]() -> asio::awaitable<void> { seen = co_await observer.settled(5s); };
    running reading(ensemble.get_executor(), read());
    for (int i = 0; i < 3; ++i) {
        ensemble.run_for(4s);
        ensemble.cut(zk);
    }
    ensemble.run_for(1s);
    CHECK(reading.ended());
    CHECK_FALSE(ensemble.run(reading.code()));
    REQUIRE(seen);
    CHECK(seen->current);
    CHECK(seen->members.size() == 1);
    // Without a connection: once, when it was gone for that long.
    running without(ensemble.get_executor(), read());
    ensemble.hold_down(zk);
    ensemble.run_for(4s);
    CHECK_FALSE(without.ended());
    ensemble.run_for(2s);
    CHECK_FALSE(ensemble.run(without.code()));
    CHECK_FALSE(seen->current);
}

TEST_CASE("persistent_node: its path and data are known without waiting", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    ensemble.hold_down(zk);
    persistent_node_options options;
    options.mode(create_mode::ephemeral_sequential);
    persistent_node node(zk, "/nodes/n-", "one", options);
    CHECK(node.path() == "/nodes/n-");
    CHECK(node.standing_path().empty());
    CHECK(node.data() == "one");
    ensemble.let_in(zk);
    const std::string path = ensemble.run(node.created());
    CHECK(node.standing_path() == path);
    running writing(ensemble.get_executor(), node.set_data("two"));
    CHECK(node.data() == "one");  // not confirmed yet
    CHECK_FALSE(ensemble.run(writing.code()));
    CHECK(node.data() == "two");
    CHECK(ensemble.data(path) == "two");
    ensemble.run(node.leave());
    CHECK(node.standing_path().empty());
    const persistent_node moved = std::move(node);
    CHECK(node.standing_path().empty());
    CHECK(node.data().empty());
}
