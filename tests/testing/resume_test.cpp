// Nodes that the process has left which had the session before, over an ensemble in memory.

#include "support/catch.hpp"
#include "support/lock_checks.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/acl.hpp>
#include <zkasio/barriers/double_barrier.hpp>
#include <zkasio/election/candidate.hpp>
#include <zkasio/error.hpp>
#include <zkasio/locks/cohort_mutex.hpp>
#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/slots.hpp>
#include <zkasio/locks/unfair_mutex.hpp>
#include <zkasio/membership/persistent_node.hpp>
#include <zkasio/queues/work_queue.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

using logged = std::vector<std::string>;

client_options warnings_to(logged& to) {
    return sessions_of_ten_seconds().log([&to](const log_record& r) {
        if (r.level() >= log_level::warning) to.emplace_back(r.text());
    });
}

std::ptrdiff_t count_of(const logged& all, const std::string& what) {
    return std::count_if(all.begin(), all.end(),
                         [&](const std::string& line) { return line.find(what) != std::string::npos; });
}

// The process that had the session does not hand it over: it hangs, is killed, or is cut off.
client heir_of_silent(fake_ensemble& e, const client& former, client_options how = sessions_of_ten_seconds()) {
    const session_credentials left = e.run(former.credentials());
    e.hold_down(former);
    const client heir = e.client(how.resume(left));
    e.run(heir.connected());
    return heir;
}

client heir_of(fake_ensemble& e, const client& former, client_options how = sessions_of_ten_seconds()) {
    const session_credentials left = e.run(former.hand_over());
    const client heir = e.client(how.resume(left));
    e.run(heir.connected());
    return heir;
}

enum class taken_lock {
    mutex,
    shared,
    reader_behind_writer,
    semaphore,
    cohort,
    multi,
    slots,
    quiet_slots,
    unfair
};

asio::awaitable<lock_guard> lock_of(client zk, taken_lock k, bool former) {
    switch (k) {
        case taken_lock::mutex: return mutex(zk, "/lock").acquire();
        case taken_lock::shared: return shared_mutex(zk, "/lock").acquire();
        case taken_lock::reader_behind_writer:
            return former ? shared_mutex(zk, "/lock").acquire() : shared_mutex(zk, "/lock").acquire_shared();
        case taken_lock::semaphore: return semaphore(zk, "/lock", permits::fixed(1)).acquire();
        case taken_lock::cohort: return cohort_mutex(zk, "/lock").acquire();
        case taken_lock::multi: {
            multi_mutex both(zk);
            both.add(mutex(zk, "/lock")).add(mutex(zk, "/lock2"));
            return both.acquire();
        }
        case taken_lock::slots: return slots(zk, "/lock", 1).acquire();
        case taken_lock::quiet_slots: return slots(zk, "/lock", 1, slots_options().quiet(1s)).acquire();
        case taken_lock::unfair: break;
    }
    return unfair_mutex(zk, "/lock").acquire();
}

asio::awaitable<std::optional<lock_guard>> try_lock_of(client zk, taken_lock k) {
    switch (k) {
        case taken_lock::mutex: return mutex(zk, "/lock").try_acquire();
        case taken_lock::shared: return shared_mutex(zk, "/lock").try_acquire();
        case taken_lock::reader_behind_writer: return shared_mutex(zk, "/lock").try_acquire_shared();
        case taken_lock::semaphore: return semaphore(zk, "/lock", permits::fixed(1)).try_acquire();
        case taken_lock::cohort: return cohort_mutex(zk, "/lock").try_acquire();
        case taken_lock::multi: {
            multi_mutex both(zk);
            both.add(mutex(zk, "/lock")).add(mutex(zk, "/lock2"));
            return both.try_acquire();
        }
        case taken_lock::slots: return slots(zk, "/lock", 1).try_acquire();
        case taken_lock::quiet_slots: return slots(zk, "/lock", 1, slots_options().quiet(1s)).try_acquire();
        case taken_lock::unfair: break;
    }
    return unfair_mutex(zk, "/lock").try_acquire();
}

