// What happens on the strand costs what it concerns, not what there is: four times as many take about four times as
// long.

#include "unit/support/fake_tree.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/detail/client/core.hpp>
#include <zkasio/detail/requests/node_feeds.hpp>
#include <zkasio/detail/requests/watch_registry.hpp>
#include <zkasio/detail/session/session_record.hpp>
#include <zkasio/locks/detail/queue/lock_queue.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/unfair_mutex.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/detail/receipt_pool.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/io_context.hpp>
#include <asio/strand.hpp>

#include <algorithm>
#include <cstddef>
#include <ctime>
#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

double processor_seconds() {
    timespec t{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

// `work(n)` returns the processor time that n of something took. Quadratic work would make it 16.
void check_scales(const std::function<double(std::size_t)>& work, std::size_t n) {
    double least = 1e9;
    for (int attempt = 0; attempt < 3 && least >= 7; ++attempt) {
        const double few = work(n);
        least = std::min(least, work(4 * n) / few);
    }
    CHECK(least < 9);
}

asio::awaitable<double> on_strand_of(client zk, std::function<void()> work) {
    double took = 0;
    std::function<asio::awaitable<void>()> there = [&]() -> asio::awaitable<void> {
        const double began = processor_seconds();
        work();
        took = processor_seconds() - began;
        co_return;
    };
    co_await asio::co_spawn(zk.get_executor(), there, asio::use_awaitable);
    co_return took;
}

std::string lock_name(std::size_t n) {
    const std::string digits = std::to_string(n);
    return "lock-" + std::string(10 - digits.size(), '0') + digits;
}

// With `n` who wait behind one that is held by another client. How long that takes, from the first request on.
double waiters(std::size_t n, const std::function<asio::awaitable<void>(client, fake_tree&)>& one) {
    rig r;
    fake_tree tree;
    tree.create_as("/lock/_c_00000000-0000-4000-8000-000000000000-lock-0000000000", 77);
    r.server.answer = [&](const request& q) { return tree(q); };
    double took = 0;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const double began = processor_seconds();
        {
            std::vector<running> all;
            for (std::size_t i = 0; i < n; ++i) all.emplace_back(r.loop.executor(), one(zk, tree));
            co_await r.server.until([&] { return tree.size() == n + 1; });
            co_await next_turns(r.server);
            took = processor_seconds() - began;
            for (auto t = all.rbegin(); t != all.rend(); ++t)
                t->cancel();  // the last first: it changes nobody's position
        }
        co_await r.server.until([&] { return tree.size() == 1; });
    };
    r.run(body);
    return took;
}

}  // namespace

// There may be thousands of clients in a process. What a client has beside this are some 10 KiB of the C library and of
// Asio.
TEST_CASE("scaling: what a client has before it does anything", "[scaling]") {
    CHECK(sizeof(core) <= 6500);
    CHECK(sizeof(session_record) <= 1000);
}

TEST_CASE("scaling: requests while there is no connection, and many removals that wait for one", "[scaling]") {
    const auto work = [](std::size_t n) {
        rig r;
        double took = 0;
        auto body = [&](client zk) -> asio::awaitable<void> {
            co_await zk.connected();
            r.server.reachable = false;
            r.server.drop();
            co_await r.server.until([&] { return zk.state() == session_state::suspended; });
            took = co_await on_strand_of(zk, [&] {
                for (std::size_t i = 0; i < n; ++i) toolbox(zk).ensure_removed("/a");
                for (std::size_t i = 0; i < n; ++i) toolbox(zk).start_get("/b");
            });
        };
        r.run(body);
        return took;
    };
    check_scales(work, 4000);
}

TEST_CASE("scaling: removals whose answers are lost", "[scaling]") {
    const auto work = [](std::size_t n) {
        rig r;
        r.server.answer = [](const request&) { return std::nullopt; };
        double took = 0;
        auto body = [&](client zk) -> asio::awaitable<void> {
            co_await zk.connected();
            for (std::size_t i = 0; i < n; ++i) toolbox(zk).ensure_removed("/a");
            co_await r.server.until([&] { return !r.server.requests.empty(); });
            r.server.reachable = false;
            const double began = processor_seconds();
            for (int cut = 0; cut < 3; ++cut) {
                r.server.reachable = true;
                const std::size_t before = r.server.requests.size();
                r.server.drop();
                co_await r.server.until([&] { return r.server.requests.size() > before; });
            }
            took = processor_seconds() - began;
        };
        r.run(body);
        return took;
    };
    check_scales(work, 4000);
}

TEST_CASE("scaling: holds that begin, are covered by a lease, and end", "[scaling]") {
    const auto work = [](std::size_t n) {
        rig r;
        double took = 0;
        auto body = [&](client zk) -> asio::awaitable<void> {
            const session s = co_await zk.current_session();
            std::vector<session_hold> all;
            took = co_await on_strand_of(zk, [&] {
                for (std::size_t i = 0; i < n; ++i) all.push_back(s.hold(std::string()));
            });
            co_await all.back().confirmed();
            took += co_await on_strand_of(zk, [&] {
                for (const session_hold& h : all) h.end();
            });
        };
        r.run(body);
        return took;
    };
    check_scales(work, 4000);
}

