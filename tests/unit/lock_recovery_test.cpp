// Locks over a scripted server: answers that are lost, and servers that refuse.

#include "unit/fake_tree.hpp"
#include "unit/rig.hpp"

#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/unfair_mutex.hpp>

#include <asio/post.hpp>

#include <algorithm>
#include <set>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

// Of other clients, in front of ours.
const std::string farther = "/lock/_c_00000000-0000-4000-8000-000000000000-lock-0000000000";
const std::string foreign = "/lock/_c_00000000-0000-4000-8000-000000000001-lock-0000000001";

asio::awaitable<void> take(mutex lock) {
    lock_guard guard = co_await lock.acquire();
    co_await guard.release();
}

std::ptrdiff_t requests_named(const fake_server& s, const std::string& operation) {
    return std::count_if(s.requests.begin(), s.requests.end(),
                         [&](const auto& r) { return operation_name(r.what) == operation; });
}

}  // namespace

// Fails without G37.
TEST_CASE("lock: after a cut one listing finds the nodes of all creates whose answers were lost", "[lock]") {
    rig r;
    fake_tree tree;
    bool losing = true;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        reply a = tree(q);
        if (losing && std::holds_alternative<create_request>(q)) return std::nullopt;  // done, and not told
        return a;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const mutex lock(zk, "/lock");
        std::vector<running> tasks;
        for (int i = 0; i < 200; ++i) tasks.emplace_back(r.loop.executor(), take(lock));
        co_await r.server.until([&] { return tree.size() == 200; });
        for (int i = 0; i < 150; ++i) tasks[static_cast<std::size_t>(i)].cancel();
        for (int i = 0; i < 150; ++i) {
            const std::error_code code = co_await tasks[static_cast<std::size_t>(i)].code();
            CHECK(code == condition::cancelled);
        }
        losing = false;
        r.server.drop();
        for (std::size_t i = 150; i < 200; ++i) {
            const std::exception_ptr failed = co_await tasks[i].end();
            CHECK_FALSE(failed);
        }
        co_await r.server.until([&] { return tree.size() == 0; });
        CHECK(requests_named(r.server, "create") == 200);
        CHECK(requests_named(r.server, "sync") == 1);
        CHECK(requests_named(r.server, "exists") == 50);  // of those who still wait
    };
    r.run(body);
}

// To those behind it such a node is one of the others until it is found. What a watch on it told by then would be lost.
// Fails without G17.
TEST_CASE("lock: nobody follows a node whose create was lost before it is found", "[lock]") {
    rig r;
    fake_tree tree;
    bool searching = false;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        searching = searching || std::holds_alternative<sync_request>(q);
        if (searching && std::holds_alternative<children_request>(q)) {  // the first one is the search's
            searching = false;
            return std::nullopt;
        }
        reply a = tree(q);
        if (r.server.connections == 1 && std::holds_alternative<create_request>(q)) return std::nullopt;
        return a;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const mutex lock(zk, "/lock");
        std::optional<lock_guard> first, second;
        auto acquire = [&](std::optional<lock_guard>& to) -> asio::awaitable<void> {
            to.emplace(co_await lock.acquire());
        };
        running lost(r.loop.executor(), acquire(first));
        co_await r.server.until([&] { return tree.size() == 1; });
        r.server.drop();
        co_await r.server.until([&] { return r.server.count("sync /lock") > 0; });
        co_await r.server.until([&] { return r.server.texts().back() == "children /lock"; });
        const op_id search = r.server.requests.back().id;
        const running next(r.loop.executor(), acquire(second));
        co_await r.server.until([&] { return tree.size() == 2; });
        for (int turns = 0; turns < 10; ++turns) co_await next_turns(r.server);
        const std::string path = tree.nth(0);
        CHECK_FALSE(r.server.watched(path));
        CHECK_FALSE(next.ended());
        SECTION("it is there") {
            r.server.reply_to(search, tree(children_request{"/lock", {}}));
            co_await lost.end();
            REQUIRE(first->held());
            CHECK_FALSE(next.ended());
            co_await first->release();
        }
        SECTION("somebody has deleted it, and nobody wants it") {
            tree(remove_request{path});
            lost.cancel();
            co_await lost.end();
            r.server.reply_to(search, tree(children_request{"/lock", {}}));
        }
        co_await next.end();
        CHECK(second->held());
        co_await second->release();
    };
    r.run(body);
}