// A number that its holder has not given back rests from the first look on. A try of several locks comes to the second
// one, and finds what was left there, when the first one is free.
bool may_be_had(fake_ensemble& e, const client& zk, taken_lock k) {
    bool got = e.run(try_lock_of(zk, k)).has_value();
    if ((k == taken_lock::quiet_slots || k == taken_lock::multi) && !got) {
        e.run_for(1100ms);
        got = e.run(try_lock_of(zk, k)).has_value();
    }
    return got;
}

taken_lock any_kind() {
    return GENERATE(taken_lock::mutex, taken_lock::shared, taken_lock::reader_behind_writer, taken_lock::semaphore,
                    taken_lock::cohort, taken_lock::multi, taken_lock::slots, taken_lock::quiet_slots,
                    taken_lock::unfair);
}

}  // namespace

TEST_CASE("resume: a lock's node that the former process has left keeps the heir out for a time only", "[testing]") {
    const taken_lock k = any_kind();
    CAPTURE(static_cast<int>(k));
    fake_ensemble ensemble;
    const client former = ensemble.client(sessions_of_ten_seconds());
    const lock_guard held = ensemble.run(lock_of(former, k, true));
    logged log;
    const client heir = heir_of(ensemble, former, warnings_to(log));
    const taker gets(ensemble.get_executor(), lock_of(heir, k, false));
    ensemble.run_for(9s);
    CHECK_FALSE(gets.has_it());
    CHECK(count_of(log, "has left /lock") == 1);
    ensemble.run_for(4s);
    REQUIRE(gets.has_it());
    CHECK(count_of(log, "has left /lock") == (k == taken_lock::multi ? 2 : 1));
    CHECK(gets.guard().held());
    CHECK(gets.guard().token() > held.token());
}

// Its lease ends within a session timeout after the servers have given the session to the heir.
TEST_CASE("resume: the heir has no lock as long as the former process believes that it holds it", "[testing]") {
    const taken_lock k = any_kind();
    CAPTURE(static_cast<int>(k));
    for (int before = 0; before < 8; ++before) {
        CAPTURE(before);
        fake_ensemble ensemble;
        const client former = ensemble.client(sessions_of_ten_seconds().renewal(session_renewal::none));
        const lock_guard held = ensemble.run(lock_of(former, k, true));
        ensemble.run_for(before * 700ms);
        const client heir = heir_of_silent(ensemble, former);
        CHECK(held.held());
        const taker gets(ensemble.get_executor(), lock_of(heir, k, false));
        while (!gets.has_it() && held.held()) ensemble.run_for(50ms);
        CHECK_FALSE(gets.has_it());
        ensemble.run_for(10s);
        CHECK(gets.has_it());
    }
}

TEST_CASE("resume: a try is refused because of what the former process has left for a time only", "[testing]") {
    const taken_lock k = any_kind();
    CAPTURE(static_cast<int>(k));
    fake_ensemble ensemble;
    const client former = ensemble.client(sessions_of_ten_seconds());
    const lock_guard held = ensemble.run(lock_of(former, k, true));
    const client heir = heir_of(ensemble, former);
    CHECK_FALSE(may_be_had(ensemble, heir, k));
    ensemble.run_for(7s);
    CHECK_FALSE(may_be_had(ensemble, heir, k));
    ensemble.run_for(4s);
    CHECK(may_be_had(ensemble, heir, k));
}

TEST_CASE("resume: a cut begins the time anew after which the former process can hold nothing", "[testing]") {
    fake_ensemble ensemble;
    const client former = ensemble.client(sessions_of_ten_seconds());
    const lock_guard held = ensemble.run(mutex(former, "/lock").acquire());
    const client heir = heir_of(ensemble, former);
    const taker gets(ensemble.get_executor(), mutex(heir, "/lock").acquire());
    for (int i = 0; i < 5; ++i) {
        ensemble.run_for(7s);
        CHECK_FALSE(gets.has_it());
        ensemble.cut(heir);
    }
    ensemble.run_for(20s);
    CHECK(gets.has_it());
}

