#include "simulation/queue_scenario.hpp"
#include "simulation/simulated_locks.hpp"

#include "support/catch.hpp"

#include <zkasio/locks/shared_mutex.hpp>

namespace zkasio::test {
namespace {

shared_mutex lock_of(client zk, std::string id) {
    return {std::move(zk), lock_directory, shared_mutex_options().data(std::move(id))};
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

asio::awaitable<lock_guard> downgrade(client zk, std::string id, lock_guard writing) {
    const shared_mutex lock = lock_of(zk, id);
    co_return co_await lock.downgrade(std::move(writing));
}

const lock_under_test readers_and_writers{acquire, try_acquire, downgrade};

void run_shared_mutex(const std::string& name, std::uint64_t seeds, const faults& f) {
    run_seeds(name, seeds, [&](simulation& s) {
        s.ensemble.lagging = s.chance(50);
        queue_scenario(s, readers_and_writers).run_at_random(f);
    });
}

lock_scenario::plan waiting(lock_kind kind, std::size_t hold) {
    lock_scenario::plan p;
    p.kind = kind;
    p.hold = hold;
    return p;
}

}  // namespace

TEST_CASE("shared_mutex, simulated: when a waiting writer gives up, the readers behind it are let in", "[simulation]") {
    for (const int writer : {0, 1}) {
        run_few_seeds("writer gives up", 40, [&](simulation& s) {
            queue_scenario l(s, readers_and_writers);
            s.add_client();
            s.add_client();
            l.contend(0, waiting(lock_kind::shared, 1000));
            l.run_until([&] { return l.checked.grants() == 1; });
            lock_scenario::plan gives_up = waiting(lock_kind::exclusive, 3);
            gives_up.cancel_after = 100;
            l.contend(writer, gives_up);
            l.run_until([&] { return l.checked.nodes_alive() == 2; });
            l.contend(0, waiting(lock_kind::shared, 3));
            l.run_until([&] { return l.checked.grants() == 2; });
            CHECK(s.now() < 500);
            l.finish();
        });
    }
}

// Fails without G34 and G37.
TEST_CASE("shared_mutex, simulated: a cancelled downgrade lets nobody in too early", "[simulation]") {
    for (std::size_t k = 0; k < 12; ++k) {
        run_few_seeds("downgrade cancelled before step " + std::to_string(k), 20, [&](simulation& s) {
            queue_scenario l(s, readers_and_writers);
            s.add_client();
            s.add_client();
            lock_scenario::plan writer = waiting(lock_kind::exclusive, 25);
            writer.downgrade = true;
            writer.cancel_downgrade_after = k;
            l.contend(0, writer);
            l.run_until([&] { return l.checked.grants() == 1; });
            l.contend(0, waiting(lock_kind::exclusive, 12));
            l.run_until([&] { return l.checked.nodes_alive() == 2; });
            for (std::size_t n = 0; n < 12; ++n) {
                s.after(20 + s.pick(15),
                        [&l, n] { l.contend(static_cast<int>(n % 2), waiting(lock_kind::shared, 6)); });
            }
            l.finish();
        });
    }
}

// Fails without G33.
TEST_CASE("shared_mutex, simulated: readers and writers that come, wait, give up and leave", "[simulation]") {
    run_shared_mutex("calm", 500, {});
}

TEST_CASE("shared_mutex, simulated: connections break", "[simulation]") {
    faults f;
    f.drops = true;
    run_shared_mutex("drops", 500, f);
}

TEST_CASE("shared_mutex, simulated: connections break, and the locks are lost with them", "[simulation]") {
    faults f;
    f.drops = f.drops_lose = true;
    run_shared_mutex("drops that lose", 500, f);
    f.expiries = f.operator_deletes = true;
    run_shared_mutex("drops that lose, and more", 500, f);
}

TEST_CASE("shared_mutex, simulated: sessions expire", "[simulation]") {
    faults f;
    f.drops = f.expiries = true;
    run_shared_mutex("expiries", 500, f);
}

TEST_CASE("shared_mutex, simulated: everything at once", "[simulation]") {
    faults f;
    f.drops = f.expiries = f.operator_deletes = f.hang_ups = true;
    run_shared_mutex("everything", 500, f);
}

TEST_CASE("shared_mutex, simulated: the directory is removed when it is empty", "[simulation]") {
    faults f;
    f.containers = f.drops = true;
    run_shared_mutex("containers", 500, f);
}

TEST_CASE("shared_mutex, simulated: an ACL refuses the removal of nodes for a while", "[simulation]") {
    faults f;
    f.drops = f.closed_directories = true;
    run_shared_mutex("closed directories", 200, f);
}

TEST_CASE("shared_mutex, simulated: an operator deletes nodes", "[simulation]") {
    faults f;
    f.drops = f.operator_deletes = true;
    run_shared_mutex("operator", 500, f);
}

// The numbers of a new directory begin anew, so a queue does not go on: looked at by what is held, not by who is next.
TEST_CASE("shared_mutex, simulated: an operator deletes the directory", "[simulation]") {
    constexpr int everybody = 100;
    const std::string rw = "/locks/rw";
    const auto both = [=](client zk, std::string id) {
        return shared_mutex(std::move(zk), rw, shared_mutex_options().data(std::move(id)));
    };
    const lock_under_test reader = thing({{rw}}, both, lock_kind::shared),
                          writer = thing({{rw, 1, everybody}}, both, lock_kind::exclusive);
    faults f;
    f.directory_deletes = true;
    run_holdings("directories", {reader, reader, writer}, {{rw, everybody}}, f);
    f.drops = f.expiries = f.operator_deletes = true;
    run_holdings("all at once", {reader, reader, writer}, {{rw, everybody}}, f);
}

TEST_CASE("shared_mutex, simulated: bodies go on under locks that are lost", "[simulation]") {
    constexpr int everybody = 100;
    const std::string rw = "/locks/rw";
    const auto both = [=](client zk, std::string id) {
        return shared_mutex(std::move(zk), rw, shared_mutex_options().data(std::move(id)));
    };
    const lock_under_test reader = thing({{rw}}, both, lock_kind::shared),
                          writer = thing({{rw, 1, everybody}}, both, lock_kind::exclusive);
    faults f;
    f.bodies = f.drops = f.drops_lose = true;
    run_holdings("bodies", {reader, reader, writer}, {{rw, everybody}}, f);
    f.expiries = f.operator_deletes = true;
    run_holdings("bodies, and more", {reader, reader, writer}, {{rw, everybody}}, f);
}

TEST_CASE("mutex, simulated: bodies go on under locks that are lost", "[simulation]") {
    const std::string path = "/locks/one";
    const auto one = [=](client zk, std::string id) { return mutex_at(std::move(zk), path, std::move(id)); };
    faults f;
    f.bodies = f.drops = f.drops_lose = true;
    run_holdings("bodies", {thing({{path}}, one)}, {{path, 1}}, f);
    f.expiries = f.operator_deletes = true;
    run_holdings("bodies, and more", {thing({{path}}, one)}, {{path, 1}}, f);
}

TEST_CASE("mutex, simulated: an operator deletes the directory", "[simulation]") {
    const std::string path = "/locks/one";
    const auto one = [=](client zk, std::string id) { return mutex_at(std::move(zk), path, std::move(id)); };
    faults f;
    f.directory_deletes = true;
    run_holdings("directories", {thing({{path}}, one)}, {{path, 1}}, f);
    f.drops = f.expiries = f.operator_deletes = true;
    run_holdings("all at once", {thing({{path}}, one)}, {{path, 1}}, f);
}

}  // namespace zkasio::test
