#pragma once

#include <zkasio/detail/telemetry/report_feed.hpp>
#include <zkasio/detail/telemetry/statistics.hpp>

#include <memory>
#include <string>
#include <utility>

namespace zkasio::detail {

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
