#include "integration/election_steps.hpp"

#include <zkasio/locks/directory_note.hpp>
#include <zkasio/locks/revocation.hpp>

#include <algorithm>

using namespace zkasio;
using namespace zkasio::test;

namespace {

std::size_t number_of_leaders(const std::vector<campaigner>& all) {
    return static_cast<std::size_t>(
        std::count_if(all.begin(), all.end(), [](const campaigner& c) { return c.leads(); }));
}

}  // namespace

TEST_CASE("election: candidates of several clients lead one by one in the order in which they came", "[any-server]") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "election-order");
        const auto executor = co_await asio::this_coro::executor;
        const test_client second(executor, options()), third(executor, options());
        std::vector<campaigner> all;
        for (std::size_t i = 0; i < 9; ++i) {
            const client& on = i % 3 == 0 ? zk : i % 3 == 1 ? static_cast<const client&>(second) : third;
            all.emplace_back(executor, election_of(on, dir, "c" + std::to_string(i)));
            co_await until_queued(zk, dir, i + 1);
        }
        const leader_election election(zk, dir);
        fencing_token last;
        for (std::size_t i = 0; i < all.size(); ++i) {
            co_await all[i].until_elected();
            CHECK(number_of_leaders(all) == 1);
            CHECK(all[i].leads());
            CHECK(all[i].leader().token() > last);
            last = all[i].leader().token();
            const std::vector<contender_info> line = co_await election.candidates();
            REQUIRE(line.size() == all.size() - i);
            CHECK(line.front().path == all[i].leader().path());
            CHECK(line.front().data == "c" + std::to_string(i));
            co_await all[i].leader().resign();
            CHECK_FALSE(all[i].leads());
        }
        co_await until_queued(zk, dir, 0);
        co_await second.close();
        co_await third.close();
    };
    with_client(body);
}

TEST_CASE("election: nodes are named as Curator's LeaderLatch does unless told otherwise") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "election-names");
        const leadership latch = co_await leader_election(zk, dir + "/latch").campaign();
        leader_election_options as_selector, as_kazoo;
        as_selector.names(name_scheme::curator());
        as_kazoo.names(name_scheme::kazoo());
        const leadership selector = co_await leader_election(zk, dir + "/selector", as_selector).campaign();
        const leadership kazoo = co_await leader_election(zk, dir + "/kazoo", as_kazoo).campaign();
        const std::string prefix = dir + "/latch/_c_", marker = "-latch-0000000000";
        CHECK(latch.path().size() == prefix.size() + 36 + marker.size());
        CHECK(latch.path().starts_with(prefix));
        CHECK(latch.path().ends_with(marker));
        CHECK(selector.path().ends_with("-lock-0000000000"));
        CHECK(kazoo.path().ends_with("__lock__0000000000"));
    };
    with_client(body);
}

TEST_CASE("election: when the leader's session expires the next candidate leads and the old one stands behind it") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "election-expiry");
        const auto executor = co_await asio::this_coro::executor;
        const test_client victim(executor, options());
        campaigner old(executor, election_of(victim, dir, "old"));
        co_await old.until_elected();
        campaigner next(executor, election_of(zk, dir, "next"));
        co_await until_queued(zk, dir, 2);
        const std::string old_node = old.leader().path();
        CHECK_FALSE(next.elected());

        co_await expire_session(victim);
        const loss_reason why = co_await old.leader().lost();
        // Servers remove its node before they end its connection.
        CHECK((why == loss_reason::session_expired || why == loss_reason::node_deleted));
        co_await next.until_elected();
        CHECK_FALSE(old.leads());
        CHECK(next.leader().token() > old.leader().token());
        const std::error_code late = co_await code_of(old.leader().proclaim("I lead"));
        CHECK(late == errc::lock_lost);

        campaigner again(executor, election_of(victim, dir, "again"));
        co_await until_queued(zk, dir, 2);
        CHECK_FALSE(again.elected());
        co_await next.leader().resign();
        co_await again.until_elected();
        CHECK(again.leader().path() != old_node);
        CHECK(again.leader().token() > next.leader().token());
        const auto gone = co_await zk.exists(old_node);
        CHECK_FALSE(gone);
        co_await victim.close();
    };
    with_client(body);
}

TEST_CASE("election: a candidate whose session expires while it waits stands again") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "election-expiry-waiting");
        const auto executor = co_await asio::this_coro::executor;
        const test_client victim(executor, options());
        campaigner leader(executor, election_of(zk, dir));
        co_await leader.until_elected();
        campaigner waiting(executor, election_of(victim, dir));
        co_await until_queued(zk, dir, 2);
        const std::vector<std::string> before = co_await children_of(zk, dir);
        co_await expire_session(victim);
        auto stands_again = [&]() -> asio::awaitable<bool> {
            const std::vector<std::string> now = co_await children_of(zk, dir);
            co_return now.size() == 2 && now != before;
        };
        co_await eventually(stands_again);
        co_await leader.leader().resign();
        co_await waiting.until_elected();
        CHECK(waiting.leads());
        co_await victim.close();
    };
    with_client(body);
}

