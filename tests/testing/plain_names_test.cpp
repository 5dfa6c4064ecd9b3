// Nodes of other programs that have no id in their names: they are observed, listed and waited for, and zkasio does not
// contend under such names. Over an ensemble in memory.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "support/texts.hpp"
#include "testing/steps.hpp"
#include "unit/support/error_of.hpp"

#include <zkasio/election/candidate.hpp>
#include <zkasio/election/leader_election.hpp>
#include <zkasio/election/leader_observer.hpp>
#include <zkasio/error.hpp>
#include <zkasio/locks/cohort_mutex.hpp>
#include <zkasio/locks/lock_listing.hpp>
#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/name_scheme.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/post.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

struct foreign_names {
    name_scheme names;
    std::string first, second;
};

// ZooKeeper's election recipe, locks without protection, Mesos' masters, ZooKeeper's WriteLock.
std::vector<foreign_names> names_without_id() {
    return {{name_scheme::plain("n_"), "n_0000000001", "n_0000000002"},
            {name_scheme::plain("lock-"), "lock-0000000001", "lock-0000000002"},
            {name_scheme::plain("json.info_"), "json.info_0000000001", "json.info_0000000002"},
            {name_scheme::plain("-"), "x-94000000000000001-0000000001", "x-72057594037927936-0000000002"}};
}

std::optional<error> failure(fake_ensemble& e, std::function<asio::awaitable<void>()> what) {
    return error_of([&] { e.run(what()); });
}

asio::awaitable<void> take(const lockable& lock) { const lock_guard guard = co_await lock.acquire(); }
asio::awaitable<void> take_later(const lockable& lock, std::optional<lock_guard>& to) {
    lock_guard guard = co_await lock.acquire();
    to.emplace(std::move(guard));
}

std::string holder(const std::vector<contender_info>& all) {
    return all.empty() ? std::string() : all.front().data + (all.front().holds ? "!" : "");
}

}  // namespace

TEST_CASE("plain names: nodes of other programs are listed and observed", "[testing]") {
    for (const bool foreign : {false, true})
        for (foreign_names& n : names_without_id()) {
            INFO(n.first << ", foreign child: " << foreign);
            fake_ensemble e;
            const client zk = e.client(sessions_of_ten_seconds());
            const std::string first = "/l/" + n.first, second = "/l/" + n.second;
            e.create("/l");
            if (foreign) e.create("/l/log_replicas");
            e.create(second, "b");
            e.create(first, "a");
            const name_scheme names = foreign ? n.names.allow_foreign_children() : n.names;
            CHECK(holder(e.run(mutex(zk, "/l", mutex_options().names(names)).contenders())) == "a!");
            CHECK(holder(e.run(cohort_mutex(zk, "/l", cohort_mutex_options().names(names)).contenders())) == "a!");
            const leader_election election(zk, "/l", leader_election_options().names(names));
            CHECK(e.run(election.candidates()).size() == 2);

            const leader_observer observer = election.observe();
            leader_view view = e.run(observer.next());
            REQUIRE(view.leader);
            CHECK(view.leader->path == first);
            CHECK(view.leader->data == "a");
            e.remove(first);
            view = e.run(observer.next());
            REQUIRE(view.leader);
            CHECK(view.leader->path == second);
            e.remove(second);
            CHECK(e.run(observer.next()).state == leader_state::nobody);
        }
}

TEST_CASE("plain names: list_lock() with a scheme tells contenders from other children", "[testing]") {
    fake_ensemble e;
    const client zk = e.client(sessions_of_ten_seconds());
    e.create("/m/log_replicas");
    e.create("/m/json.info_0000000008", "b");
    e.create("/m/json.info_0000000007", "a");
    lock_listing list = e.run(list_lock(zk, "/m", name_scheme::plain("json.info_")));
    CHECK(list.kind == lock_directory_kind::mutex);
    CHECK(list.foreign == texts{"log_replicas"});
    REQUIRE(list.contenders.size() == 2);
    CHECK(list.contenders[0].data == "a");
    CHECK(list.contenders[0].holds);
    CHECK_FALSE(list.contenders[1].holds);
    CHECK(e.run(list_lock(zk, "/m")).kind == lock_directory_kind::other);

    e.create("/rw/read-0000000001", "r");
    e.create("/rw/write-0000000002", "w");
    list = e.run(list_lock(zk, "/rw", name_scheme::plain("write-", "read-")));
    CHECK(list.kind == lock_directory_kind::shared_mutex);
    REQUIRE(list.contenders.size() == 2);
    CHECK(list.contenders[0].kind == lock_kind::shared);
    CHECK(list.contenders[0].holds);
    CHECK_FALSE(list.contenders[1].holds);

    e.create("/none/config");
    CHECK(e.run(list_lock(zk, "/none", name_scheme::plain("n_"))).kind == lock_directory_kind::other);
    // The children of a semaphore, to whom knows the names.
    e.create("/s/leases/n_0000000001");
    CHECK(e.run(list_lock(zk, "/s", name_scheme::plain("n_"))).foreign == texts{"leases"});
}

