// What is told of the contenders for a lock, of a kind that is known or not, over an ensemble in memory.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/election/leader_election.hpp>
#include <zkasio/error.hpp>
#include <zkasio/locks/cohort_mutex.hpp>
#include <zkasio/locks/lock_listing.hpp>
#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/revocation.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/slots.hpp>
#include <zkasio/locks/unfair_mutex.hpp>
#include <zkasio/path.hpp>
#include <zkasio/printable.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

using words = std::vector<std::string>;

asio::awaitable<void> keep(asio::awaitable<lock_guard> acquiring, std::vector<lock_guard>& to) {
    lock_guard guard = co_await std::move(acquiring);
    to.push_back(std::move(guard));
}

acquire_options data(std::string text) { return std::move(acquire_options().data(std::move(text))); }

// "a! b c": the data of each, and who holds the lock.
std::string told(const std::vector<contender_info>& all) {
    std::string text;
    for (const contender_info& c : all) {
        if (!text.empty()) text += ' ';
        text += c.data + (c.holds ? "!" : "") + (c.revoke_requested ? "?" : "");
    }
    return text;
}

}  // namespace

TEST_CASE("contenders: each acquire has data of its own, and a token", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    const mutex lock(zk, "/lock", mutex_options().data("of the lock"));
    std::vector<lock_guard> guards;
    running first(ensemble.get_executor(), keep(lock.acquire(data("a")), guards));
    running second(ensemble.get_executor(), keep(lock.acquire(), guards));
    running third(ensemble.get_executor(), keep(lock.acquire(data("c")), guards));
    ensemble.run_for(1s);
    const std::vector<contender_info> all = ensemble.run(lock.contenders());
    CHECK(told(all) == "a! of the lock c");
    REQUIRE(guards.size() == 1);
    CHECK(all[0].token == guards[0].token());
    CHECK(all[1].token > all[0].token);
    CHECK(session_id_text(all[0].session_id) == session_id_text(ensemble.session_id(zk)));
    guards.clear();
    ensemble.run_for(1s);
    CHECK(told(ensemble.run(lock.contenders())) == "of the lock! c");
    second.cancel();
    third.cancel();
}

TEST_CASE("acquire data: in every kind of lock that has a node for each acquire", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    std::shared_ptr<const lockable> lock;
    SECTION("readers") { lock = std::make_shared<shared_mutex_side>(shared_mutex(zk, "/lock").readers()); }
    SECTION("unfair") { lock = std::make_shared<unfair_mutex>(zk, "/lock/node"); }
    SECTION("slots") { lock = std::make_shared<slots>(zk, "/lock", 3); }
    SECTION("permits") {
        lock = std::make_shared<permit_request>(semaphore(zk, "/lock", permits::fixed(2)).request(2));
    }
    const lock_guard guard = ensemble.run(lock->acquire(data("mine")));
    for (const std::string& node : guard.paths()) CHECK(ensemble.data(node) == "mine");
}

TEST_CASE("acquire data: a cohort and several locks refuse them", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    const cohort_mutex cohort(zk, "/cohort");
    CHECK(ensemble.run(code_of(cohort.acquire(data("mine")))) == errc::invalid_argument);
    CHECK(ensemble.run(code_of(cohort.try_acquire(data("mine")))) == errc::invalid_argument);
    multi_mutex both(zk);
    both.add(mutex(zk, "/a"), data("of a")).add(mutex(zk, "/b"));
    CHECK(ensemble.run(code_of(both.acquire(data("mine")))) == errc::invalid_argument);
    const lock_guard guard = ensemble.run(both.acquire());
    REQUIRE(guard.paths().size() == 2);
    CHECK(ensemble.data(guard.paths()[0]) == "of a");
    CHECK(ensemble.data(guard.paths()[1]) == "");
    CHECK_THROWS_AS(multi_mutex(zk).add(both, data("mine")), error);
}

