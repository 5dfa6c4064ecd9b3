#pragma once

#include "history.hpp"
#include "member.hpp"
#include "options.hpp"
#include "protocol.hpp"

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>

#include <chrono>
#include <deque>
#include <functional>
#include <string>
#include <system_error>
#include <vector>

namespace demo {

/// The worker processes of a run, and what they report.
class team {
public:
    using clock = std::chrono::steady_clock;
    using sink = std::function<void(const std::string&)>;

    /// @param say takes what is for the reader
    /// @param lost is told when a process has ended that should not have
    team(asio::io_context& io, run_options options, nodes paths, sink say, sink lost)
        : io_(io),
          options_(std::move(options)),
          nodes_(std::move(paths)),
          say_(std::move(say)),
          lost_(std::move(lost)),
          news_(io) {}

    /// *Completes when* the process runs and has a session; throws std::runtime_error if that takes too long.
    asio::awaitable<member*> start(std::string name);
    void go(member& m);

    /// *Completes when* a member has the lock, and keeps it.
    asio::awaitable<member*> a_holder();

    /// *Completes when* all have contended for another lock of this kind for that long, with nothing to do under it.
    /// Returns how often one of them got it.
    asio::awaitable<std::int64_t> race(std::string_view kind, std::chrono::seconds time);

    /// *Completes when* all have left the queue and ended, as they were asked to.
    asio::awaitable<void> end();
    /// *Completes when* there is no process any more, in whatever state they were.
    asio::awaitable<void> put_down();

    /// Waits, looking again whenever a worker has said something. False: it did not come true in time. One at a time.
    template <class Condition>
    asio::awaitable<bool> until(Condition holds, clock::time_point limit) {
        while (!holds()) {
            if (clock::now() >= limit) co_return false;
            std::error_code woken;
            news_.expires_at(limit);
            co_await news_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
        }
        co_return true;
    }

    std::deque<member>& members() noexcept { return members_; }
    const history& acquisitions() const noexcept { return history_; }
    const std::vector<std::string>& violations() const noexcept { return violations_; }

private:
    asio::awaitable<void> listen(member* m);
    void on_message(member& m, const message& said);
    bool all_over() const;

    asio::io_context& io_;
    run_options options_;
    nodes nodes_;
    sink say_, lost_;
    asio::steady_timer news_;
    std::deque<member> members_;
    history history_;
    std::vector<std::string> violations_;
    bool put_down_ = false;
};

}  // namespace demo