TEST_CASE("plain names: to contend is refused before anything is written", "[testing]") {
    fake_ensemble e;
    const client zk = e.client(sessions_of_ten_seconds());
    e.create("/l");
    e.run(zk.sync("/l"));
    const name_scheme names = name_scheme::plain("n_", "r_");
    const mutex one(zk, "/l", mutex_options().names(names));
    const cohort_mutex cohort(zk, "/l", cohort_mutex_options().names(names));
    const shared_mutex shared(zk, "/l", shared_mutex_options().names(names));
    const auto readers = shared.readers();
    const multi_mutex several = multi_mutex(zk).add(mutex(zk, "/a")).add(one);
    const leader_election election(zk, "/l", leader_election_options().names(names));
    auto body = [](lock_guard&) -> asio::awaitable<void> { co_return; };
    auto term = [](leadership&) -> asio::awaitable<void> { co_return; };
    const auto asked = e.traffic().writes;
    const lock_owner owner;
    const auto no_turn = [&](const lockable& lock) -> asio::awaitable<void> { co_await lock.try_acquire(); };
    const auto with = [](const auto& lock, acquire_options how) -> asio::awaitable<void> {
        const lock_guard none = co_await lock.acquire(how);
    };
    const std::vector<std::function<asio::awaitable<void>()>> attempts{
        [&] { return take(one); },
        [&] { return take(cohort); },
        [&] { return take(shared); },
        [&] { return take(readers); },
        [&] { return take(several); },
        [&] { return no_turn(one); },
        [&] { return no_turn(cohort); },
        [&] { return no_turn(shared); },
        [&] { return no_turn(readers); },
        [&] { return no_turn(several); },
        [&] { return with(one, acquire_options().owner(owner)); },
        [&] { return with(one, acquire_options().survive_expiry()); },
        [&] { return with(cohort, acquire_options().owner(owner)); },
        [&] { return with(cohort, acquire_options().data("d")); },
        [&]() -> asio::awaitable<void> { co_await cohort.try_acquire_for(1s); },
        [&]() -> asio::awaitable<void> { co_await one.try_acquire_for(1s); },
        [&]() -> asio::awaitable<void> { co_await several.try_acquire_for(1s); },
        [&]() -> asio::awaitable<void> { co_await readers.try_acquire_for(0s); },
        [&]() -> asio::awaitable<void> { co_await one.try_acquire_until(boot_clock::now()); },
        [&]() -> asio::awaitable<void> { co_await cohort.try_acquire_until(boot_clock::after(1h)); },
        [&]() -> asio::awaitable<void> { co_await shared.try_acquire_shared(); },
        [&]() -> asio::awaitable<void> { const lock_guard none = co_await shared.acquire_shared(); },
        [&]() -> asio::awaitable<void> { co_await one.with_lock(body); },
        [&]() -> asio::awaitable<void> { co_await one.with_lock(body, with_lock_options().time_limit(1s)); },
        [&]() -> asio::awaitable<void> { co_await election.campaign(); },
        [&]() -> asio::awaitable<void> { co_await election.try_campaign(); },
        [&]() -> asio::awaitable<void> { co_await election.try_campaign_for(1s); },
        [&]() -> asio::awaitable<void> { co_await election.try_campaign_until(boot_clock::after(1s)); },
        [&]() -> asio::awaitable<void> { co_await election.lead(term); },
    };
    for (std::size_t i = 0; i < attempts.size(); ++i) {
        INFO(i);
        const std::optional<error> why = failure(e, attempts[i]);
        REQUIRE(why);
        CHECK(why->code() == errc::invalid_argument);
        CHECK(why->path() == "/l");
        CHECK(has(why->what(), "name_scheme::custom(\"\", \"n_\", \"r_\")"));
    }
    CHECK(e.traffic().writes == asked);
    // Without a connection, and before another lock of the same multi_mutex is acquired.
    const mutex before(e.client(sessions_of_ten_seconds()), "/a");
    const lock_guard in_the_way = e.run(before.acquire());
    e.hold_down(zk);
    const auto began = e.now();
    for (std::size_t i = 0; i < attempts.size(); ++i) {
        INFO(i << ", without a connection");
        const std::optional<error> why = failure(e, attempts[i]);
        REQUIRE(why);
        CHECK(why->code() == errc::invalid_argument);
    }
    CHECK(e.now() - began < 1s);
    e.let_in(zk);
}

TEST_CASE("plain names: the advice names the markers of the scheme", "[testing]") {
    fake_ensemble e;
    const client zk = e.client(sessions_of_ten_seconds());
    const mutex one(zk, "/l", mutex_options().names(name_scheme::plain("n_")));
    CHECK(has(e.run(message_of(one.acquire())), "plain(\"n_\") looks and does not contend, since its names have no id: "
                                               "use name_scheme::custom(\"\", \"n_\")"));
    const client view = zk.rooted("/tenant");
    const mutex inside(view, "/l", mutex_options().names(name_scheme::plain("n_")));
    CHECK(failure(e, [&] { return take(inside); })->path() == "/l");
}

