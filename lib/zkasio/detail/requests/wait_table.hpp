#pragma once

#include <zkasio/detail/base/fork_mark.hpp>
#include <zkasio/detail/requests/one_shot_state.hpp>
#include <zkasio/detail/requests/receiver.hpp>
#include <zkasio/detail/telemetry/logger.hpp>

#include <functional>
#include <memory>
#include <system_error>
#include <unordered_map>

namespace zkasio::detail {

/// The operations that wait for an event. There may be very many, and they may wait for long. On the strand.
class wait_table {
public:
    wait_table(const logger& log, const fork_mark& made_here) : log_(log), made_here_(made_here) {}

    /// `to` gets the code that `on` is fired with.
    void wait(op_id id, const one_shot_ptr& on, receiver to);

    /// The event happens: the functions given to then() are called, and all waiters complete with `code`. Once; later
    /// calls do nothing.
    void fire(const one_shot_ptr& it, std::error_code code = {});

    /// Calls `f` when `it` is fired, after the functions given earlier; at once if `it` was fired already. An exception
    /// of `f` is logged.
    void then(one_shot_state& it, std::function<void()> f);

    /// Ends one wait with operation_aborted. False: there is no wait with this id.
    bool cancel(op_id id);

    /// No event will happen from now on: a wait that begins later gets `code` at once.
    void no_more(std::error_code code) noexcept { after_the_end_ = code; }
    /// Ends all waits, except those for `but`.
    void end_all(std::error_code code, const one_shot_ptr& but);
    /// Drops all waits without completing them.
    void clear() { const auto gone = std::exchange(waits_, {}); }

    std::size_t size() const noexcept { return waits_.size(); }

private:
    struct entry {
        receiver to;
        one_shot_ptr on;
    };
    void end(op_id id, std::error_code code);

    const logger& log_;
    const fork_mark& made_here_;
    std::unordered_map<op_id, entry> waits_;
    std::error_code after_the_end_;
};

}  // namespace zkasio::detail