TEST_CASE("scaling: turns of the strand while there are many holds", "[scaling]") {
    // As many turns with four times as many holds: nothing else than the number of holds changes.
    const auto work = [](std::size_t n) {
        rig r;
        double took = 0;
        auto body = [&](client zk) -> asio::awaitable<void> {
            const session s = co_await zk.current_session();
            std::vector<session_hold> all;
            for (std::size_t i = 0; i < n; ++i) all.push_back(s.hold(std::string()));
            co_await all.back().confirmed();
            const double began = processor_seconds();
            for (int i = 0; i < 300; ++i) co_await zk.get("/a");
            took = processor_seconds() - began;
        };
        r.run(body);
        return took;
    };
    double least = 1e9;
    for (int attempt = 0; attempt < 3 && least >= 2; ++attempt) {
        const double few = work(4000);
        least = std::min(least, work(16'000) / few);
    }
    CHECK(least < 2.5);
}

TEST_CASE("scaling: who waits and watches its position", "[scaling]") {
    const auto work = [](std::size_t n) {
        std::size_t told = 0;
        const auto one = [&](client zk, fake_tree&) -> asio::awaitable<void> {
            const mutex lock(zk, "/lock");
            acquire_options how;
            position_observer count = [&told](const queue_position&) { ++told; };
            how.on_position(count);
            (void)co_await lock.acquire(how);
        };
        const double took = waiters(n, one);
        CHECK(told >= n);
        return took;
    };
    check_scales(work, 1500);
}

TEST_CASE("scaling: who waits for an unfair_mutex", "[scaling]") {
    const auto work = [](std::size_t n) {
        rig r;
        fake_tree tree;
        tree.create_as("/lock", 77);
        r.server.answer = [&](const request& q) { return tree(q); };
        double took = 0;
        auto body = [&](client zk) -> asio::awaitable<void> {
            co_await zk.connected();
            const unfair_mutex lock(zk, "/lock");
            auto one = [&]() -> asio::awaitable<void> { (void)co_await lock.acquire(); };
            const double began = processor_seconds();
            {
                std::vector<running> all;
                for (std::size_t i = 0; i < n; ++i) all.emplace_back(r.loop.executor(), one());
                co_await r.server.until([&] { return r.server.watched("/lock"); });
                co_await next_turns(r.server);
                for (auto t = all.rbegin(); t != all.rend(); ++t) t->cancel();
                for (const running& t : all) co_await t.end();
            }
            took = processor_seconds() - began;
        };
        r.run(body);
        return took;
    };
    check_scales(work, 2500);
}

TEST_CASE("scaling: a reader comes to many who hold the lock", "[scaling]") {
    const auto work = [](std::size_t n) {
        rig r;
        fake_tree tree;
        r.server.answer = [&](const request& q) { return tree(q); };
        double took = 0;
        auto body = [&](client zk) -> asio::awaitable<void> {
            co_await zk.connected();
            std::vector<lock_guard> guards;
            auto one = [&]() -> asio::awaitable<void> {
                const shared_mutex lock(zk, "/lock");
                guards.push_back(co_await lock.acquire_shared());
            };
            const double began = processor_seconds();
            {
                std::vector<running> all;
                for (std::size_t i = 0; i < n; ++i) all.emplace_back(r.loop.executor(), one());
                for (const running& t : all) co_await t.end();
            }
            took = processor_seconds() - began;
            CHECK(guards.size() == n);
            guards.clear();
            co_await r.server.until([&] { return tree.size() == 0; });
        };
        r.run(body);
        return took;
    };
    check_scales(work, 1500);
}

TEST_CASE("scaling: who watches the same node, and leaves", "[scaling]") {
    const auto work = [](std::size_t n) {
        watch_registry registry;
        std::vector<watch_ptr> all;
        const double began = processor_seconds();
        for (std::size_t i = 0; i < n; ++i) {
            all.push_back(std::make_shared<watch_state>());
            all.back()->path = "/a";
            registry.begin("/a", watch_kind::data);
            registry.finish("/a", watch_kind::data, true, all.back());
        }
        for (auto w = all.rbegin(); w != all.rend(); ++w) registry.leave(**w);
        return processor_seconds() - began;
    };
    check_scales(work, 5000);
}

namespace {

struct following_one : node_feed_listener {
    explicit following_one(std::size_t& a) : asked(a) {}
    void connected(bool) override {}
    void disconnected() override {}
    void closed(std::error_code) override {}
    void answered(node_read, const std::string&, std::error_code, node_answer) override {}
    void changed(node_change, const std::string&, std::int64_t) override {}
    bool watches(node_read, const std::string&) const override {
        ++asked;
        return stays;
    }
    void for_each_watch(const std::function<void(node_read, const std::string&)>&) const override {}
    std::size_t& asked;
    bool stays = true;
};

// @param is_next of the `n` who leave, by how many have left.
std::size_t asked_by_feeds_that_leave(std::size_t n, const std::function<std::size_t(std::size_t)>& is_next,
                                      double& took) {
    asio::io_context loop;
    const logger log(strand_type(asio::any_io_executor(loop.get_executor())), nullptr);
    node_feeds feeds(log);
    std::size_t asked = 0;
    std::vector<std::shared_ptr<following_one>> all;
    std::vector<feed_ptr> states;
    for (std::size_t i = 0; i < n; ++i) {
        all.push_back(std::make_shared<following_one>(asked));
        states.push_back(std::make_shared<feed_state>());
        states.back()->root = "/a";
        states.back()->listener = all.back();
        feeds.add(states.back());
    }
    const double began = processor_seconds();
    for (std::size_t i = 0; i < n; ++i) {  // each has left before any is removed, which waits for an answer
        all[is_next(i)]->stays = false;
        const bool others = feeds.watches("/a", watch_kind::data);
        if (others != (i + 1 < n)) throw std::logic_error("the watch of the last one, and of no other, is removed");
    }
    for (std::size_t i = n; i-- > 0;) feeds.remove(*states[is_next(i)]);
    took = processor_seconds() - began;
    if (!feeds.empty()) throw std::logic_error("a feed is left");
    return asked;
}

}  // namespace

TEST_CASE("scaling: feeds of one node that leave, in any order, ask each other a few times", "[scaling]") {
    const std::vector<std::function<std::size_t(std::size_t)>> orders{
        [](std::size_t i) { return i; },
        [](std::size_t i) { return 1999 - i; },
        [](std::size_t i) { return i * 1201 % 2000; },
    };
    for (const auto& order : orders) {
        double took = 0;
        CHECK(asked_by_feeds_that_leave(2000, order, took) < 4 * 2000);
    }
    const auto work = [](std::size_t n) {
        double took = 0;
        asked_by_feeds_that_leave(n, [](std::size_t i) { return i; }, took);
        return took;
    };
    check_scales(work, 3000);
}

TEST_CASE("scaling: who waits for the same event, and leaves", "[scaling]") {
    const auto work = [](std::size_t n) {
        one_shot_state w;
        const double began = processor_seconds();
        for (op_id id = 1; id <= n; ++id) w.add(id);
        for (op_id id = 1; id <= n; ++id) w.leave(id);
        return processor_seconds() - began;
    };
    check_scales(work, 10'000);
}

TEST_CASE("scaling: a queue with many who leave, and many of other clients", "[scaling]") {
    using namespace zkasio::lock_detail;
    const queue_names names(name_scheme::curator(), "lock-", "", "/a");
    const auto work = [&](std::size_t n) {
        queue_order o(names);
        std::vector<std::string> all;
        for (std::size_t i = 0; i < 3 * n; ++i) all.push_back(lock_name(i));
        const double began = processor_seconds();
        o.listed(std::vector<std::string>(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n)),
                 o.begin_listing());
        std::vector<queue_key> keys;
        for (std::size_t i = n; i < 2 * n; ++i) keys.push_back(o.enter(all[i], nullptr, o.begin_create()));
        for (std::size_t i = n; i > 0; --i) o.removed(all[i - 1]);
        for (std::size_t i = n / 2; i < n; ++i) o.leave(keys[i]);
        for (std::size_t i = 2 * n; i < 3 * n; ++i) o.leave(o.enter(all[i], nullptr, o.begin_create()));
        return processor_seconds() - began;
    };
    check_scales(work, 3000);
}

// Half of them are cancelled, the last one first; the others get the receipts, one after another.
TEST_CASE("scaling: transactions that wait for a receipt", "[scaling]") {
    const auto work = [](std::size_t n) {
        rig r;
        double took = 0;
        auto body = [&](client zk) -> asio::awaitable<void> {
            const session on = co_await zk.current_session();
            const auto pool = std::make_shared<receipt_pool>(on);
            const one_shot_event go = toolbox(zk).make_one_shot_event();
            std::size_t come = 0;
            auto one = [&]() -> asio::awaitable<void> {
                receipt_pool::turn turn(pool);
                co_await turn.come("put", "/q");
                ++come;
                co_await go.wait();
            };
            const double began = processor_seconds();
            std::vector<running> all;
            for (std::size_t i = 0; i < n; ++i) all.emplace_back(r.loop.executor(), one());
            co_await next_turns(r.server);
            CHECK(come == receipt_pool::most);
            for (std::size_t i = n; i > n / 2; --i) all[i - 1].cancel();
            go.fire();
            for (const running& t : all) co_await t.end();
            took = processor_seconds() - began;
            CHECK(come == n / 2);
        };
        r.run(body);
        return took;
    };
    check_scales(work, 10000);
}