// Fails without G39.
TEST_CASE("lock: creates that were lost without a trace are sent again, unless nobody wants them any more", "[lock]") {
    rig r;
    fake_tree tree;
    bool losing = true;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        if (losing && std::holds_alternative<create_request>(q)) return std::nullopt;
        return tree(q);
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const mutex lock(zk, "/lock");
        running stays(r.loop.executor(), take(lock)), leaves(r.loop.executor(), take(lock));
        co_await r.server.until([&] { return requests_named(r.server, "create") == 2; });
        leaves.cancel();
        co_await leaves.end();
        losing = false;
        r.server.drop();
        const std::exception_ptr failed = co_await stays.end();
        CHECK_FALSE(failed);
        CHECK(requests_named(r.server, "create") == 3);
        CHECK(requests_named(r.server, "sync") == 1);
    };
    r.run(body);
}

TEST_CASE("lock: a search that is cut, too, is repeated, and serves those who were lost meanwhile", "[lock]") {
    rig r;
    fake_tree tree;
    int losing = 2;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        if (losing > 0 && std::holds_alternative<sync_request>(q)) {
            --losing;
            r.server.drop();
            return std::nullopt;
        }
        reply a = tree(q);
        if (losing == 2 && std::holds_alternative<create_request>(q)) return std::nullopt;
        return a;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const mutex lock(zk, "/lock");
        std::vector<running> tasks;
        for (int i = 0; i < 20; ++i) tasks.emplace_back(r.loop.executor(), take(lock));
        co_await r.server.until([&] { return tree.size() == 20; });
        r.server.drop();
        for (const running& t : tasks) {
            const std::exception_ptr failed = co_await t.end();
            CHECK_FALSE(failed);
        }
        co_await r.server.until([&] { return tree.size() == 0; });
        CHECK(requests_named(r.server, "sync") == 3);
    };
    r.run(body);
}

// Fails without G39.
TEST_CASE("lock: what a server has refused, for having too much to do, is repeated after a pause", "[lock]") {
    const std::string refused = GENERATE("create", "children", "get", "remove");
    constexpr auto pause = 60ms;
    rig r(rig::quick().retry(retry_policy::n_times(1, pause)));
    fake_tree tree;
    tree.create_as(foreign, 77);
    const auto counts = [&](const request& q) {
        return operation_name(q) == refused && (refused != "get" || path_of(q) == foreign);
    };
    bool once = false;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        if (counts(q) && !std::exchange(once, true)) return refusal(zk_errc::throttled);
        return tree(q);
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        running one(r.loop.executor(), take(mutex(zk, "/lock")));
        co_await r.server.until([&] { return r.server.watched(foreign); });
        tree(remove_request{foreign});
        r.server.fire(node_event::removed, foreign);
        const std::exception_ptr failed = co_await one.end();
        CHECK_FALSE(failed);
        INFO(refused);
        std::vector<boot_clock::time_point> times;
        for (const auto& q : r.server.requests)
            if (counts(q.what)) times.push_back(q.at);
        REQUIRE(times.size() >= 2);
        CHECK(times[1] - times[0] >= pause);
    };
    r.run(body);
}

TEST_CASE("lock: who has given up during the pause is not sent again", "[lock]") {
    rig r(rig::quick().retry(retry_policy::n_times(1, 60ms)));
    fake_tree tree;
    int refusals = 2;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        if (!std::holds_alternative<create_request>(q) || refusals == 0) return tree(q);
        --refusals;
        return refusal(zk_errc::throttled);
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        running first(r.loop.executor(), take(mutex(zk, "/lock"))), second(r.loop.executor(), take(mutex(zk, "/lock")));
        co_await r.server.until([&] { return refusals == 0; });
        co_await next_turns(r.server);
        first.cancel();
        const std::error_code cancelled = co_await first.code();
        CHECK(cancelled == condition::cancelled);
        const std::exception_ptr failed = co_await second.end();
        CHECK_FALSE(failed);
        CHECK(requests_named(r.server, "create") == 3);
    };
    r.run(body);
}

