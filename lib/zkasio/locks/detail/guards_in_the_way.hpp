#pragma once

#include <zkasio/clock.hpp>
#include <zkasio/locks/detail/running_bodies.hpp>
#include <zkasio/session.hpp>
#include <zkasio/session_local.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

namespace zkasio::lock_detail {

/// The nodes of one session's guards of one lock that has no queue of guards: of permits, and of numbers. Tells whether
/// all that an acquire waits for are guards of its own client: then its coroutine may have them itself. On the strand.
class own_guards final : public session_local {
public:
    static std::shared_ptr<own_guards> of(const session& on, const std::string& lock);

    /// @param bodies of the guard; expires with it.
    void add(const std::vector<std::string>& nodes, std::weak_ptr<running_bodies> bodies);
    /// A guard that its user has given back, if `bodies` are still those of these nodes.
    void drop(const std::vector<std::string>& nodes, const running_bodies& bodies);
    /// Whether under a guard of each of these nodes a body runs on this executor, or has begun the work there. From any
    /// thread.
    static asio::awaitable<bool> all_run_on(session on, std::string lock, std::vector<std::string> nodes,
                                            asio::any_io_executor from);
    /// Warns, once, if each of these nodes has for long been a guard's, and no body runs under it.
    void warn_if_all_of(const std::vector<std::string>& nodes, const session& on, const std::string& lock);

    void session_over(std::error_code) noexcept override {}

private:
    struct guard {
        std::string first_node;
        boot_clock::time_point since;
        std::weak_ptr<running_bodies> bodies;
    };
    std::map<std::string, guard> by_node_;
    std::size_t worth_a_look_ = 64;  // nodes; then those whose guards have gone are dropped
    bool warned_ = false;
};

/// Looks after `long_wait`, and again, at what an acquire waits for, as long as this object lives.
class guards_in_the_way {
public:
    /// @param asked when the wait has begun. @param nodes those that the acquire waits for; called on the strand.
    guards_in_the_way(session on, std::string lock, boot_clock::time_point asked,
                      std::function<std::vector<std::string>()> nodes);
    guards_in_the_way(const guards_in_the_way&) = delete;
    guards_in_the_way& operator=(const guards_in_the_way&) = delete;
    ~guards_in_the_way();

private:
    struct state;
    std::shared_ptr<state> state_;
};

}  // namespace zkasio::lock_detail
