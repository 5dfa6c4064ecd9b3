#include <zkasio/cache/detail/tree_store.hpp>

#include <zkasio/path.hpp>

#include <algorithm>

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
    return const_cast<tree_node*>(find_below(root_.get(), below(root_path_, path)));
}

tree_node& tree_store::edit(std::string_view path) {
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
    edit(path).value = {};
    --size_;
}

tree_node& tree_store::add(std::string_view path) {
    if (is_root(path)) {
        root_ = make_ref<tree_node>(std::string());
        return *root_;
    }
    tree_node& parent = edit(parent_path(path));
    if (!parent.children) parent.children = make_ref<directory>();
    return own(parent.children).insert(std::string(node_name(path)));
}

namespace {

// A visitor of `node` and all below it.
template <class F>
void visit(const std::string& path, tree_node& node, bool children_first, F& f) {
    if (!children_first) f(path, node);
    if (node.children)
        node.children->for_each([&](const tree_node& child) {
            visit(join_path(path, child.name), const_cast<tree_node&>(child), children_first, f);
        });
    if (children_first) f(path, node);
}

}  // namespace

void tree_store::remove(std::string_view path,
                        const std::function<void(const std::string& path, const value_ptr&)>& f) {
    tree_node* const found = find(path);
    if (!found) return;
    const ref_ptr<tree_node> gone(found);
    if (is_root(path)) {
        root_ = {};
    } else {
        tree_node& parent = edit(parent_path(path));
        own(parent.children).erase(node_name(path));
        if (parent.children->empty()) parent.children = {};
    }
    auto tell = [&](const std::string& where, const tree_node& node) {
        if (!node.value) return;
        --size_;
        f(where, node.value);
    };
    visit(std::string(path), *gone, true, tell);
}

void tree_store::for_each(const std::string& top,
                          const std::function<void(const std::string& path, tree_node&)>& f) const {
    if (tree_node* const node = find(top)) visit(top, *node, false, f);
}

}  // namespace zkasio::cache_detail
