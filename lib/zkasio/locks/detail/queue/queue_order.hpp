#pragma once

#include <zkasio/locks/detail/queue/queue_names.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zkasio::lock_detail {

struct contender;
using contender_ptr = std::shared_ptr<contender>;

/// One session's knowledge of the queue of one lock, and its consequences. Pure: no input, no output, no waiting.
///
/// Contenders are local (of this session: their arrivals and departures are known) or remote (known from listings).
/// Sequence numbers of one directory are consecutive, so the knowledge of one listing extends to every local contender
/// right behind the known ones: no other contender can stand between them.
///
/// A contender is granted the lock only if no contender ahead of it excludes it; a later contender is never granted the
/// lock before an earlier one. So among the local waiters only the first, the head, needs to be looked after. G1, G2
/// ... are the rules in docs/lock-queue.md.
class queue_order {
public:
    /// @param names has to outlive this.
    explicit queue_order(const queue_names& names) : names_(&names) {}

    // ------------------------------------------------------------------------------------------- our own
    /// A create is about to be sent. Returns its time, for enter().
    std::uint64_t begin_create() noexcept { return ++time_; }
    /// A create was carried out at an unknown earlier time. Discards the knowledge of the remote contenders, as
    /// discard_listings() does. Returns the time for enter().
    std::uint64_t hear_of_create();
    /// A node of this session was created. `name` has to stay valid until departed(). Throws as queue_names::parse().
    /// @param asked when its create was sent, at the earliest; not given: it is not known.
    queue_key enter(std::string_view name, contender_ptr who, std::uint64_t asked = ~std::uint64_t{0});
    /// The removal of the contender's node was sent, or is just being sent. A session's requests are served in order:
    /// for every later request the node is gone. The contender is departing until departed().
    void leave(const queue_key& p);
    /// The removal was answered, see leave().
    void departed(const queue_key& p);
    /// Another client has removed the node.
    void node_deleted(const queue_key& p);
    void grant(const queue_key& p);
    /// The owner at `p` goes on as `who`, which shares the lock: the node `name`, at the same place, has replaced the
    /// owner's node.
    queue_key downgrade(const queue_key& p, std::string_view name, contender_ptr who);

    /// The first waiter; null when there is none.
    contender_ptr head() const;
    /// The first owner of this session, in the order of the queue; null if this session does not own the lock.
    contender_ptr first_owner() const;
    std::vector<contender_ptr> waiting() const;
    bool any_waiting() const noexcept { return !waiting_.empty(); }
    /// Whether one of our owners excludes a newcomer.
    bool any_owner_excludes(lock_kind newcomer) const {
        return any_owner_excludes(newcomer, [](const contender&) { return true; });
    }
    /// Whether one of our owners for which `claim(owner)` holds excludes a newcomer.
    template <class Claim>
    bool any_owner_excludes(lock_kind newcomer, Claim claim) const {
        if (newcomer == lock_kind::shared && exclusive_owners_ == 0) return false;
        return std::any_of(owners_.begin(), owners_.end(), [&](const auto& o) {
            return (newcomer == lock_kind::exclusive || o.first.kind == lock_kind::exclusive) && claim(*o.second.who);
        });
    }
    /// No listing can be had that would show whether the doubted owners were granted the lock rightly. Returns these
    /// owners, which have lost the lock (G27), and ends the doubt.
    std::vector<contender_ptr> take_doubted_owners();
    std::vector<contender_ptr> clear();
    /// The known contenders, without the departing ones.
    std::size_t size() const noexcept { return waiting_.size() + owners_.size() + remotes_.size(); }
    bool empty() const noexcept { return waiting_.empty() && owners_.empty(); }
    /// Whether a contender of this session, already in the queue, excludes a newcomer.
    bool excludes(lock_kind newcomer) const noexcept;

    // ----------------------------------------------------------------------------------------- the others
    /// A listing is about to be sent. Returns its number, for listed().
    std::uint64_t begin_listing() noexcept { return ++time_; }
    /// Contenders of this session that a listing shows without a node, or behind a remote contender.
    struct findings {
        std::vector<contender_ptr> missing;    ///< contenders whose node is not listed
        std::vector<contender_ptr> overtaken;  ///< doubted owners, behind a remote contender that excludes them
    };
    /// A listing was answered. Throws as queue_names::parse().
    findings listed(const std::vector<std::string>& names, std::uint64_t number_of_listing);
    /// The node of a remote contender is gone.
    void removed(const std::string& name);
    /// Discards the knowledge of the remote contenders, also that from listings that were sent before this call.
    void discard_listings();
    /// As discard_listings(), but only for knowledge from listings that were sent before `time`, see begin_create().
    void discard_listings_before(std::uint64_t time);
    /// Whether all contenders ahead of this place are known.
    bool knows(const queue_key& p) const noexcept { return horizon_ && p.number <= *horizon_; }
    /// The owners of this session may have been granted the lock wrongly: only a new listing can tell.
    void doubt_owners();
    bool owners_doubted() const noexcept { return owners_doubted_; }
    /// The latest listing shows a departing contender ahead of all waiters: until the removal of its node is answered,
    /// another listing would tell no more.
    bool waits_for_departure() const noexcept { return departing_shown_; }

