// Terms of leaders over an ensemble in memory: what ends a term, and what ends lead().

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/election/leader_election.hpp>
#include <zkasio/error.hpp>
#include <zkasio/locks/directory_note.hpp>
#include <zkasio/locks/revocation.hpp>
#include <zkasio/membership/partitioner.hpp>
#include <zkasio/path.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

asio::awaitable<void> commits_for_ever(std::string node, const leadership& leader) {
    for (;;) {
        transaction t;
        t.set(node, "work");
        co_await leader.commit(std::move(t));
        co_await sleep_for(20ms);
    }
}

asio::awaitable<void> commit_as_leader(leader_election election, lead_options how, std::vector<fencing_token>& terms) {
    auto body = [&](leadership& leader) -> asio::awaitable<void> {
        terms.push_back(leader.token());
        co_await commits_for_ever("/job", leader);
    };
    co_await election.lead(body, how);
}

}  // namespace

TEST_CASE("lead: a connection that is lost under a commit of the body ends the term and not lead()", "[testing]") {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        CAPTURE(seed);
        fake_ensemble ensemble(seed);
        const client zk = ensemble.client(sessions_of_ten_seconds());
        ensemble.create("/job");
        const leader_election election(zk, "/election");
        std::vector<fencing_token> terms;
        running leading(ensemble.get_executor(), commit_as_leader(election, lead_options(), terms));
        ensemble.run_for(1s);
        const std::int64_t session = ensemble.session_id(zk);
        for (int i = 0; i < 10; ++i) {
            ensemble.run_for(997us + i * 3331us);
            if (i % 2 == 0)
                ensemble.cut(zk);
            else
                ensemble.lose_answer(zk, "multi");
            ensemble.run_for(3s);
            REQUIRE_FALSE(leading.ended());
            REQUIRE(ensemble.children("/election").size() == 1);
        }
        CHECK(ensemble.session_id(zk) == session);
        CHECK(terms.size() > 1);
        const std::int64_t last_write = ensemble.stat("/job")->mzxid;
        ensemble.run_for(5s);
        CHECK(ensemble.stat("/job")->mzxid > last_write);  // it works on
        leading.cancel();
        CHECK(ensemble.run(leading.code()) == asio::error::operation_aborted);
    }
}

TEST_CASE("lead: a lost connection ends it where that is asked for", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    ensemble.create("/job");
    std::vector<fencing_token> terms;
    const leader_election election(zk, "/election");
    running leading(ensemble.get_executor(), commit_as_leader(election, lead_options().fail_with_connection(), terms));
    ensemble.run_for(1s);
    ensemble.lose_answer(zk, "multi");
    CHECK(ensemble.run(leading.code(), 30s) == zk_errc::connection_loss);
    CHECK(terms.size() == 1);
    ensemble.run(zk.idle());
    CHECK(ensemble.children("/election").empty());
}

TEST_CASE("lead: terms that end one after another with a lost connection have pauses that grow", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    std::vector<double> began;
    auto body = [&](leadership&) -> asio::awaitable<void> {
        began.push_back(static_cast<double>(ensemble.now().count()) / 1e9);
        if (began.size() == 12) co_await sleep_for(11s);  // longer than a session timeout
        throw error(zk_errc::throttled, "work");
    };
    const leader_election election(zk, "/election");
    auto lead = [&]() -> asio::awaitable<void> { co_await election.lead(body); };
    running leading(ensemble.get_executor(), lead());
    ensemble.run_for(60s);
    CHECK_FALSE(leading.ended());
    REQUIRE(began.size() > 12);
    CHECK(began[1] - began[0] < 0.2);
    CHECK(began[11] - began[10] > 0.9);
    CHECK(began[12] - began[11] < 11.2);  // after a term that has lasted they begin anew
    leading.cancel();
    ensemble.run(leading.code());
}

