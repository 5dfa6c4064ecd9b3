#pragma once

#include <zkasio/cache/detail/directory.hpp>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace zkasio::cache_detail {

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
