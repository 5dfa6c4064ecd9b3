#pragma once

#include "simulation/cache_plan.hpp"
#include "simulation/cache_witness.hpp"
#include "simulation/simulation.hpp"
#include "simulation/tree_history.hpp"
#include "simulation/tree_writer.hpp"

#include "support/test_client.hpp"

#include <zkasio/cache/cache.hpp>
#include <zkasio/cache/streams.hpp>

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace zkasio::test {

/// What happens in a random run, besides changes of the tree.
struct cache_faults {
    bool drops = false;
    bool expiries = false;
    bool outages = false;  ///< of some length; drops are over with the next step of that client
    bool stops = false;    ///< of the processes
    int throttled = 0;     ///< percent of the requests
};

/// Caches and streams of some clients follow a tree that changes, come and go, and are looked at after each step.
class cache_scenario {
public:
    explicit cache_scenario(simulation& s);
    ~cache_scenario();

    void run_at_random(const cache_faults& f);

private:
    struct followed_cache;
    struct reader {
        reader(followed_cache& c, cache_witness w) : of(c), witness(std::move(w)) {}
        followed_cache& of;
        cache_witness witness;
        bool waits = false;
        std::optional<cache_update> last;
    };
    struct followed_cache {
        followed_cache(int n, int c, std::size_t r, cache_witness w)
            : number(n), client(c), remembered(r), witness(std::move(w)) {}
        const int number, client;
        const std::size_t remembered;
        cache_witness witness;  // of its snapshots
        std::shared_ptr<const cache> what;
        std::list<reader> readers;
        bool ready = false, leaving = false, closed = false;  // leaving: who closes it may be late
    };
    struct followed_stream {
        followed_stream(int c, std::string p, told_history t) : client(c), path(std::move(p)), told(std::move(t)) {}
        const int client;
        const std::string path;
        told_history told;
        std::optional<value_stream> values;  // one of the two
        std::optional<children_stream> children;
        std::optional<node_stat> last;
        bool waits = false, any = false, leaving = false, closed = false;
    };
    struct kept_view {
        tree_view view;
        std::map<std::string, std::pair<node_stat, std::string>> nodes;
    };

    void begin(const cache_faults& f);
    void open_something(int client);
    void open_cache(int client);
    void open_stream(int client);
    void close_something();
    void close_all();
    asio::awaitable<void> close_client(int n);
    void left(int client);

    asio::awaitable<void> await_ready(followed_cache* c, asio::awaitable<void> ready);
    asio::awaitable<void> read(reader* r, cache_changes changes);
    asio::awaitable<void> read(followed_stream* f);
    asio::awaitable<void> close(followed_cache* c);
    asio::awaitable<void> close(followed_stream* f);
    asio::awaitable<void> come_and_go(std::size_t rounds);
    asio::awaitable<void> watch_now_and_then(int client, std::size_t rounds);
    asio::awaitable<void> trouble(cache_faults f);
    asio::awaitable<void> working(asio::awaitable<void> what);
    asio::awaitable<std::error_code> perhaps_cancelled(asio::awaitable<void> what, int percent);
    void make_trouble(const cache_faults& f, int victim);

    bool is_calm(int client) const;
    void check();
    void check(followed_cache& c);
    void check_quiet() const;
    void check_quiet(const followed_stream& f) const;
    void keep_a_view(const cache_update& update);
    void check_kept_views() const;

    simulation& s_;
    const bool by_one_watch_;
    tree_writer writer_;
    tree_history history_;
    std::list<followed_cache> caches_;
    std::list<followed_stream> streams_;
    std::vector<kept_view> kept_;
    std::map<int, int> followers_;  // of each client: those that are not closed yet
    std::set<int> careless_;        // clients of which somebody leaves watches in the background
    int working_ = 0, reading_ = 0, next_number_ = 0;
};

}  // namespace zkasio::test
