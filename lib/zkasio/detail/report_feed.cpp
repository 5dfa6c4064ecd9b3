#include <zkasio/detail/report_feed.hpp>

#include <asio/post.hpp>
#include <asio/strand.hpp>

#include <atomic>
#include <chrono>
#include <utility>

namespace zkasio::detail {
namespace {

void tell(client_observer& to, const operation_report& r) { to.operation(r); }
void tell(client_observer& to, const session_event& r) { to.session(r); }
void tell(client_observer& to, const lock_wait_report& r) { to.lock_wait(r); }
void tell(client_observer& to, const lock_hold_report& r) { to.lock_hold(r); }

// What an observer throws is nobody's.
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

    void take(const std::vector<report>& batch, std::size_t lost) {
        for (const report& r : batch)
            ignoring_failures([&] { std::visit([&](const auto& what) { tell(*observer, what); }, r); });
        if (lost > 0) ignoring_failures([&] { observer->dropped(lost); });
        waiting -= batch.size();
    }

    const std::shared_ptr<client_observer> observer;
    const asio::strand<asio::any_io_executor> where;
    std::atomic<std::size_t> waiting{0};
};

report_feed::report_feed(strand_type strand, std::shared_ptr<client_observer> to, asio::any_io_executor where,
                         counter& dropped)
    : strand_(std::move(strand)),
      audience_(std::make_shared<audience>(std::move(to), std::move(where))),
      dropped_(dropped),
      timer_(strand_) {}

bool report_feed::has_room() noexcept {
    if (audience_->waiting.load(std::memory_order_relaxed) + batch_.size() < most_waiting) return true;
    ++untold_;
    dropped_.add();
    return false;
}

void report_feed::added() {
    if (batch_.size() >= most_together) return hand_over();
    if (armed_) return;
    timer_.expires_after(std::chrono::milliseconds(10));
    timer_.async_wait([weak = weak_from_this()](std::error_code) {
        const auto self = weak.lock();
        if (!self) return;
        self->armed_ = false;
        self->hand_over();
    });
    armed_ = true;
}

void report_feed::hand_over() noexcept {
    if (batch_.empty() && untold_ == 0) return;
    try {
        const std::size_t n = batch_.size();
        audience_->waiting += n;
        asio::post(audience_->where, [to = audience_, batch = std::exchange(batch_, {}),
                                      lost = std::exchange(untold_, 0)] { to->take(batch, lost); });
        batch_.reserve(n);  // as busy as before
    } catch (...) {
        // No memory.
    }
}

}  // namespace zkasio::detail
