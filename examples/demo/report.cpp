#include "report.hpp"

#include <fmt/format.h>

namespace demo {

void report::figure(std::string name, std::string value) { figures_.push_back({std::move(name), std::move(value)}); }

void report::check(std::string text, bool holds, std::string detail) {
    if (!holds) ++failures_;
    claims_.push_back({std::move(text), holds, std::move(detail)});
}

std::vector<std::string> report::lines() const {
    std::vector<std::string> lines{""};
    for (const row& r : figures_) lines.push_back(fmt::format("  {:<24}{}", r.name, r.value));
    lines.push_back("");
    for (const claim& c : claims_)
        lines.push_back(fmt::format("  {:<7}{:<46}{}", c.holds ? "ok" : "FAILED", c.text, c.detail));
    lines.push_back("");
    lines.push_back(passed() ? fmt::format("  all {} checks passed", claims_.size())
                             : fmt::format("  {} of {} checks FAILED", failures_, claims_.size()));
    return lines;
}

std::string to_text(std::chrono::microseconds t) {
    const double us = static_cast<double>(t.count());
    if (us < 1e3) return fmt::format("{} us", t.count());
    if (us < 1e6) return fmt::format("{:.1f} ms", us / 1e3);
    return fmt::format("{:.2f} s", us / 1e6);
}

std::string to_text(std::size_t count) {
    std::string digits = std::to_string(count);
    for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
        digits.insert(static_cast<std::size_t>(at), 1, ' ');
    return digits;
}

}  // namespace demo