TEST_CASE("acquire data: of a campaign instead of the id, also after the session has expired", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds()), other = ensemble.client(sessions_of_ten_seconds());
    const leader_election election(zk, "/election", leader_election_options().id("host"));
    const leader_election same(other, "/election", leader_election_options().id("other"));
    std::optional<leadership> leader;
    leader.emplace(ensemble.run(same.campaign()));
    std::optional<leadership> next;
    auto stand = [&]() -> asio::awaitable<void> {
        leadership elected = co_await election.campaign(data("host:8080"));
        next.emplace(std::move(elected));
    };
    running standing(ensemble.get_executor(), stand());
    ensemble.run_for(1s);
    CHECK(told(ensemble.run(same.candidates())) == "other! host:8080");
    ensemble.expire(zk);
    ensemble.run_for(20s);
    CHECK(told(ensemble.run(same.candidates())) == "other! host:8080");
    ensemble.run(leader->proclaim("10.0.0.1:80"));
    const std::vector<contender_info> all = ensemble.run(same.candidates());
    CHECK(all[0].proclaimed == "10.0.0.1:80");
    CHECK_FALSE(all[1].proclaimed);
    leader.reset();
    CHECK_FALSE(ensemble.run(standing.code()));
}

TEST_CASE("revoke: a request that keeps the holder's data is heard", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds()), other = ensemble.client(sessions_of_ten_seconds());
    const mutex lock(zk, "/lock"), same(other, "/lock");
    lock_guard guard = ensemble.run(lock.acquire(data("mine")));
    running asked(ensemble.get_executor(), guard.revoke_requested());
    ensemble.run_for(1s);
    ensemble.run(revoke(other, guard.path(), holder_data::kept));
    CHECK_FALSE(ensemble.run(asked.code()));
    CHECK(ensemble.data(guard.path()) == "mine");
    CHECK(told(ensemble.run(same.contenders())) == "mine!?");
    CHECK(told(ensemble.run(list_lock(other, "/lock")).contenders) == "mine!?");
    CHECK_FALSE(ensemble.run(code_of(guard.revoke_requested())));  // written before it is asked
    ensemble.run(guard.release());

    // The next holder is not asked.
    const lock_guard next = ensemble.run(lock.acquire(data("next")));
    running not_asked(ensemble.get_executor(), next.revoke_requested());
    ensemble.run_for(10s);
    CHECK_FALSE(not_asked.ended());
    CHECK(told(ensemble.run(same.contenders())) == "next!");
    ensemble.run(revoke(other, next.path()));
    CHECK_FALSE(ensemble.run(not_asked.code()));
    CHECK(told(ensemble.run(same.contenders())) == "__REVOKE__!?");
}

TEST_CASE("revoke: with_lock() and permits hear a request that keeps the data", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds()), other = ensemble.client(sessions_of_ten_seconds());
    const semaphore pool(zk, "/pool", permits::fixed(2));
    std::string node;
    auto body = [&](lock_guard& guard) -> asio::awaitable<void> {
        node = guard.path();
        asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
        co_await never.async_wait(asio::use_awaitable);
    };
    auto with_permit = [&]() -> asio::awaitable<void> {
        co_await pool.with_permit(body, revocation_policy::cancel_after(5s));
    };
    running work(ensemble.get_executor(), with_permit());
    ensemble.run_for(1s);
    ensemble.run(revoke(other, node, holder_data::kept));
    const auto began = ensemble.now();
    CHECK(ensemble.run(work.code()) == errc::revoked);
    CHECK(ensemble.now() - began >= 5s);
}

TEST_CASE("revoke: nodes without a queue, and foreign data of the directory", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    const unfair_mutex flag(zk, "/flags/one");
    const lock_guard held = ensemble.run(flag.acquire(data("mine")));
    CHECK(ensemble.run(code_of(revoke(zk, held.path(), holder_data::kept))) == errc::invalid_argument);
    CHECK(ensemble.data(held.path()) == "mine");
    CHECK_FALSE(ensemble.run(code_of(revoke(zk, held.path()))));
    CHECK(ensemble.data(held.path()) == "__REVOKE__");

    const mutex lock(zk, "/lock");
    const lock_guard guard = ensemble.run(lock.acquire());
    ensemble.set("/lock", "of another program");
    CHECK(ensemble.run(code_of(revoke(zk, guard.path(), holder_data::kept))) == errc::invalid_argument);
    CHECK(ensemble.data("/lock") == "of another program");
}

