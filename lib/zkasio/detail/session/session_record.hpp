#pragma once

#include <zkasio/clock.hpp>
#include <zkasio/detail/requests/wait_table.hpp>
#include <zkasio/detail/session/lease.hpp>
#include <zkasio/loss_reason.hpp>
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
    // `watched`: its watch is known to be set, so that writes prove the node, too. Written on the strand, read
    // anywhere.
    std::atomic<boot_clock::rep> checked{0};
    std::atomic<bool> watched{false};
    /// See session_hold::node_checked(). From any thread.
    boot_clock::rep proven() const noexcept;
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

/// One session, from the first attempt to open it to its end. The next session never uses any part of it. Atomics are
/// read from any thread; the rest lives on the strand.
struct session_record {
    std::atomic<std::int64_t> session_id{0};
    std::atomic<std::int64_t> timeout_ms{0};
    std::atomic<boot_clock::rep> lease_end{0};
    std::atomic<boot_clock::rep> written{0};  // when the latest acknowledged write was sent
    std::atomic<bool> over{false};
    std::atomic<loss_reason> over_why{loss_reason::session_expired};  // set before `over`
    std::atomic<bool> resumed{false};  // another client had this session: client_options::resume()
    bool is_shared = false;  // on the strand: others know its credentials, and it may be another client's by now

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
    boot_clock::time_point last_hold_began = boot_clock::time_point::min();

    void add_local(const std::string& key, const std::shared_ptr<session_local>& local) {
        if (locals.size() > 2 * locals_swept + 16) {
            std::erase_if(locals, [](const auto& p) { return p.second.expired(); });
            locals_swept = locals.size();
        }
        locals.insert_or_assign(key, local);
    }
    /// The one with this key. If there is none, make(), which may call local() with other keys, makes it.
    template <class Make>
    std::shared_ptr<session_local> local(const std::string& key, const Make& make) {
        if (const auto it = locals.find(key); it != locals.end())
            if (auto found = it->second.lock()) return found;
        std::shared_ptr<session_local> made = make();
        add_local(key, made);
        return made;
    }
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
