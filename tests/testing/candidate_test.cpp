// A candidate that stands in the background, over an ensemble in memory.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/election/candidate.hpp>
#include <zkasio/election/leader_election.hpp>
#include <zkasio/error.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

asio::awaitable<void> until_leads(const candidate& who) {
    while (!who.leads()) co_await sleep_for(10ms);
}

// Ends some time after its cancellation.
asio::awaitable<void> stop_slowly(std::chrono::nanoseconds time) {
    try {
        co_await sleep_for(24h);
    } catch (const std::system_error&) {
    }
    co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
    co_await sleep_for(time);
}

asio::awaitable<void> read_all(const candidate& who, std::vector<candidate_status>& told) {
    for (;;) {
        const candidate_status next = co_await who.next();
        told.push_back(next);
    }
}

asio::awaitable<void> close(client zk) { co_await zk.close(); }

void check_nothing_left(fake_ensemble& ensemble, const client& zk) {
    ensemble.run(zk.idle());
    ensemble.run(zk.idle());  // the node of a candidate that has waited
    CHECK(ensemble.children("/election").empty());
    CHECK(ensemble.watches(zk) == 0);
}

}  // namespace

TEST_CASE("candidate: leads until it steps down, and then stands behind all others", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds()), other = ensemble.client(sessions_of_ten_seconds());
    std::vector<candidate_status> told;
    {
        const candidate first(zk, "/election");
        CHECK_FALSE(first.leads());
        CHECK(first.status() == candidate_status());
        running reader(ensemble.get_executor(), read_all(first, told));
        ensemble.run(until_leads(first));
        const std::shared_ptr<const leadership> term = first.term();
        REQUIRE(term);
        CHECK(term->held());
        const candidate second(other, "/election");
        ensemble.run_for(1s);
        CHECK_FALSE(second.leads());
        CHECK(second.status().state == candidate_state::standing);

        const std::string node = term->path();
        asio::awaitable<void> stepping_down = first.step_down();
        CHECK_FALSE(first.leads());  // from the call on
        CHECK_FALSE(first.term());
        ensemble.run(std::move(stepping_down));
        CHECK_FALSE(ensemble.exists(node));
        CHECK_FALSE(term->held());
        CHECK(first.status() == candidate_status{candidate_state::standing, term->token(), loss_reason::released});
        ensemble.run(until_leads(second));
        ensemble.run_for(1s);
        CHECK_FALSE(first.leads());
        CHECK(ensemble.children("/election").size() == 2);
        ensemble.run(first.step_down());  // it does not lead: nothing happens
        CHECK(second.leads());
        ensemble.run(second.step_down());
        ensemble.run(until_leads(first));
        CHECK(first.term()->token() > second.status().token);
        reader.cancel();
        ensemble.run(reader.code());
    }
    REQUIRE(told.size() == 4);
    CHECK(told[0].state == candidate_state::standing);
    CHECK(told[1].state == candidate_state::leading);
    CHECK(told[1].reason == loss_reason::none);
    CHECK(told[2] == candidate_status{candidate_state::standing, told[1].token, loss_reason::released});
    CHECK(told[3].state == candidate_state::leading);
    CHECK(told[3].token > told[1].token);
    ensemble.run(other.idle());
    ensemble.run(other.idle());
    check_nothing_left(ensemble, zk);
    check_nothing_left(ensemble, other);
}

TEST_CASE("candidate: a slow reader hears of the newest term", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    const candidate me(zk, "/election");
    ensemble.run(until_leads(me));
    const candidate_status one = ensemble.run(me.next());
    CHECK(one.state == candidate_state::leading);
    ensemble.run(me.step_down());
    ensemble.run(until_leads(me));  // alone: it leads again
    const candidate_status two = ensemble.run(me.next());
    CHECK(two.state == candidate_state::leading);
    CHECK(two.token > one.token);
    running waiting(ensemble.get_executor(),
                    [](const candidate& c) -> asio::awaitable<void> { co_await c.next(); }(me));
    ensemble.run_for(60s);
    CHECK_FALSE(waiting.ended());
    CHECK(ensemble.run(code_of(me.next())) == errc::invalid_argument);  // one reader at a time
    waiting.cancel();
    CHECK(ensemble.run(waiting.code()) == asio::error::operation_aborted);
}

