#include "integration/election_steps.hpp"
#include "support/fault_proxy.hpp"

#include <zkasio/recipe/toolbox.hpp>

#include <stdexcept>

using namespace zkasio;
using namespace zkasio::test;

namespace {

// Ends when it is cancelled, and not before it has been allowed to.
asio::awaitable<void> until_allowed(std::shared_ptr<bool> cancelled, std::shared_ptr<bool> allowed) {
    const std::error_code ended = co_await code_of(for_ever());
    *cancelled = ended == condition::cancelled;
    co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
    auto may_end = [&]() -> asio::awaitable<bool> { co_return *allowed; };
    co_await eventually(may_end);
    throw std::system_error(asio::error::operation_aborted);
}

}  // namespace

TEST_CASE("lead: completes with what the body returns and has resigned by then") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "lead-value");
        const leader_election election(zk, dir);
        auto work = [](leadership& leader) -> asio::awaitable<std::string> {
            CHECK(leader.held());
            co_return "done";
        };
        const std::string value = co_await election.lead(work);
        CHECK(value == "done");
        const std::size_t left = co_await count_children(zk, dir);
        CHECK(left == 0);
    };
    with_client(body);
}

TEST_CASE("lead: what the body has returned is not lost when the client is closed while we resign", "[leaves]") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "lead-value-closed");
        const auto executor = co_await asio::this_coro::executor;
        fault_proxy proxy(first_server());
        const test_client cut(executor, options(proxy.address()).close_timeout(100ms));
        bool done = false;
        std::string value;
        auto work = [&](leadership&) -> asio::awaitable<std::string> {
            proxy.silence(true);
            done = true;
            co_return "done";
        };
        auto lead = [&]() -> asio::awaitable<void> { value = co_await leader_election(cut, dir).lead(work); };
        running leading(executor, lead());
        auto returned = [&]() -> asio::awaitable<bool> { co_return done; };
        co_await eventually(returned);
        co_await turns(20);
        CHECK_FALSE(leading.ended());
        co_await cut.close();
        const std::error_code code = co_await leading.code();
        CHECK(!code);
        CHECK(value == "done");
    };
    with_client(body);
}

TEST_CASE("lead: a body that fails while it leads ends lead() with its exception") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "lead-fails");
        const leader_election election(zk, dir + "/election");
        int terms = 0;
        auto work = [&](leadership&) -> asio::awaitable<void> {
            ++terms;
            throw std::runtime_error("the work is wrong");
            co_return;
        };
        const std::string text = co_await message_of(election.lead(work, lead_options().requeue()));
        CHECK(text == "the work is wrong");
        auto read = [&](leadership&) -> asio::awaitable<void> { co_await zk.get(dir + "/missing"); };
        const std::error_code missing = co_await code_of(election.lead(read));
        CHECK(missing == zk_errc::no_node);
        auto lose_another = [&](leadership& leader) -> asio::awaitable<void> {
            const lock_guard other = co_await mutex(zk, dir + "/mutex").acquire();
            co_await zk.remove(other.path());
            const std::error_code lost = co_await code_of(other.commit(transaction().check(dir)));
            CHECK(leader.held());
            throw error(lost, "commit", other.path());
        };
        const std::error_code lost = co_await code_of(election.lead(lose_another));
        CHECK(lost == errc::lock_lost);  // not the leadership
        CHECK(terms == 1);
        co_await until_queued(zk, dir + "/election", 0);
    };
    with_client(body);
}

TEST_CASE("lead: on loss the body is cancelled and when it has really ended we stand again") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "lead-loss");
        const auto executor = co_await asio::this_coro::executor;
        const test_client victim(executor, options());
        std::vector<fencing_token> terms;
        const auto cancelled = std::make_shared<bool>(false), allowed = std::make_shared<bool>(false);
        auto work = [&](leadership& leader) -> asio::awaitable<int> {
            terms.push_back(leader.token());
            if (terms.size() == 1) co_await until_allowed(cancelled, allowed);
            co_return 7;
        };
        int value = 0;
        auto leading = [&]() -> asio::awaitable<void> { value = co_await leader_election(victim, dir).lead(work); };
        running led(executor, leading());
        co_await until_queued(zk, dir, 1);
        campaigner next(executor, election_of(zk, dir));
        co_await until_queued(zk, dir, 2);

        co_await expire_session(victim);
        co_await next.until_elected();
        auto told = [&]() -> asio::awaitable<bool> { co_return *cancelled; };
        co_await eventually(told);
        co_await victim.connected();
        co_await turns(50);
        const std::size_t while_it_ends = co_await count_children(zk, dir);
        CHECK(while_it_ends == 1);  // it does not stand while its last term is not over
        *allowed = true;
        co_await until_queued(zk, dir, 2);
        CHECK(terms.size() == 1);
        co_await next.leader().resign();
        const std::error_code code = co_await led.code();
        CHECK_FALSE(code);
        CHECK(value == 7);
        REQUIRE(terms.size() == 2);
        CHECK(terms[0] < terms[1]);
        co_await victim.close();
    };
    with_client(body);
}

