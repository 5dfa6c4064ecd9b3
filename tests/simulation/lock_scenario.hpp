#pragma once

#include "simulation/checker.hpp"
#include "simulation/passing_time.hpp"
#include "simulation/simulation.hpp"

#include "support/test_client.hpp"

#include <zkasio/lock_kind.hpp>
#include <zkasio/locks/lock_guard.hpp>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace zkasio::test {

/// A part of what a lock consists of.
struct share {
    std::string of;       ///< whose children are the nodes, or the one node
    std::size_t nodes = 1;
    int weight = 1;       ///< of each; see holdings_checker
};

/// Something that can be asked for, and how. `id` is what the nodes have to contain.
struct lock_under_test {
    std::function<asio::awaitable<lock_guard>(client, std::string id, lock_kind)> acquire;
    std::function<asio::awaitable<std::optional<lock_guard>>(client, std::string id, lock_kind)> try_acquire;
    /// A writer goes on as a reader; empty when the lock has no readers.
    std::function<asio::awaitable<lock_guard>(client, std::string id, lock_guard)> downgrade{};
    std::vector<share> shares{};  ///< for a holdings_checker
};

/// What happens in a random run, besides the plainest cancellations.
struct faults {
    bool drops = false;
    bool expiries = false;
    bool operator_deletes = false;     ///< of nodes
    bool directory_deletes = false;    ///< of a whole directory
    bool drops_lose = false;           ///< suspension_policy::lose
    bool hang_ups = false;             ///< time passes; servers answer handshakes of a client for a while, and hang up
    bool closed_directories = false;   ///< time passes; for a while, an ACL refuses the removal of nodes
    bool containers = false;           ///< servers remove the directory when it is empty
    bool bodies = false;               ///< who has a body under the lock, which does not end with it
    bool all_sorts_of_users = false;  ///< who commit, release in the work under the lock, or cancel in unusual ways
};

/// Many coroutines of some clients want one of some locks, over and over. All the checker's checks are made after each
/// step.
class lock_scenario {
public:
    enum class ending {
        awaited,
        cancelled_wait,
        not_awaited,
        destroyed,
        in_the_body,  ///< the work under the lock releases it
    };
    struct plan {
        std::size_t what = 0;  ///< which of the locks
        lock_kind kind = lock_kind::exclusive;
        bool patient = true;
        std::optional<std::size_t> cancel_after{};
        asio::cancellation_type how_to_cancel = asio::cancellation_type::terminal;
        std::size_t hold = 3;
        bool work = false;  ///< a body runs under the lock while it is held, and goes on when that is lost
        bool commit = false;
        ending end = ending::awaited;
        bool downgrade = false;
        std::optional<std::size_t> cancel_downgrade_after{};
    };

    /// @param locks outlives this.
    lock_scenario(simulation& s, std::span<const lock_under_test> locks, std::unique_ptr<checker> watching);
    ~lock_scenario();

    void contend(int client, plan p);
    /// Until `condition()` holds; a violation when it never does.
    void run_until(const std::function<bool()>& condition);
    bool idle() const noexcept { return active_ == 0; }  ///< nobody is asking, holding or releasing

    /// Everything at random.
    void run_at_random(const faults& f);

    /// Until nothing happens any more; then closes, and checks that nothing is left.
    void finish();

    simulation& s;

protected:
    using guard_ptr = std::shared_ptr<std::optional<lock_guard>>;

    virtual void before_random_run() {}

    const std::span<const lock_under_test> locks_;
    const std::unique_ptr<checker> watching_;

private:
    plan random_plan(const faults& f);
    void let_time_pass();
    asio::awaitable<void> attempt(int client, plan p);
    asio::awaitable<void> asking_and_holding(int client, plan p);
    asio::awaitable<bool> go_on_as_reader(int client, std::string& id, guard_ptr guard, const plan& p);
    asio::awaitable<void> commit(int client, std::string id, guard_ptr guard);
    static asio::awaitable<void> ask_for_downgrade(lock_scenario& self, client zk, std::string id, guard_ptr guard,
                                                   plan p);
    void seen(std::size_t what);
    void granted(const std::string& id, const lock_guard& guard);
    void gives_up(const std::string& id);
    void cancel_later(int client, std::size_t steps, asio::cancellation_type how, const running& what,
                      const std::string& id, const guard_ptr& got, std::shared_ptr<bool> cancelled);
    static asio::awaitable<void> ask(lock_scenario& self, client zk, std::string id, plan p, guard_ptr got,
                                     std::shared_ptr<const bool> cancelled);
    static asio::awaitable<void> work(lock_scenario& self, std::string id, std::size_t steps);
    static asio::awaitable<void> work_under(lock_scenario& self, std::string id, std::size_t steps, guard_ptr guard);
    static asio::awaitable<void> release(guard_ptr guard);
    static asio::awaitable<void> release_in_the_body(guard_ptr guard);
    asio::awaitable<void> worker(int client, std::size_t rounds, faults f);
    asio::awaitable<void> trouble(faults f);
    void delete_directory_of(const std::string& path);
    void close_directory_of(const std::string& path);
    void open_directories();
    void expect(int client, const std::string& id, std::exception_ptr failed, bool cancelled) const;

    std::size_t working_ = 0, active_ = 0;
    std::optional<passing_time> time_;  // nothing: no time passes
    bool locks_are_lost_ = false;  // an operator has deleted nodes, or a lost connection loses them, or leases end
    std::set<std::string> closed_;  // directories
    bool was_closed_ = false;
    std::set<int> expired_;  // clients
    std::map<std::string, std::size_t> asked_;  // by id: for which of the locks
};

}  // namespace zkasio::test
