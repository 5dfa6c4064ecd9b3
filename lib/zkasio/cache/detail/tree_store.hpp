#pragma once

#include <zkasio/cache/detail/directory.hpp>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zkasio::cache_detail {

/// The nodes that a cache knows, by their paths. Snapshots share the nodes, and a snapshot never changes. The store
/// sends no requests and is used on one strand; its snapshots may be read on any thread.
class tree_store {
public:
    explicit tree_store(std::string root) : root_path_(std::move(root)) {}

    const std::string& root_path() const noexcept { return root_path_; }
    bool is_root(std::string_view path) const noexcept { return path == root_path_; }
    /// The number of levels below the root.
    std::size_t depth(std::string_view path) const noexcept;
    /// The number of nodes whose value is known.
    std::size_t size() const noexcept { return size_; }
    /// Null: there is no node. A caller that keeps a copy of the pointer has a snapshot.
    const ref_ptr<tree_node>& root() const noexcept { return root_; }

    /// Null: there is no such node. The read states of the node may be changed; for other changes use edit().
    tree_node* find(std::string_view path) const noexcept;
    /// An existing node, to change its members that readers see, except its value: see set_value().
    tree_node& edit(std::string_view path);
    void set_value(std::string_view path, value_ptr value);
    /// Precondition: the node has a value.
    void forget_value(std::string_view path);
    /// Adds a node without a value, below an existing parent; or the root.
    tree_node& add(std::string_view path);
    /// Removes the node with all nodes below it. Calls `f` for each whose value is known, children before parents.
    void remove(std::string_view path, const std::function<void(const std::string& path, const value_ptr&)>& f);

    /// Calls `f(path, node)` for the node at `top` and each below it, also for those without a value.
    void for_each(const std::string& top, const std::function<void(const std::string& path, tree_node&)>& f) const;

private:
    std::string root_path_;
    ref_ptr<tree_node> root_;
    std::size_t size_ = 0;
    // The node that find() has found last, until the tree changes: each answer looks for its node many times.
    mutable std::string found_path_;
    mutable tree_node* found_ = nullptr;  // null: none
};

/// Removes the first name from `rest`, a path below a root without its first '/', and returns that name.
std::string_view next_name(std::string_view& rest) noexcept;

/// The node at `rest`, a path relative to `top`. Null: there is none.
const tree_node* find_below(const tree_node* top, std::string_view rest) noexcept;

/// Whether `path` is `root` or below it.
bool is_within(std::string_view root, std::string_view path) noexcept;

/// `path` relative to `root`: "a/b"; "" for the root itself. @param path of the root or of a node below it.
std::string_view below(std::string_view root, std::string_view path) noexcept;

enum class visit_order { parents_first, children_first };

/// Calls `f(path, node)` for `top`, whose path is `path`, and for each node below it. With parents first, `f` returns
/// whether the children are visited, too. Without recursion: a tree may be deeper than a stack has room for.
template <class F>
void visit_tree(std::string path, const tree_node& top, visit_order order, F&& f) {
    struct level {
        const tree_node* node;
        directory::cursor children;
        std::size_t parent_path;  // the size of the parent's path
    };
    std::vector<level> open;
    const auto enter = [&](const tree_node& node, std::size_t parent_path) {
        const bool descends = order == visit_order::children_first || f(std::as_const(path), node);
        open.push_back({&node, directory::cursor(descends ? node.children.get() : nullptr), parent_path});
    };
    enter(top, path.size());
    while (!open.empty()) {
        if (const tree_node* const child = open.back().children.next()) {
            const std::size_t parent_path = path.size();
            if (path != "/") path += '/';
            path += child->name;
            enter(*child, parent_path);
        } else {
            const level done = open.back();
            open.pop_back();
            if (order == visit_order::children_first) f(std::as_const(path), *done.node);
            path.resize(done.parent_path);
        }
    }
}

}  // namespace zkasio::cache_detail
