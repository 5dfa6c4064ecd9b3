// How long the directory of a lock stays, over an ensemble in memory: minutes take no time there.

#include "support/catch.hpp"

#include <zkasio/election/leader_election.hpp>
#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <chrono>
#include <string>
#include <vector>

using namespace zkasio;
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
