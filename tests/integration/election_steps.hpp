#pragma once

#include "support/lock_checks.hpp"
#include "support/test_client.hpp"

#include <zkasio/election/leader_election.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zkasio::test {

/// Stands for election in a coroutine of its own, and keeps the leadership.
class campaigner {
public:
    campaigner(asio::any_io_executor executor, leader_election election)
        : leader_(std::make_shared<std::optional<leadership>>()),
          running_(executor, keep(std::move(election), leader_)) {}

    bool elected() const { return leader_->has_value(); }
    bool leads() const { return elected() && (*leader_)->held(); }
    leadership& leader() const { return leader_->value(); }
    void cancel() { running_.cancel(); }
    asio::awaitable<std::error_code> code() const { return running_.code(); }
    /// Waits; fails with what campaign() has failed with.
    asio::awaitable<void> until_elected() const {
        const std::exception_ptr failed = co_await running_.end();
        if (failed) std::rethrow_exception(failed);
    }

private:
    static asio::awaitable<void> keep(leader_election election, std::shared_ptr<std::optional<leadership>> leader) {
        leadership elected = co_await election.campaign();
        leader->emplace(std::move(elected));
    }
    std::shared_ptr<std::optional<leadership>> leader_;
    running running_;
};

inline leader_election election_of(client zk, std::string path, std::string id = "somebody") {
    leader_election_options options;
    options.id(std::move(id));
    return {std::move(zk), std::move(path), std::move(options)};
}

inline asio::awaitable<void> for_ever() {
    asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
    co_await never.async_wait(asio::use_awaitable);
}

/// The data of the leader that a view tells of; "-" for none.
inline std::string data_in(const leader_view& view) {
    if (view.state != leader_state::leader) return std::string(to_string(view.state));
    return view.leader->data.value_or("-");
}

}  // namespace zkasio::test
