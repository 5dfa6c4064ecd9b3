#include <zkasio/locks/detail/queue/next_step.hpp>

namespace zkasio::lock_detail {

using verdict = queue_order::verdict;

next_step decide_next_step(const queue_situation& s) noexcept {
    using what = next_step::what;
    if (!s.head) return {what::nothing};
    if (s.head->what == verdict::granted) return {what::grant};
    if (s.head->what == verdict::unknown) return {what::ask_for_listing};
    if (s.try_acquires_wait) return {what::refuse_try_acquires};  // G36: the head has to wait
    next_step step{what::wait};
    step.start_lease = s.head->what == verdict::local || s.head->last;
    if (s.head->what == verdict::remote && !s.blocker_may_be_ours) {  // G17: a node of this session is not followed
        step.follow = s.head->blocker;
        step.watch_own_node = s.head->last && !s.has_readers;  // G19: own node first
    }
    return step;
}

bool needs_listing(verdict now, bool has_readers, bool own_node_proven) noexcept {
    if (has_readers) return true;                        // G21: others may share its number
    if (now == verdict::remote) return true;             // G22: do not walk down an old listing
    return now == verdict::granted && !own_node_proven;  // G20: was its own node there?
}

}  // namespace zkasio::lock_detail