TEST_CASE("contenders: readers up to the first writer hold the lock", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    const shared_mutex lock(zk, "/lock");
    std::vector<lock_guard> guards;
    std::vector<running> all;
    const auto come = [&](lock_kind kind, const char* name) {
        all.emplace_back(ensemble.get_executor(), keep(lock.acquire(kind, data(name)), guards));
        ensemble.run_for(100ms);
    };
    come(lock_kind::shared, "r1");
    come(lock_kind::shared, "r2");
    come(lock_kind::exclusive, "w3");
    come(lock_kind::shared, "r4");
    CHECK(told(ensemble.run(lock.contenders())) == "r1! r2! w3 r4");
    const lock_listing list = ensemble.run(list_lock(zk, "/lock"));
    CHECK(list.kind == lock_directory_kind::shared_mutex);
    CHECK(told(list.contenders) == "r1! r2! w3 r4");
    CHECK(list.holders().size() == 2);
    guards.clear();
    ensemble.run_for(1s);
    CHECK(told(ensemble.run(lock.contenders())) == "w3! r4");
    guards.clear();
    ensemble.run_for(1s);
    CHECK(told(ensemble.run(lock.contenders())) == "r4!");
}

TEST_CASE("list_lock: tells every kind of lock by its nodes", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    lock_listing list = ensemble.run(list_lock(zk, "/nothing"));
    CHECK_FALSE(list.exists);
    CHECK(list.kind == lock_directory_kind::empty);
    ensemble.create("/empty");
    list = ensemble.run(list_lock(zk, "/empty"));
    CHECK(list.exists);
    CHECK(list.kind == lock_directory_kind::empty);
    ensemble.create("/other/child");
    list = ensemble.run(list_lock(zk, "/other"));
    CHECK(list.kind == lock_directory_kind::other);
    CHECK(list.foreign == words{"child"});

    const auto kind_of = [&](const lockable& lock, const std::string& path) {
        const lock_guard guard = ensemble.run(lock.acquire());
        const lock_listing found = ensemble.run(list_lock(zk, path));
        CHECK(found.holders().size() == 1);
        CHECK(found.holders().at(0).path == guard.path());
        CHECK(found.foreign.empty());
        return std::string(to_string(found.kind));
    };
    CHECK(kind_of(mutex(zk, "/m"), "/m") == "mutex");
    CHECK(kind_of(cohort_mutex(zk, "/cohort"), "/cohort") == "mutex");
    CHECK(kind_of(mutex(zk, "/kazoo", mutex_options().names(name_scheme::kazoo())), "/kazoo") == "mutex");
    CHECK(kind_of(shared_mutex(zk, "/rw"), "/rw") == "shared_mutex");
    CHECK(kind_of(shared_mutex(zk, "/rw2").readers(), "/rw2") == "shared_mutex");
    shared_mutex_options as_kazoo;
    as_kazoo.names(name_scheme::kazoo());
    CHECK(kind_of(shared_mutex(zk, "/rw3", as_kazoo).readers(), "/rw3") == "shared_mutex");
    CHECK(kind_of(unfair_mutex(zk, "/flags/one"), "/flags/one") == "single_node");
    CHECK(kind_of(semaphore(zk, "/pool", permits::fixed(2)).request(), "/pool") == "semaphore");
    const leadership leader = ensemble.run(leader_election(zk, "/e").campaign());
    CHECK(ensemble.run(list_lock(zk, "/e")).kind == lock_directory_kind::election);
    ensemble.create("/e/child");
    list = ensemble.run(list_lock(zk, "/e"));
    CHECK(list.kind == lock_directory_kind::election);
    CHECK(list.foreign == words{"child"});
    CHECK(list.contenders.size() == 1);
}

TEST_CASE("list_lock: of a semaphore those with a permit, and those that wait", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds()), other = ensemble.client(sessions_of_ten_seconds());
    const semaphore pool(zk, "/pool", permits::fixed(2));
    const semaphore same(other, "/pool", permits::fixed(2));
    std::vector<lock_guard> guards;
    running a(ensemble.get_executor(), keep(pool.acquire(1, data("a")), guards));
    ensemble.run_for(100ms);
    running b(ensemble.get_executor(), keep(pool.acquire(1, data("b")), guards));
    ensemble.run_for(100ms);
    running c(ensemble.get_executor(), keep(same.acquire(1, data("c")), guards));
    ensemble.run_for(1s);
    running d(ensemble.get_executor(), keep(pool.acquire(1, data("d")), guards));
    ensemble.run_for(1s);
    const lock_listing list = ensemble.run(list_lock(zk, "/pool"));
    CHECK(told(list.contenders) == "a! b! c d");
    c.cancel();
    d.cancel();
}

