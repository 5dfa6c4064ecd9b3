// Servers that hang up at a request: it is larger than their jute.maxbuffer, or they do not know it. Calls fail after
// five connections, and name the request; what lives on by itself goes on.

#include "support/catch.hpp"
#include "support/texts.hpp"

#include <zkasio/barriers/double_barrier.hpp>
#include <zkasio/cache/children_cache.hpp>
#include <zkasio/client.hpp>
#include <zkasio/coroutines/result.hpp>
#include <zkasio/coroutines/task_scope.hpp>
#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/discovery/registry.hpp>
#include <zkasio/election/candidate.hpp>
#include <zkasio/election/leader_election.hpp>
#include <zkasio/error.hpp>
#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/slots.hpp>
#include <zkasio/locks/unfair_mutex.hpp>
#include <zkasio/membership/group.hpp>
#include <zkasio/membership/persistent_node.hpp>
#include <zkasio/modify.hpp>
#include <zkasio/queues/work_queue.hpp>
#include <zkasio/testing/fake_ensemble.hpp>
#include <zkasio/transact/transact.hpp>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hang_up_tests {

using namespace zkasio;
using namespace zkasio::test;
using namespace std::chrono_literals;
using zkasio::testing::fake_ensemble;

namespace {

const std::string large(8000, 'x');
const std::string told = "which was not applied: is it larger than the servers' jute.maxbuffer";

client_options of_ten_seconds() { return client_options("zk").session_timeout(10s); }

struct call {
    std::string name;
    std::function<asio::awaitable<void>(client)> run;
};

std::vector<call> with_large_requests() {
    return {
        {"mutex",
         [](client zk) -> asio::awaitable<void> {
             const mutex lock(zk, "/l/m", mutex_options().data(large));
             const lock_guard guard = co_await lock.acquire();
         }},
        {"shared_mutex, a writer",
         [](client zk) -> asio::awaitable<void> {
             const shared_mutex lock(zk, "/l/w", shared_mutex_options().data(large));
             const lock_guard guard = co_await lock.acquire();
         }},
        {"shared_mutex, a reader",
         [](client zk) -> asio::awaitable<void> {
             const shared_mutex lock(zk, "/l/r", shared_mutex_options().data(large));
             const lock_guard guard = co_await lock.acquire_shared();
         }},
        {"semaphore",
         [](client zk) -> asio::awaitable<void> {
             const semaphore lock(zk, "/l/s", permits::fixed(2), semaphore_options().data(large));
             const lock_guard guard = co_await lock.acquire();
         }},
        {"campaign",
         [](client zk) -> asio::awaitable<void> {
             const leader_election election(zk, "/l/e", leader_election_options().id(large));
             const leadership leads = co_await election.campaign();
         }},
        {"unfair_mutex",
         [](client zk) -> asio::awaitable<void> {
             const unfair_mutex lock(zk, "/l/u", unfair_mutex_options().data(large));
             const lock_guard guard = co_await lock.acquire();
         }},
        {"slots",
         [](client zk) -> asio::awaitable<void> {
             const slots numbers(zk, "/l/n", 3, slots_options().data(large));
             const lock_guard guard = co_await numbers.acquire();
         }},
        {"slots that rest",
         [](client zk) -> asio::awaitable<void> {
             const slots numbers(zk, "/l/r", 3, slots_options().data(large).quiet(1s));
             const lock_guard guard = co_await numbers.acquire();
         }},
        {"multi_mutex",
         [](client zk) -> asio::awaitable<void> {
             multi_mutex both(zk);
             both.add(mutex(zk, "/l/a", mutex_options().data(large))).add(mutex(zk, "/l/b"));
             const lock_guard guard = co_await both.acquire();
         }},
        {"multi_mutex, not its first lock",
         [](client zk) -> asio::awaitable<void> {
             multi_mutex both(zk);
             both.add(mutex(zk, "/l/a")).add(slots(zk, "/l/n", 3, slots_options().data(large)));
             const lock_guard guard = co_await both.acquire();
         }},
        {"protected create",
         [](client zk) -> asio::awaitable<void> {
             create_options how;
             how.mode(create_mode::ephemeral_sequential).protection();
             co_await zk.create("/l/p-", large, how);
         }},
        {"group",
         [](client zk) -> asio::awaitable<void> {
             const group members(zk, "/l/g");
             const auto joined = co_await members.join("one", large);
         }},
        {"persistent_node",
         [](client zk) -> asio::awaitable<void> {
             const persistent_node node(zk, "/l/node", large);
             co_await node.created();
         }},
        {"persistent_node without a name",
         [](client zk) -> asio::awaitable<void> {
             persistent_node_options how;
             how.mode(create_mode::ephemeral_sequential);
             const persistent_node node(zk, "/l/node-", large, how);
             co_await node.created();
         }},
        {"registry",
         [](client zk) -> asio::awaitable<void> {
             const registry services(zk, "/l/services");
             service_instance is("s");
             is.address(large);
             const announcement said = co_await services.announce(std::move(is));
         }},
        {"double_barrier",
         [](client zk) -> asio::awaitable<void> {
             const double_barrier gate(zk, "/l/gate", 1, double_barrier_options().data(large));
             const barrier_entry in = co_await gate.enter();
         }},
        {"work_queue",
         [](client zk) -> asio::awaitable<void> {
             const work_queue queue(zk, "/l/q");
             co_await queue.put(large);
         }},
        {"modify",
         [](client zk) -> asio::awaitable<void> {
             auto change = [](std::optional<node_data>) { return std::optional<std::string>(large); };
             co_await modify(zk, "/l/modified", change, modify_options().receipts("/l/receipts"));
         }},
        {"transact",
         [](client zk) -> asio::awaitable<void> {
             auto body = [](unit& u) -> asio::awaitable<void> {
                 u.create("/l/made", large);
                 co_return;
             };
             co_await transact(zk, body, transact_options().receipts("/l/receipts"));
         }},
    };
}

}  // namespace

