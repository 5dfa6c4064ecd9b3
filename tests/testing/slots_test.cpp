// The numbers of slots over a fake_ensemble: cuts at every step, lost answers, expiries, cancellations, operators.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/error.hpp>
#include <zkasio/locks/detail/local_slots.hpp>
#include <zkasio/locks/slots.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace slots_tests {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

const std::string path = "/deep/ids";

slots_options quiet(any_duration d) { return slots_options().quiet(d); }

asio::awaitable<void> pause(fake_ensemble& e, std::chrono::nanoseconds time) {
    asio::steady_timer timer(e.get_executor(), time);
    co_await timer.async_wait(asio::use_awaitable);
}

// So many steps of the servers.
asio::awaitable<void> turns(fake_ensemble& e, int n = 50) { return pause(e, n * 100us); }

// An acquire() that runs, and its guard.
class taking {
public:
    taking(fake_ensemble& e, const slots& from, acquire_options how = acquire_options())
        : guard_(std::make_shared<std::optional<lock_guard>>()),
          task_(e.get_executor(), take(from, std::move(how), guard_)) {}

    bool done() const { return guard_->has_value(); }
    bool ended() const { return task_.ended(); }
    lock_guard& guard() { return **guard_; }
    void cancel() { task_.cancel(); }
    asio::awaitable<std::error_code> code() const { return task_.code(); }

private:
    static asio::awaitable<void> take(slots from, acquire_options how, std::shared_ptr<std::optional<lock_guard>> to) {
        lock_guard guard = co_await from.acquire(std::move(how));
        to->emplace(std::move(guard));
    }
    std::shared_ptr<std::optional<lock_guard>> guard_;
    running task_;
};

// The numbers that are held, without records.
std::vector<std::string> held(const fake_ensemble& e) {
    std::vector<std::string> all = e.children(path);
    std::erase_if(all, [](const std::string& name) { return name.starts_with("used-") || name == "clock"; });
    return all;
}

bool nothing_left(const fake_ensemble& e) { return held(e).empty() && e.watches() == 0; }

// Who holds which number, and since when the others rest.
class witness {
public:
    witness(fake_ensemble& e, std::chrono::nanoseconds quiet) : e_(e), quiet_(quiet) {}

    void takes(std::uint32_t number) {
        CHECK(holders_[number]++ == 0);
        if (freed_.contains(number)) CHECK(e_.now() - freed_[number] >= quiet_);
    }
    void frees(std::uint32_t number) {
        --holders_[number];
        freed_[number] = e_.now();
    }
    asio::awaitable<void> work(slots from, int times) {
        for (int i = 0; i < times; ++i) {
            lock_guard guard = co_await from.acquire();
            REQUIRE(guard.slot());
            const std::uint32_t number = *guard.slot();
            takes(number);
            CHECK(guard.held());
            CHECK(guard.path() == path + '/' + std::to_string(number));
            co_await turns(e_, 3);
            frees(number);
            co_await guard.release();
            ++done_;
        }
    }
    int done() const { return done_; }

private:
    fake_ensemble& e_;
    const std::chrono::nanoseconds quiet_;
    std::map<std::uint32_t, int> holders_;
    std::map<std::uint32_t, fake_ensemble::duration> freed_;
    int done_ = 0;
};

}  // namespace

TEST_CASE("slots: the lowest free number, and a wait while all are held", "[slots]") {
    fake_ensemble e;
    const client one = e.client(calm()), two = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const slots ours(one, path, 3, slots_options().data("host-7")), theirs(two, path, 3);
        CHECK(ours.size() == 3);
        lock_guard a = co_await ours.acquire();
        lock_guard b = co_await theirs.acquire();
        lock_guard c = co_await ours.acquire();
        CHECK(a.slot() == 0u);
        CHECK(b.slot() == 1u);
        CHECK(c.slot() == 2u);
        CHECK_FALSE(a.sequence());
        CHECK(c.token() > b.token());
        CHECK(e.data(path + "/2") == "host-7");
        CHECK(e.owns(two, path + "/1"));
        auto none = co_await theirs.try_acquire();
        CHECK_FALSE(none);
        auto still_none = co_await ours.try_acquire_for(3s);
        CHECK_FALSE(still_none);
        taking first(e, theirs), second(e, ours);
        co_await pause(e, 1min);
        CHECK_FALSE(first.ended());
        CHECK_FALSE(second.ended());
        co_await b.release();
        CHECK_FALSE(b.held());
        co_await a.release();
        co_await first.code();
        co_await second.code();
        REQUIRE(first.done());
        REQUIRE(second.done());
        std::set<std::uint32_t> numbers;
        numbers.insert(*first.guard().slot());
        numbers.insert(*second.guard().slot());
        CHECK((numbers.contains(0) && numbers.contains(1)));
        co_await first.guard().release();
        co_await second.guard().release();
        co_await c.release();
        lock_guard again = co_await theirs.acquire();
        CHECK(again.slot() == 0u);
        again = lock_guard();
        CHECK_FALSE(again.slot());
        co_await two.idle();
        CHECK(nothing_left(e));
        CHECK(e.children(path).empty());
        co_await one.close();
        co_await two.close();
    };
    e.run(body);
}

