#pragma once

#include "simulation/simulation.hpp"
#include "simulation/witness.hpp"

#include "support/test_client.hpp"

#include <zkasio/recipes/lock_guard.hpp>
#include <zkasio/recipes/lock_kind.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace zkasio::test {

inline const std::string lock_directory = "/locks/simulated";

/// How a lock is asked for. `id` is what the node has to contain.
struct lock_under_test {
    std::function<asio::awaitable<lock_guard>(client, std::string id, lock_kind)> acquire;
    std::function<asio::awaitable<std::optional<lock_guard>>(client, std::string id, lock_kind)> try_acquire;
    /// A writer goes on as a reader; empty when the lock has no readers.
    std::function<asio::awaitable<lock_guard>(client, std::string id, lock_guard)> downgrade{};
};

/// What goes wrong in a run, besides the caller's cancellations.
struct faults {
    bool drops = false;
    bool expiries = false;
    bool operator_deletes = false;
    bool containers = false;  ///< servers remove the directory when it is empty
};

/// Many coroutines of some clients want one lock, over and over. All the witness's checks are made after each step.
class lock_scenario {
public:
    enum class ending {
        awaited,
        cancelled_wait,
        not_awaited,
        destroyed,
    };
    struct plan {
        lock_kind kind = lock_kind::exclusive;
        bool patient = true;
        std::optional<std::size_t> cancel_after{};
        std::size_t hold = 3;
        ending end = ending::awaited;
        bool downgrade = false;
        std::optional<std::size_t> cancel_downgrade_after{};
    };

    lock_scenario(simulation& s, const lock_under_test& lock);
    ~lock_scenario();

    /// One attempt: waits for its turn, holds for `hold` steps, releases.
    void contend(int client, lock_kind kind = lock_kind::exclusive, std::size_t hold = 3);
    void contend(int client, plan p);
    /// Makes the directory, whose next child gets this number.
    void begin_with(std::int32_t sequence);
    /// Until `condition()` holds; a violation when it never does.
    void run_until(const std::function<bool()>& condition);
    bool idle() const noexcept { return active_ == 0; }  ///< nobody is asking, holding or releasing

    /// Everything at random.
    void run_at_random(const faults& f);

    /// Until nothing happens any more; then closes, and checks that nothing is left.
    void finish();

    simulation& s;
    const lock_under_test& lock;
    class witness witness;

private:
    plan random_plan();
    asio::awaitable<void> attempt(int client, plan p);
    asio::awaitable<void> asking_and_holding(int client, plan p);
    asio::awaitable<bool> go_on_as_reader(int client, std::string& id, std::shared_ptr<std::optional<lock_guard>> guard, const plan& p);
    static asio::awaitable<void> ask_for_downgrade(lock_scenario& self, client zk, std::string id,
                                                   std::shared_ptr<std::optional<lock_guard>> guard);
    void cancel_later(std::size_t steps, const running& what, const std::string& id, std::shared_ptr<bool> cancelled);
    static asio::awaitable<void> ask(lock_scenario& self, client zk, std::string id, plan p, std::shared_ptr<std::optional<lock_guard>> got);
    static asio::awaitable<void> release(std::shared_ptr<std::optional<lock_guard>> guard);
    asio::awaitable<void> worker(int client, std::size_t rounds);
    asio::awaitable<void> trouble(faults f);
    void expect(int client, const std::string& id, std::exception_ptr failed, bool cancelled) const;

    std::size_t working_ = 0, active_ = 0;
    bool nodes_deleted_ = false;  // by an operator
    std::set<int> expired_;  // clients
};

}  // namespace zkasio::test
