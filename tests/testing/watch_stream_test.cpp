// Streams of operations::add_watch() over an ensemble in memory: what they tell, beside caches and one-shot watches at
// the same node, over lost connections and sessions, with servers of each kind, and what they cost.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/cost.hpp"
#include "testing/steps.hpp"

#include <zkasio/cache/tree_cache.hpp>
#include <zkasio/error.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

namespace watch_stream_testing {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

using texts = std::vector<std::string>;

std::string text_of(const watched_event& e) {
    static const texts names{"created", "removed", "changed", "children of", "look again at"};
    return names.at(static_cast<std::size_t>(e.what)) + ' ' + e.path;
}

// Reads a stream until it ends.
struct reader {
    explicit reader(watch_stream s) : stream(std::move(s)) {}
    watch_stream stream;
    texts told;
    std::error_code end;

    asio::awaitable<void> read() {
        while (!end) {
            try {
                const watched_event e = co_await stream.next();
                told.push_back(text_of(e));
            } catch (const error& e) {
                end = e.code();
            }
        }
    }
    texts take() { return std::exchange(told, {}); }
};

// A reader that goes on as long as the object lives.
class reading {
public:
    reading(fake_ensemble& e, watch_stream s) : reader_(std::move(s)), e_(e) { go_on(); }
    void go_on() {
        reader_.end = {};
        running_.emplace(e_.get_executor(), reader_.read());
    }
    ~reading() {
        running_->cancel();
        e_.run_for(1ms);
    }
    /// What is told in the next second.
    texts take() {
        e_.run_for(1s);
        return reader_.take();
    }
    std::error_code end() const { return reader_.end; }
    watch_stream& stream() { return reader_.stream; }

private:
    reader reader_;
    fake_ensemble& e_;
    std::optional<running> running_;
};

watch_stream watch_of(fake_ensemble& e, const operations& on, std::string path, watch_mode mode) {
    return e.run(on.add_watch(std::move(path), mode));
}

bool has(const texts& all, const std::string& one) { return std::find(all.begin(), all.end(), one) != all.end(); }

}  // namespace

TEST_CASE("watch_stream: a recursive one tells of the node and all below, in order", "[testing]") {
    fake_ensemble e;
    e.watches_replace_each_other(GENERATE(true, false));
    const client zk = e.client(calm());
    e.create("/a");
    reading one(e, watch_of(e, zk, "/a", watch_mode::recursive));
    CHECK(one.stream().path() == "/a");
    e.create("/a/b", "1");
    e.create("/a/b/c");
    e.set("/a/b", "2");
    e.set("/a", "3");
    e.create("/ab");
    e.remove("/a/b/c");
    CHECK(one.take() == texts{"created /a/b", "created /a/b/c", "changed /a/b", "changed /a", "removed /a/b/c"});
    e.remove("/a/b");
    e.remove("/a");
    e.create("/a");
    CHECK(one.take() == texts{"removed /a/b", "removed /a", "created /a"});
}

TEST_CASE("watch_stream: each change has its zxid, where servers say it", "[testing]") {
    fake_ensemble e;
    const bool is_told = GENERATE(true, false);
    e.watches_replace_each_other(!is_told);  // as up to 3.8, which do not
    const client zk = e.client(calm());
    e.create("/a");
    const watch_stream all = watch_of(e, zk, "/a", watch_mode::recursive);
    const watch_stream names = watch_of(e, zk, "/a", watch_mode::persistent);
    e.create("/a/b");
    e.set("/a/b", "1");
    const auto stat = e.stat("/a/b");
    REQUIRE(stat);
    for (const std::int64_t zxid : {stat->czxid, stat->mzxid}) CHECK(e.run(all.next()).zxid == (is_told ? zxid : 0));
    CHECK(e.run(names.next()).zxid == (is_told ? stat->czxid : 0));
    const std::int64_t removed = stat->mzxid + 1;
    e.remove("/a/b");
    CHECK(e.run(all.next()).zxid == (is_told ? removed : 0));
    e.cut(zk);
    const watched_event look = e.run(all.next());
    CHECK(look.what == watched_change::look_again);
    CHECK(look.zxid == 0);
}