TEST_CASE("slots: a cut at any step loses no number, and gives none twice", "[slots]") {
    for (const bool rests : {false, true}) {
        const std::chrono::milliseconds rest(rests ? 50 : 0);
        const auto play = [&](std::size_t first, std::size_t second, std::uint64_t seed) {
            INFO("cuts after " << first << " and " << second << " steps, seed " << seed << (rests ? ", quiet" : ""));
            fake_ensemble e(seed);
            if (seed % 2 == 0) e.lag();
            const client one = e.client(calm()), two = e.client(calm());
            witness all(e, rest);
            std::size_t step = 0;
            auto body = [&]() -> asio::awaitable<void> {
                cut_at_steps(e, one, two, first, second, step);
                const slots ours(one, path, 2, quiet(rest)), theirs(two, path, 2, quiet(rest));
                std::vector<running> tasks;
                tasks.emplace_back(e.get_executor(), all.work(ours, 2));
                tasks.emplace_back(e.get_executor(), all.work(ours, 1));
                tasks.emplace_back(e.get_executor(), all.work(theirs, 2));
                for (running& task : tasks) {
                    const std::exception_ptr failed = co_await task.end();
                    CHECK_FALSE(failed);
                }
                e.on_step(nullptr);
                CHECK(all.done() == 5);
                CHECK(nothing_left(e));
                co_await one.close();
                co_await two.close();
            };
            e.run(body);
            return step;
        };
        const std::size_t steps = play(100'000, 0, 1);
        REQUIRE(steps > 20);
        for (std::size_t first = 0; first < steps; ++first)
            for (std::size_t second = 0; second < 6; second += 2) play(first, second, 1 + first % 4);
    }
}

TEST_CASE("slots: a lost answer of any request", "[slots]") {
    for (const bool rests : {false, true}) {
        for (const char* request : {"create", "exists", "children", "multi", "remove", "get", "sync", "set"}) {
            for (int times = 1; times <= 3; ++times) {
                INFO(request << ", " << times << " times" << (rests ? ", quiet" : ""));
                fake_ensemble e;
                const client one = e.client(calm()), two = e.client(calm());
                const std::chrono::milliseconds rest(rests ? 100 : 0);
                witness all(e, rest);
                auto body = [&]() -> asio::awaitable<void> {
                    const slots ours(one, path, 1, quiet(rest)), theirs(two, path, 1, quiet(rest));
                    for (int i = 0; i < times; ++i) e.lose_answer(one, request);
                    running a(e.get_executor(), all.work(ours, 3)), b(e.get_executor(), all.work(theirs, 2));
                    const std::exception_ptr of_a = co_await a.end(), of_b = co_await b.end();
                    CHECK_FALSE(of_a);
                    CHECK_FALSE(of_b);
                    CHECK(all.done() == 5);
                    CHECK(nothing_left(e));
                    co_await one.close();
                    co_await two.close();
                };
                e.run(body);
            }
        }
    }
}

TEST_CASE("slots: an acquire that is cancelled at any step leaves nothing", "[slots]") {
    for (const bool rests : {false, true}) {
        for (const bool cut : {false, true}) {
            std::size_t steps = 1000;
            for (std::size_t at = 0; at < std::min<std::size_t>(steps, 60); ++at) {
                INFO("cancelled after " << at << " steps" << (cut ? ", and cut" : "") << (rests ? ", quiet" : ""));
                fake_ensemble e(1 + at % 5);
                const client one = e.client(calm()), two = e.client(calm());
                auto body = [&]() -> asio::awaitable<void> {
                    co_await one.connected();
                    co_await two.connected();
                    const slots ours(one, path, 2, quiet(rests ? 1s : 0s)),
                        theirs(two, path, 2, quiet(rests ? 1s : 0s));
                    {
                        lock_guard zero = co_await theirs.acquire();
                        co_await zero.release();
                        if (at % 2) {
                            lock_guard other = co_await theirs.acquire();
                            other = lock_guard();
                        }
                        co_await two.idle();
                    }
                    std::size_t step = 0;
                    std::optional<taking> first;
                    e.on_step([&](std::string_view) {
                        if (step++ != at) return;
                        asio::post(e.context(), [&] {
                            if (cut) e.cut(one);
                            first->cancel();
                        });
                    });
                    first.emplace(e, ours);
                    const std::error_code code = co_await first->code();
                    steps = step;
                    e.on_step(nullptr);
                    if (first->done()) {
                        first->guard() = lock_guard();
                    } else {
                        CHECK(code == asio::error::operation_aborted);
                    }
                    co_await one.idle();
                    CHECK(nothing_left(e));
                    co_await pause(e, 2s);
                    const auto lowest = co_await theirs.try_acquire();
                    REQUIRE(lowest);
                    CHECK(lowest->slot() == 0u);
                    const auto of_the_same_client = co_await ours.try_acquire();
                    REQUIRE(of_the_same_client);
                    CHECK(of_the_same_client->slot() == 1u);
                    co_await one.close();
                    co_await two.close();
                };
                e.run(body);
            }
        }
    }
}

TEST_CASE("slots: a wait that is cancelled leaves nothing", "[slots]") {
    fake_ensemble e;
    const client one = e.client(calm()), two = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const slots ours(one, path, 1), theirs(two, path, 1);
        lock_guard guard = co_await ours.acquire();
        taking remote(e, theirs), local(e, ours);
        co_await turns(e, 200);
        CHECK(e.watches() >= 1);
        remote.cancel();
        local.cancel();
        const std::error_code r = co_await remote.code(), l = co_await local.code();
        CHECK(r == asio::error::operation_aborted);
        CHECK(l == asio::error::operation_aborted);
        co_await one.idle();
        co_await two.idle();
        co_await guard.release();
        co_await turns(e, 200);
        CHECK(nothing_left(e));
        co_await one.close();
        co_await two.close();
    };
    e.run(body);
}