TEST_CASE("lead: a body that has returned does not run again when the tenure ends with the leadership", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    int runs = 0;
    auto body = [&](leadership&) -> asio::awaitable<int> { co_return ++runs; };
    const leader_election election(zk, "/election");
    std::optional<int> value;
    auto lead = [&]() -> asio::awaitable<void> {
        value = co_await election.lead(body, lead_options().minimum_tenure(60s));
    };
    running leading(ensemble.get_executor(), lead());
    ensemble.run_for(5s);
    CHECK(runs == 1);
    CHECK_FALSE(leading.ended());
    ensemble.hold_down(zk);
    ensemble.run_for(20s);
    ensemble.let_in(zk);
    CHECK_FALSE(ensemble.run(leading.code(), 200s));
    CHECK(runs == 1);
    CHECK(value == 1);
}

// Whoever waits for the removal of the node in front of it, and for nothing else, as Curator's LeaderLatch, would not
// hear of that after a write.
TEST_CASE("election: neither what a leader proclaims nor a request to resign is written into its node", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds()), other = ensemble.client(sessions_of_ten_seconds());
    ensemble.run([&]() -> asio::awaitable<void> {
        const leader_election election(zk, "/election");
        const leadership leader = co_await election.campaign();
        const std::string node = leader.path();
        const leader_observer observer(other, "/election");
        co_await leader.proclaim("one");
        const leader_view one = co_await observer.next();
        CHECK(one.leader->data == "one");
        CHECK(ensemble.stat(node)->version == 0);

        running asked(ensemble.get_executor(), leader.guard().revoke_requested());
        co_await revoke(other, node);
        const std::error_code told = co_await asked.code();
        CHECK_FALSE(told);
        co_await leader.proclaim("two");  // which takes no request away
        co_await leader.guard().revoke_requested();
        const leader_view two = co_await observer.next();
        CHECK(two.leader->data == "two");
        CHECK(ensemble.stat(node)->version == 0);
        CHECK(leader.held());
    });
    ensemble.run(zk.idle());
    CHECK(ensemble.children("/election").empty());
}

TEST_CASE("election: a request to resign concerns the candidate that it names and no later one", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds()), other = ensemble.client(sessions_of_ten_seconds());
    ensemble.run([&]() -> asio::awaitable<void> {
        const leader_election election(zk, "/election"), behind(other, "/election");
        leadership first = co_await election.campaign();
        std::optional<leadership> second;
        auto stand = [&]() -> asio::awaitable<void> {
            leadership elected = co_await behind.campaign();
            second.emplace(std::move(elected));
        };
        const running standing(ensemble.get_executor(), stand());
        while (ensemble.children("/election").size() < 2) co_await sleep_for(10ms);
        co_await revoke(other, first.path());
        co_await first.guard().revoke_requested();
        co_await first.resign();
        co_await standing.code();
        const leadership third = std::move(*second);
        running asked(ensemble.get_executor(), third.guard().revoke_requested());
        co_await sleep_for(1s);
        CHECK_FALSE(asked.ended());
        co_await revoke(zk, first.path());  // it has gone: that is no error
        co_await sleep_for(1s);
        CHECK_FALSE(asked.ended());
        co_await revoke(zk, third.path());
        const std::error_code told = co_await asked.code();
        CHECK_FALSE(told);
        const auto note = directory_note::parse(*ensemble.data("/election"));
        CHECK(note.revoked == std::vector<std::string>{std::string(node_name(third.path()))});
    });
}

TEST_CASE("election: what is written by zkasio 0.2 into the leader's node is heard", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    ensemble.run([&]() -> asio::awaitable<void> {
        const leader_election election(zk, "/election");
        const leadership leader = co_await election.campaign();
        const leader_observer observer = election.observe();
        co_await observer.next();
        ensemble.set(leader.path(), "proclaimed");
        const leader_view view = co_await observer.next();
        CHECK(view.leader->data == "proclaimed");
        running asked(ensemble.get_executor(), leader.guard().revoke_requested());
        co_await sleep_for(1s);
        CHECK_FALSE(asked.ended());
        ensemble.set(leader.path(), "__REVOKE__");
        const std::error_code told = co_await asked.code();
        CHECK_FALSE(told);
    });
}

