#include "simulation/lock_scenario.hpp"

#include "support/catch.hpp"

#include <zkasio/recipes/mutex.hpp>

namespace zkasio::test {
namespace {

mutex mutex_of(client zk, std::string id) { return {std::move(zk), lock_directory, mutex_options().data(std::move(id))}; }

asio::awaitable<lock_guard> acquire(client zk, std::string id, lock_kind) {
    const mutex lock = mutex_of(zk, id);
    co_return co_await lock.acquire();
}

asio::awaitable<std::optional<lock_guard>> try_acquire(client zk, std::string id, lock_kind) {
    const mutex lock = mutex_of(zk, id);
    co_return co_await lock.try_acquire();
}

const lock_under_test tested{acquire, try_acquire};

void run(const std::string& name, std::uint64_t seeds, const faults& f) {
    run_seeds(name, seeds, [&](simulation& s) {
        s.ensemble.lagging = s.chance(50);
        lock_scenario(s, tested).run_at_random(f);
    });
}

}  // namespace

TEST_CASE("mutex, simulated: contenders that come, wait, give up and leave", "[simulation]") {
    run("calm", 500, {});
}

TEST_CASE("mutex, simulated: connections break", "[simulation]") {
    faults f;
    f.drops = true;
    run("drops", 500, f);
}

TEST_CASE("mutex, simulated: sessions expire", "[simulation]") {
    faults f;
    f.drops = f.expiries = true;
    run("expiries", 500, f);
}

TEST_CASE("mutex, simulated: the directory is removed when it is empty", "[simulation]") {
    faults f;
    f.containers = f.drops = true;
    run("containers", 500, f);
}

TEST_CASE("mutex, simulated: an operator deletes nodes", "[simulation]") {
    faults f;
    f.drops = f.operator_deletes = true;
    run("operator", 500, f);
}

}  // namespace zkasio::test