TEST_CASE("resume: all that a killed process had in a queue goes, and others between are left alone", "[testing]") {
    fake_ensemble ensemble;
    const client former = ensemble.client(sessions_of_ten_seconds().renewal(session_renewal::none));
    const client other = ensemble.client(sessions_of_ten_seconds());
    std::vector<std::unique_ptr<taker>> left, theirs;
    const auto add = [&](const client& zk, std::vector<std::unique_ptr<taker>>& to, int n) {
        for (int i = 0; i < n; ++i)
            to.push_back(std::make_unique<taker>(ensemble.get_executor(), mutex(zk, "/lock").acquire()));
        ensemble.run_for(1s);
    };
    add(former, left, 100);
    add(other, theirs, 8);
    add(former, left, 100);
    logged log;
    const client heir = heir_of_silent(ensemble, former, warnings_to(log));
    std::vector<std::unique_ptr<taker>> ours;
    const std::size_t before = ensemble.requests(heir);
    add(heir, ours, 2);
    CHECK(ensemble.requests(heir) - before < 208 + 20);
    CHECK(ensemble.children("/lock").size() == 210);
    ensemble.run_for(20s);
    CHECK(ensemble.children("/lock").size() == 10);
    CHECK(count_of(log, "and 195 more") == 1);
    CHECK(theirs.front()->has_it());
    theirs.clear();
    ensemble.run_for(1s);
    CHECK(ours[0]->has_it());
    CHECK_FALSE(ours[1]->has_it());
    ours[0]->release();
    ensemble.run_for(1s);
    CHECK(ours[1]->has_it());
    CHECK(ensemble.requests(heir) - before < 2 * 208 + 60);
}

TEST_CASE("resume: whoever gives up waiting leaves nothing", "[testing]") {
    const taken_lock k = any_kind();
    CAPTURE(static_cast<int>(k));
    for (const auto when : {0ms, 1ms, 3ms, 500ms, 9900ms, 10s + 1ms}) {
        fake_ensemble ensemble;
        const client former = ensemble.client(sessions_of_ten_seconds());
        const lock_guard held = ensemble.run(lock_of(former, k, true));
        const client heir = heir_of(ensemble, former);
        {
            taker gives_up(ensemble.get_executor(), lock_of(heir, k, false));
            ensemble.run_for(when);
            gives_up.cancel();
            ensemble.run(gives_up.code());
        }
        ensemble.run_for(2500ms);  // longer than a number rests
        CHECK(may_be_had(ensemble, heir, k) == (when > 9s));
        ensemble.run_for(20s);
        CHECK(may_be_had(ensemble, heir, k));
        ensemble.run(heir.idle());
        ensemble.run(heir.close());
    }
}

TEST_CASE("resume: the session expires while the heir waits", "[testing]") {
    const taken_lock k = any_kind();
    CAPTURE(static_cast<int>(k));
    fake_ensemble ensemble;
    const client former = ensemble.client(sessions_of_ten_seconds());
    const lock_guard held = ensemble.run(lock_of(former, k, true));
    logged log;
    const client heir = heir_of(ensemble, former, warnings_to(log));
    const taker gets(ensemble.get_executor(), lock_of(heir, k, false));
    ensemble.run_for(5s);
    ensemble.expire(heir);
    CHECK(ensemble.run(gets.code()) == errc::session_expired);
    const lock_guard next = ensemble.run(lock_of(heir, k, false));
    CHECK(next.held());
    ensemble.run_for(30s);
    CHECK(next.held());
    if (k != taken_lock::multi) CHECK(count_of(log, "in the background") == 0);  // that looks for its last nodes
}

TEST_CASE("resume: a third process removes what both former ones have left", "[testing]") {
    fake_ensemble ensemble;
    const client first = ensemble.client(sessions_of_ten_seconds());
    const lock_guard held = ensemble.run(mutex(first, "/lock").acquire());
    const client second = heir_of(ensemble, first, sessions_of_ten_seconds().renewal(session_renewal::none));
    const taker waits(ensemble.get_executor(), mutex(second, "/lock").acquire());
    ensemble.run_for(5s);
    logged log;
    const client third = heir_of_silent(ensemble, second, warnings_to(log));
    const taker gets(ensemble.get_executor(), mutex(third, "/lock").acquire());
    ensemble.run_for(9s);
    CHECK_FALSE(gets.has_it());
    ensemble.run_for(4s);
    CHECK(gets.has_it());
    CHECK_FALSE(waits.has_it());
    CHECK(ensemble.children("/lock").size() == 1);
}