TEST_CASE("candidate: stands again after its session has expired", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds()), other = ensemble.client(sessions_of_ten_seconds());
    const candidate first(zk, "/election");
    ensemble.run(until_leads(first));
    ensemble.run(first.next());
    const std::shared_ptr<const leadership> term = first.term();
    const candidate second(other, "/election");
    ensemble.run_for(1s);
    ensemble.expire(zk);
    const candidate_status lost = ensemble.run(first.next());
    CHECK(lost.state == candidate_state::standing);
    CHECK(lost.token == term->token());
    // The server may tell of the node before it tells of the session.
    CHECK((lost.reason == loss_reason::session_expired || lost.reason == loss_reason::node_deleted));
    CHECK_FALSE(first.leads());
    CHECK_FALSE(term->held());
    ensemble.run(until_leads(second));
    ensemble.run_for(10s);
    CHECK(ensemble.children("/election").size() == 2);
    ensemble.expire(other);
    ensemble.run(until_leads(first));
    CHECK(first.status().token > term->token());
}

TEST_CASE("candidate: an operator's removal of the node ends the term, and the candidate stands again", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    const candidate me(zk, "/election");
    ensemble.run(until_leads(me));
    ensemble.run(me.next());
    ensemble.remove(me.term()->path());
    const candidate_status lost = ensemble.run(me.next());
    CHECK(lost.state == candidate_state::standing);
    CHECK(lost.reason == loss_reason::node_deleted);
    ensemble.run(until_leads(me));
}

TEST_CASE("candidate: cut off, it does not lead before another one does", "[testing]") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        CAPTURE(seed);
        fake_ensemble ensemble(seed);
        const client zk = ensemble.client(sessions_of_ten_seconds());
        const client other = ensemble.client(sessions_of_ten_seconds());
        const candidate first(zk, "/election");
        ensemble.run(until_leads(first));
        const candidate second(other, "/election");
        ensemble.run_for(1s + seed * 137ms);
        bool both = false;
        ensemble.on_step([&](std::string_view) { both = both || (first.leads() && second.leads()); });
        ensemble.silence(zk);
        ensemble.run(until_leads(second));
        CHECK_FALSE(first.leads());
        ensemble.let_in(zk);
        ensemble.run_for(60s);
        CHECK_FALSE(both);
        CHECK(first.status().reason != loss_reason::none);
        CHECK(ensemble.children("/election").size() == 2);
        ensemble.on_step(nullptr);
    }
}

TEST_CASE("candidate: no other one is elected before the bodies of one that steps down have ended", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds()), other = ensemble.client(sessions_of_ten_seconds());
    const candidate first(zk, "/election");
    ensemble.run(until_leads(first));
    const candidate second(other, "/election");
    int begun = 0, ended = 0;
    bool overlap = false;
    auto body = [&](const leadership& term) -> asio::awaitable<void> {
        CHECK(term.held());
        ++begun;
        co_await stop_slowly(30s);
        if (!term.held() || second.leads()) overlap = true;
        ++ended;
    };
    auto run = [&]() -> asio::awaitable<void> { co_await first.run(body); };
    running one(ensemble.get_executor(), run()), two(ensemble.get_executor(), run());
    ensemble.run_for(1s);
    CHECK(begun == 2);
    running stepping_down(ensemble.get_executor(), first.step_down());
    CHECK_FALSE(first.leads());
    ensemble.run_for(29s);
    CHECK(ended == 0);
    CHECK_FALSE(stepping_down.ended());
    CHECK_FALSE(second.leads());
    CHECK_FALSE(ensemble.run(stepping_down.code()));
    CHECK(ended == 2);
    CHECK_FALSE(overlap);
    ensemble.run(until_leads(second));
    ensemble.run(second.step_down());
    ensemble.run(until_leads(first));
    ensemble.run_for(1s);
    CHECK(begun == 4);  // again in the next term
    CHECK_FALSE(one.ended());

    running closing(ensemble.get_executor(), first.close());
    ensemble.run_for(29s);
    CHECK_FALSE(closing.ended());
    CHECK(ensemble.children("/election").size() == 2);
    CHECK_FALSE(ensemble.run(closing.code()));
    CHECK(ended == 4);
    CHECK(ensemble.children("/election").size() == 1);
    CHECK_FALSE(ensemble.run(one.code()));  // complete with the candidate
    CHECK_FALSE(ensemble.run(two.code()));
}

