#include "integration/election_steps.hpp"

#include <algorithm>

using namespace zkasio;
using namespace zkasio::test;

TEST_CASE("observer: tells nobody and each leader and what it proclaims and never the same twice", "[any-server]") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "observer");
        const auto executor = co_await asio::this_coro::executor;
        const leader_election election(zk, dir + "/deep/election");
        const leader_observer observer = election.observe();
        const leader_view missing = co_await observer.next();
        CHECK(missing.state == leader_state::nobody);
        CHECK_FALSE(missing.leader);

        campaigner first(executor, election_of(zk, election.path(), "first"));
        const leader_view one = co_await observer.next();
        co_await first.until_elected();
        REQUIRE(one.state == leader_state::leader);
        CHECK(one.leader->data == "first");
        CHECK(one.leader->path == first.leader().path());
        CHECK(one.leader->token == first.leader().token());
        CHECK(one.leader->session_id == zk.session_now().id());

        campaigner second(executor, election_of(zk, election.path(), "second"));
        co_await until_queued(zk, election.path(), 2);
        co_await first.leader().proclaim("first, and proud");
        const leader_view proclaimed = co_await observer.next();
        CHECK(data_in(proclaimed) == "first, and proud");
        CHECK(proclaimed.leader->token == one.leader->token);
        CHECK(proclaimed.leader->since == one.leader->since);

        co_await first.leader().resign();
        const leader_view two = co_await observer.next();
        CHECK(data_in(two) == "second");
        CHECK(two.leader->token > one.leader->token);
        CHECK(two.leader->since >= one.leader->since);
        co_await second.until_elected();
        co_await second.leader().resign();
        const leader_view none = co_await observer.next();
        CHECK(none.state == leader_state::nobody);

        // The end of an empty directory is no news, nor is the same leader once more.
        auto await_next = [&]() -> asio::awaitable<void> { co_await observer.next(); };
        running pending(executor, await_next());
        co_await zk.remove_recursive(dir + "/deep");
        co_await turns(50);
        CHECK_FALSE(pending.ended());
        pending.cancel();
        const std::error_code cancelled = co_await pending.code();
        CHECK(cancelled == asio::error::operation_aborted);
    };
    with_client(body);
}

TEST_CASE("observer: whoever is slow hears of the newest only") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "observer-slow");
        const test_client watching(co_await asio::this_coro::executor, options());
        const leader_election election(zk, dir);
        const leader_observer observer = leader_election(watching, dir).observe();
        const leader_view nobody = co_await observer.next();
        CHECK(nobody.state == leader_state::nobody);
        for (int i = 0; i < 5; ++i) {
            leadership leader = co_await election.campaign();
            co_await leader.proclaim("leader " + std::to_string(i));
            co_await leader.resign();
        }
        leadership last = co_await election.campaign();
        co_await last.proclaim("the last");
        co_await watching.sync(dir);
        const leader_view view = co_await observer.next();
        CHECK(data_in(view) == "the last");
        CHECK(view.leader->token == last.token());
        co_await last.resign();
        co_await watching.close();
    };
    with_client(body);
}

TEST_CASE("observer: as long as somebody leads no other candidate concerns it and it leaves nothing behind") {
    auto body = [](test_client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "observer-watches");
        const test_client other(co_await asio::this_coro::executor, options());
        leadership leader = co_await leader_election(other, dir).campaign();
        {
            const leader_observer observer = leader_election(zk, dir).observe();
            const leader_view view = co_await observer.next();
            CHECK(view.leader->path == leader.path());
            const auto executor = co_await asio::this_coro::executor;
            auto await_next = [&]() -> asio::awaitable<void> { co_await observer.next(); };
            running pending(executor, await_next());
            co_await turns(20);
            const long before = requests_of(zk.session_now());
            std::vector<campaigner> others;
            for (std::size_t i = 0; i < 5; ++i) {
                others.emplace_back(executor, election_of(other, dir));
                co_await until_queued(other, dir, i + 2);
            }
            for (campaigner& c : others) c.cancel();
            co_await until_queued(other, dir, 1);
            CHECK(zk.inside().watches() == 2);
            CHECK(requests_of(zk.session_now()) - before < 5);  // heartbeats of an idle session
            CHECK_FALSE(pending.ended());
            pending.cancel();
            co_await pending.code();
        }
        co_await leader.resign();
        co_await other.close();
        co_await until_quiet(zk, dir);
    };
    with_client(body);
}