TEST_CASE("hang up: a call at whose request the servers hang up fails after five connections, and names its size",
          "[hang_up][numbers]") {
    fake_ensemble ensemble;
    ensemble.max_request(4096);
    ensemble.create("/l");
    for (const auto& [name, run] : with_large_requests()) {
        INFO(name);
        client zk = ensemble.client(of_ten_seconds());
        ensemble.run([&]() -> asio::awaitable<void> {
            co_await zk.connected();
            for (const int expected : {5, 2}) {  // the second call is known to be the same
                const auto before = ensemble.traffic(zk).connections;
                std::string what;
                bool is_certain = false;
                try {
                    co_await timeout(1min, run(zk));
                } catch (const error& e) {
                    what = e.what();
                    is_certain = e.code() == zk_errc::connection_loss && !e.outcome_unknown();
                }
                CAPTURE(what, expected);
                CHECK(is_certain);
                CHECK(has(what, told));
                CHECK(has(what, " bytes, "));
                CHECK(static_cast<int>(ensemble.traffic(zk).connections - before) <= expected);
            }
            co_await zk.close();
        }, 5min);
        CHECK(ensemble.children("/l/q").size() <= 4);
    }
}

namespace {

std::vector<call> with_containers() {
    return {
        {"mutex",
         [](client zk) -> asio::awaitable<void> {
             const mutex lock(zk, "/l/m");
             const lock_guard guard = co_await lock.acquire();
         }},
        {"semaphore",
         [](client zk) -> asio::awaitable<void> {
             const semaphore lock(zk, "/l/s", permits::fixed(2));
             const lock_guard guard = co_await lock.acquire();
         }},
        {"unfair_mutex",
         [](client zk) -> asio::awaitable<void> {
             const unfair_mutex lock(zk, "/l/d/u");
             const lock_guard guard = co_await lock.acquire();
         }},
        {"slots",
         [](client zk) -> asio::awaitable<void> {
             const slots numbers(zk, "/l/n", 3);
             const lock_guard guard = co_await numbers.acquire();
         }},
        {"multi_mutex",
         [](client zk) -> asio::awaitable<void> {
             multi_mutex both(zk);
             both.add(mutex(zk, "/l/a")).add(mutex(zk, "/l/b"));
             const lock_guard guard = co_await both.acquire();
         }},
        {"group",
         [](client zk) -> asio::awaitable<void> {
             const group members(zk, "/l/g");
             const auto joined = co_await members.join("one");
         }},
        {"double_barrier",
         [](client zk) -> asio::awaitable<void> {
             const double_barrier gate(zk, "/l/gate", 1);
             const barrier_entry in = co_await gate.enter();
         }},
    };
}

}  // namespace

