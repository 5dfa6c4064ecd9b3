#pragma once

#include <zkasio/clock.hpp>
#include <zkasio/locks/lock_claim.hpp>
#include <zkasio/recipe/one_shot_event.hpp>

#include <chrono>
#include <memory>

namespace zkasio::lock_detail {

/// Stops a body some time before the lease of its lock ends, unless the lease is renewed before: lock_guard::run() with
/// a stop margin.
class lease_alarm {
public:
    /// @param margin above 0.
    lease_alarm(std::shared_ptr<lock_claim> claim, std::chrono::nanoseconds margin);
    lease_alarm(const lease_alarm&) = delete;
    lease_alarm& operator=(const lease_alarm&) = delete;
    ~lease_alarm();

    /// Fired when the lease has no more than the margin left.
    const one_shot_event& stop() const noexcept;
    /// Whether stop() has been fired. From any thread.
    bool stopped() const noexcept;
    /// Reports that the body has ended, which stop() had stopped.
    void report() const noexcept;

private:
    struct state;
    std::shared_ptr<state> state_;
};

}  // namespace zkasio::lock_detail
