#include "testing/transact_steps.hpp"

#include <zkasio/client_observer.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/unfair_mutex.hpp>

#include <asio/post.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace transact_tests {

// ------------------------------------------------------------------------------------------------- under a lock

TEST_CASE("transact: under a lock it is applied only while the lock is held") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.create("/a", "0");
        const mutex orders(zk, "/locks/orders");
        for (const bool reads_only : {false, true}) {
            lock_guard guard = co_await orders.acquire();
            transact_options how = certain().under(guard);
            int runs = 0;
            std::function<void()> beside;
            const auto body = [&](unit& u) -> asio::awaitable<std::string> {
                ++runs;
                std::string sum;
                if (reads_only) {
                    const seen a = co_await u.get("/a");
                    sum = a ? a->data : "";
                } else {
                    sum = co_await move_one(u);
                }
                if (beside) std::exchange(beside, nullptr)();
                co_return sum;
            };
            const int before = number_at(e, "/a");
            outcome o = co_await try_transact(zk, body, how);
            CHECK(o.done);
            beside = [&] { e.set("/a", e.data("/a").value()); };  // an ordinary conflict
            o = co_await try_transact(zk, body, how);
            CHECK(o.done);
            CHECK(runs == 3);
            CHECK(number_at(e, "/a") == (reads_only ? before : before - 2));

            const std::string node = guard.path();
            beside = [&] { e.remove(node); };
            runs = 0;
            o = co_await try_transact(zk, body, how);
            CHECK(o.code == errc::lock_lost);
            CHECK_FALSE(o.unknown);
            CHECK(o.what.find("transact " + node + ": ") == 0);
            CHECK(runs == 1);
            CHECK_FALSE(guard.held());
            CHECK(guard.reason() == loss_reason::node_deleted);
            CHECK(number_at(e, "/a") == (reads_only ? before : before - 2));
            o = co_await try_transact(zk, body, how);  // not even begun
            CHECK(o.code == errc::lock_lost);
            CHECK(runs == 1);
        }
    });
}

TEST_CASE("transact: under a lock the end of the session is the loss of the lock") {
    int lost = 0;
    std::size_t steps = 0;
    for (std::size_t at = 0; at <= steps; ++at) {
        INFO("expires after " << at << " steps");
        with_ensemble([&](fake_ensemble& e, client zk) -> asio::awaitable<void> {
            e.create("/a", "0");
            const mutex orders(zk, "/locks/orders");
            const lock_guard guard = co_await orders.acquire();
            co_await try_transact(zk, &move_one, certain().under(guard));
            std::size_t step = 0;
            e.on_step([&](std::string_view) {
                if (step++ == at) asio::post(e.context(), [&] { e.expire(zk); });
            });
            const outcome o = co_await try_transact(zk, &move_one, certain().under(guard));
            e.on_step(nullptr);
            steps = std::max(steps, step);
            const int moved = number_at(e, "/b");
            CHECK(number_at(e, "/a") == -moved);
            if (o.done) {
                CHECK(moved == 2);
            } else {
                CHECK(o.code == errc::lock_lost);
                if (!o.unknown) CHECK(moved == 1);
                ++lost;
            }
        });
    }
    CHECK(lost > 0);
}

TEST_CASE("transact: guards that prove nothing, and options that make no sense, are refused") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.create("/a", "0");
        CHECK_THROWS_AS(transact_options().receipts("no/slash"), error);
        CHECK_THROWS_AS(transact_options().promote_to("no/slash"), error);
        CHECK_THROWS_AS(transact_options().tries(0), error);
        CHECK_THROWS_AS(transact_options().under(lock_guard()), error);
        const mutex orders(zk, "/locks/orders");
        lock_guard guard = co_await orders.acquire();
        const transact_options how = transact_options().under(guard);
        co_await guard.release();
        CHECK_THROWS_AS(transact_options().under(guard), error);
        outcome o = co_await try_transact(zk, &move_one, how);
        CHECK(o.code == errc::lock_released);
        const unfair_mutex flag(zk, "/locks/flag");
        const lock_guard proves_nothing = co_await flag.acquire();
        o = co_await try_transact(zk, &move_one, transact_options().under(proves_nothing));
        CHECK(o.code == errc::invalid_argument);
        const lock_guard again = co_await orders.acquire();
        o = co_await try_transact(zk, &move_one, transact_options().under(again).promote_to("/locks/orders"));
        CHECK(o.code == errc::would_deadlock);
        o = co_await try_transact(zk, &move_one, transact_options().promote_to("/locks/others"));  // not needed
        CHECK(o.done);
        e.remove("/b");
        e.set("/a", "0");
        CHECK(e.data("/a") == "0");
    });
}