TEST_CASE("resume: where an operator removes the node before, a node of that name is left alone", "[testing]") {
    fake_ensemble ensemble;
    const client former = ensemble.client(sessions_of_ten_seconds());
    const client other = ensemble.client(sessions_of_ten_seconds());
    const bool by_other = GENERATE(false, true);
    CAPTURE(by_other);
    const lock_guard held = ensemble.run(unfair_mutex(former, "/lock").acquire());
    const client heir = heir_of(ensemble, former);
    std::optional<taker> gets;
    if (!by_other) gets.emplace(ensemble.get_executor(), unfair_mutex(heir, "/lock").acquire());
    if (by_other) CHECK_FALSE(ensemble.run(unfair_mutex(heir, "/lock").try_acquire()));
    ensemble.run_for(5s);
    ensemble.remove("/lock");
    std::optional<lock_guard> theirs;
    if (by_other) theirs.emplace(ensemble.run(unfair_mutex(other, "/lock").acquire()));
    ensemble.run_for(2s);
    CHECK((by_other || gets->has_it()));
    ensemble.run_for(30s);
    CHECK((by_other ? theirs->held() : gets->guard().held()));
}

TEST_CASE("resume: a node that may not be removed is named, and removed when it may be", "[testing]") {
    fake_ensemble ensemble;
    const client operates = ensemble.client(sessions_of_ten_seconds());
    const client former = ensemble.client(sessions_of_ten_seconds());
    ensemble.create("/lock");
    const lock_guard held = ensemble.run(mutex(former, "/lock").acquire());
    const permission most = permission::read | permission::write | permission::create | permission::admin;
    ensemble.run(operates.set_acl("/lock", acl_of(acl_entry(most, anyone()))));
    logged log;
    const client heir = heir_of(ensemble, former, warnings_to(log));
    const taker gets(ensemble.get_executor(), mutex(heir, "/lock").acquire());
    ensemble.run_for(1min);
    CHECK_FALSE(gets.has_it());
    CHECK(count_of(log, "refuse to remove /lock/") == 1);
    ensemble.run(operates.set_acl("/lock", open_acl()));
    ensemble.run_for(2min);
    CHECK(gets.has_it());
    CHECK(count_of(log, "refuse to remove /lock/") == 1);
}

TEST_CASE("resume: nodes of this process are none that the former one has left", "[testing]") {
    fake_ensemble ensemble;
    const client former = ensemble.client(sessions_of_ten_seconds());
    const lock_guard held = ensemble.run(mutex(former, "/other").acquire());
    const client heir = heir_of(ensemble, former);
    // Another queue of the same client in the same directory.
    const mutex one(heir, "/lock", mutex_options().names(name_scheme::custom("one-", "lock-")));
    const bool lost = GENERATE(false, true);
    if (lost) ensemble.lose_answer(heir, "create /lock/");
    const lock_guard guard = ensemble.run(one.acquire());
    taker waits(ensemble.get_executor(), mutex(heir, "/lock").acquire());
    ensemble.run_for(1min);
    CHECK(guard.held());
    CHECK_FALSE(waits.has_it());
    CHECK(ensemble.children("/lock").size() == 2);
    waits.cancel();
    ensemble.run(waits.code());
}

TEST_CASE("resume: the former process' node is not taken for that of a create whose answer was lost", "[testing]") {
    const taken_lock k = GENERATE(taken_lock::unfair, taken_lock::slots, taken_lock::quiet_slots);
    CAPTURE(static_cast<int>(k));
    fake_ensemble ensemble;
    const client former = ensemble.client(sessions_of_ten_seconds());
    const lock_guard held = ensemble.run(lock_of(former, k, true));
    const client heir = heir_of(ensemble, former);
    const std::string node = held.paths().front();
    ensemble.lose_answer(heir, "create " + node);
    ensemble.lose_answer(heir, "multi");
    const taker gets(ensemble.get_executor(), lock_of(heir, k, false));
    ensemble.run_for(9s);
    CHECK_FALSE(gets.has_it());
    CHECK(ensemble.exists(node));
    ensemble.run_for(15s);
    CHECK(gets.has_it());
}

