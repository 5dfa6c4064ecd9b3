#include <zkasio/cache/detail/tree_store.hpp>

#include <zkasio/path.hpp>

#include <algorithm>
#include <cassert>
#include <utility>

namespace zkasio::cache_detail {

namespace {

// The directories that the outermost ~tree_node() of this thread has yet to destroy; null: no ~tree_node() runs.
thread_local std::vector<ref_ptr<directory>>* doomed = nullptr;

}  // namespace

tree_node::~tree_node() {
    if (!children) return;
    const bool is_outermost = !doomed;
    std::vector<ref_ptr<directory>> all;
    if (is_outermost) doomed = &all;
    doomed->push_back(std::move(children));
    if (!is_outermost) return;
    while (!all.empty()) {
        const ref_ptr<directory> next = std::move(all.back());
        all.pop_back();
    }
    doomed = nullptr;
}

// The last chunk whose first name is not behind `name`; if there is none, the first chunk.
std::size_t directory::chunk_of(std::string_view name) const noexcept {
    const auto behind = std::partition_point(chunks_.begin(), chunks_.end(),
                                             [&](const auto& c) { return c->nodes.front()->name <= name; });
    return behind == chunks_.begin() ? 0 : static_cast<std::size_t>(behind - chunks_.begin()) - 1;
}

// The first node whose name is not in front of `name`.
std::size_t directory::index_in(const chunk& c, std::string_view name) noexcept {
    const auto found =
        std::partition_point(c.nodes.begin(), c.nodes.end(), [&](const auto& n) { return n->name < name; });
    return static_cast<std::size_t>(found - c.nodes.begin());
}

const tree_node* directory::find(std::string_view name) const noexcept {
    if (chunks_.empty()) return nullptr;
    const chunk& c = *chunks_[chunk_of(name)];
    const std::size_t i = index_in(c, name);
    return i < c.nodes.size() && c.nodes[i]->name == name ? c.nodes[i].get() : nullptr;
}

ref_ptr<tree_node>* directory::place(std::string_view name) {
    if (!find(name)) return nullptr;
    chunk& c = own(chunks_[chunk_of(name)]);
    return &c.nodes[index_in(c, name)];
}

tree_node& directory::insert(std::string name) {
    ref_ptr<tree_node> added = make_ref<tree_node>(std::move(name));
    tree_node& result = *added;
    std::size_t at = chunks_.empty() ? 0 : chunk_of(result.name);
    std::size_t i = chunks_.empty() ? 0 : index_in(*chunks_[at], result.name);
    // Names are often added in order: then the full chunk stays full, and the next chunk begins.
    if (chunks_.empty() || i == most) {
        ref_ptr<chunk> next = make_ref<chunk>();
        next->nodes.push_back(std::move(added));
        chunks_.insert(chunks_.begin() + static_cast<std::ptrdiff_t>(chunks_.empty() ? 0 : at + 1), std::move(next));
    } else {
        if (chunks_[at]->nodes.size() == most && split(at) <= i) {
            ++at;
            i -= most / 2;
        }
        auto& nodes = own(chunks_[at]).nodes;
        assert((i == nodes.size() || nodes[i]->name != result.name) && "the directory has a child of this name");
        nodes.insert(nodes.begin() + static_cast<std::ptrdiff_t>(i), std::move(added));
    }
    ++size_;
    return result;
}

// Moves the second half of a full chunk into a chunk of its own. Returns the size of the first half.
std::size_t directory::split(std::size_t at) {
    auto& nodes = own(chunks_[at]).nodes;
    const auto half = nodes.begin() + static_cast<std::ptrdiff_t>(most / 2);
    ref_ptr<chunk> rest = make_ref<chunk>();
    rest->nodes.assign(half, nodes.end());
    chunks_.insert(chunks_.begin() + static_cast<std::ptrdiff_t>(at) + 1, std::move(rest));
    nodes.erase(half, nodes.end());
    return most / 2;
}

void directory::erase(std::string_view name) {
    if (!find(name)) return;
    const std::size_t at = chunk_of(name);
    auto& nodes = own(chunks_[at]).nodes;
    nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(index_in(*chunks_[at], name)));
    if (nodes.empty()) chunks_.erase(chunks_.begin() + static_cast<std::ptrdiff_t>(at));
    --size_;
    assert((size_ == 0) == chunks_.empty());
}

