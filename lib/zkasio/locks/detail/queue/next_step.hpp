#pragma once

#include <zkasio/locks/detail/queue/queue_order.hpp>

#include <optional>
#include <string>

/// The next step of a lock_queue. Pure: lock_queue collects the situation, asks for the step, and carries it out.
namespace zkasio::lock_detail {

/// The facts that the next step depends on.
struct queue_situation {
    std::optional<queue_order::step> head;  ///< the verdict for the first waiting contender; empty: no contender waits
    bool has_readers = false;               ///< the lock is a shared_mutex
    bool try_acquires_wait = false;         ///< some waiting contenders give up if they have to wait
    bool blocker_may_be_ours = false;       ///< the node in the way may turn out to be one of this session
};

/// The next step.
struct next_step {
    enum class what {
        nothing,  ///< no contender waits
        grant,    ///< the head owns the lock; then decide again
        ask_for_listing,
        refuse_try_acquires,  ///< the head waits, and with it all contenders behind it; then decide again
        wait,
    };
    what action = what::nothing;
    // Only for `wait`:
    bool start_lease = false;             ///< the head is the next in line
    bool watch_own_node = false;          ///< the end of the predecessor's node may be the grant
    const std::string* follow = nullptr;  ///< the node to watch; null: none. Valid as long as queue_situation::head
};
next_step decide_next_step(const queue_situation& s) noexcept;

/// Whether the queue has to be listed again when the head's predecessor has gone.
/// @param now what follows for the head by what the order knows. @param own_node_proven a watch proves that the head's
/// own node was there all the time.
bool needs_listing(queue_order::verdict now, bool has_readers, bool own_node_proven) noexcept;

}  // namespace zkasio::lock_detail