TEST_CASE("slots: whoever is cancelled at any step keeps no number from those of its client that wait behind",
          "[slots]") {
    for (const std::uint32_t n : {1U, 2U})
        for (const bool rests : {false, true})
            for (const bool cut : {false, true})
                for (std::size_t at = 0; at < 60; ++at) {
                    INFO("cancelled after " << at << " steps" << (cut ? ", and cut" : "") << (rests ? ", quiet" : "")
                                            << ", of " << n);
                    fake_ensemble e(1 + at % 5);
                    const client one = e.client(calm()), two = e.client(calm());
                    auto body = [&]() -> asio::awaitable<void> {
                        const slots ours(one, path, n, quiet(rests ? 5ms : 0ms)),
                            theirs(two, path, n, quiet(rests ? 5ms : 0ms));
                        lock_guard freed = co_await theirs.acquire(), kept;
                        if (n == 2) kept = co_await theirs.acquire();
                        std::vector<std::unique_ptr<taking>> waits;
                        const auto first_waits = [&]() -> taking& { return *waits.front(); };
                        std::size_t step = 0;
                        e.on_step([&](std::string_view) {
                            if (step++ != at) return;
                            if (cut) e.cut(one);
                            asio::post(e.context(), [&] {
                                if (!waits.empty()) first_waits().cancel();
                            });
                        });
                        for (int i = 0; i < 3; ++i) waits.push_back(std::make_unique<taking>(e, ours));
                        co_await turns(e, static_cast<int>(at) / 2);
                        co_await freed.release();
                        co_await pause(e, 30s);
                        e.on_step(nullptr);
                        CHECK(first_waits().ended());
                        std::size_t got = 0;
                        for (const auto& one_waits : waits) got += one_waits->done();
                        CHECK(got == 1);
                        for (const auto& one_waits : waits) {
                            co_await one_waits->code();
                            if (one_waits->done()) one_waits->guard() = lock_guard();
                        }
                        if (n == 2) co_await kept.release();
                        co_await one.idle();
                        CHECK(nothing_left(e));
                        co_await one.close();
                        co_await two.close();
                    };
                    e.run(body);
                }
}

TEST_CASE("slots: whoever gives up in the line asks the servers nothing, and hands on no turn", "[slots]") {
    fake_ensemble e;
    const client one = e.client(calm()), two = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const slots ours(one, path, 1), theirs(two, path, 1);
        lock_guard guard = co_await theirs.acquire();
        std::vector<std::unique_ptr<taking>> waits;
        for (int i = 0; i < 5; ++i) waits.push_back(std::make_unique<taking>(e, ours));
        co_await turns(e, 200);
        const std::size_t watches = e.watches(), requests = e.requests(one);
        for (const std::size_t leaves : {2U, 4U, 1U}) {
            waits[leaves]->cancel();
            co_await waits[leaves]->code();
            co_await turns(e, 200);
        }
        CHECK(e.watches() == watches);
        CHECK(e.requests(one) == requests);
        co_await guard.release();
        co_await turns(e, 200);
        CHECK(waits[0]->done());
        CHECK_FALSE(waits[3]->ended());
        waits[0]->guard() = lock_guard();
        co_await turns(e, 200);
        REQUIRE(waits[3]->done());
        waits[3]->guard() = lock_guard();
        co_await one.idle();
        CHECK(nothing_left(e));
        co_await one.close();
        co_await two.close();
    };
    e.run(body);
}

