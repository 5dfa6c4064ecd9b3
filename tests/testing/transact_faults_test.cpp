#include "testing/steps.hpp"
#include "testing/transact_steps.hpp"

#include <zkasio/recipe/receipts.hpp>

#include <asio/post.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace transact_tests {

TEST_CASE("transact: a lost answer is told without receipts, and found out with them") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.create("/a", "0");
        e.create("/b", "0");
        e.lose_answer(zk, "multi");
        const outcome told = co_await try_transact(zk, &move_one, transact_options());
        CHECK(told.code == zk_errc::connection_loss);
        CHECK(told.unknown);
        int moved = 1;
        CHECK(number_at(e, "/b") == moved);
        for (const char* request : {"get", "create", "multi", "multi", "sync", "multi"}) {
            e.lose_answer(zk, request);
            const outcome o = co_await try_transact(zk, &move_one);
            CHECK(o.done == "0");
            CHECK(number_at(e, "/b") == ++moved);
            CHECK(number_at(e, "/a") == -moved);
        }
    });
}

TEST_CASE("transact: servers that are busy are asked again, also without receipts") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.create("/a", "0");
        e.create("/b", "0");
        e.throttle(30);
        for (int i = 1; i <= 20; ++i) {
            transact_options how;
            if (i % 2 == 0) how = certain();
            const outcome o = co_await try_transact(zk, &move_one, how);
            CHECK(o.done);
            CHECK(number_at(e, "/b") == i);
        }
        e.throttle(0);
    });
}

TEST_CASE("transact: a cut at any step neither loses nor doubles a transfer") {
    std::size_t steps = 0;
    const auto play = [&](std::size_t first, std::size_t second, std::uint64_t seed) {
        INFO("cuts after " << first << " and " << second << " steps, seed " << seed);
        fake_ensemble e(seed);
        e.lag(seed % 2 == 0);
        e.create("/a", "0");
        const client one = e.client(calm()), two = e.client(calm());
        std::size_t step = 0;
        auto body = [&]() -> asio::awaitable<void> {
            cut_at_steps(e, one, two, first, second, step);
            int done = 0;
            const auto move_some = [&](const client& zk) -> asio::awaitable<void> {
                for (int i = 0; i < 2; ++i) {
                    const outcome o = co_await try_transact(zk, &move_one);
                    CHECK(o.done == "0");
                    done += o.done.has_value();
                }
            };
            running a(e.get_executor(), move_some(one)), b(e.get_executor(), move_some(two));
            co_await a.end();
            co_await b.end();
            e.on_step(nullptr);
            CHECK(done == 4);
            CHECK(number_at(e, "/a") == -4);
            CHECK(number_at(e, "/b") == 4);
            co_await one.close();
            co_await two.close();
        };
        e.run(body);
        return step;
    };
    steps = play(1000, 0, 1);
    REQUIRE(steps > 10);
    for (std::size_t first = 0; first < steps; ++first)
        for (std::size_t second = 0; second < 6; ++second) play(first, second, 1 + (first + second) % 4);
}

TEST_CASE("transact: the end of the session at any step begins again, or is unknown") {
    int unknown = 0, next_session = 0;
    std::size_t steps = 0;
    for (std::size_t at = 0; at <= steps; ++at) {
        for (std::uint64_t seed = 1; seed <= 3; ++seed) {
            INFO("expires after " << at << " steps, seed " << seed);
            const auto body = [&](fake_ensemble& e, client zk) -> asio::awaitable<void> {
                e.create("/a", "0");
                co_await try_transact(zk, &move_one);
                const std::int64_t session = e.session_id(zk);
                std::size_t step = 0;
                e.on_step([&](std::string_view) {
                    if (step++ == at) asio::post(e.context(), [&] { e.expire(zk); });
                });
                const outcome o = co_await try_transact(zk, &move_one);
                e.on_step(nullptr);
                steps = std::max(steps, step);
                const int moved = number_at(e, "/b");
                CHECK(number_at(e, "/a") == -moved);
                if (o.done) {
                    CHECK(o.done == "0");
                    CHECK(moved == 2);
                    next_session += e.session_id(zk) != session;
                } else {
                    CHECK(o.code == errc::session_expired);
                    CHECK(o.unknown);
                    CHECK((moved == 1 || moved == 2));
                    ++unknown;
                }
            };
            with_ensemble(body, seed);
        }
    }
    CHECK(unknown > 0);
    CHECK(next_session > 0);
}

