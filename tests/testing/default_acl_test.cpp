// client_options::default_acl(): what is created without an ACL of its own has the client's, whoever creates it.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "support/texts.hpp"
#include "testing/steps.hpp"

#include <zkasio/acl.hpp>
#include <zkasio/barriers/barrier.hpp>
#include <zkasio/barriers/double_barrier.hpp>
#include <zkasio/barriers/latch.hpp>
#include <zkasio/config/config_value.hpp>
#include <zkasio/counters/atomic_counter.hpp>
#include <zkasio/counters/id_allocator.hpp>
#include <zkasio/election/leader_election.hpp>
#include <zkasio/error.hpp>
#include <zkasio/locks/cohort_mutex.hpp>
#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/slots.hpp>
#include <zkasio/locks/unfair_mutex.hpp>
#include <zkasio/log_record.hpp>
#include <zkasio/membership/group.hpp>
#include <zkasio/membership/persistent_node.hpp>
#include <zkasio/modify.hpp>
#include <zkasio/queues/delivery.hpp>
#include <zkasio/queues/work_queue.hpp>
#include <zkasio/testing/fake_ensemble.hpp>
#include <zkasio/transact/transact.hpp>
#include <zkasio/transaction.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;
using namespace std::chrono_literals;

namespace {

client_options of_ann() { return calm().auth("digest", "ann:secret").default_acl(creator_all_acl()); }

// Each recipe creates what it needs, and holds it while `look` looks.
asio::awaitable<void> create_with_everything(client zk) {
    co_await zk.create("/plain");
    create_options deep;
    deep.parents(missing_parents::create_persistent);
    co_await zk.create("/deep/down/here", "", deep);
    co_await zk.create_or_set("/create_or_set", "");
    transaction steps;
    steps.create("/multi").create("/multi/child");
    co_await zk.multi(steps);
    auto unit_body = [](unit& u) -> asio::awaitable<void> {
        u.create("/transact");
        co_return;
    };
    co_await transact(zk, unit_body);
}

asio::awaitable<void> enter(double_barrier barrier) { co_await barrier.enter(); }

// Those that anybody may change, "" for none.
asio::awaitable<std::string> open_nodes(client zk, std::vector<std::string> paths) {
    std::string open;
    for (const std::string& path : paths) {
        if (path.starts_with("/zookeeper")) continue;
        const auto of_node = co_await zk.get_acl(path);
        if (of_node.acl != acl_of(acl_entry(permission::all, digest_user("ann", "secret")))) open += path + ' ';
    }
    co_return open;
}

}  // namespace

TEST_CASE("default_acl: every node that the client and its recipes create has it", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(of_ann());
    ensemble.run(create_with_everything(zk));

    const lock_guard one = ensemble.run(mutex(zk, "/mutex").acquire());
    const lock_guard two = ensemble.run(cohort_mutex(zk, "/cohort_mutex").acquire());
    const lock_guard three = ensemble.run(shared_mutex(zk, "/shared_mutex").acquire_shared());
    const lock_guard four = ensemble.run(semaphore(zk, "/semaphore", permits::fixed(2)).acquire());
    const lock_guard five = ensemble.run(unfair_mutex(zk, "/unfair/mutex").acquire());
    multi_mutex both(zk);
    both.add(mutex(zk, "/multi_mutex/a")).add(mutex(zk, "/multi_mutex/b"));
    const lock_guard six = ensemble.run(both.acquire());
    const leadership seven = ensemble.run(leader_election(zk, "/election").campaign());
    ensemble.run(barrier(zk, "/barrier").set());
    ensemble.run(atomic_counter(zk, "/counter").add(1));
    ensemble.run(id_allocator(zk, "/ids").next());
    ensemble.run(latch(zk, "/latch", 2).count_down("one"));
    const work_queue jobs(zk, "/queue");
    for (const char* job : {"first", "second", "third"}) ensemble.run(jobs.put(job));
    ensemble.run(jobs.put("later", put_options().delay(1h)));
    const delivery claimed = ensemble.run(jobs.receive()), bad = ensemble.run(jobs.receive());
    ensemble.run(bad.reject("no good"));
    ensemble.run(seven.proclaim("here"));
    const lock_guard eight = ensemble.run(slots(zk, "/slots", 3).acquire());
    running inside(ensemble.get_executor(), enter(double_barrier(zk, "/double_barrier", 2)));
    ensemble.run_for(1s);
    const auto change = [](std::optional<node_data>) { return std::optional<std::string>("new"); };
    ensemble.run(modify(zk, "/modified", change));
    const group_membership member = ensemble.run(group(zk, "/group").join("me"));
    const persistent_node node(zk, "/persistent/node");
    ensemble.run(node.created());
    const config_format<std::string> as_it_is([](std::string_view text) { return std::string(text); },
                                              [](const std::string& text) { return text; });
    const config_value<std::string> value(zk, "/config/value", as_it_is);
    ensemble.run(value.set("seven"));

    CHECK(ensemble.paths().size() > 30);
    CHECK(ensemble.run(open_nodes(zk, ensemble.paths())) == "");

    // Nobody else gets in, and who names an ACL has that.
    const client stranger = ensemble.client(calm());
    CHECK(ensemble.run(code_of(stranger.set("/plain", ""))) == zk_errc::no_auth);
    CHECK(ensemble.run(code_of(mutex(stranger, "/mutex").acquire())) == zk_errc::no_auth);
    create_options readable;
    CHECK(readable.acl() == default_acl());
    readable.acl(acl());
    CHECK(ensemble.run(code_of(zk.create("/nobodys", "", readable))) == zk_errc::invalid_acl);
    readable.acl(acl_of(acl_entry(permission::read, default_acl().front().who())));
    CHECK(ensemble.run(code_of(zk.create("/nobodys", "", readable))) == zk_errc::invalid_acl);
    acl also = default_acl();
    also.emplace_back(permission::read, anyone());
    readable.acl(also);
    ensemble.run(zk.create("/also", "", readable));
    CHECK(ensemble.run(stranger.get("/also")).stat.aversion == 0);
    CHECK(ensemble.run(code_of(stranger.set("/also", ""))) == zk_errc::no_auth);
    ensemble.run(stranger.create("/strangers"));
    CHECK(ensemble.run(code_of(zk.set_acl("/strangers", default_acl()))) == std::error_code());
    CHECK(ensemble.run(code_of(stranger.set("/strangers", ""))) == zk_errc::no_auth);
    readable.acl(read_only_acl());
    ensemble.run(zk.create("/readable", "", readable));
    CHECK(ensemble.run(zk.get_acl("/readable")).acl == read_only_acl());
    ensemble.run(stranger.create("/open"));
    CHECK(ensemble.run(stranger.get_acl("/open")).acl == open_acl());
}