TEST_CASE("transact: options keep neither the lock nor the client that they name") {
    for (const bool released : {false, true}) {
        INFO("released: " << released);
        transact_options how;
        std::weak_ptr<client_observer> inside;
        {
            fake_ensemble e;
            const auto observer = std::make_shared<client_observer>();
            inside = observer;
            const client zk = e.client(calm().observer(observer));
            const auto name_a_guard = [&]() -> asio::awaitable<void> {
                lock_guard guard = co_await mutex(zk, "/locks/orders").acquire();
                how.under(guard);
                if (released) co_await guard.release();
            };
            e.run(name_a_guard());
            e.run(zk.close());
        }
        CHECK(inside.expired());
    }
}

TEST_CASE("transact: under a guard that is gone it fails as under a released one") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.create("/a", "0");
        const mutex orders(zk, "/locks/orders");
        int runs = 0;
        const auto body = [&](unit& u) -> asio::awaitable<std::string> {
            ++runs;
            const std::string sum = co_await move_one(u);
            co_return sum;
        };
        transact_options how;
        {
            const lock_guard guard = co_await orders.acquire();
            how.under(guard);
        }
        outcome o = co_await try_transact(zk, body, how);
        CHECK(o.code == errc::lock_released);
        CHECK(runs == 0);
        const lock_guard guard = co_await orders.acquire();
        o = co_await try_transact(zk, body, how.under(guard));
        CHECK(o.done);
        CHECK(runs == 1);
    });
}

TEST_CASE("transact: a guard that is released while its transaction is repeated") {
    for (const bool certainly : {false, true}) {
        INFO("receipts: " << certainly);
        with_ensemble([certainly](fake_ensemble& e, client zk) -> asio::awaitable<void> {
            e.create("/a", "0");
            lock_guard guard = co_await mutex(zk, "/locks/orders").acquire();
            const auto body = [&](unit& u) -> asio::awaitable<std::string> {
                const std::string sum = co_await move_one(u);
                e.refuse("/a", zk_errc::throttled);
                co_return sum;
            };
            transact_options how = certainly ? certain() : transact_options();
            how.under(guard);
            const auto release_later = [&]() -> asio::awaitable<void> {
                co_await pause(1s);
                co_await guard.release();
                e.accept("/a");
            };
            const running releases(e.get_executor(), release_later());
            const outcome o = co_await try_transact(zk, body, how);
            CHECK(o.code == errc::lock_released);
            CHECK_FALSE(o.unknown);
            CHECK(e.data("/a") == "0");
            co_await releases.end();
        });
    }
}

// --------------------------------------------------------------------------------------------------- many writers

TEST_CASE("transact: tries() are bounded, and the last conflict is told") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.create("/a", "0");
        int runs = 0;
        const auto body = [&](unit& u) -> asio::awaitable<std::string> {
            ++runs;
            const std::string sum = co_await move_one(u);
            e.set("/a", "0");
            co_return sum;
        };
        const outcome o = co_await try_transact(zk, body, certain().tries(4));
        CHECK(o.code == zk_errc::bad_version);
        CHECK_FALSE(o.unknown);
        CHECK(runs == 4);
        CHECK_FALSE(e.exists("/b"));
    });
}

TEST_CASE("transact: after its tries it takes the mutex, and gives the mutex back") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.create("/a", "0");
        int runs = 0;
        std::vector<std::size_t> queue;
        decltype(e.now()) turn_began{};
        const auto body = [&](unit& u) -> asio::awaitable<std::string> {
            queue.push_back(e.children("/turns").size());
            if (runs == 2) turn_began = e.now();
            const std::string sum = co_await move_one(u);
            if (++runs < 6) e.set("/a", "0");
            co_return sum;
        };
        const outcome o = co_await try_transact(zk, body, certain().promote_to("/turns").tries(2));
        CHECK(o.done);
        CHECK(queue == std::vector<std::size_t>{0, 0, 1, 1, 1, 1});
        CHECK(e.now() - turn_began < 10ms);  // without pauses, while others wait
        co_await zk.idle();
        CHECK(e.children("/turns").empty());
    });
}

// The body of one writer takes 20 ms, those of the others no time.
TEST_CASE("transact: a writer with a long body has its turn beside fast ones") {
    for (const int fast : {1, 2, 4, 8}) {
        for (std::uint64_t seed = 1; seed <= 5; ++seed) {
            INFO(fast << " fast writers, seed " << seed);
            fake_ensemble e(seed);
            e.create("/a", "0");
            std::vector<client> clients;
            for (int i = 0; i <= fast; ++i) clients.push_back(e.client(calm()));
            bool over = false;
            int made = 0, runs = 0;
            const auto add_one = [](unit& u) -> asio::awaitable<std::string> {
                const seen n = co_await u.get("/a");
                u.set("/a", std::to_string(number_in(n) + 1));
                co_return "";
            };
            const auto add_slowly = [&](unit& u) -> asio::awaitable<std::string> {
                ++runs;
                const seen n = co_await u.get("/a");
                co_await pause(20ms);
                u.set("/a", std::to_string(number_in(n) + 1));
                co_return "";
            };
            const transact_options how = certain().promote_to("/turns");
            const auto write = [&](client zk) -> asio::awaitable<void> {
                while (!over) {
                    const outcome o = co_await try_transact(zk, add_one, how);
                    CHECK(o.done);
                    made += o.done.has_value();
                    co_await pause(2ms);
                }
            };
            const auto all = [&]() -> asio::awaitable<void> {
                std::vector<running> writers;
                for (int i = 1; i <= fast; ++i)
                    writers.emplace_back(e.get_executor(), write(clients[static_cast<std::size_t>(i)]));
                co_await pause(500ms);
                for (int i = 1; i <= 5; ++i) {
                    runs = 0;
                    const outcome slow = co_await try_transact(clients[0], add_slowly, how);
                    CHECK(slow.done);
                    CHECK(runs <= 4 + fast);  // tries(), the turn, and a run of each other that was under way
                }
                over = true;
                for (running& w : writers) co_await w.end();
                CHECK(number_at(e, "/a") == made + 5);
                for (const client& zk : clients) co_await zk.close();
            };
            e.run(all, 30s);
            CHECK(e.children("/turns").empty());
        }
    }
}

