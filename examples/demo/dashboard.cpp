#include "dashboard.hpp"

#include "report.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace demo {

std::string_view to_string(member::state s) noexcept {
    switch (s) {
        case member::state::starting: return "starting";
        case member::state::contending: return "contending";
        case member::state::holding: return "keeps the lock";
        case member::state::stopped: return "stopped";
        case member::state::killed: return "killed";
        case member::state::leaving: return "leaving";
        case member::state::ended: return "ended";
    }
    return "";
}

std::string headline(std::chrono::duration<double> elapsed, const history& all, double per_second,
                     std::int64_t queued) {
    return fmt::format("  {:5.1f} s {:>9} acquisitions {:>7.0f}/s   wait p50 {:>8}   in the queue {:>4}",
                       elapsed.count(), to_text(all.size()), per_second, to_text(all.wait_percentile(0.5)), queued);
}

std::vector<std::string> dashboard(std::string head, const std::deque<member>& members) {
    constexpr double width = 20;
    double fastest = 1;
    for (const member& m : members) fastest = std::max(fastest, m.speed.per_second());

    std::vector<std::string> lines{"", std::move(head)};
    for (const member& m : members) {
        const double speed = m.speed.per_second();
        const std::string bar(static_cast<std::size_t>(width * speed / fastest), '#');
        lines.push_back(fmt::format("  {:<10} pid {:<8}{:>8} {:>6.0f}/s  {:<20}  {}", m.name, m.child.id(),
                                    to_text(static_cast<std::size_t>(m.acquisitions)), speed, bar, to_string(m.what)));
    }
    return lines;
}

}  // namespace demo
