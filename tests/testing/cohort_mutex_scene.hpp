#pragma once

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/locks/cohort_mutex.hpp>
#include <zkasio/locks/lock_guard.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/awaitable.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// What the tests of cohort_mutex over a fake_ensemble share.
namespace zkasio::test::cohort {

using testing::fake_ensemble;

inline const std::string path = "/deep/lock";

inline asio::awaitable<void> pause(fake_ensemble& e, std::chrono::nanoseconds time) {
    asio::steady_timer timer(e.get_executor(), time);
    co_await timer.async_wait(asio::use_awaitable);
}

/// So many steps of the servers.
inline asio::awaitable<void> turns(fake_ensemble& e, int n = 50) { return pause(e, n * 100us); }

/// An acquire() that runs, and its guard.
class taking {
public:
    taking(fake_ensemble& e, const lockable& from, acquire_options how = acquire_options())
        : guard_(std::make_shared<std::optional<lock_guard>>()),
          task_(e.get_executor(), take(from.acquire(std::move(how)), guard_)) {}

    bool done() const { return guard_->has_value(); }
    bool ended() const { return task_.ended(); }
    lock_guard& guard() { return **guard_; }
    void cancel() { task_.cancel(); }
    asio::awaitable<std::error_code> code() const { return task_.code(); }

private:
    static asio::awaitable<void> take(asio::awaitable<lock_guard> acquiring,
                                      std::shared_ptr<std::optional<lock_guard>> to) {
        lock_guard guard = co_await std::move(acquiring);
        to->emplace(std::move(guard));
    }
    std::shared_ptr<std::optional<lock_guard>> guard_;
    running task_;
};

/// That no two guards are held() at once, and that tokens rise with the grants.
class witness {
public:
    /// @param operators delete nodes: a holder then learns late of its loss, and another one may be told first.
    explicit witness(fake_ensemble& e, bool operators = false) : e_(e), operators_(operators) {}

    void has(const lock_guard& guard) {
        std::erase_if(guards_, [](const lock_guard* g) { return !g->held(); });
        if (guard.held() && !operators_) {
            CHECK(guards_.empty());
            CHECK(guard.token() > last_);
            last_ = std::max(last_, guard.token());
        }
        guards_.push_back(&guard);
    }
    void gives_up(const lock_guard& guard) { std::erase(guards_, &guard); }

    /// Takes and releases the lock so often. @param on: who, for order().
    asio::awaitable<void> work(const lockable& lock, int times, std::string who, std::chrono::nanoseconds time = 0s) {
        return work_with([&lock] { return lock.acquire(); }, *this, times, std::move(who), time);
    }
    int done() const { return done_; }
    const std::vector<std::string>& order() const { return order_; }
    /// As order(), where grants that follow each other are counted: "a3 b1".
    std::string runs() const {
        std::string text;
        for (std::size_t i = 0; i < order_.size();) {
            std::size_t n = 1;
            while (i + n < order_.size() && order_[i + n] == order_[i]) ++n;
            text += (text.empty() ? "" : " ") + order_[i] + std::to_string(n);
            i += n;
        }
        return text;
    }

private:
    template <class Acquire>
    static asio::awaitable<void> work_with(Acquire acquire, witness& self, int times, std::string who,
                                           std::chrono::nanoseconds time) {
        for (int i = 0; i < times; ++i) {
            lock_guard guard = co_await acquire();
            self.has(guard);
            self.order_.push_back(who);
            if (time > 0s) co_await pause(self.e_, time);
            ++self.done_;
            self.gives_up(guard);
            co_await guard.release();
        }
    }

    fake_ensemble& e_;
    const bool operators_;
    std::vector<const lock_guard*> guards_;
    fencing_token last_;
    std::vector<std::string> order_;
    int done_ = 0;
};

}  // namespace zkasio::test::cohort
