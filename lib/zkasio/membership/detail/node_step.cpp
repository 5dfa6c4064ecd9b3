#include <zkasio/membership/detail/node_step.hpp>

#include <algorithm>
#include <limits>

namespace zkasio::membership_detail {
namespace {

// Containers and nodes with a time to live have an "owner" that is no session (EphemeralType of the servers).
bool ends_with_a_session(const node_stat& node) noexcept {
    constexpr std::int64_t container = std::numeric_limits<std::int64_t>::min();
    const bool is_extended = static_cast<std::uint64_t>(node.ephemeral_owner) >> 56 == 0xff;
    return node.ephemeral_owner != 0 && node.ephemeral_owner != container && !is_extended;
}

}  // namespace

// EphemeralType.TTL of the servers: 0xff, two bytes of zero for the type, and the time.
std::chrono::milliseconds time_to_live(const node_stat& node) noexcept {
    const auto owner = static_cast<std::uint64_t>(node.ephemeral_owner);
    const bool has_one = owner >> 40 == 0xff0000;
    return std::chrono::milliseconds(has_one ? owner & 0xff'ffff'ffff : 0);
}

bool is_ours(const node_stat& seen, const node_facts& facts) noexcept {
    if (is_ephemeral(facts.mode)) return seen.ephemeral_owner == facts.session_id;
    return !ends_with_a_session(seen) && (facts.outcome_unknown || seen.czxid == facts.created_by);
}

node_step next_step(const std::optional<node_stat>& seen, const node_facts& facts) {
    if (!seen) return node_step::create;
    const auto& former = facts.former_sessions;
    if (ends_with_a_session(*seen) && std::find(former.begin(), former.end(), seen->ephemeral_owner) != former.end())
        return node_step::remove;
    const bool can_be_taken_over = !is_ephemeral(facts.mode) && !is_sequential(facts.mode);
    if (!is_ours(*seen, facts) && (!can_be_taken_over || ends_with_a_session(*seen)))
        return is_sequential(facts.mode) ? node_step::new_name : node_step::wait_until_gone;
    return seen->czxid != facts.created_by || facts.has_new_data ? node_step::write_data : node_step::stay;
}

}  // namespace zkasio::membership_detail