TEST_CASE("slots: what an acquire has seen is not kept for one that comes later", "[slots]") {
    fake_ensemble e;
    const client one = e.client(calm()), two = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const slots ours(one, path, 3), theirs(two, path, 3);
        lock_guard first = co_await ours.acquire();
        std::vector<lock_guard> others;
        for (int i = 0; i < 2; ++i) others.push_back(co_await theirs.acquire());
        const std::uint64_t before = e.traffic(one).writes;
        taking next(e, ours);
        co_await turns(e, 200);
        CHECK_FALSE(next.ended());
        CHECK(e.traffic(one).writes == before);
        co_await first.release();
        co_await next.code();
        CHECK(next.done());
        co_await one.close();
        co_await two.close();
    };
    e.run(body);
}

TEST_CASE("slots: a line of a session that has ended is no place to wait in", "[slots]") {
    fake_ensemble e;
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        using lock_detail::local_slots;
        const session on = co_await zk.current_session();
        const std::shared_ptr<local_slots> local = co_await local_slots::of(on, path);
        const auto first = std::make_shared<local_slots::place>(local, local_slots::line_key(1, 0ms));
        co_await first->turn();
        local->session_over(errc::session_expired);
        const auto second = std::make_shared<local_slots::place>(local, local_slots::line_key(1, 0ms));
        std::error_code code;
        try {
            co_await second->turn();
        } catch (const error& failed) {
            code = failed.code();
        }
        CHECK(code == errc::session_expired);
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("slots: a body under all numbers that asks for one more is told so", "[slots]") {
    fake_ensemble e;
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const slots both(zk, path, 2);
        std::error_code code;
        const auto ask = [&](lock_guard&) -> asio::awaitable<void> {
            try {
                const lock_guard more = co_await both.acquire();
            } catch (const error& failed) {
                code = failed.code();
            }
            const auto none = co_await both.try_acquire();
            CHECK_FALSE(none);
        };
        const auto under_one = [&](lock_guard&) -> asio::awaitable<void> {
            const lock_guard other = co_await both.acquire();  // without a body: it may go
            taking waits(e, both);
            co_await turns(e);
            CHECK_FALSE(waits.ended());
            waits.cancel();
            co_await waits.code();
        };
        co_await both.with_lock(under_one);
        const auto first = [&](lock_guard&) -> asio::awaitable<void> { co_await both.with_lock(ask); };
        co_await both.with_lock(first);
        CHECK(code == errc::would_deadlock);
        co_await zk.idle();
        CHECK(nothing_left(e));
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("slots: whoever waits for a guard of its own client is told that the session has ended", "[slots]") {
    fake_ensemble e;
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const slots one(zk, path, 1);
        const auto stubborn = [&]() -> asio::awaitable<void> {
            co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
            co_await pause(e, 1h);
        };
        const auto under = [&](lock_guard&) -> asio::awaitable<void> { co_await stubborn(); };
        const auto work = [&]() -> asio::awaitable<void> { co_await one.with_lock(under); };
        const running works(e.get_executor(), work());
        co_await turns(e);
        const std::uint64_t before = e.traffic(zk).requests;
        const taking first(e, one), second(e, one);
        co_await turns(e);
        CHECK(e.traffic(zk).requests <= before + 1);  // a listing at most: that guard is waited for
        e.expire(zk);
        for (const taking* waits : {&first, &second}) {
            const std::error_code code = co_await waits->code();
            CHECK(code == errc::session_expired);
        }
        CHECK_FALSE(works.ended());
        co_await works.code();
        co_await zk.close();
    };
    e.run(body, 100h);
}

TEST_CASE("slots: many coroutines of one client share the numbers, and one watch", "[slots]") {
    fake_ensemble e;
    const client zk = e.client(calm());
    witness all(e, 0s);
    auto body = [&]() -> asio::awaitable<void> {
        std::vector<running> tasks;
        for (int i = 0; i < 20; ++i) tasks.emplace_back(e.get_executor(), all.work(slots(zk, path, 4), 3));
        for (running& task : tasks) {
            const std::exception_ptr failed = co_await task.end();
            CHECK_FALSE(failed);
        }
        CHECK(all.done() == 60);
        CHECK(nothing_left(e));
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("slots: those that wait for few numbers are not in the way of those that wait for more", "[slots]") {
    fake_ensemble e;
    const client one = e.client(calm()), two = e.client(calm());
    const slots of_one(one, path, 1), of_ten(one, path, 10);
    std::vector<lock_guard> theirs;
    theirs.push_back(e.run(slots(two, path, 1).acquire()));
    {
        taking few(e, of_one);
        e.run_for(1s);
        taking many(e, of_ten);
        e.run_for(1s);
        REQUIRE(many.done());
        CHECK(many.guard().slot() != 0);
        CHECK_FALSE(few.done());
    }
    e.run_for(1s);
    while (theirs.size() < 10) theirs.push_back(e.run(slots(two, path, 10).acquire()));
    {
        taking many(e, of_ten);
        e.run_for(1s);
        taking few(e, of_one);
        e.run_for(1s);
        theirs.clear();  // all at once
        e.run_for(1s);
        CHECK(many.done());
        if (few.done()) CHECK(few.guard().slot() == 0);
    }
    e.run_for(1s);
    e.run(one.close());
    e.run(two.close());
}

TEST_CASE("slots: a number is free with the session of its holder, and a wait goes on over sessions if asked to",
          "[slots]") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        INFO("seed " << seed);
        fake_ensemble e(seed);
        const client one = e.client(calm()), two = e.client(calm());
        auto body = [&]() -> asio::awaitable<void> {
            const slots ours(one, path, 1), theirs(two, path, 1);
            lock_guard guard = co_await ours.acquire();
            taking impatient(e, theirs), behind(e, theirs), patient(e, theirs, acquire_options().survive_expiry());
            co_await turns(e, 200);
            e.expire(two);
            const std::error_code expired = co_await impatient.code(), also = co_await behind.code();
            CHECK(expired == errc::session_expired);
            CHECK(also == errc::session_expired);
            co_await pause(e, 1min);
            CHECK_FALSE(patient.ended());
            e.expire(one);
            const loss_reason why =
                co_await guard.lost();  // its server may tell of the node's end before the session's
            CHECK((why == loss_reason::session_expired || why == loss_reason::node_deleted));
            co_await patient.code();
            REQUIRE(patient.done());
            CHECK(patient.guard().slot() == 0u);
            CHECK(e.owns(two, path + "/0"));
            co_await guard.release();
            CHECK(patient.guard().held());
            co_await one.close();
            co_await two.close();
        };
        e.run(body);
    }
}

TEST_CASE("slots: an operator who deletes a held node frees the number, and its old holder leaves the next one alone",
          "[slots]") {
    for (const bool rests : {false, true}) {
        for (std::uint64_t seed = 1; seed <= 30; ++seed) {
            INFO("seed " << seed << (rests ? ", quiet" : ""));
            fake_ensemble e(seed);
            if (seed % 2) e.lag();
            const client one = e.client(calm()), two = e.client(calm());
            auto body = [&]() -> asio::awaitable<void> {
                const slots ours(one, path, 1, quiet(rests ? 100ms : 0s)),
                    theirs(two, path, 1, quiet(rests ? 100ms : 0s));
                lock_guard deleted = co_await ours.acquire();
                taking waits(e, theirs);
                co_await turns(e, static_cast<int>(seed) * 10);
                e.remove(path + "/0");
                co_await waits.code();
                REQUIRE(waits.done());
                co_await deleted.release();
                CHECK(e.owns(two, path + "/0"));
                CHECK(waits.guard().held());
                co_await waits.guard().release();
                CHECK(held(e).empty());
                co_await one.close();
                co_await two.close();
            };
            e.run(body);
        }
    }
}

TEST_CASE("slots: an operator may delete the directory, whoever holds or waits", "[slots]") {
    for (const bool rests : {false, true}) {
        fake_ensemble e;
        const client one = e.client(calm()), two = e.client(calm());
        auto body = [&]() -> asio::awaitable<void> {
            const slots ours(one, path, 1, quiet(rests ? 1s : 0s)), theirs(two, path, 1, quiet(rests ? 1s : 0s));
            lock_guard guard = co_await ours.acquire();
            taking waits(e, theirs);
            co_await turns(e, 200);
            for (const std::string& name : e.children(path)) e.remove(path + '/' + name);
            e.remove(path);
            co_await waits.code();
            REQUIRE(waits.done());
            CHECK(waits.guard().slot() == 0u);
            const loss_reason why = co_await guard.lost();
            CHECK(why == loss_reason::node_deleted);
            co_await guard.release();
            CHECK(e.owns(two, path + "/0"));
            co_await waits.guard().release();
            CHECK(nothing_left(e));
            co_await one.close();
            co_await two.close();
        };
        e.run(body);
    }
}

TEST_CASE("slots: other children are ignored, and so are numbers beyond the last", "[slots]") {
    fake_ensemble e;
    for (const char* name : {"1", "7", "00", "x", "used-zero"}) e.create(path + '/' + name);
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const slots few(zk, path, 3);
        lock_guard zero = co_await few.acquire();
        lock_guard two = co_await few.acquire();
        CHECK(zero.slot() == 0u);
        CHECK(two.slot() == 2u);
        const auto none = co_await few.try_acquire();
        CHECK_FALSE(none);
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("slots: a number that is free is got at once, also by a client whose server lags behind", "[slots]") {
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        INFO("seed " << seed);
        fake_ensemble e(seed);
        e.lag();
        const client one = e.client(calm()), two = e.client(calm());
        auto body = [&]() -> asio::awaitable<void> {
            co_await two.connected();
            const slots ours(one, path, 1), theirs(two, path, 1);
            for (int i = 0; i < 3; ++i) {
                lock_guard guard = co_await ours.acquire();
                const auto none = co_await theirs.try_acquire();
                CHECK_FALSE(none);
                co_await guard.release();
                auto next = co_await theirs.try_acquire();
                CHECK(next);
                if (next) co_await next->release();
            }
            co_await one.close();
            co_await two.close();
        };
        e.run(body);
    }
}

TEST_CASE("slots: a number under whose loss a body still runs is got by its client when the body has ended",
          "[slots]") {
    const bool tried = GENERATE(false, true);
    const std::uint32_t n = GENERATE(1U, 2U);  // the other one is another client's
    fake_ensemble e;
    const client zk = e.client(calm()), other = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const slots ours(zk, path, n);
        lock_guard guard, theirs;
        if (tried) {
            std::optional<lock_guard> got = co_await ours.try_acquire();
            REQUIRE(got);
            guard = std::move(*got);
        } else {
            guard = co_await ours.acquire();
        }
        if (n == 2) theirs = co_await slots(other, path, n).acquire();
        const auto stubborn = [&]() -> asio::awaitable<void> {
            co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
            co_await pause(e, 1min);
        };
        const auto under = [&]() -> asio::awaitable<void> { co_await guard.run(stubborn); };
        const running works(e.get_executor(), under());
        e.remove(path + "/0");
        co_await guard.lost();
        taking next(e, ours);
        co_await pause(e, 40s);
        CHECK_FALSE(next.ended());
        const std::error_code lost = co_await works.code();
        CHECK(lost == errc::lock_lost);
        co_await next.code();
        CHECK(next.done());
        co_await zk.close();
        co_await other.close();
    };
    e.run(body);
}

