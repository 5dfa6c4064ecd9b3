#include "unit/support/error_of.hpp"
#include "unit/support/refuses.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/barriers/latch.hpp>
#include <zkasio/counters/atomic_counter.hpp>
#include <zkasio/election/candidate.hpp>
#include <zkasio/election/leader_election.hpp>
#include <zkasio/locks/cohort_mutex.hpp>
#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/slots.hpp>
#include <zkasio/locks/unfair_mutex.hpp>
#include <zkasio/membership/group.hpp>
#include <zkasio/membership/partitioner.hpp>
#include <zkasio/recipe/reports.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/session_loop.hpp>

using namespace zkasio;
using namespace zkasio::test;

TEST_CASE("what is wrong with the arguments of an operation is told through the awaitable", "[arguments]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::string bad = "no slash";
        const auto refused = errc::invalid_path;
        co_await refuses("create", zk.create(bad), refused);
        co_await refuses("create", zk.create(bad, "", create_options().mode(create_mode::ephemeral).protection()),
                         refused);
        co_await refuses("get", zk.get(bad), refused);
        co_await refuses("set", zk.set(bad, ""), refused);
        co_await refuses("set", zk.set("/a", "", -2));
        co_await refuses("exists", zk.exists(bad), refused);
        co_await refuses("children", zk.children(bad), refused);
        co_await refuses("remove", zk.remove(bad), refused);
        co_await refuses("remove_recursive", zk.remove_recursive(bad), refused);
        co_await refuses("multi", zk.multi(transaction().check(bad)), refused);
        co_await refuses("sync", zk.sync(bad), refused);
        co_await refuses("get_acl", zk.get_acl(bad), refused);
        co_await refuses("set_acl", zk.set_acl(bad, open_acl()), refused);
        co_await refuses("get_and_watch", zk.get_and_watch(bad), refused);
        co_await refuses("exists_and_watch", zk.exists_and_watch(bad), refused);
        co_await refuses("children_and_watch", zk.children_and_watch(bad), refused);
        co_await refuses("reconfigure", zk.reconfigure("", ""));
        co_await refuses("find_protected", toolbox(zk).find_protected(bad, "id"), refused);
        const std::vector<std::string> ids(1, "id");
        co_await refuses("find_all_protected", toolbox(zk).find_all_protected(bad, ids), refused);
        co_await refuses("add_auth", zk.add_auth("", ""));
        co_await refuses("set_servers", zk.set_servers("host:0"));

        co_await refuses("try_acquire_for", mutex(zk, "/m").try_acquire_for(-1ns));
        co_await refuses("try_acquire_for", shared_mutex(zk, "/rw").try_acquire_for(-1ns));
        co_await refuses("try_acquire_shared_for", shared_mutex(zk, "/rw").try_acquire_shared_for(-1ns));
        co_await refuses("try_acquire_for", shared_mutex(zk, "/rw").try_acquire_for(lock_kind::shared, -1ns));
        co_await refuses("try_acquire_for", semaphore(zk, "/s", permits::fixed(2)).try_acquire_for(-1ns));
        co_await refuses("try_acquire_for", unfair_mutex(zk, "/u").try_acquire_for(-1ns));
        co_await refuses("try_acquire_for", slots(zk, "/n", 2).try_acquire_for(-1ns));
        co_await refuses("try_acquire_for", multi_mutex(zk).add(mutex(zk, "/m")).try_acquire_for(-1ns));
        co_await refuses("acquire", semaphore(zk, "/s", permits::fixed(2)).acquire(3));
        co_await refuses("acquire", semaphore(zk, "/s", permits::counted_by("/count")).acquire(10'001));
        co_await refuses("acquire", semaphore(zk, "/s", permits::fixed(1'000'000)).acquire(10'001));
        co_await refuses("acquire_each", semaphore(zk, "/s", permits::fixed(2)).acquire_each(0));
        co_await refuses("acquire", multi_mutex(zk).acquire());
    };
    r.run(body);
}

TEST_CASE("an owner is refused by locks that know none, with words", "[arguments]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const auto mine = acquire_options().owner(lock_owner());
        const semaphore permits_of(zk, "/s", permits::fixed(2));
        std::vector<std::string> said;
        said.push_back(co_await message_of(permits_of.request(2).acquire(mine)));
        said.push_back(co_await message_of(unfair_mutex(zk, "/u").try_acquire(mine)));
        said.push_back(co_await message_of(multi_mutex(zk).add(mutex(zk, "/m")).try_acquire_for(1h, mine)));
        const std::string own = "no lock_owner can hold permits: each request has some of its own";
        CHECK(said ==
              std::vector<std::string>{"acquire /s: invalid argument (" + own + ")",
                                       "acquire /u: invalid argument (an unfair_mutex knows no lock_owner: use mutex)",
                                       "acquire /m: invalid argument (the owner of a lock is given to add())"});
    };
    r.run(body);
}

TEST_CASE("bodies, counts and times that make no sense are refused", "[arguments]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::vector<std::string> one(1, "p0");
        candidate stands(zk, "/candidate");
        co_await refuses("run", stands.run(candidate_body()));
        co_await refuses("partitioner", partitioner(zk, "/partitioner", one).run(partition_body()));
        group_observer members = group(zk, "/group").observe();
        co_await refuses("observe", members.settled(-1ns, 1s));
        co_await refuses("observe", members.settled(1s, -1ns));
        CHECK(code_thrown_by([&] { latch(zk, "/latch", 0); }) == errc::invalid_argument);
        CHECK(code_thrown_by([&] { counter_options().tries(-1); }) == errc::invalid_argument);
        CHECK(code_thrown_by([&] { partitioner(zk, "/p", one, partitioner_options().assignment(nullptr)); }) ==
              errc::invalid_argument);
        for (const auto& [first, most] : {std::pair(-1ms, 1ms), std::pair(2ms, 1ms), std::pair(1ms, 86'400'001ms)})
            CHECK(code_thrown_by([&, f = first, m = most] { unfair_mutex_options().back_off(f, m); }) ==
                  errc::invalid_argument);
        co_await stands.close();
    };
    r.run(body);
}

namespace {

template <class Lock, class... Args>
std::error_code refusal_of(const client& zk, const std::string& path, Args... args) {
    const auto e = error_of([&] { Lock(zk, path, args...); });
    return e ? e->code() : std::error_code();
}

std::vector<std::error_code> refusals(const client& zk, const std::string& path) {
    return {refusal_of<mutex>(zk, path), refusal_of<cohort_mutex>(zk, path), refusal_of<shared_mutex>(zk, path),
            refusal_of<unfair_mutex>(zk, path),
            refusal_of<slots>(zk, path, 1u), refusal_of<semaphore>(zk, path, permits::fixed(1)),
            refusal_of<leader_election>(zk, path)};
}

}  // namespace

TEST_CASE("a lock below /zookeeper is refused when it is named, except behind a chroot", "[arguments]") {
    rig r;
    rig elsewhere(rig::quick().servers("10.0.0.1:2181/app"));
    auto body = [&](client zk) -> asio::awaitable<void> {
        for (const std::string path : {"/zookeeper", "/zookeeper/quota/lock"})
            for (const std::error_code code : refusals(zk, path)) CHECK(code == errc::invalid_path);
        for (const std::error_code code : refusals(zk, "/zookeepers")) CHECK(code == std::error_code());
        co_return;
    };
    r.run(body);
    auto behind_chroot = [&](client zk) -> asio::awaitable<void> {
        for (const std::error_code code : refusals(zk, "/zookeeper/lock")) CHECK(code == std::error_code());
        co_return;
    };
    elsewhere.run(behind_chroot);
}

TEST_CASE("functions for writers of recipes refuse empty awaitables", "[arguments]") {
    rig r;
    auto body = [](client zk) -> asio::awaitable<void> {
        const auto run = [&] { toolbox(zk).run_in_background(asio::awaitable<void>()); };
        CHECK(code_thrown_by(run) == errc::invalid_argument);
        commit_report report = begin_commit(commit_kind::modify);
        co_await refuses("reported_commit", reported_commit(asio::awaitable<void>(), zk, "/a", report));
        co_await refuses("reported_commit", reported_commit(asio::awaitable<int>(), zk, "/a", report));
    };
    r.run(body);
}
