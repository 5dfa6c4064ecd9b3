#include <zkasio/locks/detail/queue/next_step.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace zkasio::lock_detail {

using verdict = queue_order::verdict;

next_step decide_next_step(queue_situation s) {
    using what = next_step::what;
    if (!s.head) return {what::nothing};
    if (s.head->what == verdict::granted) return {what::grant};
    if (s.head->what == verdict::unknown) return {what::ask_for_listing};
    if (s.try_acquires_wait) return {what::refuse_try_acquires};  // G36: the head has to wait
    if (s.only_bodies_in_the_way) return {what::give_place_up};
    const bool few = s.head->what == verdict::local || s.head->all;
    next_step step{what::wait};
    step.start_lease = few;
    if (s.blocker_may_be_ours) return step;  // G17: a node of this session is not followed
    step.waits_for_remote = s.head->what == verdict::remote;
    step.watch_own_node = step.waits_for_remote && few && !s.has_readers;  // G19: own node first
    step.follow = std::move(s.head->blockers);
    if (s.has_readers)
        step.follow.resize(std::min<std::size_t>(step.follow.size(), 1));  // G21: each end makes a listing necessary
    else if (few)
        step.follow.insert(step.follow.end(), s.later.begin(), s.later.end());
    return step;
}

bool needs_listing(verdict now, bool has_readers, bool others_followed, bool own_node_proven) noexcept {
    if (has_readers) return true;                         // G21: others may share its number
    if (now == verdict::remote) return !others_followed;  // G22: do not walk down an old listing
    return now == verdict::granted && !own_node_proven;   // G20: was its own node there?
}

}  // namespace zkasio::lock_detail
