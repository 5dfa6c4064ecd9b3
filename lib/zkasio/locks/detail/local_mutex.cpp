#include <zkasio/locks/detail/local_mutex.hpp>

#include <zkasio/locks/detail/lock_reports.hpp>
#include <zkasio/locks/detail/running_bodies.hpp>
#include <zkasio/locks/lock_claim.hpp>
#include <zkasio/error.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/dispatch.hpp>

#include <cassert>
#include <utility>

namespace zkasio::lock_detail {

struct local_mutex::claim::state {
    state(const session& on, std::string p)
        : path(std::move(p)), free(toolbox(on).make_one_shot_event()), placed(toolbox(on).make_one_shot_event()) {}

    // On the strand. `over` is written once: the claim's coroutine, on any thread, may read it afterwards.
    void tell(std::error_code why) noexcept {
        if (std::exchange(told, true)) return;
        over = why;
        since = boot_clock::now();
        free.fire();
    }

    std::string path;
    one_shot_event free;
    one_shot_event placed;            // fired when the claim is in the queue
    std::error_code over;             // read after `free` has fired
    bool told = false;                // strand
    boot_clock::time_point since{};   // strand: when the claim had the mutex
    bool first = false;               // when placed: no claim ahead but one that is leaving
    bool leaving = false;             // strand
    running_bodies bodies;            // strand
    std::shared_ptr<local_mutex> of;  // strand
    std::list<state*>::iterator at;   // strand: in its queue
};

local_mutex::claim::claim(session on, std::string path, asio::any_io_executor from)
    : on_(std::move(on)), state_(std::make_shared<state>(on_, std::move(path))) {
    asio::dispatch(on_.get_executor(), [on = on_, s = state_, from = std::move(from)] {
        s->of = std::static_pointer_cast<local_mutex>(
            toolbox(on).local("local mutex " + s->path, [] { return std::make_shared<local_mutex>(); }));
        auto& queue = s->of->queue_;
        // The first claim owns the mutex. No other claim has bodies or is leaving.
        const state* owner = queue.empty() || queue.front()->leaving ? nullptr : queue.front();
        s->first = queue.empty() || (!owner && queue.size() == 1);
        s->at = queue.insert(queue.end(), s.get());
        std::error_code refused = s->of->over_;
        if (owner && owner->bodies.on(from) && !refused) refused = errc::would_deadlock;
        if (refused || queue.size() == 1) s->tell(refused);
        s->placed.fire();
        s->of->warn_later(on);
    });
}

asio::awaitable<void> local_mutex::claim::until_acquired(std::shared_ptr<state> s) {
    try {
        co_await s->free.wait();
    } catch (...) {
        rethrow_as("acquire", s->path);
    }
    if (s->over) throw error(s->over, "acquire", s->path, s->over == errc::would_deadlock ? holds_it_already : "");
}

asio::awaitable<bool> local_mutex::claim::found_free(std::shared_ptr<state> s) {
    try {
        co_await s->placed.wait();
    } catch (...) {
        rethrow_as("acquire", s->path);
    }
    co_return s->first;
}

asio::awaitable<void> local_mutex::claim::acquired() { return until_acquired(state_); }
asio::awaitable<bool> local_mutex::claim::uncontended() { return found_free(state_); }

void local_mutex::claim::about_to_release() noexcept {
    try {
        asio::dispatch(on_.get_executor(), [s = state_] { s->leaving = true; });
    } catch (...) {
        // Out of memory: a claim that could have had the mutex soon is refused.
    }
}

void local_mutex::claim::release() noexcept {
    if (std::exchange(released_, true)) return;
    try {
        asio::dispatch(on_.get_executor(), [s = state_] {
            const auto of = std::move(s->of);
            auto& waiting = of->queue_;
            assert(of && !waiting.empty());
            waiting.erase(s->at);
            if (!waiting.empty()) waiting.front()->tell({});
        });
    } catch (...) {
        // Out of memory: no other claim gets the mutex until the session ends.
    }
}

void local_mutex::claim::body_begins(asio::any_io_executor executor) {
    asio::dispatch(on_.get_executor(), [s = state_, executor = std::move(executor)] { s->bodies.begin(executor); });
}

void local_mutex::claim::body_ends(asio::any_io_executor executor) noexcept {
    try {
        asio::dispatch(on_.get_executor(), [s = state_, executor = std::move(executor)] { s->bodies.end(executor); });
    } catch (...) {
        // Out of memory: the executor stays in the list, but nothing will ever run on it again.
    }
}

void local_mutex::warn_later(const session& on) {
    if (warning_timer_ || warned_ || over_ || queue_.size() < 2) return;
    warning_timer_.emplace(on.get_executor(), long_wait);
    warning_timer_->async_wait([on, weak = weak_from_this()](std::error_code cancelled) {
        const auto self = cancelled ? nullptr : weak.lock();
        if (!self) return;
        self->warning_timer_.reset();
        self->warn(on);
        self->warn_later(on);
    });
}

void local_mutex::warn(const session& on) {
    const claim::state* const owner = queue_.size() < 2 ? nullptr : queue_.front();
    if (!owner || owner->leaving || !owner->bodies.executors().empty()) return;
    if (boot_clock::now() - owner->since < long_wait) return;
    warned_ = true;
    warn_of_guard(on, owner->path, owner->path);
}

void local_mutex::session_over(std::error_code why) noexcept {
    over_ = why;
    warning_timer_.reset();
    for (claim::state* s : queue_) s->tell(why);
}

}  // namespace zkasio::lock_detail