TEST_CASE("lead: an error of ours after the loss is the loss and any other exception is not") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "lead-errors");
        const auto executor = co_await asio::this_coro::executor;
        const leader_election election(zk, dir);
        int terms = 0;
        auto work = [&](leadership& leader) -> asio::awaitable<void> {
            ++terms;
            co_await code_of(zk.remove(leader.path()));  // the watch on the node may tell before the answer
            if (terms == 1) co_await leader.proclaim("which finds out");
            if (terms == 2) co_return;  // as a loop does that looks at held()
            throw std::logic_error("not because of the loss");
        };
        const std::string text = co_await message_of(election.lead(work));
        CHECK(text == "not because of the loss");
        CHECK(terms == 3);
        co_await until_queued(zk, dir, 0);
    };
    with_client(body);
}

TEST_CASE("lead: with requeue() two candidates take turns", "[any-server]") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "lead-requeue");
        const auto executor = co_await asio::this_coro::executor;
        const test_client other(executor, options());
        std::string turns_taken;
        bool busy = false;
        auto term = [&](char who) {
            return [&, who](leadership&) -> asio::awaitable<void> {
                CHECK_FALSE(busy);
                busy = true;
                turns_taken += who;
                co_await until_queued(zk, dir, 2);
                busy = false;
            };
        };
        auto a = term('a'), b = term('b');
        auto leading = [&](client on, std::function<asio::awaitable<void>(leadership&)> work) -> asio::awaitable<void> {
            co_await leader_election(on, dir).lead(work, lead_options().requeue());
        };
        running first(executor, leading(zk, a));
        running second(executor, leading(other, b));
        auto enough = [&]() -> asio::awaitable<bool> { co_return turns_taken.size() >= 12; };
        co_await eventually(enough);
        first.cancel();
        second.cancel();
        const std::error_code first_code = co_await first.code(), second_code = co_await second.code();
        CHECK(first_code == asio::error::operation_aborted);
        CHECK(second_code == asio::error::operation_aborted);
        for (std::size_t i = 1; i < turns_taken.size(); ++i) CHECK(turns_taken[i] != turns_taken[i - 1]);
        co_await until_queued(zk, dir, 0);
        co_await other.close();
    };
    with_client(body);
}

TEST_CASE("lead: nobody else is elected before the minimum tenure is over") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "lead-tenure");
        const auto executor = co_await asio::this_coro::executor;
        constexpr auto tenure = 400ms;
        boot_clock::time_point elected, followed;
        auto work = [&](leadership&) -> asio::awaitable<void> {
            elected = boot_clock::now();
            co_return;
        };
        auto leading = [&]() -> asio::awaitable<void> {
            co_await leader_election(zk, dir).lead(work, lead_options().minimum_tenure(tenure));
        };
        running led(executor, leading());
        const leadership next = co_await leader_election(zk, dir).campaign();
        followed = boot_clock::now();
        CHECK(elected != boot_clock::time_point());
        CHECK(followed - elected >= tenure);
        const std::error_code code = co_await led.code();
        CHECK_FALSE(code);
    };
    with_client(body);
}

TEST_CASE("lead: a tenure ends with the leadership and with a cancellation and not for a body that fails") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "lead-tenure-ends");
        const auto executor = co_await asio::this_coro::executor;
        const auto long_tenure = lead_options().minimum_tenure(std::chrono::nanoseconds::max());
        int terms = 0;
        auto work = [&](leadership& leader) -> asio::awaitable<int> {
            const int term = ++terms;
            if (term == 1) toolbox(zk).ensure_removed(leader.path());
            co_return term;
        };
        int value = 0;
        auto leading = [&]() -> asio::awaitable<void> {
            value = co_await leader_election(zk, dir).lead(work, long_tenure);
        };
        running lost(executor, leading());
        const std::error_code with_leadership = co_await lost.code();
        CHECK_FALSE(with_leadership);
        CHECK(value == 1);  // it has completed, and does not run again

        running led(executor, leading());
        auto second_term = [&]() -> asio::awaitable<bool> { co_return terms == 2; };
        co_await eventually(second_term);
        co_await turns(20);
        CHECK_FALSE(led.ended());
        led.cancel();
        const std::error_code code = co_await led.code();
        CHECK_FALSE(code);  // what the body has returned is worth more
        CHECK(value == 2);
        co_await until_queued(zk, dir, 0);

        auto failing = [](leadership&) -> asio::awaitable<void> {
            throw std::runtime_error("at once");
            co_return;
        };
        const std::string text = co_await message_of(leader_election(zk, dir).lead(failing, long_tenure));
        CHECK(text == "at once");
        co_await until_queued(zk, dir, 0);
        std::error_code negative;
        try {
            lead_options().minimum_tenure(-1ns);
        } catch (const error& e) {
            negative = e.code();
        }
        CHECK(negative == errc::invalid_argument);
    };
    with_client(body);
}

