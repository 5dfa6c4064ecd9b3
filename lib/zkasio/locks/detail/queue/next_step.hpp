#pragma once

#include <zkasio/locks/detail/queue/queue_order.hpp>

#include <optional>
#include <string>
#include <vector>

/// The next step of a lock_queue. Pure: lock_queue collects the situation, asks for the step, and carries it out.
namespace zkasio::lock_detail {

/// The facts that the next step depends on.
struct queue_situation {
    std::optional<queue_order::step> head;  ///< the verdict for the first waiting contender; empty: no contender waits
    bool has_readers = false;               ///< the lock is a shared_mutex
    bool only_bodies_in_the_way = false;    ///< G40: the head waits for bodies under lost locks, and for nothing else
    bool try_acquires_wait = false;         ///< some waiting contenders give up if they have to wait
    bool blocker_may_be_ours = false;       ///< a node in the way may turn out to be one of this session
    std::vector<std::string> later{};       ///< nodes that will be in the way of later heads, and are no such node
};

/// The next step.
struct next_step {
    enum class what {
        nothing,  ///< no contender waits
        grant,    ///< the head owns the lock; then decide again
        ask_for_listing,
        refuse_try_acquires,  ///< the head waits, and with it all contenders behind it; then decide again
        give_place_up,        ///< G40: the head leaves the queue for now; then decide again
        wait,
    };
    what action = what::nothing;
    // Only for `wait`:
    bool start_lease = false;           ///< the end of the nodes in the way may be the grant
    bool watch_own_node = false;        ///< the same, and needs a proof of the head's own node
    bool waits_for_remote = false;      ///< `follow` begins with a node in the head's way
    std::vector<std::string> follow{};  ///< the nodes to watch, and no others
};
next_step decide_next_step(queue_situation s);

/// Whether the queue has to be listed again when a node has gone that was in the head's way.
/// @param now the verdict for the head by what the order knows. @param others_followed all other remote contenders in
/// the head's way are followed. @param own_node_proven a watch proves that the head's own node was there all the time.
bool needs_listing(queue_order::verdict now, bool has_readers, bool others_followed, bool own_node_proven) noexcept;

}  // namespace zkasio::lock_detail
