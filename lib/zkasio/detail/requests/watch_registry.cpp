#include <zkasio/detail/requests/watch_registry.hpp>

#include <cassert>
#include <cstddef>

namespace zkasio::detail {

// The invariants, of all and of one entry: true except while a member function runs.
void watch_registry::check() const noexcept {
    assert(!entries_.empty() || path_bytes_ == 0);
    assert(feed_reads_ > 0 || kept_.empty());
}
void watch_registry::check([[maybe_unused]] const entry& e) const noexcept {
    assert(e.registering >= 0 && e.lasting >= 0);
    assert(static_cast<std::size_t>(e.lasting) <= e.waiters.size() + static_cast<std::size_t>(e.registering));
    check();
}

watch_ptr watch_by(const request& r) {
    const watch_target target = watch_of(r);
    auto w = std::make_shared<watch_state>();
    w->path = *target.path;
    w->kind = target.kind;
    return w;
}

// A path is in the budget as long as its watch has a user that outlives the connection.
void watch_registry::count(iterator it, int more_lasting) {
    const bool before = it->second.lasting > 0, after = (it->second.lasting += more_lasting) > 0;
    if (after && !before) path_bytes_ += cost(it->first.first);
    if (before && !after) path_bytes_ -= cost(it->first.first);
}

bool watch_registry::begin(const std::string& path, watch_kind kind, lasting l) {
    auto it = entries_.find(key_of(path, kind));
    const bool counted = it != entries_.end() && it->second.lasting > 0;
    const std::size_t budget = l == lasting::spare ? path_budget_ / 2 : path_budget_;
    if (l != lasting::no && !counted && path_bytes_ + cost(path) > budget) return false;
    if (it == entries_.end()) it = entries_.emplace(key_of(path, kind), entry{}).first;
    ++it->second.registering;
    count(it, l == lasting::no ? 0 : 1);
    check(it->second);
    return true;
}

// Drops an entry that has neither a user nor a server watch. True: the entry has no user, but a server watch.
bool watch_registry::unused(iterator it) {
    entry& e = it->second;
    check(e);
    if (is_used(e) || e.removing) return false;
    if (e.live && !can_be_removed(it->first)) return false;
    if (e.live) {
        e.removing = true;
        return true;
    }
    entries_.erase(it);
    check();
    return false;
}

bool watch_registry::finish(const std::string& path, watch_kind kind, bool live, watch_ptr who, lasting l) {
    const auto it = entries_.find(key_of(path, kind));
    if (it == entries_.end()) return false;
    --it->second.registering;
    const bool waits = live && who;
    if (live) it->second.live = true;
    if (waits) {
        who->number = ++last_number_;
        it->second.waiters.emplace(last_number_, std::move(who));
    }
    if (!waits && l != lasting::no) count(it, -1);
    return unused(it);
}

bool watch_registry::leave(const watch_state& who) {
    const auto it = entries_.find(key_of(who.path, who.kind));
    if (it == entries_.end()) return false;
    auto& waiters = it->second.waiters;
    const auto me = waiters.find(who.number);
    if (me == waiters.end() || me->second.get() != &who) return false;
    waiters.erase(me);
    if (!who.of_connection) count(it, -1);
    return unused(it);
}

bool watch_registry::confirm_removal(const std::string& path, watch_kind kind, bool feed_needs_it) {
    const auto it = entries_.find(key_of(path, kind));
    if (it == entries_.end()) return false;
    const bool used = is_used(it->second);
    if (!used && !feed_needs_it) return true;
    it->second.removing = false;
    if (!used) keep(std::move(entries_.extract(it).key()));
    return false;
}

bool watch_registry::removed(const std::string& path, watch_kind kind, bool gone) {
    const auto it = entries_.find(key_of(path, kind));
    if (it == entries_.end()) return false;
    it->second.removing = false;
    // Requests keep their order: a watch that was asked for after the removal is set after the removal, and its answer
    // (finish) has not come yet. So "gone" is about the watch before the removal.
    if (gone) it->second.live = false;
    return unused(it);
}

void watch_registry::left_standing(const std::string& path, watch_kind kind) {
    const auto it = entries_.find(key_of(path, kind));
    if (it != entries_.end()) it->second.removing = false;
}

std::vector<std::pair<std::string, watch_kind>> watch_registry::end_connection() {
    feed_reads_ = 0;
    std::vector<key> gone;
    for (auto it = entries_.begin(); it != entries_.end();) {
        entry& e = it->second;
        std::erase_if(e.waiters, [](const auto& w) { return w.second->of_connection; });
        kept_.erase(it->first);
        if (is_used(e) || !can_be_removed(it->first)) {
            ++it;
            continue;
        }
        if (e.live) gone.push_back(it->first);
        it = entries_.erase(it);
    }
    gone.insert(gone.end(), kept_.begin(), kept_.end());
    kept_.clear();
    check();
    return gone;
}

// While reads are under way, the watch may have been kept for the sake of one that sets no watch. Otherwise the feed
// that needs the watch has it: the feed leaves it later, or the watch fires.
void watch_registry::keep(key k) {
    if (feed_reads_ > 0) kept_.insert(std::move(k));
}

bool watch_registry::left_by_feed(const std::string& path, watch_kind kind, bool feed_needs_it) {
    if (feed_needs_it) {
        keep(key_of(path, kind));
        return false;
    }
    const auto it = entries_.try_emplace(key_of(path, kind)).first;
    it->second.live = true;
    return unused(it);
}

bool watch_registry::feed_answered(const std::string& path, watch_kind kind) {
    const bool kept = !kept_.empty() && kept_.erase(key_of(path, kind)) > 0;
    if (feed_reads_ > 0 && --feed_reads_ == 0) kept_.clear();  // 0: a read of an earlier connection
    return kept;
}

bool watch_registry::wanted(const std::string& path, watch_kind kind) const {
    const auto it = entries_.find(key_of(path, kind));
    return it != entries_.end() && is_used(it->second);
}

std::vector<watch_ptr> watch_registry::fire(node_event e, std::string_view path) {
    std::vector<watch_ptr> woken;
    const auto end_watch = [&](watch_kind kind) {
        const auto it = entries_.find(key(std::string(path), kind));
        if (it == entries_.end()) return;
        for (auto& [number, w] : it->second.waiters) {
            if (!w->of_connection) count(it, -1);
            w->event = e;
            woken.push_back(std::move(w));
        }
        it->second.waiters.clear();
        it->second.live = false;
        unused(it);
    };
    if (e != node_event::children_changed) {
        end_watch(watch_kind::data);
        if (chroot_length_ > 0) end_watch(watch_kind::config);
    }
    if (e == node_event::children_changed || e == node_event::removed) end_watch(watch_kind::children);
    return woken;
}

std::vector<watch_ptr> watch_registry::clear() {
    std::vector<watch_ptr> all;
    for (auto& [where, e] : entries_)
        for (auto& [number, w] : e.waiters) all.push_back(std::move(w));
    entries_.clear();
    kept_.clear();
    path_bytes_ = feed_reads_ = 0;
    return all;
}

bool watch_registry::live(const std::string& path, watch_kind kind) const {
    const auto it = entries_.find(key_of(path, kind));
    return it != entries_.end() && it->second.live;
}

}  // namespace zkasio::detail
