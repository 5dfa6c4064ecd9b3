// What the acquires of numbers cost the servers, and that a crowd of them leaves no number unused.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/cost.hpp"

#include <zkasio/client.hpp>
#include <zkasio/locks/slots.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/awaitable.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace slots_cost_tests {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

const std::string path = "/ids";
using guards = std::vector<std::optional<lock_guard>>;

asio::awaitable<void> take(slots from, std::optional<lock_guard>& to) {
    lock_guard guard = co_await from.acquire();
    to.emplace(std::move(guard));
}

asio::awaitable<void> try_to_take(slots from, std::optional<lock_guard>& to) {
    std::optional<lock_guard> guard = co_await from.try_acquire();
    to = std::move(guard);
}

// `n` acquires at the same time, of the clients in turn.
template <class Take>
void take_at_once(fake_ensemble& e, const std::vector<client>& all, std::uint32_t numbers, guards& to,
                  const slots_options& how, Take take_one) {
    std::vector<std::unique_ptr<running>> users;
    for (std::size_t i = 0; i < to.size(); ++i)
        users.push_back(std::make_unique<running>(e.get_executor(),
                                                  take_one(slots(all[i % all.size()], path, numbers, how), to[i])));
    for (const auto& one : users) {
        const std::error_code code = e.run(one->code());
        CHECK_FALSE(code);
    }
}

std::size_t different(const guards& all) {
    std::set<std::uint32_t> numbers;
    for (const auto& guard : all)
        if (guard) numbers.insert(*guard->slot());
    return numbers.size();
}

void release_all(fake_ensemble& e, const std::vector<client>& clients, guards& all) {
    all.clear();
    for (const client& zk : clients) e.run(zk.idle());
}

}  // namespace

TEST_CASE("cost of slots: processes that start together, and need all numbers", "[slots][numbers]") {
    for (const std::size_t n : client_counts()) {
        fake_ensemble e;
        std::vector<client> all = connected_clients(e, n);
        e.create(path);
        const cost_meter meter(e);
        guards held(n);
        take_at_once(e, all, static_cast<std::uint32_t>(n), held, {}, take);
        const cost c = meter.read();
        INFO(n << " processes: " << c);
        CHECK(different(held) == n);
        CHECK(c.writes <= 8 * n);    // a create for each attempt; refused ones spread over 1, 4, 16 ... numbers
        CHECK(c.listings <= 8 * n);  // one for each attempt
        CHECK(c.requests <= 17 * n);
        CHECK(c.bytes <= 10 * n * n + 600 * n);  // each listing has all names, of 14 bytes
        CHECK(c.watches == static_cast<std::int64_t>(0));
        release_all(e, all, held);
        close_all(e, all);
    }
}

TEST_CASE("cost of slots: processes that start together, with numbers that rest", "[slots][numbers]") {
    for (const std::size_t n : client_counts()) {
        fake_ensemble e;
        std::vector<client> all = connected_clients(e, n);
        e.create(path);
        const slots_options how = slots_options().quiet(1s);
        for (const bool used_before : {false, true}) {
            const cost_meter meter(e);
            guards held(n);
            take_at_once(e, all, static_cast<std::uint32_t>(n), held, how, take);
            const cost c = meter.read();
            INFO(n << " processes, " << (used_before ? "numbers were used before: " : "new numbers: ") << c);
            CHECK(different(held) == n);
            CHECK(c.writes <= 16 * n);  // a transaction for each attempt, and one for the servers' time
            CHECK(c.listings <= 9 * n);
            CHECK(c.requests <= 40 * n);  // some records each, too
            CHECK(c.bytes <= 80 * n * n + 1500 * n);
            release_all(e, all, held);
            e.run_for(2s);
        }
        close_all(e, all);
    }
}