TEST_CASE("lead: a body may resign by itself") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "lead-resigns");
        const auto executor = co_await asio::this_coro::executor;
        const leader_election election(zk, dir);
        std::optional<campaigner> next;
        auto work = [&](leadership& leader) -> asio::awaitable<int> {
            next.emplace(executor, election);
            co_await until_queued(zk, dir, 2);
            co_await leader.resign();
            co_await next->until_elected();
            co_return 1;
        };
        const int value = co_await election.lead(work, lead_options().minimum_tenure(1h));
        CHECK(value == 1);
        CHECK(next->leads());
        auto taken_away = [&](leadership& leader) -> asio::awaitable<leadership> { co_return std::move(leader); };
        co_await next->leader().resign();
        const leadership kept = co_await election.lead(taken_away);
        CHECK(kept.held());
    };
    with_client(body);
}

TEST_CASE("lead: a body that resigns because it has lost stands again all the same") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "lead-resigns-late");
        int terms = 0;
        auto work = [&](leadership& leader) -> asio::awaitable<int> {
            if (++terms == 1) {
                co_await zk.remove(leader.path());
                const std::error_code ended = co_await code_of(for_ever());
                CHECK(ended == condition::cancelled);
                co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
                co_await leader.resign();
                throw std::system_error(ended);
            }
            co_return 7;
        };
        const int value = co_await leader_election(zk, dir).lead(work);
        CHECK(value == 7);
        CHECK(terms == 2);
    };
    with_client(body);
}

TEST_CASE("lead: cancelled anywhere it resigns and its body has ended") {
    auto body = [](test_client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "lead-cancel");
        const leader_election election(zk, dir);
        int inside = 0;
        struct counted {
            explicit counted(int& n) : n_(n) { ++n_; }
            ~counted() { --n_; }
            int& n_;
        };
        auto work = [&](leadership& leader) -> asio::awaitable<void> {
            const counted here(inside);
            co_await leader.proclaim("at work");
            co_await turns(2);
        };
        auto attempt = [&]() -> asio::awaitable<void> { co_await election.lead(work); };
        const int cancelled = co_await cancel_everywhere(attempt);
        CHECK(cancelled > 5);
        CHECK(inside == 0);
        co_await until_queued(zk, dir, 0);
        co_await until_quiet(zk, dir);
    };
    with_client(body);
}

TEST_CASE("lead: a second cancellation does not hurry a body that takes its time") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "lead-cancel-twice");
        const auto executor = co_await asio::this_coro::executor;
        const auto cancelled = std::make_shared<bool>(false), allowed = std::make_shared<bool>(false);
        bool proclaimed = false;
        auto work = [&](leadership& leader) -> asio::awaitable<void> {
            co_await leader.proclaim("at work");
            proclaimed = true;
            co_await until_allowed(cancelled, allowed);
        };
        auto leading = [&]() -> asio::awaitable<void> { co_await leader_election(zk, dir).lead(work); };
        running led(executor, leading());
        auto at_work = [&]() -> asio::awaitable<bool> { co_return proclaimed; };
        co_await eventually(at_work);
        led.cancel();
        auto told = [&]() -> asio::awaitable<bool> { co_return *cancelled; };
        co_await eventually(told);
        led.cancel();
        co_await turns(20);
        CHECK_FALSE(led.ended());
        const std::size_t still_there = co_await count_children(zk, dir);
        CHECK(still_there == 1);
        *allowed = true;
        const std::error_code code = co_await led.code();
        CHECK(code == asio::error::operation_aborted);
        co_await until_queued(zk, dir, 0);
    };
    with_client(body);
}

TEST_CASE("lead: ends with the client and with a session that is not renewed") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "lead-ends");
        const auto executor = co_await asio::this_coro::executor;
        auto work = [](leadership&) { return for_ever(); };
        const test_client closed(executor, options());
        const test_client expired(executor, options().renewal(session_renewal::none));
        auto leading = [&](client on, std::string path) -> asio::awaitable<void> {
            co_await leader_election(on, path).lead(work);
        };
        running first(executor, leading(closed, dir + "/closed"));
        running second(executor, leading(expired, dir + "/expired"));
        co_await until_queued(zk, dir + "/closed", 1);
        co_await until_queued(zk, dir + "/expired", 1);
        co_await closed.close();
        const std::error_code first_code = co_await first.code();
        CHECK(first_code == errc::client_closed);
        co_await expire_session(expired);
        const std::error_code second_code = co_await second.code();
        CHECK(second_code == errc::session_expired);
        co_await expired.close();
    };
    with_client(body);
}