TEST_CASE("watch_stream: a persistent one tells of the node and of its children's names", "[testing]") {
    fake_ensemble e;
    e.watches_replace_each_other(GENERATE(true, false));
    const client zk = e.client(calm());
    reading one(e, watch_of(e, zk, "/a", watch_mode::persistent));
    e.create("/a");
    e.create("/a/b", "1");
    e.create("/a/b/c");
    e.set("/a/b", "2");
    e.set("/a", "3");
    e.remove("/a/b/c");
    e.remove("/a/b");
    e.remove("/a");
    CHECK(one.take() == texts{"created /a", "children of /a", "changed /a", "children of /a", "removed /a"});
}

TEST_CASE("watch_stream: both modes share one watch of the server, and each is told what it has asked for",
          "[testing]") {
    fake_ensemble e;
    e.watches_replace_each_other(GENERATE(true, false));
    const bool persistent_first = GENERATE(true, false);
    const client zk = e.client(calm());
    e.create("/a");
    const auto mode = [&](bool first) {
        return first == persistent_first ? watch_mode::persistent : watch_mode::recursive;
    };
    reading one(e, watch_of(e, zk, "/a", mode(true)));
    reading two(e, watch_of(e, zk, "/a", mode(false)));
    CHECK(e.watches(zk) == 1);
    reading& persistent = persistent_first ? one : two;
    reading& recursive = persistent_first ? two : one;
    persistent.take();  // perhaps that something may have changed while the watch was asked for again
    e.create("/a/b");
    e.create("/a/b/c");
    e.set("/a", "1");
    CHECK(persistent.take() == texts{"children of /a", "changed /a"});
    CHECK(recursive.take() == texts{"created /a/b", "created /a/b/c", "changed /a"});
    e.run(one.stream().close());
    CHECK(e.watches(zk) == 1);
    e.remove("/a/b/c");
    e.remove("/a/b");
    CHECK(two.take() == (persistent_first ? texts{"removed /a/b/c", "removed /a/b"} : texts{"children of /a"}));
    e.run(two.stream().close());
    CHECK(e.watches(zk) == 0);
}

TEST_CASE("watch_stream: one-shot watches at its node fire, and it goes on", "[testing]") {
    fake_ensemble e;
    e.watches_replace_each_other(GENERATE(true, false));
    const watch_mode mode = GENERATE(watch_mode::persistent, watch_mode::recursive);
    const bool watches_first = GENERATE(true, false);
    const client zk = e.client(calm());
    e.create("/a");
    watched<node_data> data;
    watched<node_children> children;
    const auto set_watches = [&] {
        data = e.run(zk.get_and_watch("/a"));
        children = e.run(zk.children_and_watch("/a"));
    };
    if (watches_first) set_watches();
    reading one(e, watch_of(e, zk, "/a", mode));
    const std::string child = mode == watch_mode::persistent ? "children of /a" : "created /a/";
    const auto child_told = [&](const std::string& name) {
        return texts{mode == watch_mode::persistent ? child : child + name};
    };
    if (!watches_first) set_watches();
    for (int round = 0; round < 3; ++round) {
        INFO("round " << round);
        const std::string name = std::to_string(round);
        one.take();
        e.create("/a/" + name);
        CHECK(e.run(children.changes.changed()).what == node_change::children_changed);
        CHECK(one.take() == child_told(name));
        e.set("/a", name);
        CHECK(e.run(data.changes.changed()).what == node_change::data_changed);
        CHECK(one.take() == texts{"changed /a"});
        set_watches();
    }
    e.create("/a/more");
    e.run_for(1s);
    e.create("/a/most");  // when nobody waits for children
    texts both = child_told("more");
    both.push_back(child_told("most").front());
    CHECK(one.take() == both);
    set_watches();
    // The watch of the server stays for the sake of those who wait there.
    e.run(one.stream().close());
    e.set("/a", "x");
    e.create("/a/x");
    CHECK(e.run(data.changes.changed()).what == node_change::data_changed);
    CHECK(e.run(children.changes.changed()).what == node_change::children_changed);
    data = {};
    children = {};
    e.run_for(1s);
    CHECK(e.watches(zk) == 0);
}