// ------------------------------------------------------------------------------------------------------------- quiet

TEST_CASE("slots: a number that is acquired while another client looks does not begin to rest", "[slots]") {
    fake_ensemble e;
    e.create(path + "/used-0", "rests");
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        bool done = false;
        e.on_step([&](std::string_view step) {
            if (done || step.find("apply 0: get " + path + "/used-0") == step.npos) return;
            done = true;
            e.create(path + "/0");
            e.set(path + "/used-0", "held");
        });
        const auto none = co_await slots(zk, path, 1, quiet(1s)).try_acquire();
        CHECK_FALSE(none);
        CHECK(done);
        CHECK(e.data(path + "/used-0") == "held");
        e.on_step(nullptr);
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("slots: a number that was given back rests, by the servers' clock, while clients come and go", "[slots]") {
    fake_ensemble e;
    auto body = [&]() -> asio::awaitable<void> {
        fake_ensemble::duration freed{};
        {
            const client first = e.client(calm());
            lock_guard guard = co_await slots(first, path, 1, quiet(10min)).acquire();
            co_await pause(e, 1h);
            co_await guard.release();
            freed = e.now();
            co_await first.close();
        }
        co_await pause(e, 7min);
        const client zk = e.client(calm());
        const slots one(zk, path, 1, quiet(10min)), two(zk, path, 2, quiet(10min));
        const auto none = co_await one.try_acquire();
        CHECK_FALSE(none);
        {
            lock_guard next = co_await two.acquire();
            CHECK(next.slot() == 1u);  // never held before
        }
        const auto too_short = co_await one.try_acquire_for(2min);
        CHECK_FALSE(too_short);
        lock_guard again = co_await one.acquire();
        CHECK(e.now() - freed >= 10min);
        CHECK(e.now() - freed < 10min + 1s);
        co_await again.release();
        CHECK(nothing_left(e));
        co_await zk.close();
    };
    e.run(body, 100h);
}

TEST_CASE("slots: the number of a session that has ended rests from when it is found free", "[slots]") {
    for (const bool waiting : {true, false}) {
        fake_ensemble e;
        const client one = e.client(calm()), two = e.client(calm());
        auto body = [&]() -> asio::awaitable<void> {
            const slots ours(one, path, 1, quiet(10min)), theirs(two, path, 1, quiet(10min));
            lock_guard guard = co_await ours.acquire();
            std::optional<taking> waits;
            if (waiting) waits.emplace(e, theirs);
            co_await turns(e, 200);
            e.expire(one);
            const fake_ensemble::duration freed = e.now();
            co_await guard.lost();
            guard = lock_guard();
            if (!waiting) {
                co_await pause(e, 5min);
                waits.emplace(e, theirs);
            }
            co_await pause(e, 3min);
            const auto none = co_await ours.try_acquire();  // does not begin the rest again
            CHECK_FALSE(none);
            co_await waits->code();
            REQUIRE(waits->done());
            const fake_ensemble::duration rested = e.now() - freed, least = waiting ? 10min : 15min;
            CHECK(rested >= least);
            CHECK(rested < least + 1s);
            co_await one.close();
            co_await two.close();
        };
        e.run(body, 100h);
    }
}

TEST_CASE("slots: a try right after a release gets the number again, but not one that rests, however short",
          "[slots]") {
    for (const bool rests : {false, true})
        for (std::uint64_t seed = 1; seed <= 20; ++seed) {
            INFO("seed " << seed << (rests ? ", quiet" : ""));
            fake_ensemble e(seed);
            const client zk = e.client(calm());
            auto body = [&]() -> asio::awaitable<void> {
                const slots ids(zk, path, 1, quiet(rests ? 1ms : 0ms));
                { const lock_guard guard = co_await ids.acquire(); }
                const auto at_once = co_await ids.try_acquire();
                CHECK(at_once.has_value() == !rests);
                if (!rests) co_return;
                co_await pause(e, 2ms);
                const auto later = co_await ids.try_acquire();
                CHECK(later);
            };
            e.run(body);
            e.run(zk.close());
        }
}

TEST_CASE("slots: records that an operator has deleted or written do no harm", "[slots]") {
    for (const char* how : {"deleted", "written"}) {
        fake_ensemble e;
        const client one = e.client(calm()), two = e.client(calm());
        const auto change = [&] {
            if (std::string_view(how) == "deleted")
                e.remove(path + "/used-0");
            else
                e.set(path + "/used-0", "held");
        };
        auto body = [&]() -> asio::awaitable<void> {
            const slots ours(one, path, 1, quiet(1min)), theirs(two, path, 1, quiet(1min));
            lock_guard guard = co_await ours.acquire();
            CHECK(e.data(path + "/used-0") == "held");
            change();
            co_await guard.release();
            CHECK(held(e).empty());
            CHECK(e.data(path + "/used-0") == "rests");
            const auto none = co_await theirs.try_acquire();
            CHECK_FALSE(none);
            taking waits(e, theirs);
            co_await pause(e, 30s);
            change();
            co_await waits.code();
            REQUIRE(waits.done());
            CHECK(waits.guard().held());
            co_await one.close();
            co_await two.close();
        };
        e.run(body);
    }
}

TEST_CASE("slots: numbers rest at random, over cuts, expiries and lost answers", "[slots]") {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        INFO("seed " << seed);
        fake_ensemble e(seed);
        if (seed % 2) e.lag();
        e.lose_connections(seed % 3 == 0 ? 2 : 0);
        e.throttle(seed % 5 == 0 ? 10 : 0);
        std::vector<client> clients;
        for (int i = 0; i < 3; ++i) clients.push_back(e.client(calm()));
        witness all(e, 300ms);
        auto body = [&]() -> asio::awaitable<void> {
            std::vector<running> tasks;
            for (int i = 0; i < 6; ++i)
                tasks.emplace_back(e.get_executor(),
                                   all.work(slots(clients[static_cast<std::size_t>(i) % 3], path, 2, quiet(300ms)), 3));
            for (running& task : tasks) {
                const std::exception_ptr failed = co_await task.end();
                CHECK_FALSE(failed);
            }
            CHECK(all.done() == 18);
            e.lose_connections(0);
            e.throttle(0);
            for (const client& zk : clients) co_await zk.idle();
            CHECK(nothing_left(e));
            for (const client& zk : clients) co_await zk.close();
        };
        e.run(body);
    }
}