TEST_CASE("resume: a candidate leads when the former process' term is over", "[testing]") {
    fake_ensemble ensemble;
    const client first = ensemble.client(sessions_of_ten_seconds().renewal(session_renewal::none));
    std::optional<candidate> leads(std::in_place, first, "/election");
    while (!leads->leads()) ensemble.run_for(10ms);
    const client heir = heir_of_silent(ensemble, first);
    const candidate next(heir, "/election");
    while (leads->leads()) {
        CHECK_FALSE(next.leads());
        ensemble.run_for(100ms);
    }
    ensemble.run_for(11s);
    CHECK(next.leads());
}

TEST_CASE("resume: items that the former process has claimed are handed out again", "[testing]") {
    fake_ensemble ensemble;
    const client former = ensemble.client(sessions_of_ten_seconds());
    const work_queue theirs(former, "/queue");
    ensemble.run(theirs.put("item"));
    const delivery claimed = ensemble.run(theirs.receive());
    const client heir = heir_of(ensemble, former);
    const work_queue ours(heir, "/queue");
    std::string got;
    const auto take = [&]() -> asio::awaitable<void> { got = co_await ours.take(); };
    const running takes(ensemble.get_executor(), take());
    ensemble.run_for(9s);
    CHECK(got.empty());
    ensemble.run_for(4s);
    CHECK(got == "item");
}

TEST_CASE("resume: nobody waits for the former process in a double_barrier for ever", "[testing]") {
    fake_ensemble ensemble;
    const client former = ensemble.client(sessions_of_ten_seconds());
    const client other = ensemble.client(sessions_of_ten_seconds());
    std::vector<barrier_entry> inside;
    const auto enter = [&](client zk) -> asio::awaitable<void> {
        barrier_entry entry = co_await double_barrier(zk, "/barrier", 2).enter();
        inside.push_back(std::move(entry));
    };
    running one(ensemble.get_executor(), enter(former)), two(ensemble.get_executor(), enter(other));
    ensemble.run(one.code());
    ensemble.run(two.code());
    const client heir = heir_of(ensemble, former);
    ensemble.run(enter(heir));  // joins the round
    REQUIRE(inside.size() == 3);
    const auto leave = [&](std::size_t i) -> asio::awaitable<void> { co_await inside[i].leave(); };
    const std::size_t theirs = inside[0].held() ? 0 : 1;
    running third(ensemble.get_executor(), leave(2)), second(ensemble.get_executor(), leave(theirs));
    ensemble.run_for(9s);
    CHECK_FALSE(third.ended());
    ensemble.run_for(4s);
    CHECK(third.ended());
    CHECK(ensemble.children("/barrier").empty());
}

TEST_CASE("resume: a persistent_node finds its node, which is none that is removed", "[testing]") {
    fake_ensemble ensemble;
    const client former = ensemble.client(sessions_of_ten_seconds());
    std::optional<persistent_node> theirs(std::in_place, former, "/node");
    const lock_guard held = ensemble.run(mutex(former, "/lock").acquire());
    ensemble.run_for(1s);
    const auto born = ensemble.stat("/node")->czxid;
    const client heir = heir_of(ensemble, former);
    theirs.reset();
    const persistent_node ours(heir, "/node");
    const taker gets(ensemble.get_executor(), mutex(heir, "/lock").acquire());
    ensemble.run_for(20s);
    CHECK(gets.has_it());
    REQUIRE(ensemble.exists("/node"));
    CHECK(ensemble.stat("/node")->czxid == born);
}

TEST_CASE("resume: persistent_nodes of the former process need no room of the heir's", "[testing]") {
    constexpr int n = 100;
    const auto path = [](int i) { return "/instance-" + std::to_string(1000 + i); };  // 18 bytes each
    const client_options how = sessions_of_ten_seconds().ephemeral_budget(3000);
    fake_ensemble e;
    const client former = e.client(how);
    std::vector<persistent_node> left;
    for (int i = 0; i < n; ++i) left.emplace_back(former, path(i), "former");
    e.run_for(1s);
    const client heir = heir_of(e, former, how);  // has a quarter: 41 nodes
    {
        std::vector<persistent_node> nodes;
        for (int i = 0; i < n; ++i) nodes.emplace_back(heir, path(i), "heir");
        e.run_for(1s);
        for (const persistent_node& one : nodes) CHECK(one.state() == persistent_node_state::standing);
        for (int i = 0; i < n; ++i) CHECK(e.data(path(i)) == "heir");
        // One that the former process has not made needs room.
        std::vector<persistent_node> more;
        for (int i = n; i < 2 * n; ++i) more.emplace_back(heir, path(i), "heir");
        e.run_for(1s);
        CHECK(more.front().state() == persistent_node_state::standing);
        CHECK(more.back().state() == persistent_node_state::ended);
    }
    e.run_for(1s);
    CHECK(e.children("/").size() == 0);
    e.run(heir.close());
    e.run(former.close());
}

