#include "unit/support/fake_directory.hpp"
#include "unit/support/fake_tree.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

// A first acknowledged write may prove that the session has lived, and yet come too late to promise anything.
TEST_CASE("lock: an acquire waits until the lease covers it", "[queue]") {
    constexpr auto T = 1s;
    rig r;
    r.server.session_timeout = T;
    directory d(r.server, "0000000000");
    d.hold_create = true;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const mutex lock(zk, "/l");
        bool held = false;
        auto acquire = [&]() -> asio::awaitable<void> {
            const lock_guard guard = co_await lock.acquire();
            held = guard.held();
        };
        const running acquiring(r.loop.executor(), acquire());
        co_await r.server.until([&] { return !d.ours.empty(); });
        const auto create = std::find_if(r.server.requests.begin(), r.server.requests.end(), [](const auto& q) {
            return std::holds_alternative<create_request>(q.what);
        });
        const auto late = create->at + T + T / 5;
        co_await r.server.until([&] { return boot_clock::now() > late; });
        reply created;
        created.path = d.ours;
        r.server.reply_to(create->id, created);
        const std::error_code code = co_await acquiring.code();
        CHECK(code == std::error_code());
        CHECK(held);
    };
    r.run(body);
}

// Fails without G16.
TEST_CASE("lock: as long as a listing shows a node that is being removed, no other one is asked for", "[queue]") {
    rig r;
    fake_tree tree;
    bool removals_take_long = true;
    std::optional<op_id> removal;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        if (removals_take_long && std::holds_alternative<remove_request>(q)) return std::nullopt;
        return tree(q);
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const shared_mutex lock(zk, "/l");
        lock_guard reading = co_await lock.acquire_shared();
        std::optional<lock_guard> written;
        auto write = [&]() -> asio::awaitable<void> { written.emplace(co_await lock.acquire()); };
        const running writing(r.loop.executor(), write());
        co_await r.server.until([&] { return tree.size() == 2; });
        co_await next_turns(r.server);
        const auto listings = r.server.count("children /l");
        const std::string path = reading.path();
        running releasing(r.loop.executor(), reading.release());
        co_await r.server.until([&] { return r.server.count("children /l") > listings; });
        for (int turns = 0; turns < 10; ++turns) co_await next_turns(r.server);
        CHECK(r.server.count("children /l") == listings + 1);
        CHECK_FALSE(writing.ended());
        for (const auto& q : r.server.requests)
            if (std::holds_alternative<remove_request>(q.what)) removal = q.id;
        removals_take_long = false;
        tree(remove_request{path});
        r.server.reply_to(removal.value(), reply());
        co_await writing.end();
        CHECK(written->held());
        CHECK(r.server.count("children /l") == listings + 2);
        co_await releasing.end();
        co_await written->release();
    };
    r.run(body);
}

TEST_CASE("lock: an observer is told where it stands also when the acquire starts over", "[queue]") {
    constexpr auto T = 300ms;
    rig r;
    r.server.session_timeout = T;
    fake_tree tree;
    const std::string other = "/l/_c_00000000-0000-4000-8000-000000000001-lock-0000000001";
    std::string first;
    bool sent = false;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        if (is_heartbeat(q) &&
            !tree.has(other)) {  // it has the lock, without a lease yet, and an operator deletes its node
            tree(remove_request{first});
            tree.create_as(other, 77);
        }
        reply a = tree(q);
        if (!std::holds_alternative<create_request>(q) || std::exchange(sent, true)) return a;
        first = a.path;
        return std::nullopt;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const mutex lock(zk, "/l");
        std::vector<queue_position> told;
        acquire_options how;
        how.on_position([&](const queue_position& p) { told.push_back(p); });
        auto acquire = [&]() -> asio::awaitable<void> { (void)co_await lock.acquire(how); };
        running acquiring(r.loop.executor(), acquire());
        co_await r.server.until([&] { return sent && r.server.count("children /l") > 0; });
        co_await next_turns(r.server);
        const auto create = std::find_if(r.server.requests.begin(), r.server.requests.end(), [](const auto& q) {
            return std::holds_alternative<create_request>(q.what);
        });
        const auto late = create->at + T + T / 5;
        co_await r.server.until([&] { return boot_clock::now() > late; });
        reply created;
        created.path = first;
        r.server.reply_to(create->id, created);  // too late for a lease
        co_await r.server.until([&] { return r.server.watched(other); });
        co_await next_turns(r.server);
        REQUIRE(told.size() == 1);
        CHECK(told.back().ahead == 1);
        CHECK(told.back().predecessor == other);
        acquiring.cancel();
        co_await acquiring.end();
    };
    r.run(body);
}

TEST_CASE("lock: an observer is not told anything after the acquire has ended", "[queue]") {
    rig r;
    fake_tree tree;
    tree.create_as("/l/_c_00000000-0000-4000-8000-000000000001-lock-0000000001", 77);
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        if (std::holds_alternative<children_request>(q)) return std::nullopt;
        return tree(q);
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const mutex lock(zk, "/l");
        int told = 0;
        auto acquire = [&]() -> asio::awaitable<void> {
            (void)co_await lock.acquire(acquire_options().on_position([&](const queue_position&) { ++told; }));
        };
        const running acquiring(r.loop.executor(), acquire());
        co_await r.server.until([&] { return tree.size() == 2 && r.server.count("children /l") > 0; });
        co_await next_turns(r.server);
        const bool in_time = GENERATE(true, false);
        r.server.reply_to(r.server.requests.back().id, tree(children_request{"/l", {}}));
        if (in_time) co_await r.server.until([&] { return told > 0; });
        r.server.expire();
        const std::error_code code = co_await acquiring.code();
        CHECK(code == condition::session_ended);
        co_await next_turns(r.server);
        CHECK(told == in_time);
    };
    r.run(body);
}

