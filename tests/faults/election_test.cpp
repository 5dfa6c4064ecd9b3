// Elections and their observers while servers and connections break.

#include "support/fault_proxy.hpp"
#include "support/lock_checks.hpp"
#include "support/test_client.hpp"

#include <zkasio/election/leader_election.hpp>

#include <random>

using namespace zkasio;
using namespace zkasio::test;

namespace {

asio::awaitable<void> until_cancelled() {
    asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
    co_await never.async_wait(asio::use_awaitable);
}

asio::awaitable<void> lead_for_ever(leader_election election, std::shared_ptr<int> terms) {
    auto work = [&](leadership&) -> asio::awaitable<void> {
        ++*terms;
        co_await until_cancelled();
    };
    co_await election.lead(work);
}

asio::awaitable<void> keep_views(leader_election election, std::shared_ptr<std::vector<leader_view>> views) {
    const leader_observer observer = election.observe();
    for (;;) views->push_back(co_await observer.next());
}

asio::awaitable<void> until_last_is(std::shared_ptr<std::vector<leader_view>> views, leader_state wanted) {
    auto reached = [&]() -> asio::awaitable<bool> { co_return !views->empty() && views->back().state == wanted; };
    co_await eventually(reached, 40s);
}

}  // namespace

TEST_CASE("lead: may begin before there is a server and goes on after that was restarted", "[clear]") {
    test_server server;
    server.kill();
    auto body = [&](client zk) -> asio::awaitable<void> {
        const auto executor = co_await asio::this_coro::executor;
        const leader_election election(zk, "/election");
        const auto terms = std::make_shared<int>(0);
        const auto views = std::make_shared<std::vector<leader_view>>();
        running leading(executor, lead_for_ever(election, terms)), observing(executor, keep_views(election, views));
        co_await until_last_is(views, leader_state::unknown);  // longer than any operation waits for a connection
        CHECK_FALSE(leading.ended());
        server.start();
        co_await until_last_is(views, leader_state::leader);
        auto elected = [&]() -> asio::awaitable<bool> { co_return *terms > 0; };
        co_await eventually(elected);

        server.kill();
        co_await until_last_is(views, leader_state::unknown);
        server.start();
        co_await until_last_is(views, leader_state::leader);
        leading.cancel();
        const std::error_code code = co_await leading.code();
        CHECK(code == asio::error::operation_aborted);
        co_await until_last_is(views, leader_state::nobody);
        observing.cancel();
        co_await observing.code();
    };
    const client_options o = options(server.connect_string()).session_timeout(paced(2s));
    with_client_for(120s, client_options(o).connection_timeout(paced(500ms)), body);
}

TEST_CASE("lead: cancelled twice while the server is down it ends and its node goes when the server is back",
          "[clear]") {
    test_server server;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const auto executor = co_await asio::this_coro::executor;
        const leader_election election(zk, "/election");
        const auto terms = std::make_shared<int>(0);
        running leading(executor, lead_for_ever(election, terms));
        auto elected = [&]() -> asio::awaitable<bool> { co_return *terms == 1; };
        co_await eventually(elected);
        server.kill();
        auto noticed = [&]() -> asio::awaitable<bool> { co_return zk.state() == session_state::suspended; };
        co_await eventually(noticed);
        leading.cancel();
        leading.cancel();
        const std::error_code code = co_await leading.code();
        CHECK(code == asio::error::operation_aborted);
        server.start();
        co_await zk.idle();
        const auto left = co_await election.candidates();
        CHECK(left.empty());
    };
    with_client(options(server.connect_string()).session_timeout(paced(30s)), body);
}

// What a server says last is the beginning of a silence.
TEST_CASE("observer: cut off from the servers it says so within a session timeout and then tells the leader again",
          "[clear]") {
    const bool silent = GENERATE(true, false);
    fault_proxy proxy(first_server());
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "observer-cut-off");
        const auto executor = co_await asio::this_coro::executor;
        leadership first = co_await leader_election(zk, dir).campaign();
        const test_client watching(executor, options(proxy.address()).session_timeout(paced(9s)));
        const auto views = std::make_shared<std::vector<leader_view>>();
        running observing(executor, keep_views(leader_election(watching, dir), views));
        co_await until_last_is(views, leader_state::leader);
        const auto granted = watching.session_now().timeout();

        const auto began = boot_clock::now();
        proxy.silence(true);
        if (!silent) proxy.cut_all();
        co_await until_last_is(views, leader_state::unknown);
        const auto took = boot_clock::now() - began;
        CHECK(took < granted + paced(1s));
        CHECK(took > granted / 3 - 100ms);
        co_await first.resign();
        const leadership second = co_await leader_election(zk, dir).campaign();
        proxy.silence(false);
        proxy.cut_all();  // what was said into the silence is gone
        co_await until_last_is(views, leader_state::leader);
        CHECK(views->back().leader->token == second.token());
        CHECK(views->size() == 3);
        observing.cancel();
        co_await observing.code();
        co_await watching.close();
    };
    with_client(body);
}

TEST_CASE("election: candidates on connections that flap lead one at a time with either suspension policy", "[clear]") {
    const auto policy = GENERATE(suspension_policy::keep, suspension_policy::lose);
    fault_proxy proxy(first_server());
    auto body = [&](client observer) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(observer, "election-flapping");
        const auto executor = co_await asio::this_coro::executor;
        const test_client a(executor, options(proxy.address()).suspension(policy));
        const test_client b(executor, options(proxy.address()).suspension(policy));
        int leading = 0, terms = 0;
        fencing_token newest;
        auto term = [&](leadership& leader) -> asio::awaitable<void> {
            struct counted {
                explicit counted(int& n) : n_(n) { ++n_; }
                ~counted() { --n_; }
                int& n_;
            };
            const counted here(leading);
            // The body of a lost term may still be ending when the next one begins.
            CHECK(leader.token() > newest);
            newest = leader.token();
            ++terms;
            co_await turns(static_cast<int>(terms % 7) * 20);
            CHECK((!leader.held() || leader.token() == newest));
        };
        auto lead = [&](client zk) -> asio::awaitable<void> {
            co_await leader_election(zk, dir).lead(term, lead_options().requeue());
        };
        std::vector<running> all;
        for (int i = 0; i < 3; ++i) {
            all.emplace_back(executor, lead(a));
            all.emplace_back(executor, lead(b));
        }
        const auto views = std::make_shared<std::vector<leader_view>>();
        running observing(executor, keep_views(leader_election(observer, dir), views));
        std::minstd_rand random(5);
        for (int cut = 0; cut < 40; ++cut) {
            auto some_terms = [&, from = terms]() -> asio::awaitable<bool> { co_return terms > from + 3; };
            co_await eventually(some_terms, 30s);
            co_await turns(static_cast<int>(random() % 40));
            proxy.cut_all(random() % 2 ? fault_proxy::end::rst : fault_proxy::end::fin);
        }
        for (running& r : all) {
            r.cancel();
            const std::error_code code = co_await r.code();
            CHECK(code == asio::error::operation_aborted);
        }
        CHECK(leading == 0);
        co_await until_last_is(views, leader_state::nobody);
        fencing_token last;
        for (const leader_view& view : *views) {
            if (!view.leader) continue;
            CHECK(view.leader->token > last);
            last = view.leader->token;
        }
        CHECK(views->size() > 40);
        observing.cancel();
        co_await observing.code();
        co_await until_queued(observer, dir, 0);
        co_await a.close();
        co_await b.close();
    };
    with_client_for(200s, options(), body);
}
