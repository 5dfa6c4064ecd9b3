// How long the directory of a lock stays, over an ensemble in memory: minutes take no time there.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/election/leader_election.hpp>
#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/post.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace lock_directory_tests {

using namespace zkasio;
using namespace zkasio::test;
using namespace std::chrono_literals;

TEST_CASE("directories of locks go when nobody uses them, but not those that kazoo shares") {
    for (const bool stays : {false, true}) {
        INFO((stays ? "kazoo's" : "Curator's") << " names");
        testing::fake_ensemble ensemble;
        const client zk = ensemble.client();
        const name_scheme names = stays ? name_scheme::kazoo() : name_scheme::curator();
        const mutex lock(zk, "/mutex/a", mutex_options().names(names));
        const multi_mutex several = multi_mutex(zk).add(mutex(zk, "/multi/a", mutex_options().names(names)));
        const shared_mutex shared(zk, "/shared/a", shared_mutex_options().names(names));
        const leader_election election(zk, "/election/a", leader_election_options().names(names));
        auto use = [&]() -> asio::awaitable<void> {
            const lock_guard a = co_await lock.acquire();
            const lock_guard b = co_await several.acquire();
            const lock_guard c = co_await shared.acquire_shared();
            const leadership d = co_await election.campaign();
            CHECK((a.held() && b.held() && c.held() && d.held()));
        };
        ensemble.run(use());
        ensemble.run_for(10min);
        for (const std::string path : {"/mutex", "/multi", "/shared", "/election"}) {
            CAPTURE(path);
            CHECK(ensemble.exists(path) == stays);
            CHECK(ensemble.exists(path + "/a") == stays);
            CHECK(ensemble.children(path + "/a").empty());
        }
    }
}

namespace {

asio::awaitable<void> pass(mutex lock, std::size_t i, std::vector<std::size_t>& order) {
    lock_guard guard = co_await lock.acquire();
    order.push_back(i);
    co_await guard.release();
}

}  // namespace

TEST_CASE("a directory that may be missing: contenders that wait for the first answer keep their order") {
    constexpr std::size_t n = 40;
    const bool is_missing = GENERATE(true, false);
    const auto leaves = GENERATE(values<std::pair<std::size_t, std::size_t>>({{0, 0}, {20, 21}, {0, 8}}));
    const auto has_left = [&](std::size_t i) { return i >= leaves.first && i < leaves.second; };
    testing::fake_ensemble e;
    const client zk = e.client(calm());
    e.run(zk.connected());
    if (!is_missing) e.create("/locks/orders");
    const mutex lock(zk, "/locks/orders");
    std::vector<std::size_t> order;
    std::vector<std::unique_ptr<running>> users;
    bool is_asked = false;
    e.on_step([&](std::string_view step) {
        if (step.find("apply 0: create ") == step.npos || std::exchange(is_asked, true)) return;
        asio::post(e.context(), [&] {
            for (std::size_t i = leaves.first; i < leaves.second; ++i) users[i]->cancel();
        });
    });
    for (std::size_t i = 0; i < n; ++i)
        users.push_back(std::make_unique<running>(e.get_executor(), pass(lock, i, order)));
    for (std::size_t i = 0; i < n; ++i) {
        const std::error_code code = e.run(users[i]->code());
        CHECK(bool(code) == has_left(i));
    }
    e.on_step(nullptr);
    std::vector<std::size_t> expected;
    for (std::size_t i = 0; i < n; ++i)
        if (!has_left(i)) expected.push_back(i);
    CHECK(order == expected);
    e.run_for(1s);
    CHECK(e.ephemerals() == 0);
    e.run(zk.close());
}

TEST_CASE("a directory that cannot be made fails all contenders, also those that wait for the first answer") {
    testing::fake_ensemble e;
    const client zk = e.client(calm());
    const mutex lock(zk, "/locks/orders");
    e.run(zk.connected());
    const created parent = e.run(zk.create("/locks", "", create_options().mode(create_mode::ephemeral)));
    CHECK(parent.path == "/locks");
    std::vector<std::size_t> order;
    std::vector<std::unique_ptr<running>> users;
    for (std::size_t i = 0; i < 40; ++i)
        users.push_back(std::make_unique<running>(e.get_executor(), pass(lock, i, order)));
    const auto before = e.requests(zk);
    for (const auto& one : users) CHECK(e.run(one->code()) == zk_errc::no_children_for_ephemerals);
    CHECK(e.requests(zk) - before < 20);
    CHECK(order.empty());
    e.run(zk.close());
}

TEST_CASE("a directory that may be missing: contenders that wait for the first answer learn of the session's end") {
    testing::fake_ensemble e;
    const client zk = e.client(calm());
    const mutex lock(zk, "/locks/orders");
    e.run(zk.connected());
    e.silence(zk);
    std::vector<std::size_t> order;
    std::vector<std::unique_ptr<running>> users;
    for (std::size_t i = 0; i < 40; ++i)
        users.push_back(std::make_unique<running>(e.get_executor(), pass(lock, i, order)));
    e.run_for(1s);
    const bool closes = GENERATE(true, false);
    if (closes) {
        e.run(zk.close());
    } else {
        e.expire(zk);
        e.let_in(zk);
    }
    for (const auto& one : users) CHECK(e.run(one->code()) == condition::session_ended);
    CHECK(order.empty());
    if (!closes) e.run(zk.close());
}

}  // namespace lock_directory_tests