std::string_view next_name(std::string_view& rest) noexcept {
    const std::size_t end = std::min(rest.find('/'), rest.size());
    const std::string_view name = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return name;
}

std::string_view below(std::string_view root, std::string_view path) noexcept {
    path.remove_prefix(std::min(path.size(), root.size() == 1 ? 1 : root.size() + 1));
    return path;
}

const tree_node* find_below(const tree_node* top, std::string_view rest) noexcept {
    while (top && !rest.empty()) {
        const std::string_view name = next_name(rest);
        top = top->children ? top->children->find(name) : nullptr;
    }
    return top;
}

bool is_within(std::string_view root, std::string_view path) noexcept {
    if (root.size() == 1) return path.starts_with('/');
    return path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/');
}

std::size_t tree_store::depth(std::string_view path) const noexcept {
    const std::string_view rest = below(root_path_, path);
    return rest.empty() ? 0 : 1 + static_cast<std::size_t>(std::count(rest.begin(), rest.end(), '/'));
}

tree_node* tree_store::find(std::string_view path) const noexcept {
    if (!found_ || found_path_ != path) {
        found_ = const_cast<tree_node*>(find_below(root_.get(), below(root_path_, path)));
        if (found_) found_path_ = path;
    }
    return found_;
}

tree_node& tree_store::edit(std::string_view path) {
    found_ = nullptr;  // own() may replace any node on the way
    tree_node* at = &own(root_);
    for (std::string_view rest = below(root_path_, path); !rest.empty();)
        at = &own(*own(at->children).place(next_name(rest)));
    return *at;
}

void tree_store::set_value(std::string_view path, value_ptr value) {
    tree_node& node = edit(path);
    if (!node.value) ++size_;
    node.value = std::move(value);
}

void tree_store::forget_value(std::string_view path) {
    tree_node& node = edit(path);
    assert(node.value);
    node.value = {};
    --size_;
}

tree_node& tree_store::add(std::string_view path) {
    if (is_root(path)) {
        assert(!root_);
        root_ = make_ref<tree_node>(std::string());
        return *root_;
    }
    tree_node& parent = edit(parent_path(path));
    if (!parent.children) parent.children = make_ref<directory>();
    return own(parent.children).insert(std::string(node_name(path)));
}

void tree_store::remove(std::string_view path,
                        const std::function<void(const std::string& path, const value_ptr&)>& f) {
    tree_node* const found = find(path);
    if (!found) return;
    found_ = nullptr;
    const ref_ptr<tree_node> gone(found);
    if (is_root(path)) {
        root_ = {};
    } else {
        tree_node& parent = edit(parent_path(path));
        own(parent.children).erase(node_name(path));
        if (parent.children->empty()) parent.children = {};
    }
    visit_tree(std::string(path), *gone, visit_order::children_first,
               [&](const std::string& where, const tree_node& node) {
                   if (!node.value) return true;
                   --size_;
                   f(where, node.value);
                   return true;
               });
    assert((root_ || size_ == 0) && "every node that has a value is below the root");
}

void tree_store::for_each(const std::string& top,
                          const std::function<void(const std::string& path, tree_node&)>& f) const {
    const tree_node* const node = find(top);
    if (!node) return;
    visit_tree(top, *node, visit_order::parents_first, [&](const std::string& path, const tree_node& n) {
        f(path, const_cast<tree_node&>(n));
        return true;
    });
}

}  // namespace zkasio::cache_detail
