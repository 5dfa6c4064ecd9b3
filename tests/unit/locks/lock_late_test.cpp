// What arrives between a question and its answer.

#include "unit/support/fake_tree.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>

#include <optional>
#include <string>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

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