    // ---------------------------------------------------------------------------------------- what follows
    enum class verdict {
        granted,  ///< no contender is in the way of the head
        unknown,  ///< only a new listing can tell
        local,    ///< an owner of this session is in the way
        remote,   ///< remote contenders are in the way: `blockers`
    };
    struct step {
        verdict what;
        /// remote: the names of all remote contenders' nodes that are in the way, or only the nearest one's if there
        /// are more than `most_followed`. The nearest is the first.
        std::vector<std::string> blockers{};
        /// remote: `blockers` are all.
        bool all = false;
    };
    /// How many nodes are worth a watch each, which saves a listing.
    static constexpr std::size_t most_followed = 4;
    /// The verdict for the head, which has to exist.
    step next() const;
    /// The names of the remote contenders' nodes behind the head that will be in the way of later heads: the first
    /// `most` of these, as long as each head has not more than `most_followed` in its way. The head has to exist.
    std::vector<std::string> next_blockers(std::size_t most) const;

    struct insight {
        std::size_t position;     ///< contenders ahead, as far as is known
        std::string predecessor;  ///< the name of the next one ahead; empty when there is none
        bool known;               ///< all contenders ahead are known: no listing is needed
    };
    insight look_at(const queue_key& p) const { return look_at(std::vector<queue_key>(1, p)).front(); }
    /// The insight for each place in `sorted`, which is in ascending order.
    std::vector<insight> look_at(const std::vector<queue_key>& sorted) const;

    /// The number from which on the results of look_at() may have changed since told(); nothing: no change.
    std::optional<std::int64_t> changed_from() const noexcept { return changed_from_; }
    void told() noexcept { changed_from_.reset(); }
    void changed(std::int64_t from) noexcept { changed_from_ = changed_from_ ? std::min(*changed_from_, from) : from; }

private:
    struct local {
        contender_ptr who;
        std::string_view name;
        std::uint64_t since = 0;    // its create was sent no later: listings with larger numbers have to show the node
        std::uint64_t seen = 0;     // the number of the last listing that showed the node
        std::uint64_t granted = 0;  // time_ when the contender became an owner
    };
    struct remote {
        std::int64_t number;
        lock_kind kind;
        std::shared_ptr<const std::string> name;  // null if it is not to be followed: see near_ours()
    };
    struct departure {
        std::string_view name;
        std::uint64_t time;   // when leave() was called
        std::uint64_t since;  // as local::since
    };
    void check_invariants() const noexcept;
    std::int64_t unwrap(std::int32_t sequence);
    void discard_remotes();
    bool present_since(std::uint64_t time) const;
    bool left_since(std::uint64_t time) const;
    bool numbers_begin_anew(std::int64_t number, std::uint64_t asked) const;
    void forget_departing(std::int64_t number, std::uint64_t asked);
    bool ours(std::int64_t number) const;
    void extend();
    std::vector<remote>::const_iterator remotes_ahead_of(std::int64_t number) const;
    void erase_remote(std::int64_t number, std::string_view name);
    std::vector<contender_ptr> overtaken(std::uint64_t number_of_listing) const;
    bool near_ours(std::int64_t number, std::optional<std::int64_t> too_far) const;
    local* find(std::int64_t number, const std::string& name);
    const std::pair<const queue_key, departure>* find_departing(std::int64_t number, const std::string& name) const;

    const queue_names* names_;
    std::map<queue_key, local> waiting_, owners_;
    std::size_t exclusive_waiting_ = 0, exclusive_owners_ = 0;
    std::map<queue_key, departure> departing_;
    std::set<std::uint64_t> departed_at_;  // departure::time of all in `departing_`
    std::vector<remote> remotes_;          // in the order of their numbers; there may be very many
    std::optional<std::int64_t> horizon_;  // up to this number every node is known
    bool departing_shown_ = false;         // see waits_for_departure()
    bool owners_doubted_ = false;
    std::optional<std::int64_t> changed_from_;
    std::optional<std::int64_t> base_;  // the largest number seen, see unwrap()
    std::uint64_t known_since_ = 0;     // the number of the listing that `remotes_` is from
    std::uint64_t first_listing_ = 0;   // listings with smaller numbers tell nothing of remote contenders
    std::uint64_t time_ = 0;            // counts what was sent: creates, listings, removals
    std::uint32_t next_id_ = 0;
};

}  // namespace zkasio::lock_detail