TEST_CASE("candidate: while the body of a lost term still runs, somebody else leads", "[testing]") {
    for (const bool expires : {false, true}) {
        INFO((expires ? "the session expires" : "the lease ends"));
        fake_ensemble ensemble;
        const client zk = ensemble.client(sessions_of_ten_seconds());
        const client other = ensemble.client(sessions_of_ten_seconds());
        const client third = ensemble.client(sessions_of_ten_seconds());
        {
            const candidate stuck(zk, "/election");
            int begun = 0;
            const auto body = [&](const leadership&) -> asio::awaitable<void> {
                ++begun;
                return stop_slowly(10min);
            };
            const auto run = [&]() -> asio::awaitable<void> { co_await stuck.run(body); };
            running work(ensemble.get_executor(), run());
            ensemble.run(until_leads(stuck));
            std::optional<candidate> second(std::in_place, other, "/election");
            const candidate of_the_same_client(zk, "/election");
            ensemble.run_for(2s);
            const std::int64_t session = ensemble.session_id(zk);
            ensemble.hold_down(zk);
            ensemble.run(stuck.term()->lost());
            if (expires) ensemble.run_for(15s);
            ensemble.let_in(zk);
            ensemble.run_for(5s);
            REQUIRE((ensemble.session_id(zk) == session) == !expires);
            REQUIRE(second->leads());
            const candidate healthy(third, "/election");
            ensemble.run_for(1s);
            second.reset();
            ensemble.run_for(5s);
            CHECK_FALSE(stuck.leads());
            if (!expires) CHECK(healthy.leads());
            CHECK(stuck.status().state == candidate_state::standing);
            ensemble.run(of_the_same_client.close());
            ensemble.run_for(9min);
            CHECK_FALSE(stuck.leads());
            CHECK(healthy.leads());
            CHECK(begun == 1);
            ensemble.run_for(2min);  // the body has ended
            ensemble.run(healthy.close());
            ensemble.run_for(5s);
            CHECK(stuck.leads());
            CHECK(begun == 2);
            ensemble.run_for(1s);
            ensemble.expire(zk);
            ensemble.run_for(1s);
            asio::awaitable<void> closed = stuck.close();
            ensemble.run(std::move(closed));  // does not wait for the body of the lost term
            CHECK(begun == 2);
            ensemble.run_for(11min);
            CHECK(work.ended());
        }
        check_nothing_left(ensemble, zk);
    }
}

TEST_CASE("candidate: an object that is destroyed resigns when its bodies have ended", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    auto me = std::make_unique<candidate>(zk, "/election");
    ensemble.run(until_leads(*me));
    auto body = [](const leadership&) { return stop_slowly(30s); };
    auto run = [&]() -> asio::awaitable<void> { co_await me->run(body); };
    running work(ensemble.get_executor(), run());
    ensemble.run_for(1s);
    me.reset();
    ensemble.run_for(29s);
    CHECK(ensemble.children("/election").size() == 1);
    CHECK_FALSE(ensemble.run(work.code()));
    check_nothing_left(ensemble, zk);
}

