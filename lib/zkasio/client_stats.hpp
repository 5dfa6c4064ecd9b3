#pragma once

#include <zkasio/export.hpp>
#include <zkasio/loss_reason.hpp>
#include <zkasio/structure_reports.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace zkasio {

/// The numbers of durations by length: in buckets that end at 1 us, 2 us, 4 us ..., and one for all longer ones.
struct duration_histogram {
    static constexpr std::size_t size = 36;  ///< the last but one ends at 2^34 us, five hours
    std::array<std::uint64_t, size> counts{};
    std::chrono::nanoseconds sum{0};

    /// The end of a bucket; the last bucket has none.
    static constexpr std::chrono::nanoseconds upper_bound(std::size_t bucket) noexcept {
        return bucket + 1 < size ? std::chrono::nanoseconds(std::chrono::microseconds(std::int64_t{1} << bucket))
                                 : std::chrono::nanoseconds::max();
    }
    static constexpr std::size_t bucket_of(std::chrono::nanoseconds d) noexcept {
        const auto us = static_cast<std::uint64_t>(d.count() > 0 ? d.count() - 1 : 0) / 1000;
        return std::min(static_cast<std::size_t>(std::bit_width(us)), size - 1);
    }
    std::uint64_t count() const noexcept {
        std::uint64_t n = 0;
        for (const std::uint64_t c : counts) n += c;
        return n;
    }
    /// The end of the bucket up to which this part of all durations lies, 0 < `part` <= 1: 0.5 gives the bucket of the
    /// median. 0 if there are no durations.
    std::chrono::nanoseconds quantile(double part) const noexcept {
        const auto wanted = part * static_cast<double>(count());
        double seen = 0;
        for (std::size_t i = 0; i < size && wanted > 0; ++i)
            if ((seen += static_cast<double>(counts[i])) >= wanted) return upper_bound(i);
        return std::chrono::nanoseconds(0);
    }
};

/// The statistics of one kind of request.
struct operation_stats {
    std::string_view operation;  ///< "get", "create" ...; a literal
    std::uint64_t succeeded = 0;
    std::uint64_t failed = 0;  ///< "no such node" is a failure, too
    duration_histogram in_queue, on_the_wire;
};

struct lock_stats {
    std::uint64_t granted = 0, refused = 0, failed = 0;  ///< waits, by their end
    std::uint64_t handed_over_locally = 0, handed_over_remotely = 0;  ///< of the granted waits
    std::uint64_t held = 0;                                           ///< locks that are held now
    /// Locks that are no longer held, by loss_reason, see lost_by(); loss_reason::none: released.
    std::array<std::uint64_t, 8> ended{};
    std::uint64_t lost_by(loss_reason r) const noexcept { return ended[static_cast<std::size_t>(r)]; }
    duration_histogram waits, holds;
    /// Bodies that were stopped because the lease was about to end, from the stop to their end, see lock_stop_report.
    duration_histogram stops;
    std::uint64_t overran = 0;  ///< of these, the ones that had not ended when the lock was lost
};

/// The statistics of one kind of commit, see commit_report.
struct commit_stats {
    commit_kind kind{};
    std::uint64_t succeeded = 0;
    std::uint64_t failed = 0;
    std::uint64_t unknown = 0;    ///< of the failed ones: they may have been applied
    std::uint64_t conflicts = 0;  ///< attempts that another client was ahead of
    std::uint64_t promoted = 0;   ///< waited for the mutex of promote_to()
    std::uint64_t parts = 0;      ///< of the succeeded ones
    duration_histogram times;     ///< of all, with their pauses and waits
};

/// The claims of items of work_queues, see delivery_report.
struct delivery_stats {
    std::uint64_t held = 0;  ///< claims that this client has now
    std::array<std::uint64_t, delivery_ends> ended{};
    std::uint64_t ended_by(delivery_end e) const noexcept { return ended[static_cast<std::size_t>(e)]; }
    duration_histogram waits;  ///< of items that were claimed for the first time, by the servers' clocks
    duration_histogram holds;
};

/// The members of double_barriers, see barrier_report.
struct barrier_stats {
    std::uint64_t entered = 0, left = 0;
    std::uint64_t failed = 0;  ///< steps of both kinds
    std::uint64_t lost = 0;    ///< members that were lost while they were inside
    std::uint64_t inside = 0;  ///< now
    duration_histogram enters, leaves;
};

/// The statistics of a client, see client::stats(). Each number is correct, but the numbers are not of one moment. A
/// number that is a part of another one ("of the ...") is never larger, and `failed - unknown` never falls.
struct client_stats {
    std::vector<operation_stats> operations;  ///< of the kinds that have occurred, internal ones included
    lock_stats locks;
    std::vector<commit_stats> commits;  ///< of the kinds that have occurred
    delivery_stats deliveries;
    barrier_stats barriers;
    std::uint64_t connections = 0;        ///< established
    std::uint64_t connections_lost = 0;
    std::uint64_t sessions = 0;           ///< begun or resumed
    std::uint64_t sessions_expired = 0;
    std::uint64_t repeated = 0;           ///< requests that were sent again: their connection was lost, or a server was
                                          ///< busy
    std::uint64_t watch_events = 0;       ///< received
    std::uint64_t watches = 0;            ///< set now; watches of caches are not counted
    std::uint64_t pending = 0;            ///< requests that wait to be sent or answered
    std::uint64_t bytes_sent = 0;         ///< of requests, without the overhead of TCP
    std::uint64_t bytes_received = 0;     ///< of data, paths and names in answers
    std::uint64_t reports_dropped = 0;    ///< see client_observer::dropped()
};

}  // namespace zkasio
