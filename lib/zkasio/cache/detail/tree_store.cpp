#include <zkasio/cache/detail/tree_store.hpp>

#include <zkasio/path.hpp>

#include <algorithm>
#include <cassert>
#include <exception>
#include <utility>

namespace zkasio::cache_detail {

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
