#include <zkasio/detail/telemetry/telemetry.hpp>

#include <asio/post.hpp>
#include <asio/strand.hpp>

#include <atomic>
#include <cassert>
#include <chrono>
#include <utility>

namespace zkasio::detail {
namespace {

void tell(client_observer& to, const operation_report& r) { to.operation(r); }
void tell(client_observer& to, const session_event& r) { to.session(r); }
void tell(client_observer& to, const lock_wait_report& r) { to.lock_wait(r); }
void tell(client_observer& to, const lock_hold_report& r) { to.lock_hold(r); }
void tell(client_observer& to, const commit_report& r) { to.commit(r); }
void tell(client_observer& to, const delivery_report& r) { to.delivery(r); }
void tell(client_observer& to, const barrier_report& r) { to.barrier(r); }
void tell(client_observer& to, const lock_stop_report& r) { to.lock_stop(r); }

std::size_t text_of(const session_event& r) noexcept { return r.reason.size(); }
std::size_t text_of(const delivery_report& r) noexcept { return r.path.size() + r.item.size(); }
template <class Report>
std::size_t text_of(const Report& r) noexcept {
    return r.path.size();
}

// An observer's exceptions are dropped.
template <class F>
void ignoring_failures(F f) noexcept {
    try {
        f();
    } catch (...) {
    }
}

}  // namespace

struct report_feed::audience {
    audience(std::shared_ptr<client_observer> o, asio::any_io_executor e)
        : observer(std::move(o)), where(std::move(e)) {}

    void take(std::size_t lost, const std::vector<report>& batch, std::size_t bytes) {
        if (lost > 0) ignoring_failures([&] { observer->dropped(lost); });
        for (const report& r : batch)
            ignoring_failures([&] { std::visit([&](const auto& what) { tell(*observer, what); }, r); });
        assert(waiting >= batch.size() && waiting_bytes >= bytes);
        waiting -= batch.size();
        waiting_bytes -= bytes;
    }

    const std::shared_ptr<client_observer> observer;
    const asio::strand<asio::any_io_executor> where;
    std::atomic<std::size_t> waiting{0}, waiting_bytes{0};
};

std::size_t report_feed::size_of(const report& r) noexcept {
    return sizeof(report) + std::visit([](const auto& what) { return text_of(what); }, r);
}

report_feed::report_feed(strand_type strand, std::shared_ptr<client_observer> to, asio::any_io_executor where,
                         counter& dropped)
    : strand_(std::move(strand)),
      audience_(std::make_shared<audience>(std::move(to), std::move(where))),
      dropped_(dropped),
      timer_(strand_) {}

bool report_feed::has_room() {
    const bool few = audience_->waiting.load(std::memory_order_relaxed) + batch_.size() < most_waiting;
    const bool small = audience_->waiting_bytes.load(std::memory_order_relaxed) + batch_bytes_ < most_waiting_bytes;
    if (few && small) {
        if (batch_.empty()) batch_.reserve(last_size_);  // expects as many as last time
        return true;
    }
    // The reports of this batch precede the gap; reports after the gap belong to the next batch.
    if (!batch_.empty()) hand_over();
    drop(1);
    hand_over_soon();
    return false;
}

void report_feed::added() {
    if (finished_ || batch_.size() >= most_together) return hand_over();
    hand_over_soon();
}

void report_feed::drop(std::size_t how_many) noexcept {
    untold_ += how_many;
    dropped_.add(how_many);
}

void report_feed::hand_over_soon() {
    if (armed_) return;
    timer_.expires_after(std::chrono::milliseconds(10));
    timer_.async_wait([weak = weak_from_this()](std::error_code) {
        const auto self = weak.lock();
        if (!self) return;
        self->armed_ = false;
        // A gap alone waits until the observer has caught up: otherwise a stuck observer would get ever more gaps.
        if (self->batch_.empty() && self->untold_ > 0 && self->audience_->waiting > 0) return self->hand_over_soon();
        self->hand_over();
    });
    armed_ = true;
}

void report_feed::hand_over() noexcept {
    if (batch_.empty() && untold_ == 0) return;
    const std::size_t size = batch_.size(), bytes = std::exchange(batch_bytes_, 0), lost = std::exchange(untold_, 0);
    audience_->waiting += size;
    audience_->waiting_bytes += bytes;
    try {
        asio::post(audience_->where,
                   [to = audience_, lost, bytes, batch = std::exchange(batch_, {})] { to->take(lost, batch, bytes); });
        last_size_ = size;
    } catch (const std::exception&) {  // the user's executor takes no more: the reports are lost
        audience_->waiting -= size;
        audience_->waiting_bytes -= bytes;
        untold_ += lost;
        drop(size);
    }
}

void report_feed::finish() noexcept {
    finished_ = true;
    hand_over();
}

void telemetry::operation_ended(const request& what, operation_report r) noexcept {
    r.operation = operation_name(what);
    r.path = path_of(what);
    tell(std::move(r));
}

void telemetry::happened(const session_event& e) noexcept {
    counters.happened(e.state);
    tell(e);
}

}  // namespace zkasio::detail
