#include "simulation/queue_scenario.hpp"

#include <zkasio/path.hpp>

namespace zkasio::test {

queue_scenario::queue_scenario(simulation& simulated, const lock_under_test& lock)
    : lock_scenario(simulated, {&lock, 1}, std::make_unique<queue_checker>(simulated.ensemble, lock_directory)),
      checked(static_cast<queue_checker&>(*watching_)) {}

void queue_scenario::contend(int client, lock_kind kind, std::size_t hold) {
    plan p;
    p.kind = kind;
    p.hold = hold;
    contend(client, p);
}

void queue_scenario::begin_with(std::int32_t sequence) {
    detail::create_request r;
    r.path = std::string(parent_path(lock_directory));
    s.ensemble.operate(r);
    r.path = lock_directory;
    s.ensemble.operate(r);
    s.ensemble.set_next_sequence(lock_directory, sequence);
}

void queue_scenario::before_random_run() {
    if (s.chance(25)) begin_with(static_cast<std::int32_t>(2147483647 - s.pick(40)));
}

}  // namespace zkasio::test