TEST_CASE("observer: survives the end of its own session") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "observer-expiry");
        const auto executor = co_await asio::this_coro::executor;
        const test_client victim(executor, options().session_timeout(paced(10s)));  // unknown after a third of that
        const leader_observer observer = leader_election(victim, dir).observe();
        std::vector<std::string> told;
        auto watch_all = [&]() -> asio::awaitable<void> {
            for (;;) {
                const leader_view view = co_await observer.next();
                told.push_back(data_in(view));
            }
        };
        running watching(executor, watch_all());
        auto told_so_many = [&](std::size_t n) -> asio::awaitable<void> {
            auto reached = [&]() -> asio::awaitable<bool> { co_return told.size() >= n; };
            co_await eventually(reached);
        };
        co_await told_so_many(1);
        leadership leader = co_await election_of(zk, dir, "first").campaign();
        co_await told_so_many(2);
        for (int i = 0; i < 3; ++i) {
            co_await expire_session(victim);
            co_await victim.connected();
            co_await leader.proclaim("after " + std::to_string(i));
            co_await told_so_many(3 + static_cast<std::size_t>(i));
        }
        co_await expire_session(victim);
        co_await leader.resign();  // while the observer has no session, or just afterwards
        co_await told_so_many(6);
        CHECK(told == std::vector<std::string>{"nobody", "first", "after 0", "after 1", "after 2", "nobody"});
        co_await victim.close();
        const std::error_code ended = co_await watching.code();
        CHECK(ended == errc::client_closed);
    };
    with_client(body);
}

TEST_CASE("observer: a directory that is deleted and made again is another election of the same name") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "observer-deleted");
        const leader_election election(zk, dir);
        const leader_observer observer = election.observe();
        leadership first = co_await election.campaign();
        const leader_view one = co_await observer.next();
        CHECK(one.leader->token == first.token());
        co_await zk.remove_recursive(dir);
        const leader_view none = co_await observer.next();
        CHECK(none.state == leader_state::nobody);
        co_await first.resign();
        const leadership second = co_await election.campaign();
        const leader_view two = co_await observer.next();
        CHECK(two.leader->token == second.token());
        CHECK(two.leader->path != one.leader->path);
    };
    with_client(body);
}

TEST_CASE("observer: a leader whose data may not be read is known without it") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "observer-no-auth");
        const auto executor = co_await asio::this_coro::executor;
        const test_client member(executor, options().auth("digest", "member:secret"));
        leader_election_options secret;
        secret.acl(creator_all_acl()).id("secret");
        const leader_election election(member, dir, secret);  // the directory is everybody's
        leadership leader = co_await election.campaign();
        const leader_observer observer = leader_election(zk, dir).observe();
        const leader_view one = co_await observer.next();
        REQUIRE(one.state == leader_state::leader);
        CHECK_FALSE(one.leader->data);
        const std::error_code stat_refused = co_await code_of(zk.exists(leader.path()));  // by servers from 3.8.4 on
        CHECK(one.leader->token == (stat_refused ? fencing_token() : leader.token()));
        CHECK(one.leader->session_id == (stat_refused ? 0 : member.session_now().id()));
        co_await leader.proclaim("for who may read the directory");
        co_await leader.resign();
        const leader_view two = co_await observer.next();
        CHECK(two.state == leader_state::nobody);

        // A directory that may not be listed is a failure, until it may be.
        const acl unreadable(1, acl_entry(permission::admin, anyone()));
        co_await zk.set_acl(dir, unreadable);
        const leader_observer refused = leader_election(zk, dir).observe();
        const std::error_code code = co_await code_of(refused.next());
        CHECK(code == zk_errc::no_auth);
        co_await zk.set_acl(dir, open_acl());
        const leader_view readable = co_await refused.next();
        CHECK(readable.state == leader_state::nobody);
        co_await member.close();
    };
    with_client(body);
}

