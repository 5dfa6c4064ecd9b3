#include "open_requests.hpp"

#include <asio/bind_cancellation_slot.hpp>
#include <asio/co_spawn.hpp>
#include <asio/post.hpp>

#include <algorithm>
#include <exception>

namespace order_server {

void open_request::start(asio::awaitable<void> answer, std::function<void()> ended) {
    auto begin = [self = shared_from_this(), answer = std::move(answer), ended = std::move(ended)]() mutable {
        if (self->cancelled_) return ended();
        auto done = [ended = std::move(ended)](std::exception_ptr) { ended(); };  // has answered with what has failed
        auto token = asio::bind_cancellation_slot(self->signal_.slot(), std::move(done));
        asio::co_spawn(self->on, std::move(answer), std::move(token));
    };
    asio::post(on, std::move(begin));
}

void open_request::cancel() {
    asio::post(on, [self = shared_from_this()] {
        self->cancelled_ = true;
        self->signal_.emit(asio::cancellation_type::terminal);
    });
}

std::shared_ptr<open_request> open_requests::begin(restinio::connection_id_t connection) {
    const std::lock_guard lock(mutex_);
    auto r = std::make_shared<open_request>(++last_, connection, executor_);
    by_number_.emplace(r->number, r);
    by_connection_.emplace(connection, r);
    return r;
}

void open_requests::end(const open_request& r) {
    std::function<void()> empty;
    {
        const std::lock_guard lock(mutex_);
        by_number_.erase(r.number);
        const auto [first, last] = by_connection_.equal_range(r.from);
        const auto found = std::find_if(first, last, [&](const auto& open) { return open.second.get() == &r; });
        if (found != last) by_connection_.erase(found);
        if (by_number_.empty()) empty = std::exchange(when_empty_, nullptr);
    }
    if (empty) empty();
}

bool open_requests::cancel(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    const auto found = by_number_.find(number);
    if (found == by_number_.end()) return false;
    found->second->cancel();
    return true;
}

void open_requests::cancel_all() {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, request] : by_number_) request->cancel();
}

std::size_t open_requests::size() const {
    const std::lock_guard lock(mutex_);
    return by_number_.size();
}

std::size_t open_requests::connections() const {
    const std::lock_guard lock(mutex_);
    return connections_.size();
}

void open_requests::when_empty(std::function<void()> f) {
    {
        const std::lock_guard lock(mutex_);
        if (!by_number_.empty()) {
            when_empty_ = std::move(f);
            return;
        }
    }
    f();
}

void open_requests::state_changed(const restinio::connection_state::notice_t& notice) noexcept {
    const std::lock_guard lock(mutex_);
    if (restinio::holds_alternative<restinio::connection_state::accepted_t>(notice.cause()))
        connections_.insert(notice.connection_id());
    if (!restinio::holds_alternative<restinio::connection_state::closed_t>(notice.cause())) return;
    connections_.erase(notice.connection_id());  // RESTinio may close it twice
    const auto [first, last] = by_connection_.equal_range(notice.connection_id());
    for (auto i = first; i != last; ++i) i->second->cancel();
}

}  // namespace order_server
