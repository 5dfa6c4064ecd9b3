#include <zkasio/membership/detail/node_step.hpp>

#include <algorithm>

namespace zkasio::membership_detail {

bool is_ours(const node_stat& seen, const node_facts& facts) noexcept {
    if (is_ephemeral(facts.mode)) return seen.ephemeral_owner == facts.session_id;
    return !seen.is_ephemeral() && (facts.outcome_unknown || seen.czxid == facts.created_by);
}

node_step next_step(const std::optional<node_stat>& seen, const node_facts& facts) {
    if (!seen) return node_step::create;
    const auto& former = facts.former_sessions;
    if (seen->is_ephemeral() && std::find(former.begin(), former.end(), seen->ephemeral_owner) != former.end())
        return node_step::remove;
    const bool can_be_taken_over = !is_ephemeral(facts.mode) && !is_sequential(facts.mode);
    if (!is_ours(*seen, facts) && (!can_be_taken_over || seen->is_ephemeral()))
        return is_sequential(facts.mode) ? node_step::new_name : node_step::wait_until_gone;
    return seen->czxid != facts.created_by || facts.has_new_data ? node_step::write_data : node_step::stay;
}

}  // namespace zkasio::membership_detail