TEST_CASE("cost of slots: coroutines of one process do not refuse each other", "[slots][numbers]") {
    for (const bool rest : {false, true})
        for (const std::size_t n : user_counts) {
            fake_ensemble e;
            std::vector<client> all = connected_clients(e, 1);
            e.create(path);
            const slots_options how = slots_options().quiet(rest ? 1s : 0s);
            for (const bool used_before : {false, true}) {
                const cost_meter meter(e);
                guards held(n);
                take_at_once(e, all, static_cast<std::uint32_t>(n), held, how, take);
                const cost c = meter.read();
                INFO(n << " coroutines" << (rest ? ", rest" : "") << (used_before ? ", used before: " : ": ") << c);
                CHECK(different(held) == n);
                CHECK(c.writes <= (rest ? 4 : 1) * n);  // three for the servers' time where its node is new
                CHECK(c.listings <= n + 1);
                CHECK(c.requests <= (rest ? 6 : 2) * n + 2);
                CHECK(c.bytes <= (rest ? 500u : 200u) * n);
                release_all(e, all, held);
                e.run_for(2s);
            }
            close_all(e, all);
        }
}

// Of the coroutines of a client that wait, one asks the servers at a time.
TEST_CASE("cost of slots: coroutines of few processes at fewer numbers, a constant for each grant",
          "[slots][numbers]") {
    for (const std::size_t processes : {1u, 2u})
        for (const std::uint32_t numbers : {1u, 10u})
            for (const bool rest : {false, true})
                for (const std::size_t n : user_counts) {
                    if (n > 100 && (processes > 1 || numbers > 1)) continue;  // takes seconds
                    fake_ensemble e;
                    std::vector<client> all = connected_clients(e, processes);
                    e.create(path);
                    const slots_options how = slots_options().quiet(rest ? 1ms : 0ms);
                    std::set<std::uint32_t> held;
                    std::size_t done = 0;
                    const auto use = [&](slots from) -> asio::awaitable<void> {
                        lock_guard guard = co_await from.acquire();
                        CHECK(held.insert(*guard.slot()).second);
                        asio::steady_timer timer(e.get_executor(), 10ms);
                        co_await timer.async_wait(asio::use_awaitable);
                        held.erase(*guard.slot());
                        ++done;
                    };
                    const cost_meter meter(e);
                    const auto begin = e.now();
                    std::vector<std::unique_ptr<running>> users;
                    for (std::size_t i = 0; i < n; ++i)
                        users.push_back(std::make_unique<running>(e.get_executor(),
                                                                  use(slots(all[i % processes], path, numbers, how))));
                    for (const auto& one : users) {
                        const std::error_code code = e.run(one->code());
                        CHECK_FALSE(code);
                    }
                    for (const client& zk : all) e.run(zk.idle());
                    const cost c = meter.read();
                    INFO(n << " coroutines of " << processes << " processes at " << numbers << " numbers"
                           << (rest ? ", rest: " : ": ") << c << ", " << (e.now() - begin).count() << " ns");
                    CHECK(done == n);
                    // A create, the watch of its node, a release in three requests; for each process that is woken, a
                    // listing and a refused create, and another listing when the number is taken. Where numbers rest:
                    // the servers' time, the record once more, and the waits for the end of a rest.
                    const std::size_t looks = processes * n;
                    CHECK(c.requests <= (rest ? 8 : 4) * n + 4 * looks + 20);
                    CHECK(c.listings <= 3 * looks + 10);
                    CHECK(c.bytes <= (rest ? 1200u : 400u) * n + 600 * looks);
                    CHECK(c.writes <= (rest ? 4 : 2) * n + looks + 10);
                    CHECK(c.watches == static_cast<std::int64_t>(0));
                    CHECK(e.now() - begin <= (n / numbers + 2) * (10ms + (rest ? 9ms : 7ms)));
                    close_all(e, all);
                }
}

