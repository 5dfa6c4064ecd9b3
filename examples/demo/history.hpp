#pragma once

#include "protocol.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace demo {

/// All acquisitions that the workers have reported.
class history {
public:
    void add(const acquisition& a);

    std::size_t size() const noexcept { return all_.size(); }
    std::int64_t latest_token() const noexcept { return latest_token_; }

    /// The wait that this part of the acquisitions stayed below (0.5: the median).
    std::chrono::microseconds wait_percentile(double part) const;

    /// Whether tokens rose strictly from commit to commit, in the order in which ZooKeeper has applied the commits.
    /// Returns what is wrong, or nothing.
    std::optional<std::string> disorder() const;

private:
    std::vector<acquisition> all_;  // in the order in which the reports came, which means nothing
    std::int64_t latest_token_ = 0;
};

/// How many a second, over the last second or so.
class rate {
public:
    using clock = std::chrono::steady_clock;

    void sample(clock::time_point now, std::size_t count);
    double per_second() const;

private:
    struct point {
        clock::time_point at;
        std::size_t count;
    };
    std::vector<point> points_;
};

}  // namespace demo