TEST_CASE("lock: a directory that a server with too much to do does not create is created after a pause", "[lock]") {
    constexpr auto pause = 60ms;
    rig r(rig::quick().retry(retry_policy::n_times(1, pause)));
    fake_tree tree;
    std::vector<boot_clock::time_point> times;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        const auto* c = std::get_if<create_request>(&q);
        if (c && c->path == "/lock") {
            times.push_back(boot_clock::now());
            return times.size() == 1 ? refusal(zk_errc::throttled) : reply();
        }
        if (c && times.size() < 2) return refusal(zk_errc::no_node);
        return tree(q);
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        co_await take(mutex(zk, "/lock"));
        REQUIRE(times.size() == 2);
        CHECK(times[1] - times[0] >= pause);
    };
    r.run(body);
}

TEST_CASE(
    "lock: a look at a node whose create was lost, refused by a server with too much to do, is repeated after a pause",
    "[lock]") {
    constexpr auto pause = 60ms;
    rig r(rig::quick().retry(retry_policy::n_times(1, pause)));
    fake_tree tree;
    bool losing = true, refused = false;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        reply a = tree(q);
        if (losing && std::holds_alternative<create_request>(q)) return std::nullopt;  // done, and not told
        if (std::holds_alternative<exists_request>(q) && !std::exchange(refused, true))
            return refusal(zk_errc::throttled);
        return a;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const running one(r.loop.executor(), take(mutex(zk, "/lock")));
        co_await r.server.until([&] { return tree.size() == 1; });
        losing = false;
        r.server.drop();
        const std::exception_ptr failed = co_await one.end();
        CHECK_FALSE(failed);
        std::vector<boot_clock::time_point> times;
        for (const auto& q : r.server.requests)
            if (std::holds_alternative<exists_request>(q.what)) times.push_back(q.at);
        REQUIRE(times.size() == 2);
        CHECK(times[1] - times[0] >= pause);
    };
    r.run(body);
}

TEST_CASE("locks: a create that a server with too much to do refuses is repeated after a pause", "[lock]") {
    constexpr auto pause = 60ms;
    const std::string kind = GENERATE("multi_mutex", "semaphore", "unfair_mutex");
    rig r(rig::quick().retry(retry_policy::n_times(1, pause)));
    fake_tree tree;
    std::vector<boot_clock::time_point> times;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        const auto* m = std::get_if<multi_request>(&q);
        const std::string what = kind == "multi_mutex" ? "multi" : "create";
        const std::string of = kind == "semaphore" ? "/x/leases/" : "/x";
        const bool creates = m ? std::holds_alternative<create_request>(m->ops.front()) : path_of(q).starts_with(of);
        if (operation_name(q) == what && creates) {
            times.push_back(boot_clock::now());
            if (times.size() == 1) return refusal(zk_errc::throttled);
        }
        return tree(q);
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        std::optional<asio::awaitable<lock_guard>> acquiring;
        if (kind == "multi_mutex")
            acquiring.emplace(multi_mutex(zk).add(mutex(zk, "/x")).add(mutex(zk, "/y")).acquire());
        else if (kind == "semaphore")
            acquiring.emplace(semaphore(zk, "/x", permits::fixed(1)).acquire());
        else
            acquiring.emplace(unfair_mutex(zk, "/x").acquire());
        lock_guard guard = co_await std::move(*acquiring);
        CHECK(guard.held());
        INFO(kind);
        REQUIRE(times.size() == 2);
        CHECK(times[1] - times[0] >= pause);
        CHECK(tree.has(guard.path()));
        co_await guard.release();
        co_await r.server.until([&] { return tree.size() == 0; });
    };
    r.run(body);
}

TEST_CASE(
    "multi_mutex: what is left of a lost transaction is removed everywhere, also when one directory cannot be read",
    "[lock]") {
    rig r;
    fake_tree tree;
    bool losing = true;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        if (const auto* m = std::get_if<multi_request>(&q);
            losing && m && std::holds_alternative<create_request>(m->ops.front())) {
            tree(q);
            return std::nullopt;
        }
        if (std::holds_alternative<children_request>(q) && path_of(q) == "/x") return refusal(zk_errc::no_auth);
        return tree(q);
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const multi_mutex both = multi_mutex(zk).add(mutex(zk, "/x")).add(mutex(zk, "/y"));
        auto acquire = [&]() -> asio::awaitable<void> { co_await both.acquire(); };
        running acquiring(r.loop.executor(), acquire());
        co_await r.server.until([&] { return tree.size() == 2; });
        acquiring.cancel();
        co_await acquiring.end();
        losing = false;
        r.server.drop();
        co_await r.server.until([&] { return tree.size() == 1; });
        CHECK(tree.nth(0).starts_with("/x/"));
    };
    r.run(body);
}