TEST_CASE("hang up: servers that do not know containers are told of after five connections", "[hang_up]") {
    fake_ensemble ensemble;
    ensemble.know_containers(false);
    ensemble.create("/l");
    for (const auto& [name, run] : with_containers()) {
        INFO(name);
        client zk = ensemble.client(of_ten_seconds());
        ensemble.run([&]() -> asio::awaitable<void> {
            co_await zk.connected();
            const auto before = ensemble.traffic(zk).connections;
            std::string what;
            bool is_known = false;
            try {
                co_await timeout(1min, run(zk));
            } catch (const error& e) {
                what = e.what();
                is_known = e.code() == zk_errc::connection_loss;
            }
            CAPTURE(what);
            CHECK(is_known);
            CHECK(has(what, "or a request that they do not know?"));
            CHECK(ensemble.traffic(zk).connections - before <= 6);
            co_await zk.close();
        }, 5min);
    }
}

TEST_CASE("hang up: others of the same client are not taken for the one", "[hang_up]") {
    fake_ensemble ensemble;
    ensemble.max_request(4096);
    ensemble.create("/l");
    client zk = ensemble.client(of_ten_seconds());
    ensemble.run([&]() -> asio::awaitable<void> {
        co_await zk.connected();
        int granted = 0, put = 0;
        const auto acquire = [&]() -> asio::awaitable<void> {
            const mutex lock(zk, "/l/m", mutex_options().data(std::string(1000, 'x')));
            const lock_guard guard = co_await lock.acquire();
            ++granted;
        };
        const auto put_one = [&]() -> asio::awaitable<void> {
            const work_queue queue(zk, "/l/q");
            co_await queue.put(std::string(100, 'x'));
            ++put;
        };
        const auto refuse_lock = [&]() -> asio::awaitable<void> {
            const mutex lock(zk, "/l/m", mutex_options().data(large));
            const auto failed = co_await as_result(lock.acquire());
            CHECK(failed.error().hung_up());
        };
        const auto refuse_put = [&]() -> asio::awaitable<void> {
            const work_queue queue(zk, "/l/q");
            std::string what;
            try {
                co_await queue.put(large);
            } catch (const error& e) {
                what = e.what();
            }
            CHECK(has(what, told));
        };
        auto body = [&](task_scope& tasks) -> asio::awaitable<void> {
            for (int i = 0; i < 50; ++i) {
                tasks.spawn(acquire());
                tasks.spawn(put_one());
                if (i == 25) tasks.spawn(refuse_lock());
                if (i == 30) tasks.spawn(refuse_put());
            }
            co_return;
        };
        co_await with_task_scope(body);
        CHECK(granted == 50);
        CHECK(put == 50);
    }, 5min);
    CHECK(ensemble.traffic(zk).connections < 40);
}

