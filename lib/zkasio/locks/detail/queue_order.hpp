#pragma once

#include <zkasio/locks/detail/queue_key.hpp>
#include <zkasio/locks/detail/queue_names.hpp>

#include <algorithm>
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

/// What one session knows of the queue of one lock, and what follows from it. Pure: no input, no output, no waiting.
///
/// Two kinds of contenders: our own ("local"), whose comings and goings we know, and the others ("remote"), of which a
/// listing tells. Sequence numbers of one directory are consecutive, so the knowledge of one listing extends to every
/// local contender that comes right behind what is known: nobody else can stand between them.
///
/// Whoever is granted the lock stands behind nobody that excludes it; a later contender is never granted the lock
/// before an earlier one. So of all local waiters only the first, the head, needs to be looked after. G1, G2 ... are
/// the rules in docs/lock-queue.md.
class queue_order {
public:
    /// @param names has to outlive this.
    explicit queue_order(const queue_names& names) : names_(&names) {}

    // ------------------------------------------------------------------------------------------- our own
    /// A create is about to be sent. Returns its time, for enter().
    std::uint64_t begin_create() noexcept { return ++time_; }
    /// A create was carried out, nobody knows how long ago. What was known counts no longer. Returns the time for
    /// enter().
    std::uint64_t hear_of_create();
    /// A node of ours was created. `name` has to stay valid until departed(). Throws as queue_names::parse().
    /// @param asked when that was sent, at the earliest.
    queue_key enter(std::string_view name, contender_ptr who, std::uint64_t asked = ~std::uint64_t{0});
    /// The removal of its node was, or is just being, sent. A session's requests are served in order: for whatever we
    /// send from now on, the node is not there any more. Until departed() the contender is departing.
    void leave(const queue_key& p);
    /// That removal was answered.
    void departed(const queue_key& p);
    /// Somebody else has removed the node.
    void node_deleted(const queue_key& p);
    void grant(const queue_key& p);
    /// An owner goes on as `who`, which shares the lock: its node has given way to the one of that name, at the same
    /// place.
    queue_key downgrade(const queue_key& p, std::string_view name, contender_ptr who);

    /// The first who waits; null when nobody does.
    contender_ptr head() const;
    /// The first of our owners; null when there is none.
    contender_ptr first_owner() const;
    std::vector<contender_ptr> waiting() const;
    /// Whether one of our owners excludes a newcomer.
    bool any_owner_excludes(lock_kind newcomer) const {
        return any_owner_excludes(newcomer, [](const contender&) { return true; });
    }
    /// The same, and `claim(owner)` holds for it.
    template <class Claim>
    bool any_owner_excludes(lock_kind newcomer, Claim claim) const {
        if (newcomer == lock_kind::shared && exclusive_owners_ == 0) return false;
        return std::any_of(owners_.begin(), owners_.end(), [&](const auto& o) {
            return (newcomer == lock_kind::exclusive || o.first.kind == lock_kind::exclusive) && claim(*o.second.who);
        });
    }
    /// No listing can be had that would show whether the doubted owners were let in rightly. They are doubted no
    /// longer: they are lost.
    std::vector<contender_ptr> take_doubted_owners();
    std::vector<contender_ptr> clear();
    /// Contenders that are known, without those who leave.
    std::size_t size() const noexcept { return waiting_.size() + owners_.size() + remotes_.size(); }
    bool empty() const noexcept { return waiting_.empty() && owners_.empty(); }
    /// Whether one of our own, there already, excludes a newcomer.
    bool excludes(lock_kind newcomer) const noexcept;

