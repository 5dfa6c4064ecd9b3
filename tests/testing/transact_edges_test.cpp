#include "testing/transact_steps.hpp"

#include <zkasio/locks/mutex.hpp>

#include <asio/post.hpp>
#include <asio/this_coro.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// What happens between the runs of a body: pauses, syncs, turns, other sessions.
namespace transact_edges_tests {

using namespace transact_tests;
using transact_tests::outcome;  // not that of another source in a unity build

TEST_CASE("transact: a server that refuses for long is asked at intervals") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.create("/a", "0");
        co_await zk.sync();
        e.refuse("/a", zk_errc::throttled);
        const auto accept = [&]() -> asio::awaitable<void> {
            co_await pause(10s);
            e.accept("/a");
        };
        running later(e.get_executor(), accept());
        const auto body = [](unit& u) -> asio::awaitable<std::string> {
            u.set("/a", "1");
            co_return "";
        };
        const std::size_t before = e.requests(zk);
        const outcome o = co_await try_transact(zk, body, transact_options());
        co_await later.end();
        CHECK(o.done);
        CHECK(e.requests(zk) < before + 300);
    });
}

TEST_CASE("transact: behind a conflict the body reads what is there, wherever the server lags") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        INFO("seed " << seed);
        const auto one = [](fake_ensemble& e, client zk) -> asio::awaitable<void> {
            e.create("/a", "0");
            e.create("/b", "0");
            co_await zk.sync();
            e.lag();
            int runs = 0;
            const auto body = [&](unit& u) -> asio::awaitable<std::string> {
                std::string sum = co_await move_one(u);
                if (++runs == 1) e.set("/a", "10");
                co_return sum;
            };
            const outcome o = co_await try_transact(zk, body, certain().tries(2));
            CHECK(o.done == "10");
            CHECK(runs == 2);
        };
        with_ensemble(one, seed);
    }
}

TEST_CASE("transact: the tries of all sessions count together") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.create("/a", "0");
        int runs = 0;
        const auto body = [&](unit& u) -> asio::awaitable<std::string> {
            if (++runs == 2) e.expire(zk);
            std::string sum = co_await move_one(u);
            e.set("/a", "0");
            co_return sum;
        };
        const outcome o = co_await try_transact(zk, body, certain().tries(2));
        CHECK(o.code == zk_errc::bad_version);
        CHECK(runs == 3);  // conflict, end of the session, conflict
    });
}

TEST_CASE("transact: a turn that has ended with its session is taken again") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.create("/a", "0");
        std::vector<std::size_t> queue;
        const auto body = [&](unit& u) -> asio::awaitable<std::string> {
            queue.push_back(e.children("/turns").size());
            if (queue.size() == 2) e.expire(zk);
            std::string sum = co_await move_one(u);
            if (queue.size() < 4) e.set("/a", "0");
            co_return sum;
        };
        const outcome o = co_await try_transact(zk, body, certain().promote_to("/turns").tries(1));
        CHECK(o.done);
        CHECK(queue == std::vector<std::size_t>{0, 1, 0, 1});
        co_await zk.idle();
        CHECK(e.children("/turns").empty());
    });
}

enum class disturbance {
    cancel,
    expire,
};

// What has become of a body that only reads, and that meets one conflict, with a turn after that.
asio::awaitable<outcome> read_in_turn(fake_ensemble& e, client zk, disturbance what, std::size_t at,
                                      std::size_t& steps) {
    int runs = 0;
    outcome o;
    const auto body = [&](unit& u) -> asio::awaitable<std::string> {
        const seen a = co_await u.get("/a");
        if (++runs == 1) e.set("/a", "1");
        co_return a ? a->data : "none";
    };
    const transact_options how = transact_options().promote_to("/turns").tries(1);
    const auto one = [&]() -> asio::awaitable<void> { o = co_await try_transact(zk, body, how); };
    running reads(e.get_executor(), one());
    std::size_t step = 0;
    const auto disturb = [&] {
        if (what == disturbance::cancel)
            reads.cancel();
        else
            e.expire(zk);
    };
    e.on_step([&](std::string_view) {
        if (step++ == at) asio::post(e.context(), disturb);
    });
    co_await reads.end();
    e.on_step(nullptr);
    steps = std::max(steps, step);
    co_return o;
}

