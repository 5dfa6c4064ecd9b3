#include "simulation/simulated_locks.hpp"

#include "support/catch.hpp"

#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/shared_mutex.hpp>

namespace zkasio::test {
namespace {

const std::string a = "/locks/a", b = "/locks/b", c = "/locks/c", readable = "/locks/readable";
constexpr int everybody = 1000;  // what a writer keeps out, and of which a reader takes 1

lock_under_test alone(const std::string& path) {
    return thing({{path}}, [path](client zk, std::string id) { return mutex_at(std::move(zk), path, std::move(id)); });
}

lock_under_test several(std::vector<std::string> paths, multi_mutex_options o) {
    std::vector<share> shares;
    for (const std::string& path : paths) shares.push_back({path});
    return thing(shares, [paths, o](client zk, std::string id) {
        multi_mutex all(zk, o);
        for (const std::string& path : paths) all.add(mutex_at(zk, path, id));
        return all;
    });
}

things mutexes(multi_mutex_options o) {
    return {alone(a), alone(b), several({a, b}, o), several({b, c}, o), several({c, a, b}, o)};
}

shared_mutex readable_of(client zk, std::string id) {
    return {std::move(zk), readable, shared_mutex_options().data(std::move(id))};
}
multi_mutex permits_and_mutex(client zk, std::string id) {
    return multi_mutex(zk).add(pool_of(zk, id), 2).add(mutex_at(zk, a, id));
}
multi_mutex permit_and_reader(client zk, std::string id) {
    return multi_mutex(zk).add(pool_of(zk, id)).add_shared(readable_of(zk, id));
}
multi_mutex three_kinds(client zk, std::string id) {
    return multi_mutex(zk).add(simple_of(zk, id)).add(readable_of(zk, id)).add(mutex_at(zk, a, id));
}

void run_together(const std::string& name, const faults& f) {
    run_holdings("together, " + name, mutexes({}), {{a, 1}, {b, 1}, {c, 1}}, f);
}

void run_one_by_one(const std::string& name, const faults& f) {
    run_holdings("one by one, " + name, mutexes(multi_mutex_options().one_after_another()), {{a, 1}, {b, 1}, {c, 1}},
                 f);
}

void run_mixed(const std::string& name, const faults& f) {
    const things locks{
        alone(a),
        from_pool(2),
        simple_lock(),
        thing({{a}, n_permits(2)}, permits_and_mutex),
        thing({n_permits(1), {readable}}, permit_and_reader),
        thing({{readable, 1, everybody}, {simple}, {a}}, three_kinds),
    };
    run_holdings("mixed, " + name, locks, {{a, 1}, {readable, everybody}, {permits_of_pool, most_permits}, {simple, 1}},
                 f);
}

}  // namespace

// Fails without G16.
TEST_CASE("multi_mutex in one transaction, simulated: users of all sorts", "[simulation]") {
    run_together("calm", {});
}

TEST_CASE("multi_mutex one after another, simulated: users of all sorts", "[simulation]") {
    run_one_by_one("calm", {});
}

TEST_CASE("multi_mutex of several kinds, simulated: users of all sorts", "[simulation]") {
    run_mixed("calm", {});
}

TEST_CASE("multi_mutex in one transaction, simulated: connections break, and the locks are lost with them",
          "[simulation]") {
    faults f;
    f.drops = f.drops_lose = true;
    run_together("drops that lose", f);
    f.bodies = true;
    run_together("drops that lose, and bodies that go on", f);
}

TEST_CASE("multi_mutex one after another, simulated: connections break, and the locks are lost with them",
          "[simulation]") {
    faults f;
    f.drops = f.drops_lose = true;
    run_one_by_one("drops that lose", f);
    f.bodies = true;
    run_one_by_one("drops that lose, and bodies that go on", f);
}

TEST_CASE("multi_mutex of several kinds, simulated: connections break, and the locks are lost with them",
          "[simulation]") {
    faults f;
    f.drops = f.drops_lose = true;
    run_mixed("drops that lose", f);
    f.bodies = true;
    run_mixed("drops that lose, and bodies that go on", f);
}

TEST_CASE("multi_mutex in one transaction, simulated: connections break", "[simulation]") {
    faults f;
    f.drops = true;
    run_together("drops", f);
}

TEST_CASE("multi_mutex one after another, simulated: connections break", "[simulation]") {
    faults f;
    f.drops = true;
    run_one_by_one("drops", f);
}

TEST_CASE("multi_mutex of several kinds, simulated: connections break", "[simulation]") {
    faults f;
    f.drops = true;
    run_mixed("drops", f);
}

TEST_CASE("multi_mutex in one transaction, simulated: sessions expire", "[simulation]") {
    faults f;
    f.drops = f.expiries = true;
    run_together("expiries", f);
}

// Fails without G38.
TEST_CASE("multi_mutex one after another, simulated: sessions expire", "[simulation]") {
    faults f;
    f.drops = f.expiries = true;
    run_one_by_one("expiries", f);
}

TEST_CASE("multi_mutex of several kinds, simulated: sessions expire", "[simulation]") {
    faults f;
    f.drops = f.expiries = true;
    run_mixed("expiries", f);
}

TEST_CASE("multi_mutex in one transaction, simulated: the directories are removed when they are empty",
          "[simulation]") {
    faults f;
    f.containers = f.drops = true;
    run_together("containers", f);
}

TEST_CASE("multi_mutex one after another, simulated: the directories are removed when they are empty", "[simulation]") {
    faults f;
    f.containers = f.drops = true;
    run_one_by_one("containers", f);
}

TEST_CASE("multi_mutex of several kinds, simulated: the directories are removed when they are empty", "[simulation]") {
    faults f;
    f.containers = f.drops = true;
    run_mixed("containers", f);
}

// Fails without G38.
TEST_CASE("multi_mutex in one transaction, simulated: an operator deletes nodes", "[simulation]") {
    faults f;
    f.drops = f.operator_deletes = true;
    run_together("operator", f);
}

TEST_CASE("multi_mutex one after another, simulated: an operator deletes nodes", "[simulation]") {
    faults f;
    f.drops = f.operator_deletes = true;
    run_one_by_one("operator", f);
}

TEST_CASE("multi_mutex of several kinds, simulated: an operator deletes nodes", "[simulation]") {
    faults f;
    f.drops = f.operator_deletes = true;
    run_mixed("operator", f);
}

TEST_CASE("multi_mutex in one transaction, simulated: an operator deletes directories", "[simulation]") {
    faults f;
    f.directory_deletes = true;
    run_together("directories", f);
}

TEST_CASE("multi_mutex one after another, simulated: an operator deletes directories", "[simulation]") {
    faults f;
    f.directory_deletes = true;
    run_one_by_one("directories", f);
}

TEST_CASE("multi_mutex of several kinds, simulated: an operator deletes directories", "[simulation]") {
    faults f;
    f.directory_deletes = true;
    run_mixed("directories", f);
}

}  // namespace zkasio::test