TEST_CASE("transact: without others in the queue of promote_to() there is a read more, no lock, and no turn") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.create("/a", "0");
        const transact_options how = certain().promote_to("/turns").tries(2);
        outcome o = co_await try_transact(zk, &move_one, how);
        CHECK(o.done);
        std::size_t before = e.requests(zk);
        o = co_await try_transact(zk, &move_one, how);
        CHECK(o.done);
        CHECK(e.requests(zk) == before + 4);  // two reads, and that of the queue; the transaction
        CHECK_FALSE(e.exists("/turns"));
        int runs = 0;
        const auto body = [&](unit& u) -> asio::awaitable<std::string> {
            const std::string sum = co_await move_one(u);
            if (++runs < 5) e.set("/a", "0");
            co_return sum;
        };
        o = co_await try_transact(zk, body, how);
        CHECK(o.done);
        const std::uint64_t promoted = zk.stats().commits.front().promoted;
        CHECK(promoted == 1);
        for (int i = 0; i < 5; ++i) o = co_await try_transact(zk, &move_one, how);  // the turn is over
        CHECK(o.done);
        CHECK(zk.stats().commits.front().promoted == promoted);
        const mutex turns(zk, "/turns");
        lock_guard held = co_await turns.acquire();
        const auto only_reads = [](unit& u) -> asio::awaitable<std::string> {
            const seen a = co_await u.get("/a");
            co_return a->data;
        };
        o = co_await try_transact(zk, only_reads, how);  // is in no writer's way
        CHECK(o.done);
        outcome waits;
        const auto write = [&]() -> asio::awaitable<void> { waits = co_await try_transact(zk, &move_one, how); };
        running waiting(e.get_executor(), write());
        co_await pause(5s);
        CHECK_FALSE(waiting.ended());
        co_await held.release();
        co_await waiting.end();
        CHECK(waits.done);
    });
}

TEST_CASE("transact: a child of promote_to()'s directory that is no contender makes nobody wait") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.create("/a", "0");
        e.create("/turns/note", "of an operator");
        const transact_options how = certain().promote_to("/turns").tries(2);
        for (int i = 0; i < 3; ++i) {
            const outcome o = co_await try_transact(zk, &move_one, how);
            INFO(o.what);
            CHECK(o.done);
        }
        CHECK(zk.stats().commits.front().promoted == 0);
    });
}

TEST_CASE("transact: writers of several clients that take turns, over cuts and expiries") {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        INFO("seed " << seed);
        fake_ensemble e(seed);
        e.create("/a", "0");
        std::vector<client> clients;
        for (int i = 0; i < 4; ++i) clients.push_back(e.client(calm()));
        const auto expire_if_alive = [&](const client& zk) {
            try {
                e.expire(zk);
            } catch (const error&) {
            }
        };
        auto all = [&]() -> asio::awaitable<void> {
            int done = 0, unknown = 0;
            std::size_t step = 0;
            e.on_step([&](std::string_view) {
                if (++step % 40 == 0) e.cut(clients[step / 40 % 4]);
                if (step % 230 == 0) expire_if_alive(clients[step / 230 % 4]);
            });
            const auto move_some = [&](client zk) -> asio::awaitable<void> {
                const transact_options how = certain().promote_to("/turns").tries(1);
                for (int i = 0; i < 5; ++i) {
                    const outcome o = co_await try_transact(zk, &move_one, how);
                    INFO(o.what);
                    CHECK((o.done == "0" || o.unknown));
                    done += o.done.has_value();
                    unknown += o.unknown;
                }
            };
            std::vector<running> tasks;
            for (const client& zk : clients) tasks.emplace_back(e.get_executor(), move_some(zk));
            for (running& r : tasks) co_await r.end();
            e.on_step(nullptr);
            const int moved = number_at(e, "/b");
            CHECK(number_at(e, "/a") == -moved);
            CHECK(moved >= done);
            CHECK(moved <= done + unknown);
            for (const client& zk : clients) co_await zk.close();
        };
        e.run(all);
    }
}

}  // namespace transact_tests
