#pragma once

#include <zkasio/locks/detail/queue_order.hpp>

#include <optional>
#include <string>

/// What a lock_queue has to do next. Pure: lock_queue looks at what there is, asks here, and carries it out.
namespace zkasio::lock_detail {

/// What there is.
struct queue_situation {
    std::optional<queue_order::step> head;  ///< what follows for the first of those who wait; nothing: nobody waits
    bool has_readers = false;               ///< the lock is a shared_mutex
    bool try_acquires_wait = false;         ///< some who wait were not to wait
    bool blocker_may_be_ours = false;       ///< the node in the way may turn out to be that of a contender of ours
};

/// What has to be done.
struct next_step {
    enum class what {
        nothing,  ///< nobody waits
        grant,    ///< the head owns the lock; then look again
        ask_for_listing,
        refuse_try_acquires,  ///< the head waits, and with it all behind it; then look again
        wait,
    };
    what action = what::nothing;
    // To wait:
    bool start_lease = false;             ///< the head is the next in line
    bool watch_own_node = false;          ///< the end of the predecessor's may be the grant
    const std::string* follow = nullptr;  ///< the node to watch; null: none. Valid as long as queue_situation::head
};
next_step decide_next_step(const queue_situation& s) noexcept;

/// The node that the head was waiting for is gone. Whether only a listing can tell what follows.
/// @param now what follows for the head, as far as is known. @param own_node_proven its own node is known to have been
/// there since.
bool needs_listing(queue_order::verdict now, bool has_readers, bool own_node_proven) noexcept;

}  // namespace zkasio::lock_detail
