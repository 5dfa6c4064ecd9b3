#include <zkasio/detail/requests/watch_registry.hpp>

#include <cassert>
#include <iterator>

namespace zkasio::detail {

// The invariants: true except while a member function runs.
void watch_registry::check([[maybe_unused]] const entry& e) const noexcept {
    assert(e.registering >= 0);
    assert(!e.removing || e.waiters.empty() || e.live);
    assert(feed_reads_ > 0 || kept_.empty());
}

seen_state seen_in(const reply& r, watch_kind kind) noexcept {
    seen_state seen;
    if (r.code) {
        if (r.code != zk_errc::no_node) seen.is = seen_state::how::refused;
        return seen;
    }
    seen.is = seen_state::how::there;
    seen.czxid = r.stat.czxid;
    const bool children = kind == watch_kind::children;
    seen.zxid = children ? r.stat.pzxid : r.stat.mzxid;
    if (!children) return seen;
    seen.cversion = r.stat.cversion;
    seen.num_children = r.stat.num_children;
    return seen;
}

watch_ptr watch_by(const request& r) {
    const watch_target target = watch_of(r);
    auto w = std::make_shared<watch_state>();
    w->path = *target.path;
    w->kind = target.kind;
    return w;
}

void watch_registry::begin(const std::string& path, watch_kind kind) {
    entry& e = entries_[key_of(path, kind)];
    ++e.registering;
    check(e);
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
    return false;
}

bool watch_registry::finish(const std::string& path, watch_kind kind, bool live, watch_ptr who,
                            const std::optional<seen_state>& seen) {
    const auto it = entries_.find(key_of(path, kind));
    if (it == entries_.end()) return false;
    entry& e = it->second;
    --e.registering;
    if (seen && is_unset(e)) compare(it->first, e, *seen);
    if (live) e.live = true;
    if (live && who) {
        who->number = ++last_number_;
        who->seen = *seen;
        who->is_set = true;
        e.waiters.emplace(last_number_, std::move(who));
    }
    return unused(it);
}

namespace {

// As a server tells it that is shown a watch of an earlier connection. After a refusal, the waiter finds out.
node_event change_between(const seen_state& before, const seen_state& now, watch_kind kind) noexcept {
    if (now.is == seen_state::how::missing) return node_event::removed;
    if (kind == watch_kind::children) return node_event::children_changed;
    const bool is_new = before.is == seen_state::how::missing && now.is == seen_state::how::there;
    return is_new ? node_event::created : node_event::data_changed;
}

}  // namespace

void watch_registry::compare(const key& k, entry& e, const seen_state& now) {
    std::erase_if(e.waiters, [&](auto& waiter) {
        const watch_ptr& w = waiter.second;
        w->is_set = w->seen == now;
        if (w->is_set) return false;
        w->event = change_between(w->seen, now, k.second);
        changed_.push_back(w);
        return true;
    });
}

bool watch_registry::leave(const watch_state& who) {
    const auto it = entries_.find(key_of(who.path, who.kind));
    if (it == entries_.end()) return false;
    auto& waiters = it->second.waiters;
    const auto me = waiters.find(who.number);
    if (me == waiters.end() || me->second.get() != &who) return false;
    waiters.erase(me);
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
        if (std::exchange(e.live, false)) gone.push_back(it->first);
        e.removing = false;
        for (const auto& [number, w] : e.waiters) w->is_set = false;
        it = is_used(e) ? std::next(it) : entries_.erase(it);
    }
    gone.insert(gone.end(), kept_.begin(), kept_.end());
    kept_.clear();
    return gone;
}

std::list<request> watch_registry::questions() const {
    std::list<request> all;
    for (const auto& [where, e] : entries_) {
        if (!is_unset(e)) continue;
        switch (where.second) {
            case watch_kind::data: all.emplace_back(exists_request{where.first, true}); break;
            case watch_kind::children: all.emplace_back(children_request{where.first, true}); break;
            case watch_kind::config: all.emplace_back(get_config_request{true}); break;
        }
    }
    return all;
}

bool watch_registry::is_unset(const watch_target& of) const {
    const auto it = entries_.find(key_of(*of.path, of.kind));
    return it != entries_.end() && is_unset(it->second);
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

std::vector<watch_ptr> watch_registry::fire(node_event e, std::string_view path) {
    std::vector<watch_ptr> woken;
    const auto end_watch = [&](watch_kind kind) {
        const auto it = entries_.find(key(std::string(path), kind));
        if (it == entries_.end()) return;
        for (auto& [number, w] : it->second.waiters) {
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
    feed_reads_ = 0;
    return all;
}

bool watch_registry::unset(const std::string& path, watch_kind kind) {
    const auto it = entries_.find(key_of(path, kind));
    if (it == entries_.end() || it->second.waiters.empty() || it->second.removing) return false;
    it->second.live = false;
    for (const auto& [number, w] : it->second.waiters) w->is_set = false;
    return true;
}

bool watch_registry::has(const std::string& path, watch_kind kind) const {
    const auto it = entries_.find(key_of(path, kind));
    return it != entries_.end() && is_used(it->second);
}

bool watch_registry::live(const std::string& path, watch_kind kind) const {
    const auto it = entries_.find(key_of(path, kind));
    return it != entries_.end() && it->second.live;
}

}  // namespace zkasio::detail
