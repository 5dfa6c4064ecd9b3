#include <zkasio/cache/detail/tree_sync.hpp>

#include <zkasio/path.hpp>

#include <algorithm>
#include <cassert>

namespace zkasio::cache_detail {

// ------------------------------------------------------------------------------------------------------- reads

// @param node null: the missing root.
read_state& tree_sync::state_of(node_read what, tree_node* node) const noexcept {
    assert((node || what != node_read::children) && "a missing root has no children to be read");
    if (!node) return root_state_;
    return what == node_read::children ? node->children_state : node->data_state;
}

// Queues a read of the node (C1). If a read is under way, the node will be read again after its answer (C2).
void tree_sync::ask(node_read what, const std::string& path) {
    read_state& state = state_of(what, tree_.find(path));
    switch (state) {
        case read_state::none:
        case read_state::watched:
            state = read_state::queued;
            (first_look_ ? first_looks_ : queue_).push_back({what, path, first_look_});
            return;
        case read_state::reading: state = read_state::reading_again; return;
        case read_state::queued:
        case read_state::reading_again: return;
    }
}

std::optional<tree_sync::read> tree_sync::next_read() {
    while (!put_off_) {
        std::deque<read>& queue = first_looks_.empty() ? queue_ : first_looks_;
        if (queue.empty()) break;
        read next = std::move(queue.front());
        queue.pop_front();
        tree_node* const node = tree_.find(next.path);
        if (!is_known(next.what, next.path)) continue;
        read_state& state = state_of(next.what, node);
        if (state != read_state::queued) continue;
        state = read_state::reading;
        under_way_.push_back(next);
        return next;
    }
    settle();
    return std::nullopt;
}

// Servers answer in order: an answer belongs to the first read that fits.
bool tree_sync::take_first_look(node_read what, std::string_view path) {
    const auto sent = std::find_if(under_way_.begin(), under_way_.end(),
                                   [&](const read& r) { return r.what == what && r.path == path; });
    if (sent == under_way_.end()) return false;
    const bool first_look = sent->first_look;
    under_way_.erase(sent);
    return first_look;
}

// Whether another read that sets the same watch is under way: of a node that was removed, and re-created, since the
// older read was sent.
bool tree_sync::is_under_way(node_read what, std::string_view path) const noexcept {
    return std::any_of(under_way_.begin(), under_way_.end(), [&](const read& r) {
        return r.path == path && (r.what == node_read::children) == (what == node_read::children);
    });
}

// Whether the node is in the tree, or is the missing root, which has no children to be read.
bool tree_sync::is_known(node_read what, std::string_view path) const noexcept {
    return tree_.find(path) || (tree_.is_root(path) && what != node_read::children);
}

namespace {

// C10: reads of data travel together, those of stats do not.
constexpr std::size_t small_data = 1024;

}  // namespace

// The known state of a node from an earlier connection is compared with its stat before the data are read again. C7:
// for a refused node, the stat does not tell whether the node may be read now.
void tree_sync::look_at(const std::string& path) {
    const tree_node* const node = tree_.find(path);
    const bool has_data = node && node->value && node->value->readable;
    const bool as_cheap = by_one_watch_ && has_data && node->value->data.size() <= small_data;
    ask(wants_data(path) && (!has_data || as_cheap) ? node_read::data : node_read::stat, path);
}

// Queues a listing of the node's children, unless they are read or watched already, or are not wanted (C5).
// @param has_none C10: the node was just read, and has none; all that are made since are told.
void tree_sync::look_below(const std::string& path, bool has_none) {
    tree_node* const node = tree_.find(path);
    if (node->children_state != read_state::none || !wants_children(path, node->value->stat)) return;
    if (!has_none) return ask(node_read::children, path);
    node->children_state = read_state::watched;
    children_listed(path, {});
}

namespace {

// A filter that throws leaves the node out.
bool passes(const std::function<bool(const std::string&)>& filter, const std::string& path) noexcept {
    try {
        return !filter || filter(path);
    } catch (...) {
        return false;
    }
}

}  // namespace

bool tree_sync::wanted(const std::string& path) const noexcept { return passes(scope_.filter, path); }
bool tree_sync::wanted_below(const std::string& path) const noexcept { return passes(scope_.filter_below, path); }

// ---------------------------------------------------------------------------------------------- the connection

// With each connection, all nodes are looked at again, from the root downwards (C4).
void tree_sync::connected(bool by_one_watch) {
    up_ = first_look_ = true;
    by_one_watch_ = by_one_watch;
    look_at(tree_.root_path());
}

void tree_sync::disconnected() {
    up_ = put_off_ = false;
    dirty_ = dirty_ || current_;
    current_ = false;
    first_looks_.clear();
    queue_.clear();
    left_.clear();
    under_way_.clear();
    root_state_ = read_state::none;
    tree_.for_each(tree_.root_path(), [](const std::string&, tree_node& node) {
        node.data_state = node.children_state = read_state::none;
        node.data_refused = node.children_refused = false;
    });
    refused_.clear();
    other_permissions_ = false;
}

bool tree_sync::is_refused(const tree_node& node) noexcept {
    return node.data_refused || node.children_refused || (node.value && !node.value->readable);
}

// Asks for a refused node, as for one that was not refused.
void tree_sync::ask_again(const std::string& path) {
    tree_node& node = *tree_.find(path);
    const bool children = node.children_refused || node.children_state == read_state::reading;
    node.data_refused = node.children_refused = false;
    ask(wants_data(path) ? node_read::data : node_read::stat, path);
    if (children) ask(node_read::children, path);
}

// C7. A read that is under way may have been refused before the credential was accepted: its answer counts as outdated,
// too (C2).
void tree_sync::authenticated() {
    if (!up_) return;
    first_look_ = false;
    std::vector<std::string> refused;
    tree_.for_each(tree_.root_path(), [&](const std::string& path, const tree_node& node) {
        const bool reading = node.data_state == read_state::reading || node.children_state == read_state::reading;
        if (is_refused(node) || reading) refused.push_back(path);
    });
    for (const std::string& path : refused) ask_again(path);
    if (!tree_.root() && root_state_ == read_state::reading) ask(node_read::stat, tree_.root_path());
}

bool tree_sync::look_at_refused(std::size_t most) {
    first_look_ = false;
    std::vector<std::string> next;
    auto at = refused_.upper_bound(last_refused_);
    while (next.size() < most && at != refused_.end()) {
        const tree_node* const node = tree_.find(*at);
        if (node && is_refused(*node))
            next.push_back(*at++);
        else
            at = refused_.erase(at);
    }
    const bool round_over = at == refused_.end();
    for (const std::string& path : next) ask_again(path);
    last_refused_ = round_over || next.empty() ? std::string() : std::move(next.back());
    return round_over;
}

// Makes the state current when no read of the first look is queued or under way any longer (C8).
void tree_sync::settle() noexcept {
    if (current_ || !up_ || !first_looks_.empty()) return;
    if (std::any_of(under_way_.begin(), under_way_.end(), [](const read& r) { return r.first_look; })) return;
    current_ = dirty_ = true;
}

// ----------------------------------------------------------------------------------------------------- watches

void tree_sync::changed(node_change what, const std::string& path) {
    first_look_ = false;
    tree_node* const node = tree_.find(path);
    if (tree_.is_root(path) && (!node || what == node_change::removed)) return root_changed(what);
    const bool is_written = what == node_change::data_changed || (what == node_change::created && by_one_watch_);
    if (!node) return is_written ? unknown_changed(path) : void();
    if (what == node_change::removed) return remove(path);
    if (is_written) {
        // The first look at the node is still to come: the event belongs to another watch.
        if (node->data_state == read_state::none && !node->data_refused) return;
        node->data_refused = false;
        if (node->children_refused) ask(node_read::children, path);  // C7: may be listed now
        ask(wants_data(path) ? node_read::data : node_read::stat, path);
    } else if (what == node_change::children_changed && !by_one_watch_) {
        if (node->children_state != read_state::none) ask(node_read::children, path);
    }
}

// C10. A listing of the parent's children that is still to be answered will show the node.
void tree_sync::unknown_changed(const std::string& path) {
    const tree_node* const parent = by_one_watch_ ? tree_.find(parent_path(path)) : nullptr;
    if (!parent || parent->children_state != read_state::watched || !wanted(path)) return;
    tree_.add(path);
    look_at(path);
}

// C6. For a root that was missing, or is missing from now on.
void tree_sync::root_changed(node_change what) {
    const std::string& root = tree_.root_path();
    remove(root);
    ask(what == node_change::created && wants_data(root) ? node_read::data : node_read::stat, root);
}

std::vector<tree_sync::read> tree_sync::take_left() {
    std::vector<read> left = std::exchange(left_, {});
    if (by_one_watch_) left.clear();
    return left;
}

bool tree_sync::watches(node_read what, std::string_view path) const noexcept {
    if (by_one_watch_ || !is_known(what, path)) return false;
    const read_state state = state_of(what, tree_.find(path));
    return state != read_state::none && state != read_state::queued;
}

void tree_sync::for_each_watch(const std::function<void(node_read, const std::string&)>& f) const {
    if (by_one_watch_) return;
    if (!tree_.root() && root_state_ != read_state::none) f(node_read::stat, tree_.root_path());
    tree_.for_each(tree_.root_path(), [&](const std::string& path, const tree_node& node) {
        if (node.data_state != read_state::none) f(node_read::stat, path);
        if (node.children_state != read_state::none) f(node_read::children, path);
    });
    // A read under way of a node that is no longer in the tree sets a watch, too. As long as watches() named that node,
    // another user of the node's watch may have left the watch's removal to this cache.
    for (const read& r : under_way_)
        if (!is_known(r.what, r.path)) f(r.what == node_read::children ? r.what : node_read::stat, r.path);
}

}  // namespace zkasio::cache_detail