TEST_CASE("candidate: what bodies throw ends run() and not the candidate", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    const candidate me(zk, "/election");
    int runs = 0;
    std::function<asio::awaitable<void>()> next;
    auto body = [&](const leadership&) -> asio::awaitable<void> {
        ++runs;
        co_await next();
    };
    auto run = [&]() -> asio::awaitable<void> { co_await me.run(body); };

    SECTION("while it leads") {
        next = []() -> asio::awaitable<void> {
            co_await sleep_for(1s);
            throw error(zk_errc::connection_loss, "work");
        };
        CHECK(ensemble.run(code_of(run())) == zk_errc::connection_loss);
        CHECK(me.leads());
    }
    SECTION("because the term is over") {
        next = []() -> asio::awaitable<void> {
            co_await stop_slowly(1s);
            throw error(errc::lock_lost, "work");
        };
        running work(ensemble.get_executor(), run());
        ensemble.run_for(1s);
        ensemble.run(me.step_down());
        ensemble.expire(zk);
        ensemble.run_for(10s);
        ensemble.remove(me.term()->path());
        ensemble.run_for(10s);
        CHECK_FALSE(work.ended());
        CHECK(runs >= 3);
    }
    SECTION("because the term is over, in the middle of a write") {
        ensemble.create("/n");
        bool unknown = false;
        next = [&]() -> asio::awaitable<void> {
            for (int i = 0;; ++i) {
                std::string value = std::to_string(i);
                try {
                    co_await zk.set("/n", std::move(value));
                } catch (const error& e) {
                    unknown = e.outcome_unknown();
                    throw;
                }
            }
        };
        running work(ensemble.get_executor(), run());
        ensemble.run_for(1s);
        ensemble.remove(me.term()->path());
        ensemble.run_for(1s);
        CHECK(unknown);
        CHECK_FALSE(work.ended());
        CHECK(runs == 2);
    }
    SECTION("as the term is over, and for another reason") {
        next = []() -> asio::awaitable<void> {
            co_await stop_slowly(1s);
            throw std::runtime_error("disk full");
        };
        const bool expires = GENERATE(false, true);
        running work(ensemble.get_executor(), run());
        ensemble.run_for(1s);
        if (expires)
            ensemble.expire(zk);
        else
            ensemble.run(me.step_down());
        const std::exception_ptr failed = ensemble.run(work.end());
        CHECK_THROWS_AS(std::rethrow_exception(failed), std::runtime_error);
        ensemble.run(until_leads(me));
    }
    SECTION("a body that returns runs again in the next term only") {
        next = []() -> asio::awaitable<void> { co_return; };
        running work(ensemble.get_executor(), run());
        ensemble.run_for(10s);
        CHECK(runs == 1);
        ensemble.run(me.step_down());
        ensemble.run_for(10s);
        CHECK(runs == 2);
        CHECK_FALSE(work.ended());
        work.cancel();
        CHECK(ensemble.run(work.code()) == asio::error::operation_aborted);
        CHECK(me.leads());
    }
    SECTION("a body that steps down itself") {
        next = [&]() -> asio::awaitable<void> { co_await me.step_down(); };
        running work(ensemble.get_executor(), run());
        ensemble.run_for(1s);
        CHECK(runs > 1);
        CHECK_FALSE(work.ended());
    }
}

TEST_CASE("candidate: told of its end once", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    const candidate me(zk, "/election");
    ensemble.run(until_leads(me));
    ensemble.run(me.next());
    SECTION("closed") {
        ensemble.run(me.close());
        CHECK_FALSE(me.leads());
        CHECK(ensemble.children("/election").empty());
        const candidate_status last = ensemble.run(me.next());
        CHECK(last.state == candidate_state::ended);
        CHECK(last.reason == loss_reason::released);
        CHECK(ensemble.run(code_of(me.next())) == errc::client_closed);
        CHECK_FALSE(ensemble.run(code_of(me.close())));  // a second time
        CHECK_FALSE(ensemble.run(code_of(me.step_down())));
        auto body = [](const leadership&) -> asio::awaitable<void> { co_return; };
        CHECK_FALSE(ensemble.run(code_of(me.run(body))));
    }
    SECTION("with its client") {
        ensemble.run(zk.close());
        CHECK_FALSE(me.leads());
        CHECK(me.status().state == candidate_state::ended);
        CHECK(me.status().reason == loss_reason::closed);
        CHECK(ensemble.run(me.next()).state == candidate_state::ended);
        CHECK(ensemble.run(code_of(me.next())) == errc::client_closed);
        CHECK_FALSE(ensemble.run(code_of(me.close())));
    }
}

TEST_CASE("candidate: an error that no later attempt can mend ends it", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    ensemble.create("/election/not-a-candidate");
    const candidate me(zk, "/election");
    auto body = [](const leadership&) -> asio::awaitable<void> { co_return; };
    CHECK(ensemble.run(code_of(me.run(body))) == errc::foreign_child);
    CHECK(ensemble.run(me.next()).state == candidate_state::ended);
    CHECK(ensemble.run(code_of(me.next())) == errc::foreign_child);
    CHECK_FALSE(ensemble.run(code_of(me.close())));
    ensemble.run(zk.idle());
    CHECK(ensemble.children("/election") == std::vector<std::string>{"not-a-candidate"});
}

