// Commits whose guards are released between the call and the co_await.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/election/leader_election.hpp>
#include <zkasio/error.hpp>
#include <zkasio/locks/cohort_mutex.hpp>
#include <zkasio/locks/lock_owner.hpp>
#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/unfair_mutex.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <string>
#include <utility>

namespace commit_released_tests {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

transaction removes_x() { return transaction().remove("/x"); }

template <class T>
asio::awaitable<void> fails_as_released(const char* what, asio::awaitable<T> operation, std::string beginning) {
    const std::string text = co_await message_of(std::move(operation));
    INFO(what);
    CHECK(text.starts_with(beginning));
    CHECK(text.ends_with(": lock not held"));
}

template <class Lock>
asio::awaitable<void> commits_late(const char* kind, Lock lock) {
    lock_guard guard = co_await lock.acquire();
    auto destroyed = guard.commit(removes_x());
    guard = lock_guard();
    co_await fails_as_released(kind, std::move(destroyed), "commit /");
    guard = co_await lock.acquire();
    auto released = guard.commit(removes_x());
    co_await guard.release();
    co_await fails_as_released(kind, std::move(released), "commit /");
}

asio::awaitable<void> leads_no_more(leader_election election) {
    leadership leads = co_await election.campaign();
    auto commits = leads.commit(removes_x());
    auto proclaims = leads.proclaim("x");
    leads = leadership();
    co_await fails_as_released("leadership", std::move(commits), "commit /e/");
    co_await fails_as_released("leadership", std::move(proclaims), "proclaim /e/");
}

asio::awaitable<void> owner_gives_up(mutex lock) {
    const lock_owner me;
    lock_guard first = co_await lock.acquire(acquire_options().owner(me));
    lock_guard second = co_await lock.acquire(acquire_options().owner(me));
    auto of_first = first.commit(removes_x());
    auto of_second = second.commit(removes_x());
    first = lock_guard();
    second = lock_guard();
    co_await fails_as_released("first of an owner", std::move(of_first), "commit /o/");
    co_await fails_as_released("second of an owner", std::move(of_second), "commit /o/");
}

}  // namespace

TEST_CASE("a commit whose guard is released before the commit is awaited fails as one after the release", "[testing]") {
    fake_ensemble e;
    e.create("/x");
    const client zk = e.client(calm());
    e.run(commits_late("mutex", mutex(zk, "/m")));
    e.run(commits_late("cohort_mutex", cohort_mutex(zk, "/c")));
    e.run(commits_late("multi_mutex", multi_mutex(zk).add(mutex(zk, "/a")).add(mutex(zk, "/b"))));
    e.run(commits_late("unfair_mutex", unfair_mutex(zk, "/u")));
    e.run(leads_no_more(leader_election(zk, "/e")));
    e.run(owner_gives_up(mutex(zk, "/o")));
    CHECK(e.exists("/x"));
    e.run(zk.close());
}

}  // namespace commit_released_tests
