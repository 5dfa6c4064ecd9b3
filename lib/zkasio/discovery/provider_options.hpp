#pragma once

#include <zkasio/clock.hpp>
#include <zkasio/discovery/pick_strategy.hpp>
#include <zkasio/discovery/service_instance.hpp>
#include <zkasio/export.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

namespace zkasio {

/// The options of a provider.
class ZKASIO_EXPORT provider_options {
public:
    provider_options() {}
    provider_options& strategy(pick_strategy s) { strategy_ = std::move(s); return *this; }
    /// If picked::report_failure() is called `failures` times for an instance within `time`, the instance is not picked
    /// for `time` from then on (2 and 30 s, as Curator's DownInstancePolicy; Curator counts the time from the first
    /// failure). 0 failures: never. Throws errc::invalid_argument for a time that is not above 0.
    provider_options& eject_after(std::uint16_t failures, any_duration time = std::chrono::seconds(30));
    /// Selects, among the enabled() instances, those that are picked at all. `filter(instance)` is called once for each
    /// state of an instance, on the client's strand. If `filter` throws, the instance is unreadable.
    provider_options& filter(std::function<bool(const service_instance&)> f) { filter_ = std::move(f); return *this; }

    const pick_strategy& strategy() const noexcept { return strategy_; }
    std::uint16_t failures() const noexcept { return failures_; }
    std::chrono::milliseconds ejection_time() const noexcept { return ejection_time_; }
    const std::function<bool(const service_instance&)>& filter() const noexcept { return filter_; }

private:
    pick_strategy strategy_ = pick_strategy::round_robin();
    std::uint16_t failures_ = 2;
    std::chrono::milliseconds ejection_time_{30'000};
    std::function<bool(const service_instance&)> filter_;
};

}  // namespace zkasio
