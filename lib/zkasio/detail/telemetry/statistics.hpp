#pragma once

#include <zkasio/client_observer.hpp>
#include <zkasio/client_stats.hpp>
#include <zkasio/detail/seam/request.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <variant>

namespace zkasio::detail {

/// Written on the strand alone, hence without a locked instruction; read on any thread. Of two counters, a reader that
/// reads the one that is written last first sees all that was written to the other one before.
class counter {
public:
    void add(std::uint64_t n = 1) noexcept { set(value_.load(std::memory_order_relaxed) + n); }
    void drop_one() noexcept {
        if (get() > 0) set(get() - 1);
    }
    void set(std::uint64_t n) noexcept { value_.store(n, std::memory_order_release); }
    std::uint64_t get() const noexcept { return value_.load(std::memory_order_acquire); }

private:
    std::atomic<std::uint64_t> value_{0};
};

/// Takes memory from the first duration on: a client has some sixty of them, and most see none.
class histogram {
public:
    histogram() = default;
    histogram(const histogram&) = delete;
    histogram& operator=(const histogram&) = delete;
    ~histogram() { delete all_.load(std::memory_order_relaxed); }
    void add(std::chrono::nanoseconds d) noexcept {
        counters* all = all_.load(std::memory_order_relaxed);
        if (!all) all_.store(all = new counters, std::memory_order_release);
        all->counts[duration_histogram::bucket_of(d)].add();
        if (d.count() > 0) all->sum.add(static_cast<std::uint64_t>(d.count()));
    }
    duration_histogram get() const noexcept;

private:
    struct counters {
        std::array<counter, duration_histogram::size> counts;
        counter sum;
    };
    std::atomic<counters*> all_{nullptr};
};

/// The numbers of client::stats(). Counted on the strand.
class statistics {
public:
    /// @param queued the time until the request was sent, or had ended. @param on_the_wire 0: the request was not sent.
    void ended(std::size_t kind, bool failed, std::chrono::nanoseconds queued,
               std::chrono::nanoseconds on_the_wire) noexcept;
    void ended(const lock_wait_report& r) noexcept;
    void ended(const lock_hold_report& r) noexcept;
    void ended(const commit_report& r) noexcept;
    void ended(const delivery_report& r) noexcept;
    void ended(const barrier_report& r) noexcept;
    void ended(const lock_stop_report& r) noexcept;
    void happened(session_state s) noexcept;

    counter connections, connections_lost, sessions, repeated, watch_events, watches, pending,
        bytes_sent, bytes_received, reports_dropped;

    client_stats get() const;

private:
    static constexpr std::size_t kinds = std::variant_size_v<request>;
    struct operation {
        counter succeeded, failed;
        histogram in_queue, on_the_wire;
    };
    std::array<operation, kinds> operations_;
    counter granted_, refused_, failed_, local_, remote_, held_, overran_, sessions_expired_;
    std::array<counter, std::tuple_size_v<decltype(lock_stats::ended)>> holds_ended_;
    histogram waits_, holds_, stops_;

    struct commits {
        counter succeeded, not_applied, unknown, conflicts, promoted, parts;  // the failed: not_applied or unknown
        histogram times;
    };
    std::array<commits, commit_kinds> commits_;
    struct {
        counter held;
        std::array<counter, delivery_ends> ended;
        histogram waits, holds;
    } deliveries_;
    struct {
        counter entered, left, failed, lost, inside;
        histogram enters, leaves;
    } barriers_;
};

/// Bytes of an answer's content.
std::size_t size_of(const reply& r) noexcept;

}  // namespace zkasio::detail