TEST_CASE("lock: a downgrade that is refused, for having too much to do, is repeated after a pause", "[lock]") {
    constexpr auto pause = 60ms;
    rig r(rig::quick().retry(retry_policy::n_times(1, pause)));
    fake_tree tree;
    std::vector<boot_clock::time_point> times;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        const auto* m = std::get_if<multi_request>(&q);
        if (m && m->ops.size() == 3) {
            times.push_back(boot_clock::now());
            if (times.size() == 1) return refusal(zk_errc::throttled);
        }
        return tree(q);
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const shared_mutex lock(zk, "/lock");
        lock_guard writing = co_await lock.acquire();
        lock_guard reading = co_await lock.downgrade(std::move(writing));
        REQUIRE(times.size() == 2);
        CHECK(times[1] - times[0] >= pause);
        co_await reading.release();
    };
    r.run(body);
}

TEST_CASE("lock: a downgrade whose session ends says that the lock is lost", "[lock]") {
    rig r;
    fake_tree tree;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        const auto* m = std::get_if<multi_request>(&q);
        if (m && m->ops.size() == 3) {
            r.server.expire();
            return std::nullopt;
        }
        return tree(q);
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const shared_mutex lock(zk, "/lock");
        lock_guard writing = co_await lock.acquire();
        const std::string path = writing.path();
        std::optional<error> failed;
        try {
            lock_guard reading = co_await lock.downgrade(std::move(writing));
        } catch (const error& e) {
            failed = e;
        }
        REQUIRE(failed);
        CHECK(failed->code() == errc::lock_lost);
        CHECK(failed->what() == "downgrade " + path + ": lock lost (session expired)");
    };
    r.run(body);
}

// Fails without G24, G29 and G30.
TEST_CASE("lock: a cut takes the lock from its owner where that is wanted, and from those who wait nothing", "[lock]") {
    const bool one_gives_up = GENERATE(false, true), one_is_deleted = GENERATE(false, true);
    rig r(rig::quick().suspension(suspension_policy::lose));
    fake_tree tree;
    r.server.answer = [&](const request& q) -> std::optional<reply> { return tree(q); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const mutex lock(zk, "/lock");
        std::vector<int> served;
        std::vector<std::string> paths;
        auto use = [&](int me) -> asio::awaitable<void> {
            lock_guard guard = co_await lock.acquire();
            served.push_back(me);
            CHECK(zk.state() == session_state::connected);
            CHECK(guard.held());
            paths.push_back(guard.path());
            co_await guard.release();
        };
        lock_guard first = co_await lock.acquire();
        std::vector<running> tasks;
        for (int i = 0; i < 4; ++i) {
            tasks.emplace_back(r.loop.executor(), use(i));
            co_await r.server.until([&] { return tree.size() == static_cast<std::size_t>(i) + 2; });
        }
        co_await next_turns(r.server);
        r.server.reachable = false;
        r.server.drop();
        const loss_reason why = co_await first.lost();
        CHECK(why == loss_reason::suspended);
        running releasing(r.loop.executor(), first.release());
        for (int i = 0; i < 20; ++i) co_await asio::post(r.loop.executor(), asio::use_awaitable);
        CHECK(served.empty());
        if (one_gives_up) {
            tasks[0].cancel();
            co_await tasks[0].end();
        }
        if (one_is_deleted) tree(remove_request{tree.nth(one_gives_up ? 2 : 1)});
        r.server.reachable = true;
        for (const running& t : tasks) {
            const std::error_code code = co_await t.code();
            CHECK((!code || (one_gives_up && code == condition::cancelled)));
        }
        std::vector<int> expected{0, 1, 2, 3};
        if (one_gives_up) expected.erase(expected.begin());
        if (one_is_deleted) std::rotate(expected.begin(), expected.begin() + 1, expected.end());
        CHECK(served == expected);
        CHECK(requests_named(r.server, "create") == (one_is_deleted ? 6 : 5));
        co_await releasing.end();
        co_await r.server.until([&] { return tree.size() == 0; });
    };
    r.run(body);
}

