#include <zkasio/detail/requests/node_feeds.hpp>

#include <zkasio/path.hpp>

#include <algorithm>
#include <utility>

namespace zkasio::detail {

watch_kind kind_of(node_read what) noexcept {
    return what == node_read::children ? watch_kind::children : watch_kind::data;
}

void node_feeds::add(const feed_ptr& f) {
    f->number = ++last_number_;
    by_root_[f->root].emplace(f->number, f);
}

void feed_state::learn_size(std::size_t bytes, std::size_t reads) noexcept {
    constexpr std::size_t most_reads = 256, most_bytes = 256 * 1024;  // larger batches are no faster
    const std::size_t each = std::max<std::size_t>(bytes / reads, 1);
    const std::size_t most = std::max(most_in_batch, std::min(2 * reads, most_reads));
    most_in_batch = std::clamp<std::size_t>(most_bytes / each, 1, most);
}

void node_feeds::tell(const feed_ptr& f, bool by_one_watch, bool by_recursive) {
    if (!up_ || std::exchange(f->up, true)) return;
    f->by_one_watch = by_one_watch;
    f->by_recursive = by_recursive;
    call(f, [&](node_feed_listener& to) { to.connected(by_one_watch); });
}

void node_feeds::refuse(const feed_ptr& f, std::error_code why) const {
    call(f, [&](node_feed_listener& to) { to.closed(why); });
    f->listener.reset();  // answers to reads under way are dropped, too
}

void node_feeds::call(const feed_ptr& f, const std::function<void(node_feed_listener&)>& what) const {
    if (const auto listener = f->listener.lock()) log_.call([&] { what(*listener); });
}

void node_feeds::remove(feed_state& f) {
    f.listener.reset();
    const auto its = by_root_.find(f.root);
    if (its == by_root_.end()) return;
    its->second.erase(f.number);
    if (!its->second.empty()) return;
    for (const node_read what : {node_read::stat, node_read::children}) last_found_.erase({f.root, what});
    by_root_.erase(its);
}

// Returns copies: a called listener may add and remove feeds.
std::vector<feed_ptr> node_feeds::all() const {
    std::vector<feed_ptr> found;
    for (const auto& [root, its] : by_root_)
        for (const auto& [number, f] : its) found.push_back(f);
    return found;
}

// The feeds whose root is the path or one of its ancestors.
std::vector<feed_ptr> node_feeds::above(std::string_view path) const {
    std::vector<feed_ptr> found;
    if (by_root_.empty()) return found;
    for (std::string_view root = path; !root.empty(); root = parent_path(root)) {
        const auto its = by_root_.find(root);
        if (its == by_root_.end()) continue;
        for (const auto& [number, f] : its->second) found.push_back(f);
    }
    return found;
}

std::vector<feed_ptr> node_feeds::connected() {
    up_ = true;
    return all();
}

void node_feeds::disconnected(const std::function<void(const std::string& path, watch_kind kind)>& forget) {
    ++connection_;
    if (!std::exchange(up_, false)) return;
    for (const feed_ptr& f : all()) {
        f->batch.clear();
        if (std::exchange(f->batches_under_way, 0) > 0)  // it may have been too large
            f->most_in_batch = std::max<std::size_t>(f->most_in_batch / 2, 1);
        if (!std::exchange(f->up, false)) continue;
        call(f, [&](node_feed_listener& from) {
            from.for_each_watch([&](node_read what, const std::string& path) { forget(path, kind_of(what)); });
        });
        call(f, [](node_feed_listener& to) { to.disconnected(); });
    }
}

void node_feeds::closed(std::error_code why) {
    up_ = false;
    ++connection_;
    const std::vector<feed_ptr> told = all();
    clear();
    for (const feed_ptr& f : told) refuse(f, why);
}

void node_feeds::changed(node_change what, std::string_view path, bool by_one_watch, bool at_root,
                         std::int64_t zxid) {
    const auto told = above(path);
    if (told.empty()) return;
    const std::string name(path);
    for (const feed_ptr& f : told) {
        const bool is_of_node = f->by_one_watch && !f->wants_recursive;
        const bool is_told = f->by_one_watch ? by_one_watch && (is_of_node || what != node_change::children_changed)
                                             : !by_one_watch || at_root;
        if (f->up && is_told && is_of_node)
            tell_of_node(f, what, path, zxid);
        else if (f->up && is_told)
            call(f, [&](node_feed_listener& to) { to.changed(what, name, zxid); });
    }
}

// A recursive watch tells of a child's creation or removal, and of no other children.
void node_feeds::tell_of_node(const feed_ptr& f, node_change what, std::string_view path, std::int64_t zxid) const {
    const bool is_root = path == f->root;
    const bool of_children = what == node_change::children_changed;
    const bool is_child = what == node_change::created || what == node_change::removed;
    if (is_root && !(of_children && f->by_recursive))
        call(f, [&](node_feed_listener& to) { to.changed(what, f->root, zxid); });
    else if (f->by_recursive && is_child && parent_path(path) == f->root)
        call(f, [&](node_feed_listener& to) { to.changed(node_change::children_changed, f->root, zxid); });
}

// While a server was asked for it, a watch of another may have taken the place of the one there was.
void node_feeds::become_recursive(const std::string& root) const {
    const auto its = by_root_.find(root);
    if (its == by_root_.end()) return;
    for (const auto& [number, f] : feeds_of_root(its->second)) {
        if (!f->up || !f->by_one_watch || std::exchange(f->by_recursive, true)) continue;
        call(f, [&](node_feed_listener& to) { to.changed(node_change::children_changed, f->root, 0); });
    }
}

bool node_feeds::want_one_watch(const std::string& root) const {
    const auto its = by_root_.find(root);
    return its != by_root_.end() && std::any_of(its->second.begin(), its->second.end(),
                                                [](const auto& feed) { return feed.second->wants_one_watch; });
}

void node_feeds::authenticated() const {
    for (const feed_ptr& f : all())
        if (f->up) call(f, [](node_feed_listener& to) { to.authenticated(); });
}

bool node_feeds::watches(const std::string& path, watch_kind kind) const {
    if (kind == watch_kind::config) return false;
    const node_read what = kind == watch_kind::children ? node_read::children : node_read::stat;
    // No copies of all feeds, since each one that leaves asks for the watches of the others. The end of a listener may
    // remove feeds: so none ends before the last look at them.
    std::vector<std::shared_ptr<node_feed_listener>> kept;
    for (std::string_view root = path; !root.empty(); root = parent_path(root)) {
        const auto its = by_root_.find(root);
        if (its == by_root_.end()) continue;
        if (any_watches(its->first, its->second, what, path, kept)) return true;
    }
    return false;
}

// Begins with the feed that was found last, and then goes on behind it: those in front of it are asked at the end.
bool node_feeds::any_watches(const std::string& root, const feeds_of_root& its, node_read what, const std::string& path,
                             std::vector<std::shared_ptr<node_feed_listener>>& kept) const {
    std::uint64_t& last = last_found_[{root, what}];
    auto at = its.lower_bound(last);
    for (std::size_t asked = 0; asked < its.size(); ++asked, ++at) {
        if (at == its.end()) at = its.begin();
        auto listener = at->second->listener.lock();
        if (!listener) continue;
        kept.push_back(std::move(listener));
        if (!kept.back()->watches(what, path)) continue;
        last = at->first;
        return true;
    }
    return false;
}

void node_feeds::answered(const feed_ptr& to, node_read what, const std::string& path, std::error_code code,
                          node_answer&& answer) const {
    call(to, [&](node_feed_listener& asked) { asked.answered(what, path, code, std::move(answer)); });
}

}  // namespace zkasio::detail
