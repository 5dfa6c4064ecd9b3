#include "support/fault_proxy.hpp"
#include "support/lock_checks.hpp"
#include "support/test_client.hpp"

#include <zkasio/cache/streams.hpp>
#include <zkasio/election/candidate.hpp>
#include <zkasio/locks/lock_listing.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/revocation.hpp>

#include <optional>
#include <string>
#include <system_error>

using namespace zkasio;
using namespace zkasio::test;

namespace {

asio::awaitable<void> until_leads(const candidate& who) {
    auto leads = [&]() -> asio::awaitable<bool> { co_return who.leads(); };
    co_await eventually(leads);
}

asio::awaitable<void> until_cancelled() {
    asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
    co_await never.async_wait(asio::use_awaitable);
}

}  // namespace

TEST_CASE("candidate: two clients take turns", "[any-server]") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "candidate-turns");
        const auto executor = co_await asio::this_coro::executor;
        const test_client other(executor, options());
        const candidate first(zk, dir, leader_election_options().id("first"));
        co_await until_leads(first);
        const candidate second(other, dir, leader_election_options().id("second"));
        co_await until_queued(zk, dir, 2);
        const lock_listing list = co_await list_lock(zk, dir);
        CHECK(list.kind == lock_directory_kind::election);
        REQUIRE(list.contenders.size() == 2);
        CHECK(list.contenders[0].data == "first");
        CHECK(list.contenders[0].holds);
        CHECK(list.contenders[0].token == first.term()->token());
        CHECK_FALSE(list.contenders[1].holds);

        int terms = 0;
        auto work = [&](const leadership&) -> asio::awaitable<void> {
            ++terms;
            co_await until_cancelled();
        };
        auto run = [&]() -> asio::awaitable<void> { co_await first.run(work); };
        running working(executor, run());
        auto begun = [&]() -> asio::awaitable<bool> { co_return terms == 1; };
        co_await eventually(begun);
        co_await first.step_down();
        CHECK_FALSE(first.leads());
        co_await until_leads(second);
        co_await second.step_down();
        co_await until_leads(first);
        CHECK(first.status().token > second.status().token);
        co_await second.close();
        co_await first.close();
        const std::error_code ended = co_await working.code();
        CHECK_FALSE(ended);
        CHECK(terms == 2);
        co_await other.close();
        co_await zk.idle();
        const std::size_t left = co_await count_children(zk, dir);
        CHECK(left == 0);
    };
    with_client(body);
}

TEST_CASE("candidate: stands again when its session was ended at the servers") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "candidate-expired");
        const auto executor = co_await asio::this_coro::executor;
        const test_client victim(executor, options());
        const candidate me(victim, dir);
        co_await until_leads(me);
        co_await me.next();
        const fencing_token before = me.term()->token();
        co_await expire_session(victim);
        const candidate_status lost = co_await me.next();
        CHECK((lost.state != candidate_state::leading || lost.token > before));
        co_await until_leads(me);
        CHECK(me.term()->token() > before);
        co_await me.close();
        co_await victim.close();
    };
    with_client(body);
}

TEST_CASE("stop margin: a body that is cut off has ended when another client gets the lock") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "stop-margin");
        const auto executor = co_await asio::this_coro::executor;
        fault_proxy proxy(first_server());
        const test_client cut(executor, options(proxy.address()).close_timeout(100ms));
        bool works = false, owned = false, overlap = false;
        auto work = [&](lock_guard& guard) -> asio::awaitable<void> {
            works = true;
            try {
                co_await until_cancelled();
            } catch (const std::system_error&) {
            }
            owned = guard.held();
            works = false;
        };
        auto with_lock = [&]() -> asio::awaitable<void> {
            co_await mutex(cut, dir).with_lock(work, with_lock_options().stop_margin(paced(500ms)));
        };
        running first(executor, with_lock());
        co_await until_queued(zk, dir, 1);
        auto begun = [&]() -> asio::awaitable<bool> { co_return works; };
        co_await eventually(begun);
        proxy.silence(true);
        const lock_guard next = co_await mutex(zk, dir).acquire();
        overlap = works;
        CHECK_FALSE(overlap);
        CHECK(owned);
        proxy.silence(false);
        const std::error_code ended = co_await first.code();
        CHECK_FALSE((ended && ended != errc::lock_lost));
        co_await cut.close();
    };
    with_client(body);
}

TEST_CASE("revocation: a request in the data of a lock's directory keeps the holder's data") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "revoke-kept");
        const auto executor = co_await asio::this_coro::executor;
        const test_client other(executor, options());
        const mutex lock(zk, dir);
        const lock_guard guard = co_await lock.acquire(acquire_options().data("request 7"));
        auto ask = [&]() -> asio::awaitable<void> { co_await guard.revoke_requested(); };
        running asked(executor, ask());
        co_await revoke(other, guard.path(), holder_data::kept);
        const std::error_code told = co_await asked.code();
        CHECK_FALSE(told);
        const lock_listing list = co_await list_lock(other, dir);
        REQUIRE(list.contenders.size() == 1);
        CHECK(list.contenders[0].data == "request 7");
        CHECK(list.contenders[0].revoke_requested);
        co_await other.close();
    };
    with_client(body);
}

TEST_CASE("streams: settled() tells of many children once") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "settled");
        const children_stream names = watch_children(zk, dir);
        const auto first = co_await names.settled(0s);
        REQUIRE(first);
        CHECK(first->names.empty());
        auto fill = [&]() -> asio::awaitable<void> {
            for (int i = 0; i < 50; ++i) co_await zk.create(dir + "/" + std::to_string(i));
        };
        running filling(co_await asio::this_coro::executor, fill());
        const auto all = co_await names.settled(paced(2s));
        CHECK(all->names.size() == 50);
        co_await filling.code();
        for (int i = 0; i < 50; ++i) co_await zk.remove(dir + "/" + std::to_string(i));
    };
    with_client(body);
}