// Fails without G24.
TEST_CASE("lock: of readers who are handed the lock during a cut those have it afterwards whose nodes are there",
          "[lock]") {
    rig r(rig::quick().suspension(suspension_policy::lose));
    fake_tree tree;
    r.server.answer = [&](const request& q) -> std::optional<reply> { return tree(q); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const shared_mutex lock(zk, "/lock");
        std::vector<int> served;
        auto read = [&](int me) -> asio::awaitable<void> {
            lock_guard guard = co_await lock.acquire_shared();
            served.push_back(me);
            CHECK(guard.held());
            co_await guard.release();
        };
        lock_guard writing = co_await lock.acquire();
        std::vector<running> tasks;
        for (int i = 0; i < 3; ++i) {
            tasks.emplace_back(r.loop.executor(), read(i));
            co_await r.server.until([&] { return tree.size() == static_cast<std::size_t>(i) + 2; });
        }
        co_await next_turns(r.server);
        r.server.reachable = false;
        r.server.drop();
        co_await writing.lost();
        running releasing(r.loop.executor(), writing.release());
        for (int i = 0; i < 20; ++i) co_await asio::post(r.loop.executor(), asio::use_awaitable);
        tree(remove_request{tree.nth(2)});
        r.server.reachable = true;
        for (const running& t : tasks) {
            const std::exception_ptr failed = co_await t.end();
            CHECK_FALSE(failed);
        }
        REQUIRE(served.size() == 3);
        CHECK(served.back() == 1);
        CHECK(requests_named(r.server, "create") == 5);
        co_await releasing.end();
    };
    r.run(body);
}

TEST_CASE("lock: who would be handed the lock during a cut fails when the session does not outlast it", "[lock]") {
    rig r(rig::quick().suspension(suspension_policy::lose).renewal(session_renewal::none));
    fake_tree tree;
    r.server.answer = [&](const request& q) -> std::optional<reply> { return tree(q); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const mutex lock(zk, "/lock");
        lock_guard first = co_await lock.acquire();
        running waiting(r.loop.executor(), take(lock));
        co_await r.server.until([&] { return tree.size() == 2; });
        co_await next_turns(r.server);
        r.server.silent = true;
        r.server.drop();
        co_await first.lost();
        running releasing(r.loop.executor(), first.release());
        for (int i = 0; i < 20; ++i) co_await asio::post(r.loop.executor(), asio::use_awaitable);
        r.server.expire();
        const std::exception_ptr failed = co_await waiting.end();
        REQUIRE(failed);
        std::string text;
        try {
            std::rethrow_exception(failed);
        } catch (const std::exception& e) {
            text = e.what();
        }
        CHECK(text == "acquire /lock: session expired");
        co_await releasing.end();
    };
    r.run(body);
}

// Fails without G22.
TEST_CASE("lock: each who fails gets an exception of its own", "[lock]") {
    const bool expires = GENERATE(true, false);
    rig r;
    fake_tree tree;
    tree.create_as(farther, 77);
    tree.create_as(foreign, 77);
    bool spoilt = false;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        reply a = tree(q);
        if (spoilt && std::holds_alternative<children_request>(q)) a.children.push_back("config");
        return a;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const mutex lock(zk, "/lock");
        std::vector<running> tasks;
        for (int i = 0; i < 5; ++i) tasks.emplace_back(r.loop.executor(), take(lock));
        co_await r.server.until([&] { return tree.size() == 7 && r.server.watched(foreign); });
        spoilt = true;
        if (expires) {
            r.server.expire();
        } else {  // it was not the only one ahead: the head lists again, and finds what is no contender
            tree(remove_request{foreign});
            r.server.fire(node_event::removed, foreign);
        }
        std::set<const void*> objects;
        std::vector<std::exception_ptr> kept;
        for (const running& t : tasks) {
            kept.push_back(co_await t.end());
            if (!kept.back()) continue;
            try {
                std::rethrow_exception(kept.back());
            } catch (const error& e) {
                objects.insert(&e);
                CHECK(e.code() ==
                      (expires ? make_error_code(errc::session_expired) : make_error_code(errc::foreign_child)));
            }
        }
        CHECK(objects.size() == tasks.size());
    };
    r.run(body);
}
