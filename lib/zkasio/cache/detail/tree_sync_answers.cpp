// The part of tree_sync that takes the answers of servers, and changes the tree by them.

#include <zkasio/cache/detail/tree_sync.hpp>

#include <zkasio/error.hpp>
#include <zkasio/path.hpp>

#include <algorithm>
#include <cassert>

namespace zkasio::cache_detail {

void tree_sync::answered(node_read what, const std::string& path, std::error_code code, node_answer&& answer) {
    first_look_ = take_first_look(what, path);
    some_are_lost_ = some_are_lost_ && !under_way_.empty();
    if (some_are_lost_ && is_under_way(what, path)) return settle();  // only the answer to the latest read counts
    read_state* const state = is_known(what, path) ? &state_of(what, tree_.find(path)) : nullptr;
    const bool expected = state && (*state == read_state::reading || *state == read_state::reading_again);
    if (expected) {
        const bool again = *state == read_state::reading_again;
        *state = read_state::none;
        if (code == condition::retryable) {
            put_off_ = true;
            ask(what, path);
        } else if (code == zk_errc::no_node) {
            missing(what, path);
        } else if (code) {
            refused(what, path);
        } else {
            *state = read_state::watched;
            if (what == node_read::data) data_answered(path, std::move(answer));
            else if (what == node_read::stat) stat_answered(path, answer.stat);
            else children_answered(path, std::move(answer));
        }
        first_look_ = false;
        if (again && is_known(what, path)) {  // C2: the answer may be older than the change
            tree_node* const node = tree_.find(path);
            if (node && what != node_read::children) node->data_refused = false;
            ask(what, path);
        }
    } else if (!state || *state == read_state::none) {
        // The node was removed or re-created after the read was sent: the watch that the read has set is not needed.
        const bool watched = !code || (what == node_read::stat && code == zk_errc::no_node);
        if (watched) left_.push_back({what, path});
    }
    settle();
}

namespace {

// C3. False if servers have denied even the stat of the known node: then nothing tells the two nodes apart.
bool is_other_node(const value_ptr& known, const node_stat& stat) noexcept {
    const bool has_stat = known && (known->readable || known->stat != node_stat());
    return has_stat && known->stat.czxid != stat.czxid;
}

}  // namespace

// The node that an answer with this stat belongs to. C3: if the known node is another one, the known node is removed
// first, with the nodes below it: see forget_old().
tree_node& tree_sync::node_of(const std::string& path, const node_stat& stat) {
    tree_node* node = tree_.find(path);
    if (node && is_other_node(node->value, stat)) {
        forget_old(path, stat.czxid);
        node = tree_.find(path);
    }
    if (!node) node = &tree_.add(path);
    node->data_state = read_state::watched;
    return *node;
}

namespace {

// Whether this node, or one below it, is not older than `zxid`.
bool some_is_made_since(const tree_node& top, std::int64_t zxid) {
    std::vector<const tree_node*> unseen{&top};
    while (!unseen.empty()) {
        const tree_node& node = *unseen.back();
        unseen.pop_back();
        if (node.value && node.value->stat.czxid >= zxid) return true;
        if (node.children) node.children->for_each([&](const tree_node& child) { unseen.push_back(&child); });
    }
    return false;
}

}  // namespace

// The node was re-created with this czxid; its new value follows at once. Younger nodes below it belong to the new
// node and are kept: these were read before the node itself was looked at again.
void tree_sync::forget_old(const std::string& path, std::int64_t czxid) {
    std::vector<std::string> old;
    if (const auto& children = tree_.find(path)->children)
        children->for_each([&](const tree_node& child) {
            if (!some_is_made_since(child, czxid)) old.push_back(child.name);
        });
    for (const std::string& name : old) leave(join_path(path, name));  // an old value, perhaps with a newly set watch
    deltas_.push_back({path, tree_.find(path)->value, {}});
    dirty_ = true;
    tree_.forget_value(path);
    tree_node* const node = tree_.find(path);  // not before: forget_value() copies a node that a snapshot shares
    // A watch of the old node would have fired. So this watch is of the new node, and the read that set it is
    // forgotten.
    if (node->children_state != read_state::none) left_.push_back({node_read::children, path});
    node->children_state = read_state::none;
    node->data_refused = node->children_refused = false;
    some_are_lost_ = true;
}

void tree_sync::data_answered(const std::string& path, node_answer&& answer) {
    tree_node& node = node_of(path, answer.stat);
    node.data_refused = false;
    if (node.value && node.value->readable && node.value->stat.mzxid == answer.stat.mzxid) {
        update_stat(path, answer.stat);  // it was read again on another connection
    } else {
        value_ptr value = make_ref<node_value>();
        value->data = std::move(answer.data);
        value->stat = answer.stat;
        try {
            if (scope_.parse) value->parsed = scope_.parse(path, value->data);
        } catch (...) {
        }
        set(path, std::move(value));
    }
    look_below(path, by_one_watch_ && answer.stat.num_children == 0);
}

void tree_sync::stat_answered(const std::string& path, const node_stat& stat) {
    const tree_node* const shown = tree_.find(path);
    const bool made_anew = shown && is_other_node(shown->value, stat);
    // The old node and the nodes below it are shown until the new node can be shown.
    if (made_anew && wants_data(path) && !shown->data_refused) return ask(node_read::data, path);
    const tree_node& node = node_of(path, stat);
    const node_value* const known = node.value.get();
    const bool changed = !known || known->stat.mzxid != stat.mzxid;
    const bool other_acl = known && known->stat.aversion != stat.aversion;  // readability may have changed
    const bool was_refused = known && !known->readable;
    if (wants_data(path) && (changed || other_acl || was_refused) && !node.data_refused)
        return ask(node_read::data, path);
    // Where data are not wanted, but the names of the children are, the names tell whether the node may be read.
    const bool is_told_by_children = was_refused && wants_children(path, stat);
    const bool readable = !node.data_refused && !node.children_refused && !is_told_by_children;
    if (changed || known->readable != readable) {
        value_ptr value = make_ref<node_value>();
        value->stat = stat;
        value->readable = readable;
        set(path, std::move(value));
    } else {
        update_stat(path, stat);
    }
    look_below(path);
}

void tree_sync::children_answered(const std::string& path, node_answer&& answer) {
    tree_node* const node = tree_.find(path);
    assert(node->value && "C5: the names of the children are asked for when the stat is known");
    node->children_refused = false;
    if (!node->value->readable) {  // C7: one permission covers the data and the names of the children
        node->data_refused = false;
        if (wants_data(path))
            ask(node_read::data, path);
        else
            set_readable(path, true);
    }
    if (node->value->stat.czxid == answer.stat.czxid) {
        node_stat known = node->value->stat;  // the other fields come with the data that they belong to
        known.pzxid = answer.stat.pzxid;
        known.cversion = answer.stat.cversion;
        known.num_children = answer.stat.num_children;
        update_stat(path, known);
    }
    std::vector<std::string>& names = answer.children;
    std::sort(names.begin(), names.end());
    children_listed(path, names);
}

// For children that are already known and followed, nothing is to be done: one comparison each.
void tree_sync::children_listed(const std::string& path, const std::vector<std::string>& names) {
    std::vector<std::string> gone;
    std::vector<const std::string*> to_look_at;
    directory::cursor known(tree_.find(path)->children.get());
    const tree_node* child = known.next();
    for (const std::string& name : names) {
        for (; child && child->name < name; child = known.next()) gone.push_back(child->name);
        const bool is_known = child && child->name == name;
        if (!is_known || !is_followed(*child)) to_look_at.push_back(&name);
        if (is_known) child = known.next();
    }
    for (; child; child = known.next()) gone.push_back(child->name);

    for (const std::string& name : gone) remove(join_path(path, name));
    for (const std::string* name : to_look_at) {
        const std::string child_path = join_path(path, *name);
        tree_node* node = tree_.find(child_path);
        if (!node && wanted(child_path)) node = &tree_.add(child_path);
        if (!node) continue;
        node->data_refused = false;
        look_at(child_path);
    }
}

// No watch reports changes of a node that the client may not read (CVE-2024-23944).
bool tree_sync::is_followed(const tree_node& node) noexcept {
    const bool is_unwatchable = node.data_refused && node.data_state != read_state::reading;
    return node.data_state != read_state::none && !is_unwatchable;
}

// A read has found no node, so the node is removed from the tree; also if only the names of its children were read. A
// data watch that was set would have reported the removal before. So there is none, which means that the data are being
// read again, and the state that is shown until then would be false.
void tree_sync::missing(node_read what, const std::string& path) {
    remove(path);
    if (!tree_.is_root(path)) {
        if (what == node_read::stat) left_.push_back({what, path});  // this watch waits for a creation
    } else if (what == node_read::stat) {
        root_state_ = read_state::watched;
    } else {
        ask(node_read::stat, path);
    }
}

// C7. An earlier read of the node may have set a watch that has not fired.
void tree_sync::refused(node_read what, const std::string& path) {
    tree_node* const node = tree_.find(path) ? tree_.find(path) : &tree_.add(path);
    refused_.insert(path);
    if (what == node_read::children) {
        node->children_refused = true;
        left_.push_back({node_read::children, path});
        leave_below(path);
        return set_readable(path, false);
    }
    node->data_refused = true;
    if (what == node_read::data) return ask(node_read::stat, path);
    // Servers from 3.8.4 on deny the stat, too, and report no change: a watch of the children that was set may be gone
    // without an event. The nodes below cannot be followed.
    left_.push_back({node_read::stat, path});
    if (node->children_state == read_state::watched) {
        node->children_state = read_state::none;
        left_.push_back({node_read::children, path});
    }
    value_ptr value = make_ref<node_value>();
    if (node->value) value->stat = node->value->stat;
    value->readable = false;
    set(path, std::move(value));
    leave_below(path);
}

// ------------------------------------------------------------------------------------------------ what is known

void tree_sync::set(const std::string& path, value_ptr value) {
    const value_ptr before = tree_.find(path)->value;
    if (before && before->stat.mzxid == value->stat.mzxid && before->readable == value->readable)
        return update_stat(path, value->stat);
    dirty_ = true;
    other_permissions_ = other_permissions_ || (before && before->readable != value->readable);
    deltas_.push_back({path, before, value});
    tree_.set_value(path, std::move(value));
}

// Shows the node as readable or not, without data (C7).
void tree_sync::set_readable(const std::string& path, bool readable) {
    const value_ptr& known = tree_.find(path)->value;
    if (!known || known->readable == readable) return;
    value_ptr value = make_ref<node_value>();
    value->stat = known->stat;
    value->readable = readable;
    set(path, std::move(value));
}

void tree_sync::update_stat(const std::string& path, const node_stat& stat) {
    const value_ptr& known = tree_.find(path)->value;
    if (known->stat == stat) return;
    dirty_ = true;
    value_ptr value = make_ref<node_value>(*known);
    value->stat = stat;
    tree_.set_value(path, std::move(value));
}

void tree_sync::remove(const std::string& path) {
    some_are_lost_ = true;
    tree_.remove(path, [this](const std::string& where, const value_ptr& value) {
        dirty_ = true;
        deltas_.push_back({where, value, {}});
        refused_.erase(where);
    });
}

// The nodes below exist and are watched, but must not be shown.
void tree_sync::leave_below(const std::string& path) {
    std::vector<std::string> names;
    if (const auto& children = tree_.find(path)->children)
        children->for_each([&](const tree_node& child) { names.push_back(child.name); });
    for (const std::string& name : names) leave(join_path(path, name));
}

// Removes the node with all nodes below it, and gives up the watches that may be set.
void tree_sync::leave(const std::string& path) {
    tree_.for_each(path, [this](const std::string& where, const tree_node& node) {
        if (node.data_state != read_state::none) left_.push_back({node_read::stat, where});
        if (node.children_state != read_state::none) left_.push_back({node_read::children, where});
    });
    remove(path);
}

}  // namespace zkasio::cache_detail
