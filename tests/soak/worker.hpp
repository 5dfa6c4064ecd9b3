#pragma once

#include "history.hpp"

#include <zkasio/cache/tree_cache.hpp>
#include <zkasio/client.hpp>
#include <zkasio/locks/lock_guard.hpp>
#include <zkasio/membership/group.hpp>

#include <asio/awaitable.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/io_context.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace soak {

using asio::awaitable;

/// Where everything is on the servers.
inline const std::string root = "/soak";
inline constexpr std::size_t accounts = 5;
inline std::string account(std::size_t number) { return root + "/accounts/" + std::to_string(number); }

/// What a process sees of the others.
struct view {
    explicit view(const zkasio::client& zk);

    zkasio::tree_cache nodes;
    zkasio::group group;
    zkasio::group_observer members;
    std::optional<zkasio::group_membership> mine;
};

/// What the tasks of a process share. One thread.
struct worker {
    worker(asio::io_context& loop, zkasio::client client, history& events, std::string its_name, double pace,
           std::uint64_t seed)
        : io(loop), zk(std::move(client)), log(events), name(std::move(its_name)), rate(pace), random(seed) {}

    asio::io_context& io;
    zkasio::client zk;
    history& log;
    std::string name;
    double rate;  // of the operations: 1 is what a task does by itself
    std::mt19937_64 random;
    bool stopping = false;  // no new rounds
    int busy = 0;           // tasks that have not ended
    std::map<std::uint64_t, const zkasio::lock_guard*> held;  // by the number of the round

    // Consumers of the queues go on until these are empty: drain().
    int consumers = 0;
    bool consumers_end = false;
    std::vector<std::shared_ptr<asio::cancellation_signal>> cancel_consumers;

    std::shared_ptr<view> seen;

    bool one_in(unsigned n) { return random() % n == 0; }
    /// About this long, at random: exponentially distributed.
    std::chrono::milliseconds about(std::chrono::milliseconds mean);
    /// *Completes* after that time, or when stopping.
    awaitable<void> pause(std::chrono::milliseconds time);
    /// Between two rounds of a task.
    awaitable<void> think(std::chrono::milliseconds mean);

    /// Starts a task that ends by itself when stopping.
    void start(awaitable<void> task);
};

/// "yes", or "no" or "unknown" with the text of the error that is being handled.
std::string outcome_of_failure();

/// Notes what the tasks hold, every 100 ms: until when the leases last.
awaitable<void> watch_leases(worker& w);

// The tasks: each set, of which a process has one.
void start_locks(worker& w);
void start_elections(worker& w);
void start_structures(worker& w);
void start_views(worker& w);

/// The queues' consumers go on when all other tasks have stopped. *Completes when* the queues are empty and the
/// consumers have ended.
awaitable<void> drain(worker& w);

/// One line that tells what all processes have to see alike at the end: the tree as the cache knows it, and the group.
awaitable<std::string> what_is_seen(worker& w);

/// The holder of a round under a lock: notes the grant, holds for some time, commits, releases.
class round {
public:
    /// @param lock its name in the history. @param kind x (alone), r (reader), slot, or the number of permits.
    round(worker& w, std::string lock, std::string kind);
    ~round();
    round(const round&) = delete;
    round& operator=(const round&) = delete;

    /// The acquire has failed, or given up: to be called in the catch block, or without an exception.
    void failed();
    void granted(const zkasio::lock_guard& guard);
    /// The body is to be cancelled this time before its lease ends.
    void has_margin(std::chrono::nanoseconds margin);
    /// Holds for about `mean`, sometimes for longer than a lease, and commits in between.
    awaitable<void> hold(const zkasio::lock_guard& guard, std::chrono::milliseconds mean);
    awaitable<void> commit(const zkasio::lock_guard& guard);
    /// Before the release.
    void releasing();
    /// The body that holds the lock is cancelled. The guard is about to be destroyed.
    void cancelled();
    void released();
    /// Before and after a downgrade: the rest of the round is a reader's.
    void becomes_reader(const zkasio::lock_guard* guard);

private:
    void note(const std::string& verb, const std::string& rest = {});
    void holds_no_longer(const std::string& verb);

    worker& w_;
    const std::string lock_, kind_;
    std::uint64_t operation_;
};

}  // namespace soak
