#pragma once

#include <zkasio/cache/detail/directory.hpp>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace zkasio::cache_detail {

/// The nodes that a cache knows, by their paths. Snapshots share them: what was taken never changes. Pure. For one
/// strand; snapshots for any thread.
class tree_store {
public:
    explicit tree_store(std::string root) : root_path_(std::move(root)) {}

    const std::string& root_path() const noexcept { return root_path_; }
    bool is_root(std::string_view path) const noexcept { return path == root_path_; }
    /// How far below the root.
    std::size_t depth(std::string_view path) const noexcept;
    /// Of nodes whose value is known.
    std::size_t size() const noexcept { return size_; }
    /// Null: there is nothing. A snapshot for whoever keeps it.
    const ref_ptr<tree_node>& root() const noexcept { return root_; }

    /// Null: it is not there. Its read states may be changed; for the rest use edit().
    tree_node* find(std::string_view path) const noexcept;
    /// To change what readers see of a node that is there. Not its value: see set_value().
    tree_node& edit(std::string_view path);
    void set_value(std::string_view path, value_ptr value);
    /// Of a node that has one.
    void forget_value(std::string_view path);
    /// Makes a node without a value, below a parent that is there; or the root.
    tree_node& add(std::string_view path);
    /// Takes the node with all below it. Calls `f` for each whose value is known, those below first.
    void remove(std::string_view path, const std::function<void(const std::string& path, const value_ptr&)>& f);

    /// Calls `f(path, node)` for the node at `top` and each below it, also for those without a value.
    void for_each(const std::string& top, const std::function<void(const std::string& path, tree_node&)>& f) const;

private:
    std::string root_path_;
    ref_ptr<tree_node> root_;
    std::size_t size_ = 0;
};

/// The next name of `rest`, a path below a root without its first '/', which is shortened by it.
std::string_view next_name(std::string_view& rest) noexcept;

/// The node that `rest` leads to, from `top` downwards. Null: there is none.
const tree_node* find_below(const tree_node* top, std::string_view rest) noexcept;

/// Whether `path` is `root` or below it.
bool is_within(std::string_view root, std::string_view path) noexcept;

/// What leads from `root` to `path`: "a/b"; "" for the root itself. @param path of the root or of a node below it.
std::string_view below(std::string_view root, std::string_view path) noexcept;

}  // namespace zkasio::cache_detail
