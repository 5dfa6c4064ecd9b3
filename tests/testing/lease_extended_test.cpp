// A notice that a lease was extended, over an ensemble in memory.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/clock.hpp>
#include <zkasio/error.hpp>
#include <zkasio/locks/cohort_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <chrono>
#include <optional>
#include <utility>

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;
using namespace std::chrono_literals;

namespace {

asio::awaitable<void> keep(asio::awaitable<boot_clock::time_point> extended, boot_clock::time_point& to) {
    to = co_await std::move(extended);
}

}  // namespace

TEST_CASE("lease_extended: completes with each extension, and at once if there was one", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    std::optional<lock_guard> guard;
    SECTION("mutex") { guard = ensemble.run(mutex(zk, "/lock").acquire()); }
    SECTION("cohort_mutex") { guard = ensemble.run(cohort_mutex(zk, "/lock").acquire()); }
    boot_clock::time_point known{};
    for (int i = 0; i < 20; ++i) {
        const boot_clock::time_point next = ensemble.run(guard->lease_extended(known));
        CHECK(next > known);
        CHECK(next == guard->held_until());
        known = next;
    }
    const session s = ensemble.run(zk.current_session());
    CHECK(ensemble.run(s.lease_extended(known)) > known);
}

TEST_CASE("lease_extended: waits while the servers are silent, and ends with the lock", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    std::optional<lock_guard> guard(ensemble.run(mutex(zk, "/lock").acquire()));
    const session s = ensemble.run(zk.current_session());
    ensemble.run_for(5s);
    ensemble.silence(zk);
    ensemble.run_for(1s);  // for the answers that are under way
    const boot_clock::time_point known = guard->held_until();
    boot_clock::time_point got{};
    running of_guard(ensemble.get_executor(), keep(guard->lease_extended(known), got));
    running of_session(ensemble.get_executor(), keep(s.lease_extended(known), got));
    ensemble.run_for(1s);
    CHECK_FALSE(of_guard.ended());
    SECTION("an answer comes in time") {
        ensemble.let_in(zk);
        CHECK_FALSE(ensemble.run(of_guard.code()));
        CHECK(got > known);
        CHECK_FALSE(ensemble.run(of_session.code()));
    }
    SECTION("the guard is released") {
        guard.reset();
        CHECK(ensemble.run(of_guard.code()) == errc::lock_released);
        CHECK_FALSE(of_session.ended());
        of_session.cancel();
        CHECK(ensemble.run(of_session.code()) == condition::cancelled);
        CHECK(got == boot_clock::time_point());
    }
    SECTION("the session ends") {
        CHECK(ensemble.run(of_guard.code()) == errc::lock_lost);
        ensemble.expire(zk);
        ensemble.let_in(zk);
        CHECK(ensemble.run(of_session.code()) == errc::session_expired);
    }
    SECTION("the client is closed") {
        ensemble.run(zk.close());
        CHECK(ensemble.run(of_guard.code()) == errc::lock_lost);
        CHECK(ensemble.run(of_session.code()) == errc::client_closed);
    }
    SECTION("the wait is cancelled") {
        of_guard.cancel();
        CHECK(ensemble.run(of_guard.code()) == condition::cancelled);
        CHECK(guard->held());
    }
}

TEST_CASE("lease_extended: of a guard that is empty, and of a session that is over", "[testing]") {
    fake_ensemble ensemble;
    CHECK(ensemble.run(code_of(lock_guard().lease_extended({}))) == errc::lock_released);
    std::optional<client> zk(ensemble.client(sessions_of_ten_seconds()));
    const session s = ensemble.run(zk->current_session());
    ensemble.run(zk->close());
    CHECK(ensemble.run(code_of(s.lease_extended({}))) == errc::client_closed);
    zk.reset();
    CHECK(ensemble.run(code_of(session().lease_extended({}))) == errc::invalid_argument);
}
