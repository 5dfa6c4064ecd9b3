#pragma once

#include <zkasio/client.hpp>
#include <zkasio/detail/handles/testing_seam.hpp>
#include <zkasio/testing/detail/sim/sim_ensemble.hpp>
#include <zkasio/testing/detail/virtual_clock.hpp>

#include <asio/awaitable.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zkasio::testing_detail {

/// Drives a fake_ensemble: an event loop, the servers in memory, and a virtual time that passes whenever loop and
/// servers have nothing to do at once. The servers take one step at a time, chosen by the seed.
class driver {
public:
    using duration = std::chrono::nanoseconds;

    explicit driver(std::uint64_t seed);
    ~driver();
    driver(const driver&) = delete;
    driver& operator=(const driver&) = delete;

    // ------------------------------------------------------------------------------------------------ clients
    client add_client(asio::any_io_executor executor, client_options options);
    /// Throws errc::invalid_argument for a client that add_client() has not made.
    int number_of(const client& zk, std::string_view asked_by) const;

    // ------------------------------------------------------------------------------------------------ running
    /// Throws what `task` throws, or std::runtime_error if `task` has not ended after `limit`.
    void run(asio::awaitable<void> task, duration limit);
    void run_for(duration time);
    /// Throws std::runtime_error if something is left to do after `limit`.
    void run_dry(duration limit);
    duration now() const noexcept { return clock_.now(); }

    // ------------------------------------------------------------------------------------------------- faults
    void silence(int client);
    void let_in(int client);
    void lose_answer(int client, std::string request) { answers_to_lose_.emplace_back(client, std::move(request)); }

    /// How often the servers look for empty containers, and for nodes whose time to live has passed.
    void check_containers_every(duration d);
    void stall(duration time);

    duration step_time = std::chrono::microseconds(100);
    int loss = 0;  // percent
    std::function<void(std::string_view)> log;

    asio::io_context& context() noexcept { return io_; }
    sim_ensemble& servers() noexcept { return servers_; }
    const sim_ensemble& servers() const noexcept { return servers_; }

private:
    void drive(const std::function<bool()>& done, duration limit);
    bool loses_answer_of_next_request(int client);
    void wait(duration until_timer);
    void pass_to_next_event(duration limit);
    void hear();
    duration next_expiry() const;
    duration expiry_of(std::int64_t session, duration silent_since) const;
    void happen();
    void note_ttl_nodes(const sim_txn& txn);
    void remove_unchanged_ttl_nodes();
    void take_a_step();
    void write_down(std::string line);
    std::string state() const;

    // The order matters: handlers that are destroyed with the loop still need the servers, and the servers their clock.
    const std::uint64_t seed_;
    virtual_clock clock_;
    detail::random_engines before_;
    std::mt19937_64 random_;
    sim_ensemble servers_;
    asio::io_context io_;
    std::optional<asio::executor_work_guard<asio::io_context::executor_type>> never_out_of_work_;
    std::vector<std::weak_ptr<const void>> clients_;

    const virtual_clock::waiting wait_;
    bool running_ = false;
    std::exception_ptr failed_;
    duration until_{};
    std::string why_ended_;
    std::size_t busy_ = 0;

    duration container_check_ = std::chrono::seconds(60), containers_at_ = container_check_;
    duration step_at_ = duration::max();
    std::vector<sim_ensemble::step> steps_;
    // Sessions of which a server heard at `heard_at_`, and of the others when a server heard of them last.
    std::vector<std::int64_t> heard_now_, hearing_;
    duration heard_at_{};
    std::size_t known_sessions_ = 0;
    std::int64_t newest_session_ = 0;
    std::map<std::int64_t, duration> silent_since_;
    std::map<std::string, duration> ttl_nodes_;  // paths of nodes with a time to live, and when each was written
    std::map<int, duration> silent_until_;  // when the connection of each silent client is lost
    std::vector<std::pair<int, std::string>> answers_to_lose_;  // clients, and how the request begins
    std::deque<std::string> log_;  // the newest lines
};

}  // namespace zkasio::testing_detail
