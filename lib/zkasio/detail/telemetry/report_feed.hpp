#pragma once

#include <zkasio/client_observer.hpp>
#include <zkasio/detail/base/strand.hpp>
#include <zkasio/detail/telemetry/statistics.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/steady_timer.hpp>

#include <cstddef>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

namespace zkasio::detail {

/// Brings reports from the strand to a client_observer, which must not hold the strand up: in batches, to an executor
/// of its own. If the observer is too slow, reports are dropped, and told as dropped in their place. On the strand.
class report_feed : public std::enable_shared_from_this<report_feed> {
public:
    using report = std::variant<operation_report, session_event, lock_wait_report, lock_hold_report,
                                commit_report, delivery_report, barrier_report, lock_stop_report>;

    report_feed(strand_type strand, std::shared_ptr<client_observer> to, asio::any_io_executor where,
                counter& dropped);

    template <class Report>
    void add(Report&& r) {
        if (has_room()) {
            batch_.emplace_back(std::forward<Report>(r));
            batch_bytes_ += size_of(batch_.back());
            added();
        }
    }
    /// Hands the batch over now, and does not wait for more reports.
    void hand_over() noexcept;
    /// From now on all is handed over at once: the client has closed, and its loop need not run for much longer.
    void finish() noexcept;

private:
    struct audience;
    static constexpr std::size_t most_waiting = 65'536;
    static constexpr std::size_t most_waiting_bytes = 32 * 1024 * 1024;  // paths may be long
    static constexpr std::size_t most_together = 1000;

    static std::size_t size_of(const report& r) noexcept;
    bool has_room();
    void added();
    void hand_over_soon();
    void drop(std::size_t how_many) noexcept;

    strand_type strand_;
    std::shared_ptr<audience> audience_;
    counter& dropped_;  // client_stats::reports_dropped
    asio::steady_timer timer_;
    bool armed_ = false, finished_ = false;
    std::size_t untold_ = 0;  // reports dropped since the last batch, and before those of this batch
    std::vector<report> batch_;
    std::size_t batch_bytes_ = 0;
    std::size_t last_size_ = 0;  // of a batch that was handed over
};

}  // namespace zkasio::detail