TEST_CASE("transact: cancelled or expired at any step of a wait for its turn, nothing is uncertain") {
    for (const disturbance what : {disturbance::cancel, disturbance::expire}) {
        std::size_t steps = 0;
        int cancelled = 0;
        for (std::size_t at = 0; at <= steps; ++at) {
            INFO((what == disturbance::cancel ? "cancelled" : "expired") << " after " << at << " steps");
            with_ensemble([&](fake_ensemble& e, client zk) -> asio::awaitable<void> {
                e.create("/a", "0");
                co_await zk.sync();
                const outcome o = co_await read_in_turn(e, zk, what, at, steps);
                INFO(o.what);
                CHECK_FALSE(o.unknown);
                if (what == disturbance::expire) CHECK(o.done == "1");
                if (!o.done) CHECK(o.code == condition::cancelled);
                cancelled += !o.done;
                co_await zk.idle();
                co_await zk.sync();
                CHECK(e.children("/turns").empty());
            });
        }
        CHECK(steps > 5);
        CHECK((cancelled > 0) == (what == disturbance::cancel));
    }
}

TEST_CASE("transact: cancelled while it looks for the reason of a refusal, it is cancelled") {
    std::size_t steps = 0, cancelled = 0;
    for (std::size_t at = 0; at <= steps; ++at) {
        INFO("cancelled after " << at << " steps");
        with_ensemble([&](fake_ensemble& e, client zk) -> asio::awaitable<void> {
            e.create("/a", "0");
            e.create("/b", "0");
            co_await zk.sync();
            const auto body = [](unit& u) -> asio::awaitable<std::string> {
                const seen a = co_await u.get("/a");
                u.set("/a", a->data + "1");
                u.create("/b", "is there");  // unread: refused, and /a may be the reason
                co_return "";
            };
            outcome o;
            const auto one = [&]() -> asio::awaitable<void> {
                co_await asio::this_coro::throw_if_cancelled(false);
                o = co_await try_transact(zk, body, transact_options());
            };
            running writes(e.get_executor(), one());
            std::size_t step = 0;
            e.on_step([&](std::string_view) {
                if (step++ == at) asio::post(e.context(), [&] { writes.cancel(); });
            });
            co_await writes.end();
            e.on_step(nullptr);
            steps = std::max(steps, step);
            CHECK_FALSE(o.done);
            const bool last_answer_has_come = at + 1 >= step;
            if (!last_answer_has_come || o.code != zk_errc::node_exists) CHECK(o.code == condition::cancelled);
            cancelled += o.code == condition::cancelled;
        });
    }
    CHECK(steps > 5);
    CHECK(cancelled > 5);
}

TEST_CASE("transact: under a lock it runs in the lock's session, whichever client it is given") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        const client other = e.client(calm());
        co_await other.sync();
        const mutex orders(zk, "/locks/orders");
        lock_guard guard = co_await orders.acquire();
        const auto body = [](unit& u) -> asio::awaitable<std::string> {
            u.create("/mine", "", create_options().mode(create_mode::ephemeral));
            co_return "";
        };
        outcome o = co_await try_transact(other, body, transact_options().under(guard));
        CHECK(o.done);
        CHECK(e.stat("/mine")->ephemeral_owner == e.session_id(zk));
        // The body itself gives the lock back.
        const auto releases = [&](unit& u) -> asio::awaitable<std::string> {
            u.create("/released");
            co_await guard.release();
            co_return "";
        };
        o = co_await try_transact(zk, releases, transact_options().under(guard));
        CHECK(o.code == errc::lock_released);
        CHECK_FALSE(e.exists("/released"));
        co_await other.close();
    });
}

}  // namespace transact_edges_tests
