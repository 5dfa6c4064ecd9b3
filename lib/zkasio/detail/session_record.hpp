#pragma once

#include <zkasio/clock.hpp>
#include <zkasio/detail/lease.hpp>
#include <zkasio/detail/one_shot_state.hpp>
#include <zkasio/loss_reason.hpp>
#include <zkasio/session_local.hpp>

#include <atomic>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace zkasio::detail {

struct session_record;
struct watch_state;

/// Nodes of a session on which somebody relies, see session::hold(); or several holds of one session, see session::hold_all().
struct hold {
    struct own_node {
        std::string path;
        bool unreadable = false;             // we may not check it
        std::shared_ptr<watch_state> watch;  // set once it has been held for more than a moment, or when asked for
        bool watched = false;                // the watch has stood since without a break
    };
    std::shared_ptr<detail::session_record> session;
    std::vector<own_node> nodes;               // may be empty: then only the session matters
    std::vector<std::shared_ptr<hold>> parts;  // never changes: this ends when one of them does
    std::vector<std::weak_ptr<hold>> composites;   // strand: the holds of which this is a part
    std::atomic<loss_reason> reason{loss_reason::none};  // written on the strand, read anywhere
    std::atomic<loss_reason> told{loss_reason::none};    // written and read anywhere; `reason` follows a little later
    std::atomic<const own_node*> lost_node{nullptr};     // of this or of a part; set before `reason`, and before `told`
    one_shot_ptr lost = std::make_shared<one_shot_state>();
    bool confirmed = false;  // the lease has covered it at least once: from then on the lease's end is its end
    bool removing = false;   // its nodes are on their way out
    std::uint64_t number = 0;             // among the holds of its session
    boot_clock::time_point watch_at{};  // its key in session_record::to_watch
    one_shot_ptr renewed = std::make_shared<one_shot_state>();  // confirmed, or over

    /// Why this is over, or one of its parts; `none` when they are not. From any thread.
    loss_reason over() const noexcept {
        loss_reason why = reason.load(std::memory_order_acquire);
        if (why == loss_reason::none) why = told.load(std::memory_order_acquire);
        for (auto part = parts.begin(); part != parts.end() && why == loss_reason::none; ++part) why = (*part)->over();
        return why;
    }
};

/// One session, from the first attempt to open it to its end. Nothing of it is ever used by the next.
/// Atomics are read from any thread; the rest lives on the strand.
struct session_record {
    std::atomic<std::int64_t> session_id{0};
    std::atomic<std::int64_t> timeout_ms{0};
    std::atomic<boot_clock::rep> lease_end{0};
    std::atomic<bool> over{false};

    detail::lease lease;
    one_shot_ptr ended = std::make_shared<one_shot_state>();
    // There may be very many holds, and most turns of the strand concern none of them. By their numbers:
    std::map<std::uint64_t, std::shared_ptr<hold>> holds;
    std::map<std::uint64_t, std::shared_ptr<hold>> unconfirmed;  // those that no lease has covered yet
    std::set<std::pair<boot_clock::time_point, std::uint64_t>> to_watch;  // those whose nodes are to be watched then
    std::uint64_t last_hold = 0;                              // the latest number
    std::pair<std::uint64_t, std::size_t> next_to_check{};  // the hold, and its node, that the next heartbeat begins with
    std::unordered_map<std::string, std::weak_ptr<session_local>> locals;  // strand
    std::size_t locals_swept = 0;  // their number after the last look for those that are gone
    bool heartbeat_under_way = false;
    boot_clock::time_point last_heartbeat{};

    void add(const std::shared_ptr<hold>& h) {
        h->number = ++last_hold;
        holds.emplace(h->number, h);
        unconfirmed.emplace(h->number, h);
    }
    void drop(const std::shared_ptr<hold>& h) {
        if (holds.erase(h->number) == 0) return;
        unconfirmed.erase(h->number);
        to_watch.erase({h->watch_at, h->number});
    }
    void watch_nodes_at(hold& h, boot_clock::time_point when) {
        to_watch.erase({h.watch_at, h.number});
        if (holds.contains(h.number)) to_watch.emplace(h.watch_at = when, h.number);
    }

    boot_clock::time_point leased_until() const noexcept {
        return boot_clock::time_point(boot_clock::duration(lease_end.load(std::memory_order_acquire)));
    }
};

using session_record_ptr = std::shared_ptr<session_record>;
using hold_ptr = std::shared_ptr<hold>;

}  // namespace zkasio::detail
