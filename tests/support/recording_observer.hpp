#pragma once

#include <zkasio/client_observer.hpp>

#include <asio/io_context.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

namespace zkasio::test {

/// Keeps what it is told: in look(), on the thread that calls it.
class recording_observer final : public client_observer {
public:
    void operation(const operation_report& r) override { operations.push_back(r); }
    void session(const session_event& e) override { sessions.push_back(e); }
    void lock_wait(const lock_wait_report& r) override { waits.push_back(r); }
    void lock_hold(const lock_hold_report& r) override { holds.push_back(r); }
    void commit(const commit_report& r) override { commits.push_back(r); }
    void delivery(const delivery_report& r) override { deliveries.push_back(r); }
    void barrier(const barrier_report& r) override { barriers.push_back(r); }
    void lock_stop(const lock_stop_report& r) override { stops.push_back(r); }
    void dropped(std::size_t n) override { lost += n; }

    std::vector<operation_report> named(std::string_view operation) const {
        std::vector<operation_report> some;
        std::copy_if(operations.begin(), operations.end(), std::back_inserter(some),
                     [&](const operation_report& r) { return r.operation == operation; });
        return some;
    }

    /// Where it is to be called.
    asio::io_context where;
    void look() {
        where.restart();
        where.poll();
    }

    std::vector<operation_report> operations;
    std::vector<session_event> sessions;
    std::vector<lock_wait_report> waits;
    std::vector<lock_hold_report> holds;
    std::vector<commit_report> commits;
    std::vector<delivery_report> deliveries;
    std::vector<barrier_report> barriers;
    std::vector<lock_stop_report> stops;
    std::size_t lost = 0;
};

}  // namespace zkasio::test