TEST_CASE("cost of slots: an acquire reads few records, however many numbers have rested", "[slots][numbers]") {
    for (const std::size_t used : user_counts) {
        fake_ensemble e;
        std::vector<client> all = connected_clients(e, 1);
        e.create(path);
        const slots_options how = slots_options().quiet(1s);
        guards held(used);
        take_at_once(e, all, 2000, held, how, take);
        release_all(e, all, held);
        e.run_for(2s);
        const cost_meter meter(e);
        guards one(1);
        take_at_once(e, all, 2000, one, how, take);
        const cost c = meter.read();
        INFO(used << " numbers have rested: " << c);
        CHECK(one[0]->slot() == 0u);
        CHECK(c.requests <= 5);  // a listing, a record, the servers' time, the acquire
        CHECK(c.bytes <= 14 * used + 1000);
        release_all(e, all, one);
        e.run_for(2s);

        // All of them rest, but for one in the middle, and that takes a few round trips.
        guards again(used);
        take_at_once(e, all, 2000, again, how, take);
        again[used / 2].reset();
        e.run(all[0].idle());
        e.run_for(2s);
        again.clear();
        e.run(all[0].idle());
        std::vector<client> other = connected_clients(e, 1);
        const cost_meter reads(e);
        const auto begin = e.now();
        take_at_once(e, other, 2000, one = guards(1), how, take);
        const cost r = reads.read();
        INFO(r);
        CHECK(one[0]->slot() == used / 2);
        CHECK(r.requests <= 2 * used + 10);
        CHECK(e.now() - begin <= 200ms);
        release_all(e, other, one);
        for (const client& zk : other) e.run(zk.close());
        other.clear();
        close_all(e, all);
    }
}

TEST_CASE("slots: tries at the same time all get a number while there are enough", "[slots][numbers]") {
    for (const bool one_client : {true, false})
        for (const auto rest : {0ms, 5000ms})
            for (const std::size_t n : {1u, 2u, 3u, 4u, 8u, 16u, 64u}) {
                INFO(n << (one_client ? " of one client" : " of a client each") << ", rest " << rest.count());
                fake_ensemble e;
                std::vector<client> all = connected_clients(e, one_client ? 1 : n);
                const slots_options how = slots_options().quiet(rest);
                guards held(n);
                take_at_once(e, all, 100, held, how, try_to_take);
                CHECK(different(held) == n);
                guards more(1);  // of the others
                take_at_once(e, all, static_cast<std::uint32_t>(n), more, how, try_to_take);
                release_all(e, all, held);
                release_all(e, all, more);
                close_all(e, all);
            }
}

TEST_CASE("slots: a try says no while all numbers are held, or rest", "[slots]") {
    for (const auto rest : {0ms, 5000ms}) {
        fake_ensemble e;
        std::vector<client> all = connected_clients(e, 2);
        const slots_options how = slots_options().quiet(rest);
        guards held(8);
        take_at_once(e, all, 8, held, how, take);
        guards more(3);
        take_at_once(e, all, 8, more, how, try_to_take);
        CHECK(different(more) == 0);
        held.pop_back();
        for (const client& zk : all) e.run(zk.idle());
        take_at_once(e, all, 8, more, how, try_to_take);
        CHECK(different(more) == (rest > 0ms ? 0 : 1));
        e.run_for(6s);
        if (rest > 0ms) take_at_once(e, all, 8, more, how, try_to_take);
        CHECK(different(more) == 1);
        release_all(e, all, held);
        release_all(e, all, more);
        close_all(e, all);
    }
}

TEST_CASE("slots: with numbers to spare, processes that start together get low ones", "[slots][numbers]") {
    fake_ensemble e;
    std::vector<client> all = connected_clients(e, 100);
    guards held(100);
    take_at_once(e, all, 60'000, held, {}, take);
    std::uint32_t highest = 0;
    for (const auto& guard : held) highest = std::max(highest, *guard->slot());
    INFO("the highest number is " << highest);
    CHECK(highest < 1100);
    release_all(e, all, held);
    close_all(e, all);
}

}  // namespace slots_cost_tests
