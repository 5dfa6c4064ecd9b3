// Locks over a scripted server: servers that refuse, for a while or for good.

#include "unit/locks/lock_steps.hpp"
#include "unit/support/fake_tree.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/locks/detail/queue/queue_order.hpp>
#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/unfair_mutex.hpp>

#include <set>
#include <string>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

// Of other clients, in front of ours.
const std::string farther = "/lock/_c_00000000-0000-4000-8000-000000000000-lock--00000000";
const std::string foreign = "/lock/_c_00000000-0000-4000-8000-000000000001-lock-0000000001";

}  // namespace

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
    rig r(rig::quick().retry(retry_policy::n_times(1, 500ms)));
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
        const std::string of = kind == "semaphore" ? "/x/leases/" : "/x";
        if (operation_name(q) == "create" && path_of(q).starts_with(of)) {
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

TEST_CASE("lock: a downgrade that is refused, for having too much to do, is repeated after a pause", "[lock]") {
    constexpr auto pause = 60ms;
    rig r(rig::quick().retry(retry_policy::n_times(1, pause)));
    fake_tree tree;
    std::vector<boot_clock::time_point> times;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        const auto* m = std::get_if<multi_request>(&q);
        if (m && m->ops.size() == 2) {
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

// Fails without G22.
TEST_CASE("lock: each who fails gets an exception of its own", "[lock]") {
    const bool expires = GENERATE(true, false);
    rig r;
    fake_tree tree;
    constexpr std::size_t ahead = lock_detail::queue_order::most_followed + 1;
    for (std::size_t i = 1; i < ahead; ++i) tree.create_as(farther + std::to_string(i), 77);
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
        co_await r.server.until([&] { return tree.size() == ahead + 5 && r.server.watched(foreign); });
        spoilt = true;
        if (expires) {
            r.server.expire();
        } else {  // too many are ahead to follow all: the head lists again, and finds what is no contender
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
