#pragma once

#include <zkasio/clock.hpp>
#include <zkasio/detail/requests/one_shot_state.hpp>
#include <zkasio/loss_reason.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace zkasio::detail {

struct session_record;
struct watch_state;

/// Nodes of a session on which somebody relies, see session::hold(); or several holds of one session, see
/// session::hold_all().
struct hold {
    struct own_node {
        std::string path;
        bool unreadable = false;             // we may not check it
        std::shared_ptr<watch_state> watch;  // set once it has been held for more than a moment, or when asked for
        bool watched = false;                // the watch has stood since without a break
    };
    std::shared_ptr<session_record> session;
    std::vector<own_node> nodes;                  // may be empty: then only the session matters
    std::vector<std::shared_ptr<hold>> parts;     // never changes: this ends when one of them does
    std::vector<std::weak_ptr<hold>> composites;  // strand: the holds of which this is a part
    std::atomic<loss_reason> reason{loss_reason::none};  // written on the strand, read anywhere
    std::atomic<loss_reason> told{loss_reason::none};    // written and read anywhere; `reason` follows a little later
    std::atomic<const own_node*> lost_node{nullptr};     // of this or of a part; set before `reason`, and before `told`
    one_shot_state lost;
    bool confirmed = false;  // the lease has covered it at least once: from then on the lease's end is its end
    bool removing = false;   // its nodes are on their way out
    std::uint64_t number = 0;           // among the holds of its session
    boot_clock::time_point watch_at{};  // its key in session_record::to_watch
    one_shot_state renewed;  // confirmed, or over

    /// Why this is over, or one of its parts; `none` when they are not. From any thread.
    loss_reason over() const noexcept {
        loss_reason why = reason.load(std::memory_order_acquire);
        if (why == loss_reason::none) why = told.load(std::memory_order_acquire);
        for (auto part = parts.begin(); part != parts.end() && why == loss_reason::none; ++part) why = (*part)->over();
        return why;
    }
};

using hold_ptr = std::shared_ptr<hold>;

/// Its events, which keep it alive.
inline one_shot_ptr lost_of(const hold_ptr& h) { return one_shot_ptr(h, &h->lost); }
inline one_shot_ptr renewed_of(const hold_ptr& h) { return one_shot_ptr(h, &h->renewed); }

}  // namespace zkasio::detail
