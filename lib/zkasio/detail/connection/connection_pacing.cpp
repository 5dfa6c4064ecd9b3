#include <zkasio/detail/connection/connection_pacing.hpp>

#include <algorithm>
#include <chrono>

namespace zkasio::detail {

using namespace std::chrono_literals;

connection_pacing::duration connection_pacing::pause_after(int failed, int servers, double random) noexcept {
    constexpr auto within_a_round = 5ms, first_round = 25ms, longest = 1000ms;
    const int rounds = failed / servers;
    const auto doubled = first_round * (1 << std::clamp(rounds - 1, 0, 10));
    const auto base = rounds == 0 ? within_a_round : std::min<std::chrono::milliseconds>(doubled, longest);
    return std::chrono::duration_cast<duration>(base * (0.5 + random));
}

connection_pacing::duration connection_pacing::attempt_limit(duration session_timeout) const noexcept {
    const duration first = std::max<duration>(200ms, session_timeout / (3 * servers_));
    const int rounds = std::min(unanswered_handshakes_ / servers_, 10);
    return std::max(first, std::min(first * (1 << rounds), session_timeout * 2 / 3));
}

}  // namespace zkasio::detail
