#pragma once

#include <zkasio/detail/telemetry/report_feed.hpp>
#include <zkasio/detail/telemetry/statistics.hpp>

#include <memory>
#include <string>
#include <utility>

namespace zkasio::detail {

/// What happens is counted, and told to the client_observer if there is one. On the strand, but for what says
/// otherwise.
class telemetry {
public:
    telemetry(strand_type strand, const std::shared_ptr<client_observer>& observer, const asio::any_io_executor& where)
        : feed_(observer ? std::make_shared<report_feed>(std::move(strand), observer, where, counters.reports_dropped)
                         : nullptr) {}

    /// Whether somebody wants more than numbers. From any thread.
    bool observed() const noexcept { return feed_ != nullptr; }

    /// It is counted already.
    void operation_ended(const request& what, operation_report r) noexcept;
    void happened(const session_event& e) noexcept;
    template <class LockReport>
    void lock(const LockReport& r) noexcept {
        counters.ended(r);
        tell(r);
    }
    /// What is known, and what is still to come, is told without delay: the client is about to go.
    void hand_over() noexcept {
        if (feed_) feed_->finish();
    }

    statistics counters;  ///< get(): from any thread

private:
    template <class Report>
    void tell(Report&& r) noexcept {
        try {
            if (feed_) feed_->add(std::forward<Report>(r));
        } catch (...) {
            // Out of memory: it is not told.
        }
    }

    const std::shared_ptr<report_feed> feed_;  // null: nobody observes
};

}  // namespace zkasio::detail
