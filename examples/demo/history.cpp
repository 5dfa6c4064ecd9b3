#include "history.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace demo {

using namespace std::chrono_literals;

void history::add(const acquisition& a) {
    all_.push_back(a);
    latest_token_ = std::max(latest_token_, a.token);
}

std::chrono::microseconds history::wait_percentile(double part) const {
    if (all_.empty()) return {};
    std::vector<std::chrono::microseconds> waits;
    waits.reserve(all_.size());
    for (const acquisition& a : all_) waits.push_back(a.waited);
    const auto nth = static_cast<std::ptrdiff_t>(part * static_cast<double>(waits.size() - 1));
    std::nth_element(waits.begin(), waits.begin() + nth, waits.end());
    return waits[static_cast<std::size_t>(nth)];
}

std::optional<std::string> history::disorder() const {
    std::vector<acquisition> sorted = all_;
    std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.position < b.position; });
    for (std::size_t i = 1; i < sorted.size(); ++i) {
        const acquisition &a = sorted[i - 1], &b = sorted[i];
        if (a.position == b.position) return fmt::format("commit {} was reported twice", a.position);
        if (a.token >= b.token)
            return fmt::format("commit {} has token {}, commit {} has token {}", a.position, a.token, b.position,
                               b.token);
    }
    return std::nullopt;
}

void rate::sample(clock::time_point now, std::size_t count) {
    points_.push_back({now, count});
    while (points_.size() > 2 && now - points_[1].at >= 1s) points_.erase(points_.begin());
}

double rate::per_second() const {
    if (points_.size() < 2) return 0;
    const std::chrono::duration<double> time = points_.back().at - points_.front().at;
    return time.count() > 0 ? static_cast<double>(points_.back().count - points_.front().count) / time.count() : 0;
}

}  // namespace demo