TEST_CASE("default_acl: an ACL that no server would take is refused by the client's constructor", "[testing]") {
    fake_ensemble ensemble;
    CHECK_THROWS_WITH(ensemble.client(calm().default_acl(acl())),
                      "client options /: invalid ACL (the ACL is empty)");
    const std::string itself = "default_acl() stands for a client's ACL, and is changed by nobody";
    CHECK_THROWS_WITH(ensemble.client(calm().default_acl(default_acl())),
                      "client options /: invalid ACL (" + itself + ")");
    const acl with_nul = acl_of(acl_entry(permission::all, acl_id("digest", std::string("a\0b", 3))));
    CHECK_THROWS_AS(ensemble.client(calm().default_acl(with_nul)), error);
}

TEST_CASE("default_acl: a client whose credentials protect nothing is warned once", "[testing]") {
    fake_ensemble ensemble;
    int warnings = 0;
    const auto told = [&](client_options o) {
        warnings = 0;
        o.log([&](const log_record& r) {
            warnings += r.level() == log_level::warning && has(r.text(), "open to everybody, in spite of");
        });
        return ensemble.client(std::move(o));
    };
    const client careless = told(calm().auth("digest", "ann:secret"));
    create_options own;
    own.acl(open_acl());
    ensemble.run(careless.create("/own", "", own));
    ensemble.run(careless.exists("/own"));
    CHECK(warnings == 0);
    {
        const lock_guard lock = ensemble.run(mutex(careless, "/mutex").acquire());
        CHECK(warnings == 1);
    }
    ensemble.run(careless.create("/careless"));
    CHECK(warnings == 1);

    for (const client& careful : {told(calm().auth("digest", "ann:secret").default_acl(creator_all_acl())),
                                  told(calm().auth("digest", "ann:secret").default_acl(open_acl())), told(calm())}) {
        ensemble.run(atomic_counter(careful, "/counter").add(1));
        ensemble.run(careful.remove("/counter"));
    }
    CHECK(warnings == 0);
}

TEST_CASE("default_acl: counts among the bytes of a request", "[testing]") {
    fake_ensemble ensemble;
    acl large = open_acl();
    for (int i = 0; i < 3000; ++i)
        large.emplace_back(permission::read, acl_id("digest", "user" + std::to_string(i) + ":" + std::string(90, 'x')));
    const client zk = ensemble.client(calm().default_acl(large));
    CHECK(ensemble.run(code_of(zk.create("/node", std::string(800'000, 'x')))) == errc::too_large);
    const persistent_node node(zk, "/kept", "small");
    ensemble.run(node.created());
    CHECK(ensemble.run(code_of(node.set_data(std::string(800'000, 'x')))) == errc::too_large);
    const work_queue jobs(zk, "/queue");
    CHECK(ensemble.run(code_of(jobs.put(std::string(200'000, 'x')))) == errc::too_large);
}
