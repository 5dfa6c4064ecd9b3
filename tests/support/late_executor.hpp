#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/execution.hpp>
#include <asio/execution_context.hpp>

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace zkasio::test {

/// The handlers that were posted to one late_executor and have not run yet. For one thread only.
class late_handlers {
public:
    late_handlers() = default;
    ~late_handlers() { close(); }
    late_handlers(const late_handlers&) = delete;
    late_handlers& operator=(const late_handlers&) = delete;

    std::size_t size() const noexcept { return waiting_.size(); }
    /// Runs the handler that waits for the longest time. False: none waits.
    bool run_one() {
        if (waiting_.empty()) return false;
        const std::unique_ptr<handler> next = std::move(waiting_.front());
        waiting_.pop_front();
        next->run();
        return true;
    }
    /// Runs the handlers in the order in which they were posted, and those that they post.
    void run() {
        while (run_one()) {
        }
    }
    /// Destroys all handlers, and from now on each one that is posted.
    void close() {
        closed_ = true;
        while (!waiting_.empty()) waiting_.pop_front();
    }

    std::function<void()> on_posted = [] {};

private:
    friend class late_executor;
    struct handler {
        virtual ~handler() = default;
        virtual void run() = 0;
    };
    template <class F>
    struct handler_of final : handler {
        explicit handler_of(F function) : f(std::move(function)) {}
        void run() override { std::move(f)(); }
        F f;
    };
    template <class F>
    void post(F&& f) {
        if (closed_) return;
        waiting_.push_back(std::make_unique<handler_of<std::decay_t<F>>>(std::forward<F>(f)));
        on_posted();
    }

    std::deque<std::unique_ptr<handler>> waiting_;
    bool closed_ = false;
};

/// An executor that is busy with other work, as a thread of a server may be: its handlers wait in late_handlers until
/// the test runs them.
class late_executor {
public:
    /// @param context outlives all copies of this: timers of this executor are the context's.
    late_executor(asio::execution_context& context, std::shared_ptr<late_handlers> handlers)
        : context_(&context), handlers_(std::move(handlers)) {}

    asio::execution_context& query(asio::execution::context_t) const noexcept { return *context_; }
    late_executor require(asio::execution::blocking_t::never_t) const noexcept { return *this; }
    template <class F>
    void execute(F&& f) const {
        handlers_->post(std::forward<F>(f));
    }
    bool operator==(const late_executor& other) const noexcept { return handlers_ == other.handlers_; }
    bool operator!=(const late_executor& other) const noexcept { return handlers_ != other.handlers_; }

private:
    asio::execution_context* context_;
    std::shared_ptr<late_handlers> handlers_;
};

}  // namespace zkasio::test