TEST_CASE("list_lock: of one client's requests for permits, those that have got one hold it", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    const semaphore pool(zk, "/pool", permits::fixed(3));
    std::vector<lock_guard> guards;
    running a(ensemble.get_executor(), keep(pool.acquire(1, data("a")), guards));
    running b(ensemble.get_executor(), keep(pool.acquire(1, data("b")), guards));
    running c(ensemble.get_executor(), keep(pool.acquire(2, data("c")), guards));
    running d(ensemble.get_executor(), keep(pool.acquire(1, data("d")), guards));
    ensemble.run_for(1s);
    CHECK(guards.size() == 2);
    CHECK(told(ensemble.run(list_lock(zk, "/pool")).contenders) == "a! b! c d");
    c.cancel();
    d.cancel();
}

TEST_CASE("list_lock: a reader that was a writer holds the lock, and the writer behind it does not", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds()), other = ensemble.client(sessions_of_ten_seconds());
    const shared_mutex lock(zk, "/rw"), same(other, "/rw");
    lock_guard writing = ensemble.run(lock.acquire(data("a")));
    std::vector<lock_guard> guards;
    running b(ensemble.get_executor(), keep(same.acquire(data("b")), guards));
    ensemble.run_for(1s);
    const lock_guard reading = ensemble.run(lock.downgrade(std::move(writing)));
    const std::vector<contender_info> all = ensemble.run(list_lock(other, "/rw")).contenders;
    CHECK(told(all) == "a! b");
    CHECK(told(ensemble.run(lock.contenders())) == "a! b");
    REQUIRE(all.size() == 2);
    CHECK(all[1].position == 1);
    b.cancel();
}

TEST_CASE("list_lock: a node that this client may not read", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds()), other = ensemble.client(sessions_of_ten_seconds());
    const lock_guard guard = ensemble.run(mutex(zk, "/lock").acquire());
    ensemble.refuse(guard.path(), zk_errc::no_auth);
    CHECK(ensemble.run(code_of(list_lock(other, "/lock"))) == zk_errc::no_auth);
}

TEST_CASE("session_id_text: hexadecimal, as servers write it") {
    CHECK(session_id_text(0) == "0x0");
    CHECK(session_id_text(0x1000a2f3b4c0001) == "0x1000a2f3b4c0001");
    CHECK(session_id_text(-1) == "0xffffffffffffffff");
}

TEST_CASE("listing: the node of another library that has no id in its name holds the lock, and ours wait",
          "[testing]") {
    struct directory {
        std::string node;
        lock_directory_kind kind;
    };
    const directory all[] = {{"lock-0000000000", lock_directory_kind::mutex},
                             {"__lock__0000000000", lock_directory_kind::mutex},
                             {"__WRIT__0000000000", lock_directory_kind::shared_mutex},
                             {"latch-0000000000", lock_directory_kind::election}};
    for (const directory& d : all) {
        INFO(d.node);
        fake_ensemble ensemble;
        const client zk = ensemble.client(sessions_of_ten_seconds());
        ensemble.create("/l", "");
        ensemble.create("/l/" + d.node, "other");
        const std::shared_ptr<const lockable> lock = [&]() -> std::shared_ptr<const lockable> {
            if (d.kind == lock_directory_kind::shared_mutex) return std::make_shared<shared_mutex>(zk, "/l");
            const bool latch = d.kind == lock_directory_kind::election;
            const name_scheme names = latch                 ? name_scheme::curator_latch()
                                      : d.node.front() == '_' ? name_scheme::kazoo()
                                                            : name_scheme::curator();
            return std::make_shared<mutex>(zk, "/l", mutex_options().names(names));
        }();
        std::vector<lock_guard> guards;
        running waiting(ensemble.get_executor(), keep(lock->acquire(data("ours")), guards));
        ensemble.run_for(1s);
        const lock_listing list = ensemble.run(list_lock(zk, "/l"));
        CHECK(list.kind == d.kind);
        CHECK(told(list.contenders) == "other! ours");
        CHECK(list.foreign.empty());
        ensemble.remove("/l/" + d.node);
        ensemble.run_for(1s);
        CHECK(told(ensemble.run(list_lock(zk, "/l")).contenders) == "ours!");
        CHECK(guards.size() == 1);
    }
}