TEST_CASE("hang up: writes that were applied, and whose answers are lost, are not those at which servers hang up",
          "[hang_up]") {
    static const std::string some(200, 'x');
    const std::vector<call> calls{
        {"mutex",
         [](client zk) -> asio::awaitable<void> {
             const mutex lock(zk, "/l/m", mutex_options().data(some));
             const lock_guard guard = co_await lock.acquire();
         }},
        {"shared_mutex, a reader",
         [](client zk) -> asio::awaitable<void> {
             const shared_mutex lock(zk, "/l/r", shared_mutex_options().data(some));
             const lock_guard guard = co_await lock.acquire_shared();
         }},
        {"downgrade",
         [](client zk) -> asio::awaitable<void> {
             lock_guard writing = co_await shared_mutex(zk, "/l/d").acquire();
             const shared_mutex lock(zk, "/l/d", shared_mutex_options().data(some));
             const lock_guard guard = co_await lock.downgrade(std::move(writing));
         }},
        {"semaphore",
         [](client zk) -> asio::awaitable<void> {
             const semaphore lock(zk, "/l/s", permits::fixed(2), semaphore_options().data(some));
             const lock_guard guard = co_await lock.acquire(2);
         }},
        {"campaign",
         [](client zk) -> asio::awaitable<void> {
             const leader_election election(zk, "/l/e", leader_election_options().id(some));
             const leadership leads = co_await election.campaign();
         }},
        {"unfair_mutex",
         [](client zk) -> asio::awaitable<void> {
             const unfair_mutex lock(zk, "/l/u", unfair_mutex_options().data(some));
             const lock_guard guard = co_await lock.acquire();
         }},
        {"slots",
         [](client zk) -> asio::awaitable<void> {
             const slots numbers(zk, "/l/n", 3, slots_options().data(some));
             const lock_guard guard = co_await numbers.acquire();
         }},
        {"multi_mutex",
         [](client zk) -> asio::awaitable<void> {
             multi_mutex both(zk);
             both.add(mutex(zk, "/l/a", mutex_options().data(some))).add(mutex(zk, "/l/b"));
             const lock_guard guard = co_await both.acquire();
         }},
        {"protected create",
         [](client zk) -> asio::awaitable<void> {
             create_options how;
             how.mode(create_mode::ephemeral_sequential).protection();
             co_await zk.create("/l/p-", some, how);
         }},
        {"work_queue",
         [](client zk) -> asio::awaitable<void> {
             const work_queue queue(zk, "/l/q");
             co_await queue.put(some);
         }},
        {"transact",
         [](client zk) -> asio::awaitable<void> {
             auto body = [](unit& u) -> asio::awaitable<void> {
                 u.set("/l/t", some);
                 co_return;
             };
             co_await transact(zk, body, transact_options().receipts("/l/receipts"));
         }},
    };
    for (const call& each : calls) {
        INFO(each.name);
        const std::vector<std::string> in_steps{"downgrade", "work_queue", "transact"};
        const bool steps = std::find(in_steps.begin(), in_steps.end(), each.name) != in_steps.end();
        fake_ensemble ensemble;
        for (const char* path : {"/l", "/l/t"}) ensemble.create(path);
        client zk = ensemble.client(of_ten_seconds());
        ensemble.run(zk.connected());
        ensemble.run(each.run(zk));  // makes directories and receipts
        for (int i = 0; i < 8; ++i) {
            ensemble.lose_answer(zk, steps ? "multi" : "create");
            ensemble.run(each.run(zk));
            ensemble.run_for(1s);
        }
        const std::size_t connections = ensemble.traffic(zk).connections;
        CHECK(connections > 8);
        // Of the next one it is not known whether it was applied, and it was not.
        ensemble.max_request(200);
        std::error_code failed = asio::error::would_block;
        auto last = [&]() -> asio::awaitable<void> {
            const auto done = co_await as_result(each.run(zk));
            failed = done.has_value() ? std::error_code() : done.error().code();
        };
        asio::co_spawn(ensemble.context(), last(), asio::detached);
        while (ensemble.traffic(zk).connections == connections) ensemble.run_for(1ms);
        ensemble.max_request(1'048'575);
        ensemble.run_for(1min);
        CHECK_FALSE(failed);
    }
}

TEST_CASE("hang up: applied writes of another path do not hide the request at which servers hang up", "[hang_up]") {
    fake_ensemble ensemble;
    ensemble.max_request(4096);
    ensemble.create("/l");
    client zk = ensemble.client(of_ten_seconds());
    const work_queue queue(zk, "/l/u-queue");
    ensemble.run(queue.put("x"));
    bool stop = false;
    const auto pass = [&]() -> asio::awaitable<void> {
        const unfair_mutex lock(zk, "/l/u");
        asio::steady_timer pause(ensemble.context());
        while (!stop) {
            lock_guard guard = co_await lock.acquire();
            co_await guard.release();
            pause.expires_after(20ms);
            co_await pause.async_wait(asio::use_awaitable);
        }
    };
    asio::co_spawn(ensemble.context(), pass(), asio::detached);
    std::string what;
    const auto put = [&]() -> asio::awaitable<void> {
        const auto failed = co_await as_result(queue.put(large));
        what = failed.error().what();
    };
    asio::co_spawn(ensemble.context(), put(), asio::detached);
    for (int i = 0; i < 30 && what.empty(); ++i) {
        ensemble.lose_answer(zk, "create");
        ensemble.run_for(1s);
    }
    CHECK(has(what, told));
    stop = true;
    ensemble.run_for(10s);
}