TEST_CASE("resume: where the former process has left nothing, whoever waits asks no more than anybody else",
          "[testing]") {
    const bool resumed = GENERATE(false, true);
    fake_ensemble ensemble;
    const client former = ensemble.client(sessions_of_ten_seconds());
    const client other = ensemble.client(sessions_of_ten_seconds());
    const lock_guard theirs = ensemble.run(mutex(other, "/lock").acquire());
    ensemble.run(former.connected());
    const client heir = resumed ? heir_of(ensemble, former) : former;
    const std::size_t before = ensemble.requests(heir);
    const taker waits(ensemble.get_executor(), mutex(heir, "/lock").acquire());
    ensemble.run_for(1s);
    // a sync, a listing, and a stat of the one node ahead
    CHECK(ensemble.requests(heir) - before <= std::size_t(resumed ? 8 : 5));
}

TEST_CASE("resume: what the former process has left is searched for once in a session", "[testing]") {
    fake_ensemble ensemble;
    const client former = ensemble.client(sessions_of_ten_seconds());
    const client other = ensemble.client(sessions_of_ten_seconds());
    const lock_guard theirs = ensemble.run(mutex(other, "/lock").acquire());
    ensemble.run(former.connected());
    const client heir = heir_of(ensemble, former);
    std::size_t searches = 0;
    ensemble.on_step([&](std::string_view step) {
        searches += step.find("apply ") != step.npos && step.find(": sync /lock") != step.npos;
    });
    const auto wait = [&] {
        const std::size_t before = searches;
        taker waits(ensemble.get_executor(), mutex(heir, "/lock").acquire());
        ensemble.run_for(1s);
        waits.cancel();
        ensemble.run(waits.code());
        ensemble.run(heir.idle());
        return searches - before;
    };
    const std::size_t first = wait(), second = wait(), third = wait();
    CHECK(second < first);
    CHECK(third == second);
}

TEST_CASE("resume: a node that several coroutines find is warned of once, and removed once", "[testing]") {
    const taken_lock k = GENERATE(taken_lock::unfair, taken_lock::slots);
    CAPTURE(static_cast<int>(k));
    fake_ensemble ensemble;
    const client former = ensemble.client(sessions_of_ten_seconds());
    const lock_guard held = ensemble.run(lock_of(former, k, true));
    logged log;
    const client heir = heir_of(ensemble, former, warnings_to(log));
    std::vector<std::unique_ptr<taker>> all;
    for (int i = 0; i < 3; ++i)
        all.push_back(std::make_unique<taker>(ensemble.get_executor(), lock_of(heir, k, false)));
    ensemble.run_for(5s);
    CHECK(count_of(log, "has left /lock") == 1);
    ensemble.run_for(10s);
    CHECK(std::count_if(all.begin(), all.end(), [](const auto& t) { return t->has_it(); }) == 1);
    CHECK(count_of(log, "has left /lock") == 1);
}

TEST_CASE("resume: what the former process has left is found by a server that lags behind, too", "[testing]") {
    const taken_lock k = any_kind();
    CAPTURE(static_cast<int>(k));
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        CAPTURE(seed);
        fake_ensemble ensemble(seed);
        ensemble.lag();
        const client former = ensemble.client(sessions_of_ten_seconds().renewal(session_renewal::none));
        const lock_guard held = ensemble.run(lock_of(former, k, true));
        const client heir = heir_of_silent(ensemble, former);
        const taker gets(ensemble.get_executor(), lock_of(heir, k, false));
        ensemble.run_for(30s);
        CHECK(gets.has_it());
    }
}