TEST_CASE("plain names: zkasio waits behind nodes without an id, under names of its own", "[testing]") {
    for (foreign_names& n : names_without_id()) {
        INFO(n.first);
        fake_ensemble e;
        const client zk = e.client(sessions_of_ten_seconds());
        const std::string other = "/l/" + n.names.mutex_marker() + "0000000000";
        e.create("/l/log_replicas");
        e.create(other, "other");
        const name_scheme ours = name_scheme::custom("", n.names.mutex_marker());
        const mutex refusing(zk, "/strict", mutex_options().names(ours));
        e.create("/strict/log_replicas");
        CHECK(e.run(code_of(refusing.acquire())) == errc::foreign_child);

        const mutex lock(zk, "/l", mutex_options().names(ours.allow_foreign_children()).data("ours"));
        std::optional<lock_guard> held;
        running waiting(e.get_executor(), take_later(lock, held));
        e.run_for(1s);
        CHECK_FALSE(held);
        CHECK(holder(e.run(mutex(zk, "/l", mutex_options().names(n.names.allow_foreign_children())).contenders())) ==
              "other!");
        e.remove(other);
        e.run_for(1s);
        REQUIRE(held);
        CHECK(holder(e.run(lock.contenders())) == "ours!");
        // The next contender of this client follows by hand-over, and another client's waits for both.
        const client second = e.client(sessions_of_ten_seconds());
        const mutex theirs(second, "/l", mutex_options().names(ours.allow_foreign_children()));
        CHECK_FALSE(e.run(theirs.try_acquire()));
        CHECK_FALSE(e.run(lock.try_acquire()));
        e.run(held->release());
        CHECK(e.run(theirs.try_acquire()));
    }
}

TEST_CASE("plain names: an observer is not misled by a directory that is re-created while it looks", "[testing]") {
    // A scheme whose own names have ids sees the nodes of programs that write none, too.
    const name_scheme names = GENERATE(name_scheme::plain("n_"), name_scheme::custom("", "n_"));
    std::size_t steps = 0, recreated = 0;
    for (std::size_t at = 0; recreated == at; ++at) {
        fake_ensemble e;
        const client zk = e.client(sessions_of_ten_seconds());
        e.create("/l/n_0000000005", "old");
        e.run(zk.sync("/l"));
        const leader_observer observer(zk, "/l", names);
        at_step(e, steps, at, [&] {
            ++recreated;
            e.remove("/l/n_0000000005");
            e.remove("/l");
            for (int i = 0; i <= 5; ++i) e.create("/l/n_000000000" + std::to_string(i), std::to_string(i));
        });
        std::string last;
        auto follow = [&]() -> asio::awaitable<void> {
            for (;;) {
                const leader_view view = co_await observer.next();
                last = view.leader ? view.leader->data.value_or("") : "";
            }
        };
        running following(e.get_executor(), follow());
        e.run_for(30s);
        e.on_step(nullptr);
        e.run_for(5s);
        INFO("re-created after step " << at);
        CHECK(last == (recreated > at ? "0" : "old"));
        following.cancel();
    }
    CHECK(recreated > 10);
}

// Between the listings the node was never the first: of the three that have had its name, the second did not lead.
TEST_CASE("plain names: an observer is not misled by a directory that is re-created twice", "[testing]") {
    std::size_t twice = 0;
    for (std::size_t at = 0; at < 30; ++at)
        for (std::size_t then = 1; then < 10; ++then) {
            fake_ensemble e;
            const client zk = e.client(sessions_of_ten_seconds());
            e.create("/l/n_0000000005", "old");
            e.run(zk.sync("/l"));
            const leader_observer observer(zk, "/l", name_scheme::plain("n_"));
            std::size_t steps = 0;
            e.on_step([&](std::string_view) {
                ++steps;
                if (steps == at)
                    asio::post(e.context(), [&] {
                        e.remove("/l/n_0000000005");
                        e.remove("/l");
                        e.create("/l/n_0000000004", "leads");
                        e.create("/l/n_0000000005", "waits");
                    });
                if (steps == at + then)
                    asio::post(e.context(), [&] {
                        if (!e.exists("/l/n_0000000004")) return;
                        e.remove("/l/n_0000000004");
                        e.remove("/l/n_0000000005");
                        e.remove("/l");
                        e.create("/l/n_0000000005", "new");
                        ++twice;
                    });
            });
            texts told;
            auto follow = [&]() -> asio::awaitable<void> {
                for (;;) {
                    const leader_view view = co_await observer.next();
                    told.push_back(view.leader ? view.leader->data.value_or("") : "");
                }
            };
            running following(e.get_executor(), follow());
            e.run_for(30s);
            e.on_step(nullptr);
            INFO("re-created after steps " << at << " and " << at + then);
            CHECK(std::find(told.begin(), told.end(), "waits") == told.end());
            following.cancel();
        }
    CHECK(twice > 30);
}