TEST_CASE("hang up: a persistent_node goes on trying, and stands when the servers take its create", "[hang_up]") {
    fake_ensemble ensemble;
    ensemble.max_request(4096);
    ensemble.create("/l");
    client zk = ensemble.client(of_ten_seconds());
    ensemble.run([&]() -> asio::awaitable<void> {
        const persistent_node node(zk, "/l/n", large);
        const auto failed = co_await as_result(node.created());
        CHECK_FALSE(failed.has_value());
        CHECK(node.state() == persistent_node_state::creating);
        const auto at_once = co_await as_result(node.created());
        CHECK_FALSE(at_once.has_value());
        ensemble.max_request(1'000'000);
        while (node.state() != persistent_node_state::standing)
            co_await node.state_after(persistent_node_state::creating);
        co_await node.created();
        CHECK(ensemble.data("/l/n") == large);
    }, 1min);
}

TEST_CASE("hang up: set_data() fails, and the node stands as before", "[hang_up]") {
    const bool stands = GENERATE(true, false);
    CAPTURE(stands);
    fake_ensemble ensemble;
    ensemble.max_request(4096);
    ensemble.create("/l");
    client zk = ensemble.client(of_ten_seconds());
    ensemble.run([&]() -> asio::awaitable<void> {
        const persistent_node node(zk, "/l/n", "before");
        if (stands) co_await node.created();
        std::string what;
        bool unknown = true;
        try {
            co_await node.set_data(large);
        } catch (const error& e) {
            what = e.what();
            unknown = e.outcome_unknown();
        }
        CAPTURE(what);
        CHECK(has(what, told));
        CHECK_FALSE(unknown);
        co_await node.created();
        CHECK(ensemble.data("/l/n") == "before");
        co_await node.set_data("after");
        CHECK(ensemble.data("/l/n") == "after");
    }, 1min);
}

TEST_CASE("hang up: a queue whose items came before the limit hands out those that can be claimed", "[hang_up]") {
    fake_ensemble ensemble;
    client zk = ensemble.client(of_ten_seconds());
    int done = 0;
    ensemble.run([&]() -> asio::awaitable<void> {
        const work_queue queue(zk, "/q");
        for (int i = 0; i < 40; ++i) co_await queue.put(std::string(1000, 'x'));
        co_await queue.put(large);
        for (int i = 0; i < 40; ++i)
            co_await queue.put(std::string(1000, 'x'), put_options().delay(std::chrono::seconds(1)));
        ensemble.max_request(4096);
    });
    asio::cancellation_signal stop;
    auto body = [&](delivery&) -> asio::awaitable<void> {
        ++done;
        co_return;
    };
    auto consume = [&]() -> asio::awaitable<void> {
        co_await work_queue(zk, "/q").consume(body, consume_options().parallel(30));
    };
    asio::co_spawn(ensemble.context(), consume(), asio::bind_cancellation_slot(stop.slot(), asio::detached));
    ensemble.run_for(2min);
    CHECK(done == 80);
    CHECK(ensemble.traffic(zk).connections < 60);
    stop.emit(asio::cancellation_type::terminal);
    ensemble.run_for(1s);
}

TEST_CASE("hang up: what was written before each connection ended is not taken for a hang up", "[hang_up]") {
    fake_ensemble ensemble;
    ensemble.create("/l");
    client zk = ensemble.client(of_ten_seconds());
    int cuts = 0;
    ensemble.on_step([&](std::string_view line) {  // applied, and the answer is lost
        if (line.find("deliver 0: multi") != line.npos && ++cuts < 20) ensemble.cut(zk);
    });
    ensemble.run([&]() -> asio::awaitable<void> {
        const work_queue queue(zk, "/l/q");
        for (int i = 0; i < 10; ++i) co_await queue.put("x");
        const work_queue_info all = co_await queue.info();
        CHECK(all.waiting == 10);
    }, 1min);
    CHECK(cuts > 5);
}

