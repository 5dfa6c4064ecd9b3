#include <zkasio/detail/telemetry/statistics.hpp>

#include <cassert>
#include <string_view>
#include <utility>

namespace zkasio::detail {
namespace {

template <std::size_t... I>
constexpr std::array<std::string_view, sizeof...(I)> names_of(std::index_sequence<I...>) {
    return {std::variant_alternative_t<I, request>::name...};
}
constexpr auto operation_names = names_of(std::make_index_sequence<std::variant_size_v<request>>());

}  // namespace

duration_histogram histogram::get() const noexcept {
    duration_histogram h;
    const counters* const all = all_.load(std::memory_order_acquire);
    if (!all) return h;
    for (std::size_t i = 0; i < h.counts.size(); ++i) h.counts[i] = all->counts[i].get();
    h.sum = std::chrono::nanoseconds(all->sum.get());
    return h;
}

void statistics::ended(std::size_t kind, bool failed, std::chrono::nanoseconds queued,
                       std::chrono::nanoseconds on_the_wire) noexcept {
    operation& o = operations_[kind];
    (failed ? o.failed : o.succeeded).add();
    o.in_queue.add(queued);
    if (on_the_wire.count() > 0) o.on_the_wire.add(on_the_wire);
}

void statistics::ended(const lock_wait_report& r) noexcept {
    waits_.add(r.ended - r.asked);
    if (r.code) return failed_.add();
    if (r.refused) return refused_.add();
    granted_.add();
    held_.add();
    if (r.from == hand_over::local) local_.add();
    if (r.from == hand_over::remote) remote_.add();
}

void statistics::ended(const lock_hold_report& r) noexcept {
    holds_.add(r.ended - r.granted);
    holds_ended_[static_cast<std::size_t>(r.lost)].add();
    assert(held_.get() > 0);
    held_.drop_one();
}

void statistics::ended(const commit_report& r) noexcept {
    commits& c = commits_[static_cast<std::size_t>(r.kind)];
    c.conflicts.add(r.conflicts);
    if (r.promoted) c.promoted.add();
    c.times.add(r.ended - r.asked);
    if (r.code) return r.outcome_unknown ? c.unknown.add() : c.not_applied.add();
    c.succeeded.add();
    c.parts.add(r.parts);
    if (r.kind == commit_kind::claim) deliveries_.held.add(r.parts);
}

void statistics::ended(const delivery_report& r) noexcept {
    deliveries_.ended[static_cast<std::size_t>(r.how)].add();
    deliveries_.held.drop_one();
    deliveries_.holds.add(r.ended - r.claimed);
    if (r.waited && r.attempt == 1) deliveries_.waits.add(*r.waited);
}

void statistics::ended(const barrier_report& r) noexcept {
    if (r.code) barriers_.failed.add();
    if (r.step == barrier_step::enter) {
        barriers_.enters.add(r.ended - r.asked);
        if (r.code) return;
        barriers_.entered.add();
        return barriers_.inside.add();
    }
    barriers_.leaves.add(r.ended - r.asked);
    barriers_.inside.drop_one();
    if (r.lost != loss_reason::none) barriers_.lost.add();
    if (!r.code) barriers_.left.add();
}

void statistics::ended(const lock_stop_report& r) noexcept {
    stops_.add(r.ended - r.stopped);
    if (r.overran) overran_.add();
}

void statistics::happened(session_state s) noexcept {
    if (s == session_state::expired) sessions_expired_.add();
}

client_stats statistics::get() const {
    client_stats s;
    for (std::size_t i = 0; i < kinds; ++i) {
        const operation& o = operations_[i];
        if (o.succeeded.get() + o.failed.get() == 0) continue;
        s.operations.push_back(
            {operation_names[i], o.succeeded.get(), o.failed.get(), o.in_queue.get(), o.on_the_wire.get()});
    }
    // A part is read before its whole, which is written before: it never looks larger.
    s.locks.handed_over_locally = local_.get();
    s.locks.handed_over_remotely = remote_.get();
    s.locks.granted = granted_.get();
    s.locks.refused = refused_.get();
    s.locks.failed = failed_.get();
    s.locks.held = held_.get();
    for (std::size_t i = 0; i < holds_ended_.size(); ++i) s.locks.ended[i] = holds_ended_[i].get();
    s.locks.waits = waits_.get();
    s.locks.holds = holds_.get();
    s.locks.overran = overran_.get();
    s.locks.stops = stops_.get();
    for (std::size_t i = 0; i < commit_kinds; ++i) {
        const commits& c = commits_[i];
        const std::uint64_t succeeded = c.succeeded.get(), unknown = c.unknown.get();
        const std::uint64_t failed = c.not_applied.get() + unknown;
        if (succeeded + failed == 0) continue;
        s.commits.push_back({static_cast<commit_kind>(i), succeeded, failed, unknown, c.conflicts.get(),
                             c.promoted.get(), c.parts.get(), c.times.get()});
    }
    s.deliveries.held = deliveries_.held.get();
    for (std::size_t i = 0; i < delivery_ends; ++i) s.deliveries.ended[i] = deliveries_.ended[i].get();
    s.deliveries.waits = deliveries_.waits.get();
    s.deliveries.holds = deliveries_.holds.get();
    s.barriers = {barriers_.entered.get(), barriers_.left.get(),    barriers_.failed.get(), barriers_.lost.get(),
                  barriers_.inside.get(),  barriers_.enters.get(), barriers_.leaves.get()};
    s.connections = connections.get();
    s.connections_lost = connections_lost.get();
    s.sessions = sessions.get();
    s.sessions_expired = sessions_expired_.get();
    s.repeated = repeated.get();
    s.watch_events = watch_events.get();
    s.watches = watches.get();
    s.pending = pending.get();
    s.bytes_sent = bytes_sent.get();
    s.bytes_received = bytes_received.get();
    s.reports_dropped = reports_dropped.get();
    return s;
}

std::size_t size_of(const reply& r) noexcept {
    std::size_t n = r.data.size() + r.path.size();
    for (const std::string& name : r.children) n += name.size();
    for (const multi_result& m : r.results) {
        n += m.path.size() + m.data.size();
        for (const std::string& name : m.children) n += name.size();
    }
    return n;
}

}  // namespace zkasio::detail