TEST_CASE("election: when the directory is wiped under two candidates one of them leads in the new one") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "election-wiped");
        const auto executor = co_await asio::this_coro::executor;
        const test_client second(executor, options());
        int terms = 0;
        std::optional<std::int64_t> newest;
        auto one = [&](client on) -> asio::awaitable<void> {
            auto work = [&](leadership& leader) -> asio::awaitable<void> {
                CHECK((!newest || *newest < leader.token().value()));
                newest = leader.token().value();
                ++terms;
                co_await for_ever();
            };
            co_await leader_election(on, dir).lead(work);
        };
        running first(executor, one(zk));
        co_await until_queued(zk, dir, 1);
        running other(executor, one(second));
        co_await until_queued(zk, dir, 2);
        co_await zk.remove_recursive(dir);
        auto again = [&]() -> asio::awaitable<bool> {
            const std::vector<std::string> now = co_await children_of(zk, dir);
            co_return terms >= 2 && now.size() == 2;
        };
        co_await eventually(again, 40s);
        const std::vector<contender_info> line = co_await leader_election(zk, dir).candidates();
        const auto node = co_await zk.exists(line.front().path);
        CHECK(node->czxid == *newest);
        first.cancel();
        other.cancel();
        co_await first.end();
        co_await other.end();
        co_await until_queued(zk, dir, 0);
        co_await second.close();
    };
    with_client_for(90s, options(), body);
}

TEST_CASE("election: a candidate behind two that leave at the same time leads") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "election-both-leave");
        const auto executor = co_await asio::this_coro::executor;
        const test_client a(executor, options()), b(executor, options());
        for (int round = 0; round < 20; ++round) {
            campaigner first(executor, election_of(a, dir));
            co_await first.until_elected();
            campaigner second(executor, election_of(b, dir));
            co_await until_queued(zk, dir, 2);
            campaigner third(executor, election_of(zk, dir));
            if (round % 2 == 0) co_await until_queued(zk, dir, 3);  // else they leave while it is on its way
            second.cancel();
            const auto resigned = first.leader().resign();
            co_await third.until_elected();
            CHECK(third.leads());
            co_await third.leader().resign();
            co_await second.code();
            co_await until_queued(zk, dir, 0);
        }
        co_await a.close();
        co_await b.close();
    };
    with_client(body);
}

TEST_CASE("election: a campaign that is cancelled anywhere leaves no node and no watch") {
    auto body = [](test_client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "election-cancel");
        const leader_election election(zk, dir + "/free"), contended(zk, dir + "/contended");
        auto attempt = [&]() -> asio::awaitable<void> {
            leadership leader = co_await election.campaign();
            co_await leader.resign();
        };
        const int cancelled = co_await cancel_everywhere(attempt);
        CHECK(cancelled > 3);
        co_await until_queued(zk, dir + "/free", 0);

        const test_client other(co_await asio::this_coro::executor, options());
        leadership leader = co_await leader_election(other, dir + "/contended").campaign();
        auto waiting = [&]() -> asio::awaitable<void> {
            const auto elected = co_await contended.try_campaign_for(50ms);
            CHECK_FALSE(elected);
        };
        const int cancelled_waiting = co_await cancel_everywhere(waiting, 60);
        CHECK(cancelled_waiting > 10);
        co_await until_queued(zk, dir + "/contended", 1);
        co_await leader.resign();
        co_await other.close();
        co_await until_quiet(zk, dir);
    };
    with_client(body);
}

TEST_CASE("election: to try is to be elected at once or not to stand") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "election-try");
        const leader_election election(zk, dir);
        std::optional<leadership> leader = co_await election.try_campaign();
        REQUIRE(leader);
        CHECK(leader->held());
        const auto second = co_await election.try_campaign();
        CHECK_FALSE(second);
        const auto third = co_await election.try_campaign_for(100ms);
        CHECK_FALSE(third);
        const auto fourth = co_await election.try_campaign_until(boot_clock::now() + 100ms);
        CHECK_FALSE(fourth);
        co_await until_queued(zk, dir, 1);
        leader.reset();
        const auto fifth = co_await election.try_campaign_for(20s);
        CHECK(fifth);
    };
    with_client(body);
}

