#include <zkasio/locks/detail/queue/next_step.hpp>

namespace zkasio::lock_detail {

using verdict = queue_order::verdict;

next_step decide_next_step(const queue_situation& s) noexcept {
    using what = next_step::what;
    if (!s.head) return {what::nothing};
    if (s.head->what == verdict::granted) return {what::grant};
    if (s.head->what == verdict::unknown) return {what::ask_for_listing};
    if (s.try_acquires_wait) return {what::refuse_try_acquires};  // G36
    next_step step{what::wait};
    step.start_lease = s.head->what == verdict::local || s.head->last;
    if (s.head->what == verdict::remote && !s.blocker_may_be_ours) {  // G17
        step.follow = s.head->blocker;
        step.watch_own_node = s.head->last && !s.has_readers;  // G19
    }
    return step;
}

bool needs_listing(verdict now, bool has_readers, bool own_node_proven) noexcept {
    if (has_readers) return true;                        // G21
    if (now == verdict::remote) return true;             // G22
    return now == verdict::granted && !own_node_proven;  // G20
}

}  // namespace zkasio::lock_detail