TEST_CASE("watch_stream: shares the watch of a cache at the same root, whoever comes first and goes first",
          "[testing]") {
    fake_ensemble e;
    e.watches_replace_each_other(GENERATE(true, false));
    const watch_mode mode = GENERATE(watch_mode::persistent, watch_mode::recursive);
    const bool cache_first = GENERATE(true, false), cache_leaves_first = GENERATE(true, false);
    const client zk = e.client(calm());
    e.create("/a/b", "1");
    std::optional<tree_cache> cache;
    const auto begin_cache = [&] {
        cache.emplace(zk, "/a");
        e.run(cache->ready());
    };
    if (cache_first) begin_cache();
    reading one(e, watch_of(e, zk, "/a", mode));
    if (!cache_first) begin_cache();
    CHECK(e.watches(zk) == 1);
    one.take();
    e.set("/a/b", "2");
    e.create("/a/c", "3");
    const bool is_recursive = mode == watch_mode::recursive;
    CHECK(one.take() == (is_recursive ? texts{"changed /a/b", "created /a/c"} : texts{"children of /a"}));
    CHECK(cache->snapshot().find("/a/b").data() == "2");
    CHECK(cache->snapshot().find("/a/c").data() == "3");
    if (cache_leaves_first) {
        e.run(cache->close());
        CHECK(e.watches(zk) == 1);
        e.remove("/a/c");
        CHECK(one.take() == (is_recursive ? texts{"removed /a/c"} : texts{"children of /a"}));
        e.run(one.stream().close());
    } else {
        e.run(one.stream().close());
        CHECK(e.watches(zk) == 1);
        e.remove("/a/c");
        e.run_for(1s);
        CHECK_FALSE(cache->snapshot().find("/a/c"));
        e.run(cache->close());
    }
    CHECK(e.watches(zk) == 0);
}

TEST_CASE("watch_stream: a look_again after each reconnect, and it goes on", "[testing]") {
    fake_ensemble e;
    const client zk = e.client(calm());
    e.create("/a");
    reading one(e, watch_of(e, zk, "/a", GENERATE(watch_mode::persistent, watch_mode::recursive)));
    for (int round = 0; round < 3; ++round) {
        e.cut(zk);
        e.run_for(5s);
        CHECK(one.take() == texts{"look again at /a"});
        e.set("/a", "x");
        CHECK(one.take() == texts{"changed /a"});
    }
    CHECK(e.watches(zk) == 1);
}

TEST_CASE("watch_stream: goes on in the next session, or ends with its own", "[testing]") {
    fake_ensemble e;
    const client zk = e.client(calm());
    e.create("/a");
    const session own = e.run(zk.current_session());
    reading of_client(e, watch_of(e, zk, "/a", watch_mode::recursive));
    reading of_session(e, watch_of(e, own, "/a", watch_mode::recursive));
    e.set("/a", "1");
    CHECK(of_session.take() == texts{"changed /a"});
    e.expire(zk);
    e.run_for(10s);
    CHECK(of_session.take().empty());
    CHECK(of_session.end() == errc::session_expired);
    CHECK(e.run(code_of(own.add_watch("/a", watch_mode::recursive))) == errc::session_expired);
    e.set("/a", "2");
    CHECK(of_client.take() == texts{"changed /a", "look again at /a", "changed /a"});
}