namespace {

asio::awaitable<void> wait(std::chrono::milliseconds d) {
    asio::steady_timer timer(co_await asio::this_coro::executor);
    timer.expires_after(d);
    co_await timer.async_wait(asio::use_awaitable);
}

// A path that is longer than the servers take, from some moment on.
const std::string far = "/l/" + std::string(500, 'p'), further = "/l/" + std::string(501, 'p');

std::vector<call> that_remove(fake_ensemble& ensemble) {
    const auto shrink = [&ensemble] { ensemble.max_request(300); };
    return {
        {"mutex",
         [shrink](client zk) -> asio::awaitable<void> {
             const mutex lock(zk, far);
             lock_guard guard = co_await lock.acquire();
             shrink();
             co_await guard.release();
         }},
        {"mutex, held",
         [shrink](client zk) -> asio::awaitable<void> {
             const mutex lock(zk, far);
             lock_guard guard = co_await lock.acquire();
             shrink();
             co_await guard.lost();
         }},
        {"semaphore",
         [shrink](client zk) -> asio::awaitable<void> {
             const semaphore lock(zk, far, permits::fixed(2));
             lock_guard guard = co_await lock.acquire();
             shrink();
             co_await guard.release();
         }},
        {"unfair_mutex",
         [shrink](client zk) -> asio::awaitable<void> {
             const unfair_mutex lock(zk, far + "/u");
             lock_guard guard = co_await lock.acquire();
             shrink();
             co_await guard.release();
         }},
        {"slots",
         [shrink](client zk) -> asio::awaitable<void> {
             const slots numbers(zk, far, 3);
             lock_guard guard = co_await numbers.acquire();
             shrink();
             co_await guard.release();
         }},
        {"slots that rest",
         [shrink](client zk) -> asio::awaitable<void> {
             const slots numbers(zk, far, 3, slots_options().quiet(1s));
             lock_guard guard = co_await numbers.acquire();
             shrink();
             co_await guard.release();
         }},
        {"leadership",
         [shrink](client zk) -> asio::awaitable<void> {
             const leader_election election(zk, far + "/e");
             leadership leads = co_await election.campaign();
             shrink();
             co_await leads.resign();
         }},
        {"group",
         [shrink](client zk) -> asio::awaitable<void> {
             const group members(zk, far + "/g");
             auto joined = co_await members.join("one");
             shrink();
             co_await joined.leave();
         }},
        {"persistent_node",
         [shrink](client zk) -> asio::awaitable<void> {
             persistent_node node(zk, far + "/node", "x");
             co_await node.created();
             shrink();
             co_await node.leave();
         }},
        {"children_cache",
         [shrink, &ensemble](client zk) -> asio::awaitable<void> {
             co_await zk.create_or_set(further, "x");
             const children_cache cache(zk, further);
             co_await cache.ready();
             shrink();
             ensemble.cut(zk);
             co_await wait(1h);
         }},
        {"double_barrier",
         [shrink](client zk) -> asio::awaitable<void> {
             const double_barrier gate(zk, far + "/b", 1);
             barrier_entry in = co_await gate.enter();
             shrink();
             co_await in.leave();
         }},
        {"work_queue",
         [shrink](client zk) -> asio::awaitable<void> {
             const work_queue queue(zk, far + "/q");
             co_await queue.put("x");
             delivery one = co_await queue.receive();
             shrink();
             co_await one.done();
         }},
        {"transact",
         [shrink](client zk) -> asio::awaitable<void> {
             co_await zk.create_or_set(further, "x");
             shrink();
             auto body = [](unit& u) -> asio::awaitable<void> {
                 u.set(further, "y");
                 co_return;
             };
             co_await transact(zk, body, transact_options().receipts("/l/receipts"));
         }},
        {"modify",
         [shrink](client zk) -> asio::awaitable<void> {
             co_await zk.create_or_set(further, "x");
             shrink();
             auto change = [](std::optional<node_data>) { return std::optional<std::string>("y"); };
             co_await modify(zk, further, change);
         }},
    };
}

}  // namespace