TEST_CASE("candidate: servers that refuse to remove its node end it, and whoever has ended the term is told",
          "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    ensemble.create("/election");
    const candidate me(zk, "/election");
    ensemble.run(until_leads(me));
    ensemble.refuse("/election", zk_errc::no_auth);
    const bool closes = GENERATE(false, true);
    INFO((closes ? "close()" : "step_down()"));
    CHECK(ensemble.run(code_of(closes ? me.close() : me.step_down())) == zk_errc::no_auth);
    CHECK_FALSE(me.leads());
    std::vector<candidate_status> told;
    CHECK(ensemble.run(code_of(read_all(me, told))) == zk_errc::no_auth);
    CHECK(told.back().state == candidate_state::ended);
    auto body = [](const leadership&) -> asio::awaitable<void> { co_return; };
    CHECK(ensemble.run(code_of(me.run(body))) == zk_errc::no_auth);
    ensemble.accept("/election");
    ensemble.run(zk.close());
    CHECK(ensemble.children("/election").empty());
}

TEST_CASE("candidate: waits for servers as long as it takes, and can be closed without them", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds().connection_timeout(1s));
    ensemble.hold_down(zk);
    auto me = std::make_unique<candidate>(zk, "/election");
    ensemble.run_for(10min);
    CHECK(me->status().state == candidate_state::standing);
    SECTION("that come") {
        ensemble.let_in(zk);
        ensemble.run(until_leads(*me));
    }
    SECTION("closed") {
        ensemble.run(me->close());
        CHECK(me->status().state == candidate_state::ended);
    }
    SECTION("destroyed") { me.reset(); }
    SECTION("closed when they have gone") {
        ensemble.let_in(zk);
        ensemble.run(until_leads(*me));
        ensemble.hold_down(zk);
        ensemble.run_for(5min);
        CHECK_FALSE(me->leads());
        ensemble.run(me->close());
    }
    ensemble.let_in(zk);
    me.reset();
    check_nothing_left(ensemble, zk);
}

// What ends it comes after each step in turn.
TEST_CASE("candidate: destroyed, closed, told to step down or expired at any step", "[testing]") {
    enum class what { destroyed, closed, steps_down, expires, cut, client_closed };
    const what happens = GENERATE(what::destroyed, what::closed, what::steps_down, what::expires, what::cut,
                                  what::client_closed);
    CAPTURE(static_cast<int>(happens));
    std::size_t steps = 0;
    for (std::size_t at = 0; at <= steps && at < 60; ++at) {
        CAPTURE(at);
        fake_ensemble ensemble(at + 1);
        const client zk = ensemble.client(calm()), other = ensemble.client(calm());
        auto me = std::make_unique<candidate>(zk, "/election");
        std::optional<candidate> second;
        if (at % 2) second.emplace(other, "/election");
        auto body = [](const leadership&) { return stop_slowly(1s); };
        auto run = [](std::unique_ptr<candidate>& c, auto b) { return c->run(std::move(b)); };
        running work(ensemble.get_executor(), run(me, body));
        std::optional<running> ending;
        const auto happen = [&] {
            switch (happens) {
                case what::destroyed: me.reset(); break;
                case what::closed: ending.emplace(ensemble.get_executor(), me->close()); break;
                case what::steps_down: ending.emplace(ensemble.get_executor(), me->step_down()); break;
                case what::expires: ensemble.expire(zk); break;
                case what::cut: ensemble.cut(zk); break;
                case what::client_closed: ending.emplace(ensemble.get_executor(), close(zk)); break;
            }
        };
        at_step(ensemble, steps, at, happen);
        ensemble.run_for(30s);
        ensemble.on_step(nullptr);
        if (steps <= at) happen();
        if (second) {
            ensemble.run(second->close());
            second.reset();
        }
        if (ending) CHECK_FALSE(ensemble.run(ending->code()));
        switch (happens) {
            case what::destroyed:
            case what::closed:
                CHECK_FALSE(ensemble.run(work.code()));
                break;
            case what::client_closed: CHECK(ensemble.run(work.code()) == errc::client_closed); break;
            default:
                ensemble.run(until_leads(*me));
                CHECK_FALSE(work.ended());
                me.reset();
                CHECK_FALSE(ensemble.run(work.code()));
        }
        if (happens != what::client_closed) check_nothing_left(ensemble, zk);
        ensemble.run(zk.close());
        CHECK(ensemble.sessions() == 1);
    }
    CHECK(steps > 10);
}