TEST_CASE("transact: a read that ends with the session begins again, also if the body goes on") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.create("/a", "1");
        int runs = 0;
        enum class then {
            throws,
            writes,
            does_nothing
        };
        for (const then what : {then::throws, then::writes, then::does_nothing}) {
            runs = 0;
            const auto body = [&](unit& u) -> asio::awaitable<std::string> {
                if (++runs == 1) e.expire(zk);
                seen a;
                try {
                    a = co_await u.get("/a");
                } catch (const error&) {
                    if (what == then::throws) throw;
                }
                if (what != then::does_nothing) u.set("/a", "2");
                co_return a ? "read" : "not read";
            };
            const outcome o = co_await try_transact(zk, body);
            CHECK(o.done == "read");
            CHECK(runs == 2);
        }
        e.set("/a", "1");
        // The body's own failure is its own, even beside the end of the session.
        runs = 0;
        const auto replaces = [&](unit& u) -> asio::awaitable<std::string> {
            if (++runs == 1) e.expire(zk);
            const std::error_code code = co_await code_of(u.get("/a"));
            if (code) throw error(errc::timed_out, "mine");
            co_return "";
        };
        const outcome o = co_await try_transact(zk, replaces);
        CHECK(o.code == errc::timed_out);
        CHECK(runs == 1);
    });
}

TEST_CASE("transact: a cancellation at any step writes nothing, or says that it may have written") {
    for (const transact_options& how : {transact_options(), certain()}) {
        int nothing = 0, unknown = 0;
        std::size_t steps = 0;
        for (std::size_t at = 0; at <= steps; ++at) {
            INFO("cancelled after " << at << " steps");
            with_ensemble([&](fake_ensemble& e, client zk) -> asio::awaitable<void> {
                e.create("/a", "0");
                e.create("/b", "0");
                const client other = e.client(calm());
                co_await try_transact(zk, &move_one, how);
                std::size_t step = 0;
                int runs = 0;
                outcome o;
                const auto disturbed = [&](unit& u) -> asio::awaitable<std::string> {
                    std::string sum = co_await move_one(u);
                    if (++runs == 1) e.set("/a", e.data("/a").value());
                    co_return sum;
                };
                const auto one = [&]() -> asio::awaitable<void> { o = co_await try_transact(zk, disturbed, how); };
                running cancelled(e.get_executor(), one());
                e.on_step([&](std::string_view) {
                    if (step++ == at) asio::post(e.context(), [&] { cancelled.cancel(); });
                });
                co_await cancelled.end();
                e.on_step(nullptr);
                steps = std::max(steps, step);
                co_await zk.idle();
                co_await zk.sync();
                const int moved = number_at(e, "/b");
                CHECK(number_at(e, "/a") == -moved);
                if (o.done) CHECK(moved == 2);
                if (!o.done) CHECK(o.code == condition::cancelled);
                if (!o.done && !o.unknown) CHECK(moved == 1);
                nothing += !o.done && !o.unknown;
                unknown += o.unknown;
                co_await other.close();
            });
        }
        CHECK(nothing > 0);
        CHECK(unknown > 0);
    }
}

TEST_CASE("transact: the client's close ends it at any step") {
    std::size_t steps = 0;
    for (std::size_t at = 0; at <= steps; ++at) {
        INFO("closed after " << at << " steps");
        fake_ensemble e;
        e.create("/a", "0");
        const client zk = e.client(calm());
        auto body = [&]() -> asio::awaitable<void> {
            std::size_t step = 0;
            std::optional<running> closes;
            const auto close = [&]() -> asio::awaitable<void> { co_await zk.close(); };
            e.on_step([&](std::string_view) {
                if (step++ == at) asio::post(e.context(), [&] { closes.emplace(e.get_executor(), close()); });
            });
            const outcome o = co_await try_transact(zk, &move_one);
            if (!o.done) CHECK(o.code == errc::client_closed);
            steps = std::max(steps, at == 0 ? 20 : step);
            e.on_step(nullptr);
            if (closes)
                co_await closes->end();
            else
                co_await zk.close();
            const int moved = number_at(e, "/b");
            CHECK(number_at(e, "/a") == -moved);
            if (o.done) CHECK(moved == 1);
            if (!o.done && !o.unknown) CHECK(moved == 0);
        };
        e.run(body);
    }
}

TEST_CASE("receipts: they stay until the session ends, and not longer") {
    fake_ensemble e;
    const client zk = e.client(calm());  // not closed: its loop ends before it
    auto body = [&]() -> asio::awaitable<void> {
        e.create("/a", "0");
        co_await try_transact(zk, &move_one);
        const std::vector<std::string> first = e.children("/receipts");
        CHECK(first.size() == 1);
        co_await zk.idle();
        co_await try_transact(zk, &move_one);
        CHECK(e.children("/receipts") == first);
        e.expire(zk);
        co_await try_transact(zk, &move_one);
        CHECK(e.children("/receipts").size() == 1);
        CHECK(e.children("/receipts") != first);
        // Of a session that is over, nobody would let go of them.
        const session over = co_await zk.current_session();
        e.expire(zk);
        co_await over.ended();
        const receipts late(over, "/receipts");
        const std::error_code code = co_await code_of(late.apply(transaction()));
        CHECK(code == errc::session_expired);
    };
    e.run(body);
}

}  // namespace transact_tests
