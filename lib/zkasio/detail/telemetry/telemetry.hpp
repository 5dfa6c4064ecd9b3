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

/// Counts events, and tells them to the client_observer if there is one. On the strand, except where stated otherwise.
class telemetry {
public:
    telemetry(strand_type strand, const std::shared_ptr<client_observer>& observer, const asio::any_io_executor& where)
        : feed_(observer ? std::make_shared<report_feed>(std::move(strand), observer, where, counters.reports_dropped)
                         : nullptr) {}

    /// Whether there is a client_observer. From any thread.
    bool observed() const noexcept { return feed_ != nullptr; }

    /// Tells the observer that a request has ended. The caller has counted the request already.
    void operation_ended(const request& what, operation_report r) noexcept;
    void happened(const session_event& e) noexcept;
    template <class Report>
    void ended(const Report& r) noexcept {
        counters.ended(r);
        tell(r);
    }
    /// Hands over all reports, those to come too, without delay: the client is about to end.
    void hand_over() noexcept {
        if (feed_) feed_->finish();
    }

    statistics counters;  ///< get(): from any thread

private:
    template <class Report>
    void tell(Report&& r) noexcept {
        if (feed_) feed_->add(std::forward<Report>(r));
    }

    const std::shared_ptr<report_feed> feed_;  // null: there is no observer
};

}  // namespace zkasio::detail
