// What a coroutine believes that runs late: its executor is busy, while the servers and the client's strand go on.

#include "support/late_executor.hpp"
#include "unit/support/fake_tree.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>

#include <optional>
#include <string>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

// Until the queues have heard of the nodes of a transaction: then the one of /x asks for a listing.
asio::awaitable<void> until_heard(rig& r, late_handlers& late) {
    while (r.server.count("children /x") == 0) {
        late.run();
        co_await next_turns(r.server);
    }
}

}  // namespace

// An operator deletes a node of the transaction, and another client comes first. A listing leaves and returns around
// the turn in which the queue hears of the node. Two rules keep its contender from owning the lock: G7, since the
// listing is for a contender behind, and G18.
TEST_CASE("multi_mutex: a listing from before a late coroutine shows its nodes to their queues is no proof of them",
          "[lock]") {
    rig r;
    fake_tree tree;
    bool hold_listing = false;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        if (hold_listing && std::holds_alternative<children_request>(q)) return std::nullopt;
        return tree(q);
    };
    const auto late = std::make_shared<late_handlers>();
    const late_executor executor(r.loop.context(), late);
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const mutex x(zk, "/x"), y(zk, "/y");
        const multi_mutex both = multi_mutex(zk).add(x).add(y);
        std::optional<lock_guard> guard, tried;
        auto acquire_both = [&]() -> asio::awaitable<void> { guard.emplace(co_await both.acquire()); };
        auto try_y = [&]() -> asio::awaitable<void> { tried = co_await y.try_acquire(); };
        const running acquiring(executor, acquire_both());
        late->run();
        co_await r.server.until([&] { return tree.size() == 2; });
        const std::string mine = tree.nth(1);
        REQUIRE(mine.starts_with("/y/"));
        tree(remove_request{mine, any_version});
        create_request theirs;
        theirs.path = "/y/_c_another-lock-";
        theirs.mode = create_mode::ephemeral_sequential;
        const std::string other = tree(theirs).path;

        hold_listing = true;
        const running trying(r.loop.executor(), try_y());
        co_await r.server.until([&] { return r.server.count("children /y") == 1; });
        hold_listing = false;
        const op_id asked = r.server.requests.back().id;
        co_await until_heard(r, *late);
        children_request y_children;
        y_children.path = "/y";
        r.server.reply_to(asked, tree(y_children));
        for (int turns = 0; turns < 10; ++turns) {
            co_await next_turns(r.server);
            late->run();
        }
        CHECK_FALSE(guard);
        CHECK(trying.ended());
        CHECK_FALSE(tried);

        tree(remove_request{other, any_version});
        r.server.fire(node_event::removed, other);
        while (!acquiring.ended()) {
            late->run();
            co_await next_turns(r.server);
        }
        REQUIRE(guard);
        CHECK(guard->held());
        for (const std::string& path : guard->paths()) CHECK(tree.has(path));
        co_await guard->release();
    };
    r.run(body);
}

// The watch on the limit tells of the change before the listing is answered.
TEST_CASE("semaphore: a listing is compared with the limit that was valid when the servers made it", "[lock]") {
    rig r;
    fake_tree tree;
    char limit = 2;
    bool hold_listing = false;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        if (hold_listing && std::holds_alternative<children_request>(q)) return std::nullopt;
        reply a = tree(q);
        const auto* g = std::get_if<get_request>(&q);
        if (!g || g->path != "/limit") return a;
        a = reply();
        a.data = std::string(3, '\0') + limit;
        return a;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const std::string one = "/s/leases/_c_one-lease-0000000000", two = "/s/leases/_c_two-lease-0000000001";
        tree.create_as(one, 7);
        tree.create_as(two, 7);
        const semaphore pool(zk, "/s", permits::counted_by("/limit"));
        std::optional<lock_guard> guard;
        auto acquire = [&]() -> asio::awaitable<void> { guard.emplace(co_await pool.acquire()); };
        const running acquiring(r.loop.executor(), acquire());
        co_await r.server.until([&] { return r.server.watched("/limit"); });
        co_await next_turns(r.server);
        REQUIRE_FALSE(acquiring.ended());

        hold_listing = true;
        tree(remove_request{one, any_version});
        r.server.fire(node_event::children_changed, "/s/leases");
        const auto listings = r.server.count("children /s/leases");
        co_await r.server.until([&] { return r.server.count("children /s/leases") > listings; });
        hold_listing = false;
        const auto asked = r.server.requests.back();
        limit = 1;
        r.server.fire(node_event::data_changed, "/limit");
        r.server.reply_to(asked.id, tree(asked.what));
        for (int turns = 0; turns < 5; ++turns) co_await next_turns(r.server);
        CHECK_FALSE(guard);

        tree(remove_request{two, any_version});
        r.server.fire(node_event::children_changed, "/s/leases");
        co_await acquiring.end();
        REQUIRE(guard);
        co_await guard->release();
    };
    r.run(body);
}