    // ----------------------------------------------------------------------------------------- the others
    /// A listing is about to be sent. Returns its number, for listed().
    std::uint64_t begin_listing() noexcept { return ++time_; }
    /// What a listing says of ours that it should not.
    struct findings {
        std::vector<contender_ptr> missing;    ///< they have no node
        std::vector<contender_ptr> overtaken;  ///< doubted owners, behind a remote contender that excludes them
    };
    /// A listing was answered. Throws as queue_names::parse().
    findings listed(const std::vector<std::string>& names, std::uint64_t number_of_listing);
    /// The node of a remote contender is gone.
    void removed(const std::string& name);
    /// What was known of the others counts no longer; nor does a listing that was sent before this.
    void forget();
    /// The same for what was asked for before that time, see begin_create().
    void forget_before(std::uint64_t time);
    /// Whether everybody ahead of this place is known.
    bool knows(const queue_key& p) const noexcept { return horizon_ && p.number <= *horizon_; }
    /// Those of ours who own the lock may have been let in wrongly: only a new listing tells.
    void doubt_owners() {
        forget();
        owners_doubted_ = !owners_.empty();
    }
    bool owners_doubted() const noexcept { return owners_doubted_; }
    /// The latest listing shows a departing contender ahead of all who wait: until its removal is answered, another
    /// listing tells no more.
    bool waits_for_departure() const noexcept { return departing_shown_; }

    // ---------------------------------------------------------------------------------------- what follows
    enum class verdict {
        granted,  ///< nobody is in the way of the head
        unknown,  ///< only a new listing can tell
        local,    ///< an owner of ours is in the way
        remote,   ///< a remote contender is in the way: `blocker`
    };
    struct step {
        verdict what;
        /// remote: the name of the nearest one's node; valid until the next change.
        const std::string* blocker = nullptr;
        /// remote: no other remote contender is in the way.
        bool last = false;
    };
    /// For the head. There has to be one.
    step next() const;

    struct insight {
        std::size_t position;     ///< contenders ahead, as far as is known
        std::string predecessor;  ///< the name of the next one ahead; empty when there is none
        bool known;               ///< no listing is needed to tell
    };
    insight look_at(const queue_key& p) const { return look_at(std::vector<queue_key>(1, p)).front(); }
    /// The same for each of these, which are in order.
    std::vector<insight> look_at(const std::vector<queue_key>& sorted) const;

    /// What look_at() says may have changed from this number on since told() was called; nothing: nowhere.
    std::optional<std::int64_t> changed_from() const noexcept { return changed_from_; }
    void told() noexcept { changed_from_.reset(); }
    void changed(std::int64_t from) noexcept { changed_from_ = changed_from_ ? std::min(*changed_from_, from) : from; }

private:
    struct local {
        contender_ptr who;
        std::string_view name;
        std::uint64_t since = 0;    // its create was sent no later: listings with larger numbers have to show the node
        std::uint64_t seen = 0;     // the number of the last listing that did
        std::uint64_t granted = 0;  // when it became an owner
    };
    struct remote {
        std::int64_t number;
        lock_kind kind;
        std::string name;
    };
    struct departure {
        std::string_view name;
        std::uint64_t time;   // of leave()
        std::uint64_t since;  // as of local
    };
    std::int64_t unwrap(std::int32_t sequence);
    void drop();
    bool present_since(std::uint64_t time) const;
    bool left_since(std::uint64_t time) const;
    bool numbers_begin_anew(std::int64_t number, std::uint64_t asked) const;
    void forget_departing(std::int64_t number, std::uint64_t asked);
    bool ours(std::int64_t number) const;
    void extend();
    void erase_remote(std::int64_t number, std::string_view name);
    std::vector<contender_ptr> overtaken(std::uint64_t number_of_listing) const;
    local* find(std::int64_t number, const std::string& name);
    const std::pair<const queue_key, departure>* find_departing(std::int64_t number, const std::string& name) const;

    const queue_names* names_;
    std::map<queue_key, local> waiting_, owners_;
    std::size_t exclusive_waiting_ = 0, exclusive_owners_ = 0;
    std::map<queue_key, departure> departing_;
    std::set<std::uint64_t> departed_at_;  // departure::time of these
    std::vector<remote> remotes_;          // in order
    std::optional<std::int64_t> horizon_;  // up to this number every node is known
    bool departing_shown_ = false;         // see waits_for_departure()
    bool owners_doubted_ = false;
    std::optional<std::int64_t> changed_from_;
    std::optional<std::int64_t> base_;  // the largest number seen
    std::uint64_t known_since_ = 0;     // the number of the listing that `remotes_` is from
    std::uint64_t first_listing_ = 0;   // listings with smaller numbers do not count any more
    std::uint64_t time_ = 0;            // counts what was sent: creates, listings, removals
    std::uint32_t next_id_ = 0;
};

}  // namespace zkasio::lock_detail
