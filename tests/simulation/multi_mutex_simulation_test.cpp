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

lock_under_test several(std::vector<std::string> paths) {
    std::vector<share> shares;
    for (const std::string& path : paths) shares.push_back({path});
    return thing(shares, [paths](client zk, std::string id) {
        multi_mutex all(zk);
        for (const std::string& path : paths) all.add(mutex_at(zk, path, id));
        return all;
    });
}

things mutexes() {
    return {alone(a), alone(b), several({a, b}), several({b, c}), several({c, a, b})};
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

void run_in_order(const std::string& name, const faults& f) {
    run_holdings("in order, " + name, mutexes(), {{a, 1}, {b, 1}, {c, 1}}, f);
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

TEST_CASE("multi_mutex, simulated: users of all sorts", "[simulation]") {
    run_in_order("calm", {});
}

TEST_CASE("multi_mutex of several kinds, simulated: users of all sorts", "[simulation]") {
    run_mixed("calm", {});
}

TEST_CASE("multi_mutex, simulated: connections break, and the locks are lost with them",
          "[simulation]") {
    faults f;
    f.drops = f.drops_lose = true;
    run_in_order("drops that lose", f);
    f.bodies = true;
    run_in_order("drops that lose, and bodies that go on", f);
}

TEST_CASE("multi_mutex of several kinds, simulated: connections break, and the locks are lost with them",
          "[simulation]") {
    faults f;
    f.drops = f.drops_lose = true;
    run_mixed("drops that lose", f);
    f.bodies = true;
    run_mixed("drops that lose, and bodies that go on", f);
}

TEST_CASE("multi_mutex, simulated: connections break", "[simulation]") {
    faults f;
    f.drops = true;
    run_in_order("drops", f);
}

TEST_CASE("multi_mutex of several kinds, simulated: connections break", "[simulation]") {
    faults f;
    f.drops = true;
    run_mixed("drops", f);
}

// Fails without G38.
TEST_CASE("multi_mutex, simulated: sessions expire", "[simulation]") {
    faults f;
    f.drops = f.expiries = true;
    run_in_order("expiries", f);
}

TEST_CASE("multi_mutex of several kinds, simulated: sessions expire", "[simulation]") {
    faults f;
    f.drops = f.expiries = true;
    run_mixed("expiries", f);
}

TEST_CASE("multi_mutex, simulated: the directories are removed when they are empty", "[simulation]") {
    faults f;
    f.containers = f.drops = true;
    run_in_order("containers", f);
}

TEST_CASE("multi_mutex of several kinds, simulated: the directories are removed when they are empty", "[simulation]") {
    faults f;
    f.containers = f.drops = true;
    run_mixed("containers", f);
}

TEST_CASE("multi_mutex, simulated: an operator deletes nodes", "[simulation]") {
    faults f;
    f.drops = f.operator_deletes = true;
    run_in_order("operator", f);
}

TEST_CASE("multi_mutex of several kinds, simulated: an operator deletes nodes", "[simulation]") {
    faults f;
    f.drops = f.operator_deletes = true;
    run_mixed("operator", f);
}

TEST_CASE("multi_mutex, simulated: an operator deletes directories", "[simulation]") {
    faults f;
    f.directory_deletes = true;
    run_in_order("directories", f);
}

TEST_CASE("multi_mutex of several kinds, simulated: an operator deletes directories", "[simulation]") {
    faults f;
    f.directory_deletes = true;
    run_mixed("directories", f);
}

}  // namespace zkasio::test