TEST_CASE("slots: an acquire that is given up while nobody knows of its node leaves that of another client alone",
          "[slots]") {
    for (const bool rests : {false, true}) {
        INFO("rests " << rests);
        fake_ensemble e;
        e.create(path);
        const client one = e.client(calm()), two = e.client(calm());
        auto body = [&]() -> asio::awaitable<void> {
            const slots ours(one, path, 1, quiet(rests ? 10ms : 0ms)), theirs(two, path, 1, quiet(rests ? 10ms : 0ms));
            co_await two.sync();
            bool held_down = false;
            e.on_step([&](std::string_view step) {
                const char* const request = rests ? "apply 0: multi" : "apply 0: create";
                if (std::exchange(held_down, held_down || step.find(request) != std::string_view::npos)) return;
                if (held_down) e.hold_down(one);
            });
            taking first(e, ours);
            while (!held_down) co_await turns(e, 1);
            e.on_step(nullptr);
            first.cancel();
            const std::error_code cancelled = co_await first.code();
            CHECK(cancelled == condition::cancelled);
            lock_guard guard = co_await theirs.acquire();
            CHECK(guard.slot() == 0u);
            e.let_in(one);
            co_await one.idle();
            CHECK(e.owns(two, guard.path()));
            CHECK(guard.held());
            co_await guard.release();
            co_await one.close();
            co_await two.close();
        };
        e.run(body);
        CHECK(nothing_left(e));
    }
}

