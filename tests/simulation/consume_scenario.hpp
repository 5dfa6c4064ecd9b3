#pragma once

#include "simulation/item_checker.hpp"
#include "simulation/passing_time.hpp"
#include "simulation/simulation.hpp"

#include "support/test_client.hpp"

#include <zkasio/error.hpp>
#include <zkasio/queues/work_queue.hpp>

#include <cstddef>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace zkasio::test {

struct consume_faults {
    bool drops = false;
    bool outages = false;     ///< of clients, up to more than their sessions live
    bool drops_lose = false;  ///< suspension_policy::lose
    bool expiries = false;    ///< sessions end before their time
    bool operator_deletes_claims = false, operator_deletes_receipts = false;
};

/// Producers put items, with and without delays, which consumers work on with work_queue::consume(); clerks look at the
/// queue, and put dead items back. When all that is over, and so are the faults, a last consumer works on what is left.
class consume_scenario {
public:
    consume_scenario(simulation& s, const consume_faults& f);
    ~consume_scenario();

    void run_at_random();

private:
    /// How an operation has ended.
    struct outcome {
        std::optional<bool> told;
        bool unknown = false, session_expired = false;
    };

    work_queue queue_of(int client) const;
    int some_client() { return static_cast<int>(s_.pick(static_cast<std::size_t>(s_.clients()))); }
    std::string new_id() { return std::to_string(++ids_); }
    void choose_options();

    asio::awaitable<void> produce(std::size_t rounds);
    asio::awaitable<void> put(int client);
    asio::awaitable<void> put_some(work_queue q, std::vector<std::string> ids, put_options how);
    asio::awaitable<void> consume();
    asio::awaitable<void> consume_once(int client, std::size_t parallel);
    asio::awaitable<void> work(int client, delivery& d);
    asio::awaitable<void> work_somehow(int client, delivery& d);
    asio::awaitable<void> keep_books(std::size_t rounds);
    asio::awaitable<void> look(work_queue q);
    asio::awaitable<void> revive(int client);
    asio::awaitable<void> revive_one(work_queue q, std::string name, std::shared_ptr<outcome> o);
    asio::awaitable<std::shared_ptr<const outcome>> perhaps_cancelled(int client, asio::awaitable<void> what,
                                                                      std::shared_ptr<outcome> o, int percent);
    void expect(const error& e, bool cancelled) const;
    asio::awaitable<void> trouble(std::size_t rounds);
    asio::awaitable<void> finish();

    simulation& s_;
    const consume_faults faults_;
    passing_time time_;
    queue_paths at_;
    work_queue_options options_;
    std::optional<item_checker> checker_;
    std::size_t ids_ = 0, working_ = 0, consuming_ = 0;
    std::list<running> consumers_;
    bool over_ = false, draining_ = false, finished_ = false;
};

}  // namespace zkasio::test