TEST_CASE("election: a leader that has not waited hears at once that its node was removed", "[testing]") {
    for (const auto after : {0ms, 5ms, 900ms, 3000ms, 7000ms}) {
        CAPTURE(after.count());
        fake_ensemble ensemble;
        const client zk = ensemble.client(sessions_of_ten_seconds());
        const leader_election election(zk, "/election");
        ensemble.run([&]() -> asio::awaitable<void> {
            const leadership leader = co_await election.campaign();
            co_await sleep_for(after);
            const auto removed = ensemble.now();
            ensemble.remove(leader.path());
            const loss_reason why = co_await leader.lost();
            CHECK(why == loss_reason::node_deleted);
            CHECK(ensemble.now() - removed < 50ms);
            CHECK_FALSE(leader.held());
        });
        // The same after somebody has written into the node, which uses a watch up.
        ensemble.run([&]() -> asio::awaitable<void> {
            const std::optional<leadership> leader = co_await election.try_campaign();
            co_await sleep_for(after + 5ms);
            ensemble.set(leader->path(), "words");
            co_await sleep_for(5ms);
            const auto removed = ensemble.now();
            ensemble.remove(leader->path());
            co_await leader->lost();
            CHECK(ensemble.now() - removed < 50ms);
        });
    }
}

TEST_CASE("partitioner: a connection that is lost under a commit ends no other partition", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    ensemble.create("/job");
    std::map<std::string, int> begun;
    auto body = [&](held_partition& mine) -> asio::awaitable<void> {
        ++begun[mine.name()];
        while (mine.name() == "p0") {
            transaction t;
            t.set("/job", mine.name());
            co_await mine.commit(std::move(t));
            co_await sleep_for(20ms);
        }
        co_await sleep_for(24h);
    };
    const partitioner work(zk, "/work", {"p0", "p1"});
    auto run = [&]() -> asio::awaitable<void> { co_await work.run(body); };
    running working(ensemble.get_executor(), run());
    ensemble.run_for(3s);
    CHECK(begun == std::map<std::string, int>{{"p0", 1}, {"p1", 1}});
    ensemble.lose_answer(zk, "multi");
    ensemble.run_for(5s);
    CHECK_FALSE(working.ended());
    CHECK(begun == std::map<std::string, int>{{"p0", 2}, {"p1", 1}});
    CHECK(work.owned() == std::vector<std::string>{"p0", "p1"});
    working.cancel();
    CHECK(ensemble.run(working.code()) == asio::error::operation_aborted);
}

TEST_CASE("proclaim: what another client writes into the directory meanwhile stays, and a refusal is told",
          "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    const leader_election election(zk, "/election");
    leadership leader = ensemble.run(election.campaign());
    int written = 0;
    ensemble.on_step([&](std::string_view step) {
        if (step.find("apply 0: multi") == step.npos || ++written > 2) return;
        directory_note theirs;
        theirs.revoked.push_back("candidate-" + std::to_string(written));
        ensemble.set("/election", theirs.text());
    });
    ensemble.run(leader.proclaim("host-7"));
    ensemble.on_step(nullptr);
    CHECK(written == 3);
    const directory_note now = directory_note::parse(*ensemble.data("/election"));
    CHECK(now.proclaimed_by(node_name(leader.path())) == "host-7");
    CHECK(now.revoked == std::vector<std::string>{"candidate-2"});

    ensemble.refuse("/election", zk_errc::no_auth);
    CHECK(ensemble.run(code_of(leader.proclaim("host-8"))) == zk_errc::no_auth);
    ensemble.accept("/election");
    CHECK(directory_note::parse(*ensemble.data("/election")) == now);
    ensemble.run(leader.resign());
    CHECK(ensemble.run(code_of(leader.proclaim("host-9"))) == errc::lock_released);
    ensemble.run(zk.close());
}