TEST_CASE("candidate: waits that are cancelled at any step end, and the candidate goes on", "[testing]") {
    std::size_t steps = 0;
    for (std::size_t at = 0; at <= steps && at < 60; ++at) {
        CAPTURE(at);
        fake_ensemble ensemble(at + 1);
        const client zk = ensemble.client(calm());
        const candidate me(zk, "/election");
        std::vector<candidate_status> told;
        auto body = [](const leadership&) { return stop_slowly(1s); };
        auto run = [&]() -> asio::awaitable<void> { co_await me.run(body); };
        running work(ensemble.get_executor(), run()), reader(ensemble.get_executor(), read_all(me, told));
        std::optional<running> stepping_down;
        const auto cancel = [&] {
            work.cancel();
            reader.cancel();
            stepping_down.emplace(ensemble.get_executor(), me.step_down());
            stepping_down->cancel();
        };
        at_step(ensemble, steps, at, cancel);
        ensemble.run_for(30s);
        ensemble.on_step(nullptr);
        if (steps <= at) cancel();
        CHECK(ensemble.run(work.code()) == asio::error::operation_aborted);
        CHECK(ensemble.run(reader.code()) == asio::error::operation_aborted);
        ensemble.run(until_leads(me));
        CHECK(ensemble.children("/election").size() == 1);
        // What was not told is told by the next call.
        const candidate_status now = me.status();
        if (told.empty() || told.back() != now) CHECK(ensemble.run(me.next()) == now);
        ensemble.run(me.close());
        check_nothing_left(ensemble, zk);
    }
    CHECK(steps > 10);
}

TEST_CASE("candidate: does not lead when its lease has ended", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    const candidate me(zk, "/election");
    ensemble.run(until_leads(me));
    ensemble.run_for(5s);
    CHECK(me.leads());
    bool too_long = false;
    ensemble.on_step([&](std::string_view) {
        const std::shared_ptr<const leadership> term = me.term();
        if (me.leads() && term && boot_clock::now() >= term->held_until()) too_long = true;
    });
    ensemble.step_time(12s);  // of the servers: the lease ends while something happens
    ensemble.run_for(5min);
    ensemble.on_step(nullptr);
    CHECK_FALSE(too_long);
    CHECK(me.status().reason == loss_reason::lease_ended);
}

TEST_CASE("candidate: a term that is kept keeps nothing open", "[testing]") {
    fake_ensemble ensemble;
    std::shared_ptr<const leadership> former, last;
    {
        const client zk = ensemble.client(sessions_of_ten_seconds());
        const candidate me(zk, "/election");
        ensemble.run(until_leads(me));
        former = me.term();
        ensemble.expire(zk);
        ensemble.run(me.next());
        while (!me.leads() || me.term() == former) ensemble.run_for(10ms);
        last = me.term();
    }
    ensemble.run_for(1min);
    CHECK(ensemble.connections() == 0);
    CHECK(former->reason() == loss_reason::released);
    CHECK_FALSE(last->held());
}

TEST_CASE("candidate: closing needs no other session when its own ends meanwhile", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    const candidate me(zk, "/election");
    auto body = [](const leadership&) { return stop_slowly(30s); };
    auto run = [&]() -> asio::awaitable<void> { co_await me.run(body); };
    running work(ensemble.get_executor(), run());
    ensemble.run_for(1s);
    CHECK(me.leads());
    running closing(ensemble.get_executor(), me.close());
    ensemble.run_for(1s);
    SECTION("expired") { ensemble.expire(zk); }
    SECTION("without a server") { ensemble.hold_down(zk); }
    CHECK_FALSE(ensemble.run(closing.code(), 5min));
    CHECK_FALSE(ensemble.run(work.code()));
    CHECK(me.status().state == candidate_state::ended);
    CHECK(me.status().reason == loss_reason::released);
}

TEST_CASE("candidate: moved from, it refuses", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    candidate from(zk, "/election");
    candidate to = std::move(from);
    ensemble.run(until_leads(to));
    CHECK_FALSE(from.leads());
    CHECK_FALSE(from.term());
    CHECK(from.status().state == candidate_state::ended);
    CHECK(ensemble.run(code_of(from.next())) == errc::invalid_argument);
    auto body = [](const leadership&) -> asio::awaitable<void> { co_return; };
    CHECK(ensemble.run(code_of(from.run(body))) == errc::invalid_argument);
    CHECK_FALSE(ensemble.run(code_of(from.step_down())));
    CHECK_FALSE(ensemble.run(code_of(from.close())));
    CHECK(to.leads());
    to = candidate();
    check_nothing_left(ensemble, zk);
    CHECK(ensemble.run(code_of(candidate().next())) == errc::invalid_argument);
    CHECK_THROWS_AS(candidate(zk, "no-path"), error);
}
