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
    for (std::size_t i = 0; i < h.counts.size(); ++i) h.counts[i] = counts_[i].get();
    h.sum = std::chrono::nanoseconds(sum_.get());
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
    held_.set(held_.get() - 1);
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
    s.locks.granted = granted_.get();
    s.locks.refused = refused_.get();
    s.locks.failed = failed_.get();
    s.locks.handed_over_locally = local_.get();
    s.locks.handed_over_remotely = remote_.get();
    s.locks.held = held_.get();
    for (std::size_t i = 0; i < holds_ended_.size(); ++i) s.locks.ended[i] = holds_ended_[i].get();
    s.locks.waits = waits_.get();
    s.locks.holds = holds_.get();
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
    for (const multi_result& m : r.results) n += m.path.size();
    return n;
}

}  // namespace zkasio::detail
