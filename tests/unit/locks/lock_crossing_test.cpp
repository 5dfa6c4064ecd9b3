// Locks over a scripted server: the way from contenders of other clients to one of this client.

#include "unit/locks/lock_steps.hpp"
#include "unit/support/fake_tree.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/locks/detail/queue/queue_order.hpp>
#include <zkasio/locks/mutex.hpp>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

constexpr std::size_t few = lock_detail::queue_order::most_followed;

/// A lock with contenders of other clients, whose numbers are negative: smaller than those of this client's.
struct crowd {
    explicit crowd(std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) {
            char number[16];
            std::snprintf(number, sizeof number, "%010d", static_cast<int>(i) - 100);
            others.push_back(std::string("/l/_c_00000000-0000-4000-8000-000000000001-lock-") + number);
            tree.create_as(others.back(), 77);
        }
        r.server.answer = [this](const request& q) -> std::optional<reply> {
            const auto* g = std::get_if<get_request>(&q);
            if (g && g->path == unanswered) return std::nullopt;
            return tree(q);
        };
    }

    asio::awaitable<void> acquire(client zk) { guard.emplace(co_await mutex(zk, "/l").acquire()); }
    bool all_followed() const {
        return std::all_of(others.begin(), others.end(), [this](const auto& path) { return r.server.watched(path); });
    }
    std::string ours() const { return tree.nth(others.size()); }
    std::string join() {
        create_request other;
        other.path = "/l/_c_00000000-0000-4000-8000-000000000001-lock-";
        other.mode = create_mode::ephemeral_sequential;
        return tree(other).path;
    }
    void ends(const std::string& path) {
        tree(remove_request{path});
        r.server.fire(node_event::removed, path);
    }

    rig r;
    fake_tree tree;
    std::vector<std::string> others;
    std::string unanswered;
    std::optional<lock_guard> guard;
};

}  // namespace

TEST_CASE("lock: behind a few contenders of other clients their ends are the grant, in any order, without a listing",
          "[queue]") {
    crowd c(few);
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const running acquiring(c.r.loop.executor(), c.acquire(zk));
        co_await c.r.server.until([&] { return c.all_followed(); });
        co_await next_turns(c.r.server);
        CHECK(c.r.server.watched(c.ours()));  // G19
        CHECK(requests_named(c.r.server, "create") == 1);
        CHECK(requests_named(c.r.server, "children") == 1);
        CHECK(requests_named(c.r.server, "get") == 1 + static_cast<std::ptrdiff_t>(few));
        const std::size_t asked = c.r.server.requests.size();

        std::vector<std::string> going = c.others;
        const std::size_t first = GENERATE(range(std::size_t{0}, few));
        std::rotate(going.begin(), going.begin() + static_cast<std::ptrdiff_t>(first), going.end());
        for (const std::string& path : going) {
            CHECK_FALSE(c.guard);  // G22: the others are still there
            c.ends(path);
            co_await next_turns(c.r.server);
        }
        co_await acquiring.end();
        CHECK(c.guard->held());
        CHECK(c.r.server.requests.size() == asked);
        co_await c.guard->release();
    };
    c.r.run(body);
}

// Fails without G19 and G20.
TEST_CASE("lock: without a proof of its own node the end of all ahead is not the grant", "[queue]") {
    crowd c(2);
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const running acquiring(c.r.loop.executor(), c.acquire(zk));
        SECTION("its watch is not answered yet") {
            co_await c.r.server.until([&] { return c.tree.size() == 3; });
            c.unanswered = c.ours();
            co_await c.r.server.until([&] { return c.all_followed(); });
            for (const std::string& path : c.others) c.ends(path);
            co_await acquiring.end();
            CHECK(requests_named(c.r.server, "children") == 2);
        }
        SECTION("an operator has deleted it") {
            co_await c.r.server.until([&] { return c.all_followed(); });
            co_await next_turns(c.r.server);
            const std::string ours = c.ours();
            c.ends(ours);
            for (const std::string& path : c.others) c.ends(path);
            co_await acquiring.end();
            CHECK(requests_named(c.r.server, "create") == 2);
            CHECK(c.guard->path() != ours);
        }
        CHECK(c.guard->held());
        co_await c.guard->release();
    };
    c.r.run(body);
}

TEST_CASE("lock: behind many contenders of other clients one is followed, and then listed again", "[queue]") {
    crowd c(few + 1);
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        running acquiring(c.r.loop.executor(), c.acquire(zk));
        co_await c.r.server.until([&] { return c.r.server.watched(c.others.back()); });
        co_await next_turns(c.r.server);
        CHECK(requests_named(c.r.server, "get") == 1);
        c.ends(c.others.back());
        c.others.pop_back();
        co_await c.r.server.until([&] { return c.all_followed(); });
        CHECK(requests_named(c.r.server, "children") == 2);
        CHECK_FALSE(c.guard);
        acquiring.cancel();
        co_await acquiring.end();
        co_await next_turns(c.r.server);
        for (const std::string& path : c.others) CHECK_FALSE(c.r.server.watched(path));
    };
    c.r.run(body);
}

// Behind one of another client a grant costs three requests: two watches, on that node and its own, and its removal.
TEST_CASE("lock: between the contenders of two clients that take turns nothing is listed", "[queue]") {
    crowd c(0);
    auto body = [&](client zk) -> asio::awaitable<void> {
        (void)co_await c.acquire(zk);
        lock_guard first = std::move(*c.guard);
        std::vector<std::string> theirs;
        std::vector<std::optional<lock_guard>> got(4);
        auto acquire = [&](std::size_t n) -> asio::awaitable<void> {
            got[n].emplace(co_await mutex(zk, "/l").acquire());
        };
        std::vector<running> acquiring;
        for (std::size_t n = 0; n < got.size(); ++n) {
            theirs.push_back(c.join());
            acquiring.emplace_back(c.r.loop.executor(), acquire(n));
            co_await c.r.server.until([&] { return c.tree.size() == 2 * n + 3; });
        }
        co_await next_turns(c.r.server);
        co_await first.release();
        const auto granted = [&](std::size_t n) -> asio::awaitable<void> {
            c.ends(theirs[n]);
            co_await acquiring[n].end();
            CHECK(got[n]->held());
        };
        co_await granted(0);
        co_await got[0]->release();
        co_await granted(1);
        // The later ones came after the listing. The next head needs another one, which serves all that have come.
        co_await c.r.server.until([&] { return c.r.server.watched(theirs[2]) && c.r.server.watched(theirs[3]); });
        co_await next_turns(c.r.server);
        const std::size_t asked = c.r.server.requests.size();
        co_await got[1]->release();
        co_await granted(2);
        co_await got[2]->release();
        co_await granted(3);
        CHECK(c.r.server.requests.size() == asked + 3);  // two removals, and the watch on the last one's own node
        co_await got[3]->release();
        CHECK(requests_named(c.r.server, "children") == 3);
        CHECK(requests_named(c.r.server, "get") == 8);
    };
    c.r.run(body);
}