TEST_CASE("hang up: what is repeated until it is certain pauses longer and longer, up to ten seconds",
          "[hang_up][numbers]") {
    fake_ensemble ensemble;
    for (const auto& [name, run] : that_remove(ensemble)) {
        INFO(name);
        ensemble.max_request(1 << 20);
        if (!ensemble.exists("/l")) ensemble.create("/l");
        client zk = ensemble.client(of_ten_seconds());
        const auto connections = [&] { return ensemble.traffic(zk).connections; };
        ensemble.run([&]() -> asio::awaitable<void> {
            co_await zk.connected();
            const auto before = connections();
            const auto tried = co_await as_result(timeout(10min, run(zk)));
            // What is held goes on being looked at, every T/4.
            const bool is_held = name == "mutex, held" || name == "work_queue";
            CHECK(connections() - before <= (is_held ? 360 : 90));
            const auto then = connections();
            co_await wait(10min);
            CHECK(connections() - then <= (is_held ? 140 : 70));  // where several kinds of requests pause, each does
            ensemble.max_request(1 << 20);
            co_await zk.close();
        }, 1h);
    }
}

TEST_CASE("hang up: a lock that cannot be released does not end the session of the others", "[hang_up]") {
    fake_ensemble ensemble;
    ensemble.create("/l");
    client zk = ensemble.client(of_ten_seconds());
    ensemble.run([&]() -> asio::awaitable<void> {
        const mutex near(zk, "/l/near"), lock(zk, far);
        const lock_guard held = co_await near.acquire();
        lock_guard guard = co_await lock.acquire();
        ensemble.max_request(300);
        const auto released = co_await as_result(timeout(10min, guard.release()));
        CHECK(released.error().code() == errc::timed_out);
        CHECK(held.held());
        // What is taken meanwhile waits for no pause.
        const auto asked = boot_clock::now();
        lock_guard other = co_await mutex(zk, "/l/other").acquire();
        co_await other.release();
        CHECK(boot_clock::now() - asked < 2s);
        ensemble.max_request(1 << 20);
        const auto waits = boot_clock::now();
        const lock_guard again = co_await lock.acquire();
        CHECK(boot_clock::now() - waits < 20s);
    }, 1h);
}

TEST_CASE("hang up: a cache that pauses holds up no removal whose answer was lost, and is closed at once",
          "[hang_up]") {
    fake_ensemble ensemble;
    ensemble.create("/l");
    client zk = ensemble.client(of_ten_seconds()), other = ensemble.client(of_ten_seconds());
    ensemble.run([&]() -> asio::awaitable<void> {
        co_await zk.create(further, "x");
        const children_cache cache(zk, further);
        co_await cache.ready();
        const mutex lock(zk, "/l/m"), others(other, "/l/m");
        lock_guard guard = co_await lock.acquire();
        ensemble.max_request(300);
        ensemble.cut(zk);
        co_await wait(2min);  // some fifteen connections
        ensemble.lose_answer(zk, "remove /l/m");
        const auto asked = boot_clock::now();
        guard = lock_guard();
        const lock_guard theirs = co_await others.acquire();
        CHECK(boot_clock::now() - asked < 1s);
        co_await cache.close();
        co_await wait(1s);  // another connection after the lost answer
        const auto connections = ensemble.traffic(zk).connections;
        co_await wait(1min);
        CHECK(ensemble.traffic(zk).connections - connections == 0);  // the read that paused is not sent any more
    }, 1h);
}

TEST_CASE("hang up: a pause ends when an answer shows that the servers take such requests", "[hang_up]") {
    fake_ensemble ensemble;
    ensemble.create("/l");
    client zk = ensemble.client(of_ten_seconds());
    ensemble.run([&]() -> asio::awaitable<void> {
        const std::string longer = "/l/" + std::string(700, 'p');
        co_await zk.create(longer, "");
        const mutex lock(zk, far);
        lock_guard guard = co_await lock.acquire();
        ensemble.max_request(300);
        guard = lock_guard();
        co_await wait(2min);
        for (;;) {  // until the next pause has just begun
            const auto connections = ensemble.traffic(zk).connections;
            co_await wait(10ms);
            if (ensemble.traffic(zk).connections > connections) break;
        }
        co_await wait(100ms);
        ensemble.max_request(1 << 20);
        const auto asked = boot_clock::now();
        co_await zk.remove(longer);
        const lock_guard again = co_await lock.acquire();
        CHECK(boot_clock::now() - asked < 1s);
    }, 1h);
}

}  // namespace hang_up_tests