TEST_CASE("election: what a leader proclaims is written into no candidate's node") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "election-proclaim");
        const auto executor = co_await asio::this_coro::executor;
        const test_client other(executor, options());
        campaigner first(executor, election_of(zk, dir, "first"));
        co_await first.until_elected();
        campaigner second(executor, election_of(other, dir, "second"));
        co_await until_queued(zk, dir, 2);
        co_await first.leader().proclaim("first, 10.0.0.1:80");
        const leader_election election(zk, dir);
        std::vector<contender_info> line = co_await election.candidates();
        CHECK(line.at(0).data == "first");
        CHECK(line.at(1).data == "second");
        const auto node = co_await zk.exists(first.leader().path());
        CHECK(node->version == 0);
        const node_data directory = co_await zk.get(dir);
        CHECK(directory_note::parse(directory.data).proclaimed == "first, 10.0.0.1:80");
        const leader_observer observer = election.observe();
        const leader_view seen = co_await observer.next();
        CHECK(data_in(seen) == "first, 10.0.0.1:80");

        // An operator deletes its node: proclaim() is what finds out.
        co_await zk.remove(first.leader().path());
        const std::error_code lost = co_await code_of(first.leader().proclaim("still first"));
        CHECK(lost == errc::lock_lost);
        CHECK_FALSE(first.leads());
        co_await second.until_elected();
        line = co_await election.candidates();
        REQUIRE(line.size() == 1);
        CHECK(line.at(0).data == "second");

        co_await second.leader().resign();
        const std::error_code resigned = co_await code_of(second.leader().proclaim("still second"));
        CHECK(resigned == errc::lock_released);
        co_await other.close();
    };
    with_client(body);
}

TEST_CASE("election: data of somebody else in its directory are not replaced") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "election-foreign-data");
        co_await zk.set(dir, "owned by the team of orders");
        const leader_election election(zk, dir);
        leadership leader = co_await election.campaign();
        const std::error_code proclaimed = co_await code_of(leader.proclaim("here"));
        CHECK(proclaimed == errc::invalid_argument);
        const std::error_code asked = co_await code_of(revoke(zk, leader.path()));
        CHECK(asked == errc::invalid_argument);
        const node_data directory = co_await zk.get(dir);
        CHECK(directory.data == "owned by the team of orders");
        co_await zk.set(dir, "");
        co_await leader.proclaim("here");
        co_await revoke(zk, leader.path());
        co_await leader.guard().revoke_requested();
    };
    with_client(body);
}

TEST_CASE("election: a leader's commit is refused once another leads") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "election-commit");
        const leader_election election(zk, dir + "/election");
        leadership leader = co_await election.campaign();
        transaction mine, late;
        mine.create(dir + "/mine");
        co_await leader.commit(mine);
        co_await zk.remove(leader.path());
        late.create(dir + "/late");
        const std::error_code refused = co_await code_of(leader.commit(late));
        CHECK(refused == errc::lock_lost);
        const auto written = co_await zk.exists(dir + "/late");
        CHECK_FALSE(written);
    };
    with_client(body);
}

TEST_CASE("election: what makes no sense is refused with words") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "election-refused");
        const leader_election election(zk, dir);
        const auto mine = acquire_options().owner(lock_owner());
        const std::string owner = co_await message_of(election.campaign(mine));
        CHECK(owner == "campaign " + dir + ": invalid argument (a term has one end: an election knows no lock_owner)");
        const std::error_code tried = co_await code_of(election.try_campaign(mine));
        CHECK(tried == errc::invalid_argument);
        const std::error_code negative = co_await code_of(election.try_campaign_for(-1s));
        CHECK(negative == errc::invalid_argument);
        const std::function<asio::awaitable<void>(leadership&)> nothing;
        const std::string empty = co_await message_of(election.lead(nothing));
        CHECK(empty == "lead " + dir + ": invalid argument (the body is empty)");
        for (const std::string path : {"/", "", "no-slash", "/a/"}) {
            std::error_code refused;
            try {
                const leader_election at(zk, path);
            } catch (const error& e) {
                refused = e.code();
            }
            INFO(path);
            CHECK(refused == errc::invalid_path);
        }
        co_await zk.create(dir + "/something-else");
        const std::error_code foreign = co_await code_of(election.campaign());
        CHECK(foreign == errc::foreign_child);
        const std::error_code led = co_await code_of(election.lead([](leadership&) { return for_ever(); }));
        CHECK(led == errc::foreign_child);
    };
    with_client(body);
}

TEST_CASE("election: candidates under an ACL of their own are safe from others") {
    auto body = [](client stranger) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(stranger, "election-acl");
        const auto executor = co_await asio::this_coro::executor;
        const test_client member(executor, options().auth("digest", "member:secret"));
        leader_election_options private_election;
        private_election.acl(creator_all_acl());
        const leader_election election(member, dir + "/private", private_election);
        leadership leader = co_await election.campaign();
        const std::error_code stands = co_await code_of(leader_election(stranger, dir + "/private").campaign());
        CHECK(stands == zk_errc::no_auth);
        const std::error_code written = co_await code_of(stranger.set(leader.path(), "mine"));
        CHECK(written == zk_errc::no_auth);
        co_await leader.proclaim("still here");
        CHECK(leader.held());
        co_await leader.resign();
        co_await member.remove_recursive(dir + "/private");
        co_await member.close();
    };
    with_client(body);
}