TEST_CASE("watch_stream: what is not read is kept up to a bound, and then is one look_again", "[testing]") {
    fake_ensemble e;
    const client zk = e.client(calm());
    e.create("/a");
    const watch_stream slow = watch_of(e, zk, "/a", watch_mode::recursive);
    const std::string name(1000, 'n');
    e.create("/a/" + name);
    const std::size_t changes = GENERATE(as<std::size_t>(), 10, 10'000);
    for (std::size_t n = 0; n < changes; ++n) {
        e.set("/a/" + name, std::to_string(n));
        if (n % 100 == 0) e.run_for(1s);
    }
    e.run_for(1min);
    const watched_event first = e.run(slow.next());
    CHECK(first.what == (changes > 10 ? watched_change::look_again : watched_change::created));
    if (first.what == watched_change::look_again) CHECK(first.path == "/a");
    std::size_t others = 0;
    auto count = [&]() -> asio::awaitable<void> {
        for (;;) {
            const watched_event next = co_await slow.next();
            ++others;
            if (next.what == watched_change::removed) co_return;
        }
    };
    e.remove("/a/" + name);
    e.run(count());
    CHECK(others == (changes > 10 ? 1 : changes + 1));
}

TEST_CASE("watch_stream: servers before 3.6 refuse it, at first and on a later connection", "[testing]") {
    fake_ensemble e;
    const client zk = e.client(calm());
    e.create("/a");
    e.know_multi_read(false);
    const std::string why = e.run(message_of(zk.add_watch("/a", watch_mode::recursive)));
    CHECK(why.starts_with("add_watch /a: not implemented by this server"));
    CHECK(why.ends_with("(it needs ZooKeeper 3.6 or later)"));
    e.know_multi_read(true);
    const client other = e.client(calm());
    reading one(e, watch_of(e, other, "/a", watch_mode::recursive));
    e.know_multi_read(false);
    e.cut(other);
    e.run_for(10s);
    CHECK(one.take().empty());
    CHECK(one.end() == zk_errc::unimplemented);
    one.go_on();
    CHECK(one.take().empty());
    CHECK_FALSE(one.end());  // once
}

TEST_CASE("watch_stream: while it is refused, it does not tell what others have set watches for", "[testing]") {
    fake_ensemble e;
    const client zk = e.client(calm());
    e.create("/a/b");
    reading one(e, watch_of(e, zk, "/a", GENERATE(watch_mode::persistent, watch_mode::recursive)));
    e.know_multi_read(false);
    e.cut(zk);
    e.run_for(10s);
    CHECK(one.take().empty());
    one.go_on();
    watched<node_data> at_root = e.run(zk.get_and_watch("/a")), below = e.run(zk.get_and_watch("/a/b"));
    e.set("/a/b", "1");
    e.set("/a", "1");
    e.run(at_root.changes.changed());
    e.run(below.changes.changed());
    CHECK(one.take().empty());
}

TEST_CASE("watch_stream: two connections lost by chance, and it is asked for again after ten minutes", "[testing]") {
    fake_ensemble e;
    const client zk = e.client(calm());
    e.create("/a");
    reading one(e, watch_of(e, zk, "/a", watch_mode::recursive));
    reading other(e, watch_of(e, zk, "/a", watch_mode::recursive));
    e.lose_answer(zk, "add watch");
    e.lose_answer(zk, "add watch");
    e.cut(zk);
    e.run_for(30s);
    CHECK(one.take().empty());
    CHECK(one.end() == zk_errc::unimplemented);
    CHECK(other.end() == zk_errc::unimplemented);
    one.go_on();
    other.go_on();
    const auto connections = e.traffic(zk).connections;
    e.set("/a", "1");
    e.run_for(9min);
    CHECK(one.take().empty());
    e.run_for(1min);
    CHECK(one.take() == texts{"look again at /a"});
    CHECK(other.take() == texts{"look again at /a"});
    e.set("/a", "2");
    CHECK(one.take() == texts{"changed /a"});
    CHECK(other.take() == texts{"changed /a"});
    CHECK(e.traffic(zk).connections == connections);
}

TEST_CASE("watch_stream: a stream of a session leaves no watch to the next session", "[testing]") {
    fake_ensemble e;
    const client zk = e.client(calm());
    const session own = e.run(zk.current_session());
    const watch_stream kept = watch_of(e, own, "/of session", watch_mode::recursive);
    CHECK(e.watches(zk) == 1);
    e.expire(zk);
    e.run_for(10s);
    CHECK(e.is_connected(zk));
    CHECK(e.watches(zk) == 0);
    CHECK(e.run(code_of(kept.next())) == errc::session_expired);
}

TEST_CASE("watch_stream: a busy server is asked again to remove it", "[testing]") {
    fake_ensemble e;
    const client zk = e.client(calm());
    std::optional<watch_stream> one = watch_of(e, zk, "/a", watch_mode::recursive);
    e.throttle(100);
    one.reset();
    e.run_for(1s);
    CHECK(e.watches(zk) == 1);
    SECTION("nobody needs it") {
        e.throttle(0);
        e.run_for(1min);
        CHECK(e.watches(zk) == 0);
    }
    SECTION("by then, somebody waits there") {
        e.throttle(0);
        const watched<std::optional<node_stat>> there = e.run(zk.exists_and_watch("/a"));
        e.run_for(1min);
        e.create("/a");
        CHECK(e.run(there.changes.changed()).what == node_change::created);
    }
}

TEST_CASE("watch_stream: close() completes when the watch is removed, also while it is asked for", "[testing]") {
    std::size_t steps = 0;
    for (std::size_t at = 0; at <= steps && at < 40; ++at) {
        CAPTURE(at);
        fake_ensemble e(at + 1);
        const client zk = e.client(calm());
        e.create("/a");
        reading one(e, watch_of(e, zk, "/a", watch_mode::recursive));
        std::optional<running> closing;
        e.cut(zk);
        at_step(e, steps, at, [&] { closing.emplace(e.get_executor(), one.stream().close()); });
        e.run_for(30s);
        e.on_step(nullptr);
        if (!closing) break;
        REQUIRE(closing->ended());
        CHECK(one.end() == errc::client_closed);
        CHECK(e.watches(zk) == 0);
        CHECK(e.run(code_of(one.stream().next())) == errc::client_closed);
        e.run(one.stream().close());
    }
    CHECK(steps > 3);
}

TEST_CASE("watch_stream: add_watch() that is cancelled at any step leaves no watch", "[testing]") {
    std::size_t steps = 0, made = 0, cancelled = 0;
    for (std::size_t at = 0; at <= steps && at < 40; ++at) {
        CAPTURE(at);
        fake_ensemble e(at + 1);
        const client zk = e.client(calm());
        watch_stream one;
        auto begin = [&]() -> asio::awaitable<void> { one = co_await zk.add_watch("/a", watch_mode::recursive); };
        running beginning(e.get_executor(), begin());
        at_step(e, steps, at, [&] { beginning.cancel(); });
        e.run_for(10s);
        e.on_step(nullptr);
        REQUIRE(beginning.ended());
        ++(one.path().empty() ? cancelled : made);
        CHECK(e.watches(zk) == (one.path().empty() ? 0 : 1));
        one = {};
        e.run_for(1s);
        CHECK(e.watches(zk) == 0);
        e.run(zk.close());
    }
    CHECK(made > 0);
    CHECK(cancelled > 0);
}

TEST_CASE("watch_stream: with its connection lost at any step, it tells of each change or to look again",
          "[testing]") {
    std::size_t steps = 0, looks = 0;
    const watch_mode mode = GENERATE(watch_mode::persistent, watch_mode::recursive);
    for (std::size_t first = 0; first <= steps && first < 80; ++first) {
        CAPTURE(first);
        fake_ensemble e(first + 1);
        const client zk = e.client(calm());
        steps = 0;
        cut_at_steps(e, zk, zk, first, 0, steps);
        reading one(e, watch_of(e, zk, "/a", mode));
        e.run(code_of(zk.create("/a")));  // its answer may be lost
        e.run(code_of(zk.create("/a/b")));
        e.run(code_of(zk.set("/a", "1")));
        e.run_for(10s);
        e.on_step(nullptr);
        const texts told = one.take();
        const bool looked = has(told, "look again at /a");
        looks += looked ? 1 : 0;
        if (!looked) {
            const std::string child = mode == watch_mode::persistent ? "children of /a" : "created /a/b";
            CHECK(told == texts{"created /a", child, "changed /a"});
        }
        if (!e.exists("/a")) e.create("/a");
        one.take();
        e.set("/a", "2");
        CHECK(one.take() == texts{"changed /a"});
        CHECK(e.watches(zk) == 1);
    }
    CHECK(looks > 0);
}

TEST_CASE("watch_stream: next() that is cancelled loses no event, and several readers share them", "[testing]") {
    fake_ensemble e;
    const client zk = e.client(calm());
    const watch_stream one = watch_of(e, zk, "/a", watch_mode::recursive);
    reader a{watch_of(e, zk, "/a", watch_mode::recursive)};
    running reading_a(e.get_executor(), a.read());
    e.run_for(1s);
    reading_a.cancel();
    e.create("/a");
    e.run_for(1s);
    CHECK(a.end == asio::error::operation_aborted);
    CHECK(text_of(e.run(a.stream.next())) == "created /a");
    texts told;
    auto read_one = [&]() -> asio::awaitable<void> {
        const watched_event event = co_await one.next();
        told.push_back(text_of(event));
    };
    running first(e.get_executor(), read_one()), second(e.get_executor(), read_one());
    e.run_for(1s);
    CHECK(told == texts{"created /a"});
    e.remove("/a");
    e.run_for(1s);
    CHECK(told == texts{"created /a", "removed /a"});
}

TEST_CASE("watch_stream: destroyed, it leaves no watch, and its client does not stay open for it", "[testing]") {
    fake_ensemble e;
    std::optional<client> zk = e.client(calm());
    std::optional<watch_stream> one = watch_of(e, *zk, "/a", watch_mode::recursive);
    CHECK(e.watches() == 1);
    SECTION("destroyed") {
        one.reset();
        e.run_for(1s);
        CHECK(e.watches() == 0);
    }
    SECTION("destroyed without a connection") {
        e.hold_down(*zk);
        e.run_for(1s);
        one.reset();
        e.let_in(*zk);
        e.run_for(10s);
        CHECK(e.watches() == 0);
    }
    SECTION("the client is closed") {
        reading of(e, std::move(*one));
        if (GENERATE(true, false))
            e.run(zk->close());
        else
            zk.reset();
        e.run_for(10s);
        CHECK(of.end() == errc::client_closed);
    }
    SECTION("the awaitable keeps it") {
        auto next = one->next();
        one.reset();
        e.create("/a");
        CHECK(text_of(e.run(std::move(next))) == "created /a");
        e.run_for(1s);
        CHECK(e.watches() == 0);
    }
}

TEST_CASE("watch_stream: below a chroot, paths are the client's", "[testing]") {
    fake_ensemble e;
    e.create("/root/of/a");
    const client zk = e.client(client_options("fake/root/of").session_timeout(20s));
    const bool at_root = GENERATE(true, false);
    reading one(e, watch_of(e, zk, at_root ? "/" : "/a", watch_mode::recursive));
    e.set("/root/of/a", "1");
    e.create("/root/of/a/b");
    e.set("/root/of", "1");
    texts all{"changed /a", "created /a/b"};
    if (at_root) all.push_back("changed /");
    CHECK(one.take() == all);
}

TEST_CASE("watch_stream: a credential that is accepted is a reason to look again", "[testing]") {
    fake_ensemble e;
    const client zk = e.client(calm());
    reading one(e, watch_of(e, zk, "/a", watch_mode::recursive));
    e.run(zk.add_auth("digest", "user:password"));
    CHECK(one.take() == texts{"look again at /a"});
}

TEST_CASE("watch_stream: without a connection add_watch() ends in time, and a read-only client has none", "[testing]") {
    fake_ensemble e;
    const client zk = e.client(client_options("fake").session_timeout(20s).connection_timeout(3s));
    e.run(zk.connected());
    const session patient = e.run(zk.current_session()).patient();
    e.hold_down(zk);
    e.run_for(1s);
    const auto before = e.now();
    const std::string why = e.run(message_of(zk.add_watch("/a", watch_mode::recursive)));
    CHECK(why.starts_with("add_watch /a: not connected"));
    CHECK(why.find(" (") != why.npos);  // and why
    CHECK(e.now() - before < 4s);
    auto late = [&]() -> asio::awaitable<void> {
        const watch_stream one = co_await patient.add_watch("/a", watch_mode::recursive);
    };
    running waiting(e.get_executor(), late());
    e.run_for(10s);
    CHECK_FALSE(waiting.ended());
    e.let_in(zk);
    CHECK_FALSE(e.run(waiting.code()));
    e.run_for(1s);
    CHECK(e.watches(zk) == 0);
    const client reads = e.client(calm().read_only());
    CHECK(e.run(code_of(reads.add_watch("/a", watch_mode::recursive))) == zk_errc::not_read_only);
    CHECK(e.run(code_of(zk.add_watch("a", watch_mode::recursive))) == errc::invalid_path);
}

TEST_CASE("cost of watch streams: one watch for all of a client, and nothing for a change", "[numbers]") {
    for (const std::size_t n : user_counts) {
        fake_ensemble e;
        std::vector<client> zk = connected_clients(e, 1);
        const cost_meter meter(e);
        std::vector<watch_stream> all;
        for (std::size_t i = 0; i < n; ++i) all.push_back(watch_of(e, zk[0], "/a", watch_mode::recursive));
        const cost begun = meter.read();
        INFO(n << " streams: " << begun);
        CHECK(begun.requests == 1);
        CHECK(begun.watches == 1);
        for (std::size_t i = 0; i < n; ++i) e.create("/a/" + std::to_string(i));
        e.run_for(1s);
        CHECK(meter.read().requests == begun.requests);
        const auto events = e.traffic().events;
        CHECK(events >= n);
        CHECK(events <= n + 1);  // "/a"
        const cost_meter end(e);
        all.clear();
        e.run_for(1s);
        CHECK(end.read().requests == 1);
        CHECK(e.watches() == 0);
        for (std::size_t i = 0; i < n; ++i) all.push_back(watch_of(e, zk[0], "/a", watch_mode::recursive));
        const cost_meter closing(e);
        for (watch_stream& one : all) e.run(one.close());
        const cost closed = closing.read();
        INFO("closed one after another: " << closed);
        CHECK(closed.requests <= 2 * n + 1);
        CHECK(closed.writes == 0);
        CHECK(e.watches() == 0);
        close_all(e, zk);
    }
}

}  // namespace watch_stream_testing
