#pragma once

#include <zkasio/clock.hpp>
#include <zkasio/detail/requests/wait_table.hpp>
#include <zkasio/loss_reason.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace zkasio::detail {

struct session_record;
struct watch_state;

/// Nodes of a session on which a caller relies, see session::hold(); or several holds of one session, see
/// session::hold_all().
struct hold {
    struct own_node {
        std::string path;
        bool unreadable = false;             // no permission to check the node
        std::shared_ptr<watch_state> watch;  // null: none; otherwise asked for, and set when watch_state::is_set
    };
    std::shared_ptr<session_record> session;
    std::vector<own_node> nodes;                  // may be empty: then only the session matters
    std::vector<std::shared_ptr<hold>> parts;     // never changes: the hold ends when one of its parts does
    std::vector<std::weak_ptr<hold>> composites;  // strand: the holds of which this is a part
    std::atomic<loss_reason> reason{loss_reason::none};  // written on the strand, read anywhere
    std::atomic<loss_reason> told{loss_reason::none};    // written and read anywhere; `reason` follows a little later
    std::atomic<bool> confirmed{false};  // the lease has covered it: from then on its end is the end of the hold
    std::atomic<const own_node*> lost_node{nullptr};     // of this or of a part; set before `reason`, and before `told`
    // Of a hold on one node: when the latest heartbeat was sent that has found the node; at first when the hold began.
    // Written on the strand, read anywhere.
    std::atomic<boot_clock::rep> checked{0};
    one_shot_state lost;
    std::uint64_t number = 0;           // of this hold in its session
    boot_clock::time_point watch_at{};  // the key of this hold in session_record::to_watch
    one_shot_state renewed;             // the lease has covered it for the first time, or it is over

    /// Why this hold or one of its parts has ended; `none` when all of them are valid. From any thread.
    loss_reason over() const noexcept {
        loss_reason why = reason.load(std::memory_order_acquire);
        if (why == loss_reason::none) why = told.load(std::memory_order_acquire);
        for (auto part = parts.begin(); part != parts.end() && why == loss_reason::none; ++part) why = (*part)->over();
        return why;
    }
};

using hold_ptr = std::shared_ptr<hold>;

/// The events `lost` and `renewed` of a hold. The pointers keep all of the hold alive.
inline one_shot_ptr lost_of(const hold_ptr& h) { return one_shot_ptr(h, &h->lost); }
inline one_shot_ptr renewed_of(const hold_ptr& h) { return one_shot_ptr(h, &h->renewed); }

}  // namespace zkasio::detail