TEST_CASE("observer: is for one coroutine at a time and any of them may be cancelled") {
    auto body = [](test_client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "observer-cancel");
        const auto executor = co_await asio::this_coro::executor;
        const leader_election election(zk, dir);
        {
            leadership leader = co_await election.campaign();
            std::optional<leader_view> view;
            auto look = [&]() -> asio::awaitable<void> {
                const leader_observer observer = election.observe();
                view = co_await observer.next();
                CHECK(view->leader->token == leader.token());
            };
            const int cancelled = co_await cancel_everywhere(look);
            CHECK(cancelled > 3);

            // What a cancelled call has not told, the next one tells.
            const leader_observer observer = election.observe();
            std::string last;
            for (int steps = 0; steps < 60; ++steps) {
                const std::string data = "data " + std::to_string(steps);
                co_await leader.proclaim(data);
                std::optional<leader_view> seen;
                auto await_next = [&]() -> asio::awaitable<void> { seen = co_await observer.next(); };
                running pending(executor, await_next());
                for (int i = 0; i < steps && !pending.ended(); ++i)
                    co_await asio::post(executor, asio::use_awaitable);
                pending.cancel();
                co_await pending.code();
                if (!seen) seen = co_await observer.next();
                CHECK(data_in(*seen) == data);
                CHECK(data != last);
                last = data;
            }

            auto await_next = [&]() -> asio::awaitable<void> { co_await observer.next(); };
            running pending(executor, await_next());
            co_await turns(5);
            const std::error_code second = co_await code_of(observer.next());
            CHECK(second == errc::invalid_argument);
            pending.cancel();
            co_await pending.code();
            co_await leader.resign();
            const leader_view nobody = co_await observer.next();
            CHECK(nobody.state == leader_state::nobody);
        }
        co_await until_quiet(zk, dir);
    };
    with_client(body);
}

TEST_CASE("observer: among leaders that come and go it tells rising tokens and in the end the truth") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "observer-order");
        const auto executor = co_await asio::this_coro::executor;
        const test_client second(executor, options()), third(executor, options());
        std::vector<fencing_token> real;
        std::vector<running> candidates;
        auto stand = [&](client on, int times) -> asio::awaitable<void> {
            for (int i = 0; i < times; ++i) {
                leadership leader = co_await leader_election(on, dir).campaign();
                real.push_back(leader.token());
                co_await leader.resign();
            }
        };
        std::vector<std::vector<leader_view>> told(3);
        std::vector<running> observers;
        auto observe = [&](client on, std::vector<leader_view>& views) -> asio::awaitable<void> {
            const leader_observer observer = leader_election(on, dir).observe();
            for (;;) views.push_back(co_await observer.next());
        };
        observers.emplace_back(executor, observe(zk, told[0]));
        observers.emplace_back(executor, observe(second, told[1]));
        observers.emplace_back(executor, observe(third, told[2]));
        for (int i = 0; i < 4; ++i) {
            candidates.emplace_back(executor, stand(zk, 20));
            candidates.emplace_back(executor, stand(second, 20));
        }
        for (const running& c : candidates) {
            const std::exception_ptr failed = co_await c.end();
            if (failed) std::rethrow_exception(failed);
        }
        const leadership last = co_await leader_election(second, dir).campaign();
        real.push_back(last.token());
        for (std::size_t i = 0; i < observers.size(); ++i) {
            auto knows = [&]() -> asio::awaitable<bool> {
                co_return !told[i].empty() && told[i].back().leader && told[i].back().leader->token == last.token();
            };
            co_await eventually(knows);
            observers[i].cancel();
            const std::error_code code = co_await observers[i].code();
            CHECK(code == asio::error::operation_aborted);
            fencing_token newest;
            for (std::size_t n = 0; n < told[i].size(); ++n) {
                const leader_view& view = told[i][n];
                if (n > 0) CHECK_FALSE(view == told[i][n - 1]);
                CHECK(view.state != leader_state::unknown);
                if (!view.leader) continue;
                CHECK(view.leader->token > newest);
                newest = view.leader->token;
                CHECK(std::find(real.begin(), real.end(), newest) != real.end());
            }
        }
        co_await second.close();
        co_await third.close();
    };
    with_client(body);
}

TEST_CASE("observer: refuses what is no election") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "observer-refuses");
        co_await zk.create(dir + "/something-else");
        const leader_observer observer(zk, dir);
        const std::error_code foreign = co_await code_of(observer.next());
        CHECK(foreign == errc::foreign_child);
        co_await zk.remove(dir + "/something-else");
        const leader_view view = co_await observer.next();  // after a failure it may be called again
        CHECK(view.state == leader_state::nobody);
        std::error_code no_path;
        try {
            const leader_observer nowhere(zk, "no-slash");
        } catch (const error& e) {
            no_path = e.code();
        }
        CHECK(no_path == errc::invalid_path);
    };
    with_client(body);
}
