#include <zkasio/locks/detail/queue/queue_order.hpp>

#include <algorithm>
#include <cassert>
#include <iterator>
#include <limits>
#include <utility>

namespace zkasio::lock_detail {
namespace {

// Of two contenders with the same number the exclusive one is first: during Curator's downgrade, a writer that becomes
// a reader has two nodes for a moment.
constexpr queue_key first_at(std::int64_t number) { return {number, lock_kind::exclusive, 0}; }

template <class Map>
bool has(const Map& m, std::int64_t number) {
    const auto it = m.lower_bound(first_at(number));
    return it != m.end() && it->first.number == number;
}

constexpr std::int64_t everywhere = std::numeric_limits<std::int64_t>::min();

// Counts the contenders ahead of a place, for several places in ascending order.
template <class Map>
class standing_before {
public:
    standing_before(const Map& m, const queue_key& p) : map_(m), at_(m.lower_bound(p)) {
        // Counts from both ends at once: most changes are near one end, and there may be very many contenders.
        auto back = at_, forward = at_;
        for (count_ = 0; back != map_.begin(); --back, ++forward, ++count_)
            if (forward == map_.end()) {
                count_ = map_.size() - count_;
                break;
            }
    }
    void go_on_to(const queue_key& p) {
        for (; at_ != map_.end() && at_->first < p; ++at_) ++count_;
    }
    std::size_t count() const { return count_; }
    /// The nearest contender ahead of the place, or null.
    const typename Map::value_type* nearest() const { return at_ == map_.begin() ? nullptr : &*std::prev(at_); }

private:
    const Map& map_;
    typename Map::const_iterator at_;
    std::size_t count_ = 0;
};

}  // namespace

// Called at the end of every public member that changes something.
void queue_order::check_invariants() const noexcept {
    assert(departing_.size() == departed_at_.size());
    assert(exclusive_waiting_ <= waiting_.size() && exclusive_owners_ <= owners_.size());
    assert((horizon_ || remotes_.empty()) && "a remote contender is only known from a listing, which has a horizon");
    assert((!owners_doubted_ || !owners_.empty()) && "a doubt without owners asks for a listing that nobody needs");
    assert(known_since_ <= time_ && first_listing_ <= time_ + 1);
}

std::int64_t queue_order::unwrap(std::int32_t sequence) {
    if (!base_) return *(base_ = sequence);
    const auto distance =
        static_cast<std::int32_t>(static_cast<std::uint32_t>(sequence) - static_cast<std::uint32_t>(*base_));
    const std::int64_t number = *base_ + distance;
    base_ = std::max(*base_, number);
    return number;
}

bool queue_order::ours(std::int64_t number) const {
    return has(waiting_, number) || has(owners_, number) || has(departing_, number);
}

// G2: sequence numbers are consecutive, so no other contender stands between two of this session with consecutive ones.
void queue_order::extend() {
    while (horizon_ && ours(*horizon_ + 1)) ++*horizon_;
}

// Whether a departing node of this session left after `time`, when a create was asked for.
bool queue_order::left_since(std::uint64_t time) const {
    return !departed_at_.empty() && *departed_at_.rbegin() > time;
}

// Whether the directory has contained a node of this session ever since `time`.
bool queue_order::present_since(std::uint64_t time) const { return !empty() || left_since(time); }

// G5: a session's creates are carried out in the order in which they are sent. If a new node has no larger number than
// a node of this session that was asked for earlier, the new node is in another directory of the same name: an operator
// has deleted the old directory, with our nodes in it.
bool queue_order::numbers_begin_anew(std::int64_t number, std::uint64_t asked) const {
    if (asked > time_) return false;  // not known
    const auto older_at_or_behind = [&](const auto& those) {
        return std::any_of(those.lower_bound(first_at(number)), those.end(),
                           [&](const auto& one) { return one.second.since < asked; });
    };
    return older_at_or_behind(waiting_) || older_at_or_behind(owners_) || older_at_or_behind(departing_);
}

// G8: a node of this session that is departing from the old directory fills no gap in the numbers of the new directory.
void queue_order::forget_departing(std::int64_t number, std::uint64_t asked) {
    for (auto it = departing_.lower_bound(first_at(number)); it != departing_.end();) {
        const auto [p, left] = *it++;
        if (left.since < asked) departed(p);
    }
}

// G18: since the create was carried out, a contender ahead may have left, and before that an operator may have deleted
// the node. A listing that was sent earlier tells of neither event, and need not show the node (G4).
std::uint64_t queue_order::hear_of_create() {
    const std::uint64_t now = begin_create();
    discard_listings();
    return now;
}

queue_key queue_order::enter(std::string_view name, contender_ptr who, std::uint64_t asked) {
    const queue_names::parsed parsed = names_->parse(name);
    // G5: without a node of this session in it, the directory may have been removed as an empty container and
    // re-created.
    if (!present_since(asked)) discard_remotes();
    // G11: if no contender of this session excludes the newcomer, the newcomer would be granted the lock at once. But
    // an operator may have deleted the new node while its predecessor left.
    if (!excludes(parsed.kind) && left_since(asked)) discard_listings();
    const queue_key p{unwrap(parsed.sequence), parsed.kind, ++next_id_};
    if (numbers_begin_anew(p.number, asked)) {
        discard_listings();
        forget_departing(p.number, asked);
    }
    if (knows(p)) {
        erase_remote(p.number, name);  // G3: the node may have been listed before it was known as ours
        const auto ahead = remotes_ahead_of(p.number);
        if (ahead != remotes_.begin() && !std::prev(ahead)->name) discard_listings();  // see near_ours()
    }
    changed(p.number);
    if (p.kind == lock_kind::exclusive) ++exclusive_waiting_;
    waiting_.emplace(p, local{std::move(who), name, std::min(asked, time_), 0});
    extend();
    check_invariants();
    return p;
}

void queue_order::leave(const queue_key& p) {
    auto node = waiting_.extract(p);
    const bool waited = !node.empty();
    if (!waited) node = owners_.extract(p);
    if (node.empty()) return;
    if (p.kind == lock_kind::exclusive) --(waited ? exclusive_waiting_ : exclusive_owners_);
    if (owners_.empty()) owners_doubted_ = false;
    departing_.emplace(p, departure{node.mapped().name, ++time_, node.mapped().since});
    departed_at_.insert(time_);
    changed(p.number);
    // G11: whoever stands behind a reader, or behind a writer that gives up, would be granted the lock without a
    // proof that it still has its node. If it has not, readers of other clients may own the lock already.
    if (p.kind == lock_kind::shared || (waited && names_->has_shared())) discard_listings();
    check_invariants();
}

void queue_order::departed(const queue_key& p) {
    const auto node = departing_.extract(p);
    if (node.empty()) return;
    departed_at_.erase(node.mapped().time);
    departing_shown_ = false;
    check_invariants();
}

void queue_order::node_deleted(const queue_key& p) {
    leave(p);
    departed(p);
    discard_listings();  // G5: the whole directory may have been deleted with the node
}

void queue_order::grant(const queue_key& p) {
    auto node = waiting_.extract(p);
    if (node.empty()) return;
    if (p.kind == lock_kind::exclusive) {
        --exclusive_waiting_;
        ++exclusive_owners_;
    }
    node.mapped().granted = time_;
    owners_.insert(std::move(node));
    check_invariants();
}

queue_key queue_order::downgrade(const queue_key& p, std::string_view name, contender_ptr who) {
    auto node = owners_.extract(p);
    if (node.empty()) return p;
    --exclusive_owners_;
    const queue_key shared{p.number, lock_kind::shared, p.id};
    node.key() = shared;
    node.mapped().name = name;
    node.mapped().who = std::move(who);
    node.mapped().since = time_;
    owners_.insert(std::move(node));
    changed(p.number);
    check_invariants();
    return shared;
}

contender_ptr queue_order::head() const { return waiting_.empty() ? nullptr : waiting_.begin()->second.who; }

contender_ptr queue_order::first_owner() const { return owners_.empty() ? nullptr : owners_.begin()->second.who; }

std::vector<contender_ptr> queue_order::waiting() const {
    std::vector<contender_ptr> all;
    all.reserve(waiting_.size());
    for (const auto& [p, l] : waiting_) all.push_back(l.who);
    return all;
}

std::vector<contender_ptr> queue_order::take_doubted_owners() {
    owners_doubted_ = false;
    std::vector<contender_ptr> all;
    for (const auto& [p, l] : owners_) all.push_back(l.who);
    return all;
}

std::vector<contender_ptr> queue_order::clear() {
    std::vector<contender_ptr> all = waiting();
    waiting_.clear();
    owners_.clear();
    departing_.clear();
    departed_at_.clear();
    departing_shown_ = owners_doubted_ = false;
    exclusive_owners_ = exclusive_waiting_ = 0;
    discard_listings();
    return all;
}

bool queue_order::excludes(lock_kind newcomer) const noexcept {
    return newcomer == lock_kind::exclusive ? !empty() : exclusive_owners_ + exclusive_waiting_ > 0;
}

queue_order::local* queue_order::find(std::int64_t number, const std::string& name) {
    for (auto* locals : {&waiting_, &owners_})
        for (auto it = locals->lower_bound(first_at(number)); it != locals->end() && it->first.number == number; ++it)
            if (it->second.name == name) return &it->second;
    return nullptr;
}

// G27: no contender that excludes an owner ever comes to stand ahead of the owner. Checked only in doubt: without a
// doubt the node ahead may be one of this session whose removal a server has refused.
std::vector<contender_ptr> queue_order::overtaken(std::uint64_t number_of_listing) const {
    std::vector<contender_ptr> all;
    const auto writer =
        std::find_if(remotes_.begin(), remotes_.end(), [](const remote& r) { return r.kind == lock_kind::exclusive; });
    for (const auto& [p, l] : owners_) {
        const auto first = p.kind == lock_kind::exclusive ? remotes_.begin() : writer;
        if (l.granted < number_of_listing && first != remotes_.end() && first->number < p.number) all.push_back(l.who);
    }
    return all;
}

const std::pair<const queue_key, queue_order::departure>* queue_order::find_departing(std::int64_t number,
                                                                                      const std::string& name) const {
    for (auto it = departing_.lower_bound(first_at(number)); it != departing_.end() && it->first.number == number; ++it)
        if (it->second.name == name) return &*it;
    return nullptr;
}

queue_order::findings queue_order::listed(const std::vector<std::string>& names, std::uint64_t number_of_listing) {
    struct numbered {
        std::int64_t number;
        lock_kind kind;
        const std::string* name;
    };
    std::vector<numbered> others;
    others.reserve(names.size());
    std::optional<std::int64_t> latest;
    bool departing_ahead = false;
    for (const std::string& name : names) {
        const std::optional<queue_names::parsed> parsed = names_->contender(name);
        if (!parsed) continue;
        const std::int64_t number = unwrap(parsed->sequence);
        latest = latest ? std::max(*latest, number) : number;
        if (local* l = find(number, name))
            l->seen = number_of_listing;
        else if (find_departing(number, name))  // G15
            departing_ahead = departing_ahead || (!waiting_.empty() && number < waiting_.begin()->first.number);
        else
            others.push_back({number, parsed->kind, &name});
    }
    std::sort(others.begin(), others.end(), [](const numbered& a, const numbered& b) {
        return a.number != b.number ? a.number < b.number : a.kind < b.kind;
    });
    findings found;
    for (const auto* locals : {&waiting_, &owners_})
        for (const auto& [p, l] : *locals)
            if (l.since < number_of_listing && l.seen != number_of_listing) found.missing.push_back(l.who);  // G4
    if (number_of_listing < first_listing_) return found;  // G10
    std::vector<remote> all;
    all.reserve(others.size());
    for (std::size_t i = 0; i < others.size(); ++i) {
        const std::size_t far = i + most_followed;
        const bool named =
            near_ours(others[i].number, far < others.size() ? std::optional(others[far].number) : std::nullopt);
        all.push_back(
            {others[i].number, others[i].kind, named ? std::make_shared<const std::string>(*others[i].name) : nullptr});
    }
    remotes_ = std::move(all);
    horizon_ = latest;
    known_since_ = number_of_listing;
    extend();
    changed(everywhere);
    departing_shown_ = departing_ahead;
    if (std::exchange(owners_doubted_, false)) found.overtaken = overtaken(number_of_listing);  // G27
    // G15: the departing node's removal had to be sent again. This listing does not tell whether the contenders behind
    // that node will still have their nodes when the removal is carried out.
    if (departing_ahead) discard_remotes();
    check_invariants();
    return found;
}

// Whether a contender of this session, or one that comes later, may want to follow the remote node `number`: one of the
// nearest ahead. Of thousands of listed names few are kept. @param too_far contenders behind this number have nearer
// ones.
bool queue_order::near_ours(std::int64_t number, std::optional<std::int64_t> too_far) const {
    if (names_->has_shared() || !too_far) return true;  // of readers and writers, any may be the nearest in the way
    const auto is_ahead_of_one = [&](const auto& ours) {
        const auto next = ours.lower_bound(first_at(number));
        return next != ours.end() && next->first.number < *too_far;
    };
    return is_ahead_of_one(waiting_) || is_ahead_of_one(owners_);
}

void queue_order::removed(const std::string& name) {
    const std::int32_t sequence = names_->parse(name).sequence;
    const std::int64_t number = unwrap(sequence);
    erase_remote(number, name);
    changed(number);
    check_invariants();
}

// The end of the remote nodes with smaller numbers.
std::vector<queue_order::remote>::const_iterator queue_order::remotes_ahead_of(std::int64_t number) const {
    return std::lower_bound(remotes_.begin(), remotes_.end(), number,
                            [](const remote& r, std::int64_t n) { return r.number < n; });
}

void queue_order::erase_remote(std::int64_t number, std::string_view name) {
    auto it = remotes_ahead_of(number);
    for (; it != remotes_.end() && it->number == number; ++it)
        if (!it->name || *it->name == name) {
            remotes_.erase(it);
            return;
        }
}

void queue_order::discard_listings() {
    discard_remotes();
    first_listing_ = time_ + 1;  // G10: also what a listing that is under way will tell of remote contenders
    check_invariants();
}

void queue_order::doubt_owners() {
    discard_listings();
    owners_doubted_ = !owners_.empty();
}

void queue_order::discard_listings_before(std::uint64_t time) {
    if (known_since_ <= time) discard_remotes();
    first_listing_ = std::max(first_listing_, time + 1);
    check_invariants();
}

void queue_order::discard_remotes() {
    remotes_.clear();
    horizon_.reset();
    changed(everywhere);
}

queue_order::step queue_order::next() const {
    const queue_key& me = waiting_.begin()->first;
    const bool alone = me.kind == lock_kind::exclusive;
    const bool blocked = alone ? !owners_.empty() : exclusive_owners_ > 0;
    // A writer behind readers of this session: when the readers leave, it takes a listing anyway (G11), so none now.
    if (blocked && exclusive_owners_ == 0) return {verdict::local};
    if (!knows(me)) return {verdict::unknown};  // G1: only a listing can tell

    const auto ahead = remotes_ahead_of(me.number);
    const auto excludes_me = [&](const remote& r) { return alone || r.kind == lock_kind::exclusive; };
    step s{verdict::remote, {}, true};
    for (auto r = std::make_reverse_iterator(ahead); r != remotes_.rend() && s.all; ++r) {
        if (!excludes_me(*r)) continue;
        s.all = s.blockers.size() < most_followed && r->name;
        if (s.all) s.blockers.push_back(*r->name);
    }
    if (s.blockers.empty()) return {!s.all ? verdict::unknown : blocked ? verdict::local : verdict::granted};
    if (!s.all) s.blockers.resize(1);
    return s;
}

std::vector<std::string> queue_order::next_blockers(std::size_t most) const {
    const auto is_behind = [](std::int64_t number, const remote& r) { return number < r.number; };
    std::vector<std::string> names;
    auto from = std::upper_bound(remotes_.begin(), remotes_.end(), waiting_.begin()->first.number, is_behind);
    while (names.size() < most && from != remotes_.end()) {
        const auto later_head = waiting_.lower_bound(first_at(from->number));
        if (later_head == waiting_.end()) break;
        const auto to = std::upper_bound(from, remotes_.end(), later_head->first.number, is_behind);
        if (static_cast<std::size_t>(to - from) > most_followed) break;
        for (; from != to && from->name && names.size() < most; ++from) names.push_back(*from->name);
        if (from != to) break;
    }
    return names;
}

std::vector<queue_order::insight> queue_order::look_at(const std::vector<queue_key>& sorted) const {
    std::vector<insight> all;
    if (sorted.empty()) return all;
    all.reserve(sorted.size());
    standing_before owners(owners_, sorted.front()), waiting(waiting_, sorted.front());
    for (const queue_key& p : sorted) {
        owners.go_on_to(p);
        waiting.go_on_to(p);
        const auto remote_end = remotes_ahead_of(p.number);
        insight i{
            owners.count() + waiting.count() + static_cast<std::size_t>(remote_end - remotes_.begin()), {}, knows(p)};
        std::string_view nearest;
        std::int64_t number = everywhere;
        for (const auto* ahead : {owners.nearest(), waiting.nearest()})
            if (ahead && ahead->first.number >= number) {
                nearest = ahead->second.name;
                number = ahead->first.number;
            }
        if (remote_end != remotes_.begin() && std::prev(remote_end)->number >= number) {
            const auto& name = std::prev(remote_end)->name;
            nearest = name ? std::string_view(*name) : std::string_view();
        }
        i.predecessor = nearest;
        all.push_back(std::move(i));
    }
    return all;
}

}  // namespace zkasio::lock_detail
