#pragma once

#include "history.hpp"
#include "process.hpp"
#include "protocol.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace demo {

/// A worker, as the coordinator sees it.
struct member {
    enum class state { starting, contending, holding, stopped, killed, leaving, ended };

    member(asio::any_io_executor executor, std::string its_name, std::vector<std::string> arguments)
        : name(std::move(its_name)), child(std::move(executor), std::move(arguments)) {}

    std::string name;
    process child;
    state what = state::starting;
    bool over = false;  ///< its process was reaped
    std::chrono::milliseconds session_timeout{};

    std::int64_t acquisitions = 0;  ///< and commits, as reported
    std::int64_t uncertain = 0;     ///< commits whose answer it has not seen
    rate speed;
    std::optional<std::int64_t> raced;  ///< how often it got the lock of the race that has just ended

    std::int64_t held_token = 0;  ///< while it keeps the lock on our demand
    /// What happened then; empty: nothing yet.
    std::string body_cancelled, commit_refused, server_refused, accepted;
};

std::string_view to_string(member::state s) noexcept;

}  // namespace demo