// As Curator's InterProcessMutex and InterProcessReadWriteLock, and kazoo's Lock, WriteLock and ReadLock, write them.
TEST_CASE("list_lock: with the scheme of Curator or kazoo, its mutexes, writers and readers are told", "[testing]") {
    const name_scheme curator = name_scheme::curator(), kazoo = name_scheme::kazoo();
    const std::string uuid = "_c_7f3a0c52-1d0e-4b7e-9a53-0d5b6c1f2e", hex = "7f3a0c521d0e4b7e9a530d5b6c1f2e";
    struct directory {
        const char* what;
        name_scheme names;
        words nodes;  // in the order of their numbers
        lock_directory_kind kind;
        std::string contenders;
    };
    using enum lock_directory_kind;
    const directory all[] = {
        {"Curator, mutexes", curator, {uuid + "00-lock-0000000003", uuid + "11-lock-0000000004"}, mutex, "0! 1"},
        {"Curator, writers", curator, {uuid + "00-__WRIT__0000000003", uuid + "11-__WRIT__0000000004"}, shared_mutex,
         "0! 1"},
        {"Curator, readers before a writer", curator,
         {uuid + "22-__READ__0000000003", uuid + "11-__READ__0000000004", uuid + "00-__WRIT__0000000005",
          uuid + "33-__READ__0000000006"},
         shared_mutex, "0s! 1s! 2 3s"},
        {"Curator, across the wrap-around", curator,
         {uuid + "11-__WRIT__2147483647", uuid + "00-__READ__-2147483648"}, shared_mutex, "0! 1s"},
        {"kazoo, mutexes or writers", kazoo, {hex + "00__lock__0000000003", hex + "11__lock__0000000004"}, shared_mutex,
         "0! 1"},
        {"kazoo, readers before a writer", kazoo,
         {hex + "11__rlock__0000000003", hex + "00__lock__0000000004", hex + "22__rlock__0000000005"}, shared_mutex,
         "0s! 1 2s"},
    };
    for (const directory& d : all) {
        INFO(d.what);
        fake_ensemble ensemble;
        const client zk = ensemble.client(sessions_of_ten_seconds());
        for (std::size_t i = d.nodes.size(); i-- > 0;) ensemble.create("/l/" + d.nodes[i], std::to_string(i));
        ensemble.create("/l/config");
        const lock_listing list = ensemble.run(list_lock(zk, "/l", d.names));
        CHECK(list.kind == d.kind);
        CHECK(list.foreign == words{"config"});
        std::string told;
        for (const contender_info& c : list.contenders) {
            if (!told.empty()) told += ' ';
            told += c.data + (c.kind == lock_kind::shared ? "s" : "") + (c.holds ? "!" : "");
        }
        CHECK(told == d.contenders);
        // The other library's scheme knows none of them.
        const bool is_kazoo = d.names.prefix().empty();
        const lock_listing other = ensemble.run(list_lock(zk, "/l", is_kazoo ? curator : kazoo));
        CHECK(other.kind == lock_directory_kind::other);
        CHECK(other.foreign.size() == d.nodes.size() + 1);
    }
}

TEST_CASE("listing: leases and requests of another library that have no id in their names", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    for (const char* path : {"/s", "/s/locks", "/s/leases"}) ensemble.create(path, "");
    ensemble.create("/s/leases/lease-0000000000", "holder");
    ensemble.create("/s/locks/lock-0000000000", "waiter");
    const lock_listing list = ensemble.run(list_lock(zk, "/s"));
    CHECK(list.kind == lock_directory_kind::semaphore);
    CHECK(told(list.contenders) == "holder! waiter");
    CHECK(list.foreign.empty());
}
