#pragma once

#include <zkasio/clock.hpp>
#include <zkasio/detail/requests/wait_table.hpp>
#include <zkasio/detail/session/hold.hpp>
#include <zkasio/detail/session/lease.hpp>
#include <zkasio/session_local.hpp>

#include <atomic>
#include <cassert>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

namespace zkasio::detail {

/// One session, from the first attempt to open it to its end. The next session never uses any part of it. Atomics are
/// read from any thread; the rest lives on the strand.
struct session_record {
    std::atomic<std::int64_t> session_id{0};
    std::atomic<std::int64_t> timeout_ms{0};
    std::atomic<boot_clock::rep> lease_end{0};
    std::atomic<bool> over{false};
    std::atomic<loss_reason> over_why{loss_reason::session_expired};  // set before `over`
    std::atomic<bool> resumed{false};  // another client had this session: client_options::resume()

    detail::lease lease;
    one_shot_ptr ended = std::make_shared<one_shot_state>();
    one_shot_ptr extended;  // fired by the next extension of the lease, or the end; null: nobody waits
    // There may be very many holds, and most turns of the strand concern none of them. By their numbers:
    std::map<std::uint64_t, hold_ptr> holds;
    std::map<std::uint64_t, hold_ptr> unconfirmed;  // no lease has covered these yet; the others end with the lease
    std::set<std::pair<boot_clock::time_point, std::uint64_t>> to_watch;  // holds whose nodes are to be watched then
    std::uint64_t last_hold = 0;                                          // the latest number
    std::pair<std::uint64_t, std::size_t>
        next_to_check{};  // the hold, and its node, that the next heartbeat begins with
    std::unordered_map<std::string, std::weak_ptr<session_local>> locals;  // on the strand, see toolbox::local()
    std::size_t locals_swept = 0;  // the number of locals after the last removal of expired ones
    // Of a resumed session, where orphans were looked for: see recipe/detail/orphans.hpp. With the czxid of the orphan
    // that was found there; 0: none, or a directory.
    std::map<std::string, std::int64_t> searched_for_orphans;
    bool heartbeat_under_way = false;
    std::set<std::uint64_t> checks_wanted;  // of these holds: the next heartbeat goes out as soon as it may
    boot_clock::time_point last_heartbeat{};

    void add(const hold_ptr& h) {
        h->number = ++last_hold;
        holds.emplace(h->number, h);
        unconfirmed.emplace(h->number, h);
        check();
    }
    void drop(const hold_ptr& h) {
        if (holds.erase(h->number) == 0) return;
        unconfirmed.erase(h->number);
        if (!checks_wanted.empty()) checks_wanted.erase(h->number);
        to_watch.erase({h->watch_at, h->number});
        check();
    }
    void watch_nodes_at(hold& h, boot_clock::time_point when) {
        to_watch.erase({h.watch_at, h.number});
        if (holds.contains(h.number)) to_watch.emplace(h.watch_at = when, h.number);
        check();
    }
    /// What is always true of the holds, except while a member function runs.
    void check() const noexcept {
        assert(unconfirmed.size() <= holds.size());
        assert(to_watch.size() <= holds.size());
        assert(holds.empty() || holds.rbegin()->first <= last_hold);
    }

    boot_clock::time_point leased_until() const noexcept {
        return boot_clock::time_point(boot_clock::duration(lease_end.load(std::memory_order_acquire)));
    }
};

using session_record_ptr = std::shared_ptr<session_record>;

}  // namespace zkasio::detail
