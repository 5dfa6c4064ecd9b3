#pragma once

#include <zkasio/cache/cache.hpp>
#include <zkasio/export.hpp>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zkasio {

class children_cache_options : public cache_options<children_cache_options> {
public:
    children_cache_options() {}
    /// Without the data of the children: names and stats only (with data).
    children_cache_options& without_data() { data_ = false; return *this; }

    bool with_data() const noexcept { return data_; }

private:
    bool data_ = true;
};

/// The state of a children_cache at some moment: see tree_view.
class ZKASIO_EXPORT children_view {
public:
    children_view() noexcept = default;
    children_view(tree_view tree, std::string parent) : tree_(std::move(tree)), parent_(std::move(parent)) {}

    bool ready() const noexcept { return tree_.ready(); }
    bool current() const noexcept { return tree_.current(); }
    /// Whether the parent exists.
    bool exists() const { return tree_.contains(parent_); }
    /// False: the parent exists, but its ACL hides the names of its children from this client. Then the view is empty.
    bool readable() const;

    std::size_t size() const noexcept { return tree_.size() > 0 ? tree_.size() - 1 : 0; }
    bool empty() const noexcept { return size() == 0; }
    /// @param name of a child. The result is empty if there is no such child.
    cached_node find(std::string_view name) const;
    /// The names of the children, sorted.
    std::vector<std::string> names() const { return tree_.names(parent_); }
    /// Calls `f(name, node)` for each child, in the order of their names.
    void for_each(const std::function<void(const std::string& name, const cached_node& node)>& f) const {
        tree_.for_each_child(parent_, f);
    }

private:
    tree_view tree_;
    std::string parent_;
};

/// The children of a node, with their data, in memory: see cache. The data of the node itself are not read.
class ZKASIO_EXPORT children_cache : public cache {
public:
    /// @param path of the parent; need not exist. Throws errc::invalid_path and errc::invalid_argument.
    children_cache(const client& zk, std::string path, children_cache_options options = children_cache_options());

    /// The state that is known at this moment.
    children_view snapshot() const { return children_view(view(), path()); }
};

}  // namespace zkasio
