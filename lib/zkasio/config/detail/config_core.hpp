#pragma once

#include <zkasio/config/config_core.hpp>
#include <zkasio/recipe/change_event.hpp>
#include <zkasio/recipe/node_follower.hpp>
#include <zkasio/recipe/one_at_a_time.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>

namespace zkasio::config_detail {

/// Behind a config_value: gets the node's states on the client's strand, and shows the latest one on any thread.
class config_core : public std::enable_shared_from_this<config_core> {
public:
    config_core(const client& zk, std::string path, value_parser parse, std::shared_ptr<const void> fallback);

    /// Starts to listen; to be called once.
    void begin() { listen(std::nullopt); }

    const operations& on() const noexcept { return on_; }
    const std::string& path() const noexcept { return path_; }
    const node_follower& follower() const noexcept { return follower_; }

    state_ptr latest() const;
    /// Throws the error that has ended the core, if the core has ended.
    void check() const;
    /// Notified of each new state, and of the end of the core.
    change_event& changes() noexcept { return change_; }

private:
    void listen(std::optional<node_mark> known);
    void hear(const node_report& said);
    void publish(state_ptr next, std::error_code ended);

    const operations on_;
    const std::string path_;
    const value_parser parse_;
    const std::shared_ptr<const void> fallback_;
    const node_follower follower_;

    mutable std::mutex mutex_;
    state_ptr latest_;  // guarded by the mutex, as ended_
    std::error_code ended_;
    change_event change_;
};

/// The implementation of a config_changes.
class config_reader {
public:
    explicit config_reader(core_ptr c) : core(std::move(c)) {}

    const core_ptr core;
    one_at_a_time reading;
    std::uint64_t told = 0;  // the number of the last state; only the coroutine that runs next() uses it
};

}  // namespace zkasio::config_detail
