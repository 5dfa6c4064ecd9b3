#include <zkasio/detail/connection/connection_pacing.hpp>

#include <algorithm>
#include <chrono>

namespace zkasio::detail {

using namespace std::chrono_literals;

connection_pacing::duration connection_pacing::pause_after(int failed, int servers, double random) noexcept {
    constexpr auto within_a_round = 5ms, first_round = 25ms, at_most = 1000ms;
    const int rounds = failed / servers;
    const auto doubled = first_round * (1 << std::clamp(rounds - 1, 0, 10));
    const auto base = rounds == 0 ? within_a_round : std::min<std::chrono::milliseconds>(doubled, at_most);
    return std::chrono::duration_cast<duration>(base * (0.5 + random));
}

// No jitter downwards: what is promised to the servers is a rate.
connection_pacing::duration connection_pacing::doubled(int times, double random) const noexcept {
    constexpr duration first = 25ms;
    if (times == 0) return duration::zero();
    const duration of_one = std::min(first * (1 << std::min(times - 1, 10)), longest);
    return std::chrono::duration_cast<duration>(of_one / servers_ * (1 + random / 2));
}

connection_pacing::duration connection_pacing::pause_of_request(int connections, double random) noexcept {
    constexpr duration first = 50ms;
    const int doublings = std::clamp(connections - many, 0, 10);
    return std::chrono::duration_cast<duration>(std::min(first * (1 << doublings), longest) * (1 + random / 2));
}

connection_pacing::duration connection_pacing::pause(double random) const noexcept {
    return std::max(pause_after(failed_, servers_, random), doubled(useless_, random));
}

connection_pacing::duration connection_pacing::pause_after_login(double random) const noexcept {
    return std::max(pause(random), doubled(failed_logins_, random));
}

connection_pacing::duration connection_pacing::limit(duration session_timeout, int share) const noexcept {
    const duration first = std::max<duration>(200ms, session_timeout / share);
    const int rounds = std::min(unanswered_handshakes_ / servers_, 10);
    return std::max(first, std::min(first * (1 << rounds), session_timeout * 2 / 3));
}

}  // namespace zkasio::detail
