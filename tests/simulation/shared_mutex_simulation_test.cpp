#include "simulation/lock_scenario.hpp"

#include "support/catch.hpp"

#include <zkasio/recipes/shared_mutex.hpp>

namespace zkasio::test {
namespace {

shared_mutex lock_of(client zk, std::string id, bool prefer_readers = false) {
    shared_mutex_options o;
    o.data(std::move(id));
    if (prefer_readers) o.prefer_readers();
    return {std::move(zk), lock_directory, o};
}

asio::awaitable<lock_guard> acquire(client zk, std::string id, lock_kind kind) {
    const shared_mutex lock = lock_of(zk, id);
    if (kind == lock_kind::shared) co_return co_await lock.acquire_shared();
    co_return co_await lock.acquire();
}

asio::awaitable<std::optional<lock_guard>> try_acquire(client zk, std::string id, lock_kind kind) {
    const shared_mutex lock = lock_of(zk, id);
    if (kind == lock_kind::shared) co_return co_await lock.try_acquire_shared();
    co_return co_await lock.try_acquire();
}

asio::awaitable<lock_guard> acquire_preferred(client zk, std::string id, lock_kind kind) {
    const shared_mutex lock = lock_of(zk, id, true);
    if (kind == lock_kind::shared) co_return co_await lock.acquire_shared();
    co_return co_await lock.acquire();
}

asio::awaitable<std::optional<lock_guard>> try_acquire_preferred(client zk, std::string id, lock_kind kind) {
    const shared_mutex lock = lock_of(zk, id, true);
    if (kind == lock_kind::shared) co_return co_await lock.try_acquire_shared();
    co_return co_await lock.try_acquire();
}

asio::awaitable<lock_guard> downgrade(client zk, std::string id, lock_guard writing) {
    const shared_mutex lock = lock_of(zk, id);
    co_return co_await lock.downgrade(std::move(writing));
}

const lock_under_test fair{acquire, try_acquire, downgrade};
const lock_under_test readers_preferred{acquire_preferred, try_acquire_preferred, downgrade};

void run(const std::string& name, std::uint64_t seeds, const faults& f) {
    run_seeds(name, seeds, [&](simulation& s) {
        s.ensemble.lagging = s.chance(50);
        lock_scenario(s, s.chance(70) ? fair : readers_preferred).run_at_random(f);
    });
}

}  // namespace

TEST_CASE("shared_mutex, simulated: readers and writers that come, wait, give up and leave", "[simulation]") {
    run("calm", 500, {});
}

TEST_CASE("shared_mutex, simulated: connections break", "[simulation]") {
    faults f;
    f.drops = true;
    run("drops", 500, f);
}

TEST_CASE("shared_mutex, simulated: sessions expire", "[simulation]") {
    faults f;
    f.drops = f.expiries = true;
    run("expiries", 500, f);
}

TEST_CASE("shared_mutex, simulated: the directory is removed when it is empty", "[simulation]") {
    faults f;
    f.containers = f.drops = true;
    run("containers", 500, f);
}

TEST_CASE("shared_mutex, simulated: an operator deletes nodes", "[simulation]") {
    faults f;
    f.drops = f.operator_deletes = true;
    run("operator", 500, f);
}

}  // namespace zkasio::test