TEST_CASE("slots: a number whose node is another client's since it was looked at is not given back", "[slots]") {
    fake_ensemble e;
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const slots ids(zk, path, 1, quiet(10ms));
        lock_guard guard = co_await ids.acquire();
        const std::string node = guard.path(), record = path + "/used-0";
        bool done = false;
        e.on_step([&](std::string_view step) {
            if (done || step.find("apply 0: multi") == std::string_view::npos) return;
            done = true;
            e.remove(node);
            e.create(node, "another client");
            e.set(record, "held");
        });
        co_await guard.release();
        e.on_step(nullptr);
        CHECK(done);
        CHECK(e.data(node) == "another client");
        CHECK(e.data(record) == "held");
        e.remove(node);
        co_await zk.close();
    };
    e.run(body);
    CHECK(nothing_left(e));
}

TEST_CASE("slots: a client that is closed at any step of an acquire and a release", "[slots]") {
    for (const bool rests : {false, true}) {
        std::size_t steps = 1;
        for (std::size_t at = 0; at < steps; ++at) {
            INFO("rests " << rests << ", closed after " << at << " steps");
            fake_ensemble e;
            const client zk = e.client(calm());
            auto body = [&]() -> asio::awaitable<void> {
                const slots ids(zk, path, 1, quiet(rests ? 10ms : 0ms));
                std::size_t step = 0;
                std::optional<running> closes;
                const auto close = [&]() -> asio::awaitable<void> { co_await zk.close(); };
                e.on_step([&](std::string_view) {
                    if (step++ == at) asio::post(e.context(), [&] { closes.emplace(e.get_executor(), close()); });
                });
                bool acquired = false;
                const auto work = [&]() -> asio::awaitable<void> {
                    lock_guard guard = co_await ids.acquire();
                    acquired = true;
                    co_await guard.release();
                };
                running works(e.get_executor(), work());
                const std::error_code code = co_await works.code();
                e.on_step(nullptr);
                CHECK(code == (acquired ? std::error_code() : errc::client_closed));
                if (closes) co_await closes->end();
                co_await zk.close();
                steps = std::max(steps, at == 0 ? 20 : std::min<std::size_t>(step, 40));
            };
            e.run(body);
            CHECK(nothing_left(e));
        }
    }
}

TEST_CASE("slots: what is refused", "[slots]") {
    fake_ensemble e;
    const client zk = e.client(calm());
    CHECK_THROWS_AS(slots(zk, "no path", 1), error);
    CHECK_THROWS_AS(slots(zk, "/", 1), error);
    CHECK_THROWS_AS(slots(zk, path, 0), error);
    CHECK_THROWS_AS(slots(zk, path, slots::most + 1), error);
    CHECK_NOTHROW(slots(zk, path, slots::most));
    CHECK_THROWS_AS(slots_options().quiet(-1ns), error);
    CHECK(slots_options().quiet(1ns).quiet() == 1ms);
    auto body = [&]() -> asio::awaitable<void> {
        const slots ours(zk, path, 1);
        acquire_options as_owner;
        as_owner.owner(lock_owner());
        const std::string owned = co_await message_of(ours.acquire(as_owner));
        CHECK(owned ==
              "acquire " + path + ": invalid argument (no lock_owner can hold numbers: each guard has one of its own)");
        lock_guard guard = co_await ours.acquire();
        const std::error_code committed = co_await code_of(guard.commit(transaction()));
        CHECK(committed == errc::invalid_argument);
        co_await zk.close();
    };
    e.run(body);
}

}  // namespace slots_tests