TEST_CASE("semaphore: whoever is being served notices that its turn is over, also when the lease has ended in between",
          "[queue]") {
    const std::string theirs = "/s/leases/_c_00000000-0000-4000-8000-000000000001-lease-0000000001";
    rig r;
    r.server.session_timeout = 300ms;
    fake_tree tree;
    tree.create_as(theirs, 77);
    bool stalled = true;
    std::string turn;
    std::size_t looks = 0;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        if (stalled && is_heartbeat(q)) return std::nullopt;
        if (const auto* e = std::get_if<exists_request>(&q); e && e->path == turn) ++looks;
        reply a = tree(q);
        if (const auto* c = std::get_if<create_request>(&q); c && c->path.starts_with("/s/locks/") && turn.empty())
            turn = a.path;
        return a;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const semaphore s(zk, "/s", permits::fixed(1));
        auto acquire = [&]() -> asio::awaitable<void> { (void)co_await s.acquire(); };
        const running acquiring(r.loop.executor(), acquire());
        co_await r.server.until([&] { return looks > 0 && r.server.watched(turn); });
        CHECK(tree.size() == 3);
        stalled = false;
        tree(remove_request{turn});
        r.server.fire(node_event::removed, turn);
        co_await r.server.until(
            [&] { return tree.size() == 3; });  // its lease is given back; in the next turn there is another
        tree(remove_request{theirs});
        r.server.fire(node_event::children_changed, "/s/leases");
        const std::error_code code = co_await acquiring.code();
        CHECK(code == std::error_code());
    };
    r.run(body);
}

TEST_CASE("semaphore: whoever is being served waits on through an outage that its turn outlives", "[queue]") {
    const std::string theirs = "/s/leases/_c_00000000-0000-4000-8000-000000000001-lease-0000000001";
    rig r(rig::quick().connection_timeout(30ms).suspension(suspension_policy::lose));
    r.server.session_timeout = 10s;
    fake_tree tree;
    tree.create_as(theirs, 77);
    r.server.answer = [&](const request& q) -> std::optional<reply> { return tree(q); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const semaphore s(zk, "/s", permits::fixed(1));
        auto acquire = [&]() -> asio::awaitable<void> { (void)co_await s.acquire(); };
        const running acquiring(r.loop.executor(), acquire());
        co_await r.server.until([&] { return r.server.watched("/s/leases", watch_kind::children); });
        co_await next_turns(r.server);
        r.server.reachable = false;
        r.server.drop();
        co_await r.server.until([&] { return zk.state() != session_state::connected; });
        const std::error_code outage = co_await code_of(zk.get("/asked/later/than/the/turn"));
        REQUIRE(outage == errc::not_connected);
        CHECK_FALSE(acquiring.ended());
        r.server.reachable = true;
        co_await r.server.until([&] { return zk.state() == session_state::connected; });
        tree(remove_request{theirs});
        r.server.fire(node_event::children_changed, "/s/leases");
        const std::error_code code = co_await acquiring.code();
        CHECK(code == std::error_code());
    };
    r.run(body);
}

TEST_CASE("lock: after an acquire that could not even be sent the next one takes one round trip", "[queue]") {
    rig r;
    fake_tree tree;
    bool answering = true;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        if (!answering && std::holds_alternative<create_request>(q)) return std::nullopt;
        return tree(q);
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const mutex lock(zk, "/l"), too_long(zk, "/l", mutex_options().data(std::string(2'000'000, 'x')));
        lock_guard keeps_the_queue = co_await lock.acquire();
        const std::error_code code = co_await code_of(too_long.acquire());
        CHECK(code);
        co_await keeps_the_queue.release();
        answering = false;
        const auto listings = r.server.count("children /l");
        auto acquire = [&]() -> asio::awaitable<void> { (void)co_await lock.acquire(); };
        running acquiring(r.loop.executor(), acquire());
        co_await next_turns(r.server);
        CHECK(r.server.count("children /l") == listings + 1);
        acquiring.cancel();
        co_await acquiring.end();
    };
    r.run(body);
}

TEST_CASE("lock: two name_schemes with the same markers keep apart", "[queue]") {
    rig r;
    fake_tree tree;
    r.server.answer = [&](const request& q) -> std::optional<reply> { return tree(q); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const mutex ours(zk, "/l", mutex_options().names(name_scheme::custom("ours-", "lock-")));
        const mutex theirs(zk, "/l", mutex_options().names(name_scheme::custom("theirs-", "lock-")));
        lock_guard first = co_await ours.acquire();
        auto acquire = [&]() -> asio::awaitable<void> {
            const lock_guard second = co_await theirs.acquire();
            CHECK(second.path().starts_with("/l/theirs-"));
        };
        const running acquiring(r.loop.executor(), acquire());
        co_await r.server.until([&] { return r.server.watched(first.path()); });
        CHECK(first.path().starts_with("/l/ours-"));
        co_await first.release();
        r.server.fire(node_event::removed, first.path());
        const std::error_code code = co_await acquiring.code();
        CHECK(code == std::error_code());
    };
    r.run(body);
}
