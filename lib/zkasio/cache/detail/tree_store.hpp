#pragma once

#include <zkasio/cache/streams.hpp>
#include <zkasio/types.hpp>

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zkasio::cache_detail {

/// Counts the owners of an object within the object: a std::shared_ptr would be twice as large.
class ref_counted {
public:
    ref_counted() noexcept = default;
    ref_counted(const ref_counted&) noexcept {}  // a copy has no owner yet
    ref_counted& operator=(const ref_counted&) = delete;

    void share() const noexcept { refs_.fetch_add(1, std::memory_order_relaxed); }
    /// Gives up one share. Returns whether that was the last owner's.
    bool leave() const noexcept {
        const std::uint32_t owners = refs_.fetch_sub(1, std::memory_order_acq_rel);
        assert(owners > 0);
        return owners == 1;
    }
    /// Whether there is only one owner, and all former owners have finished using the object.
    bool unique() const noexcept { return refs_.load(std::memory_order_acquire) == 1; }

protected:
    ~ref_counted() = default;

private:
    mutable std::atomic<std::uint32_t> refs_{0};
};

/// Shares an object derived from ref_counted. Like std::shared_ptr: different copies may be used on different threads
/// concurrently, a single copy may not.
template <class T>
class ref_ptr {
public:
    ref_ptr() noexcept = default;
    explicit ref_ptr(T* p) noexcept : p_(p) {
        if (p_) p_->share();
    }
    ref_ptr(const ref_ptr& other) noexcept : ref_ptr(other.p_) {}
    ref_ptr(ref_ptr&& other) noexcept : p_(std::exchange(other.p_, nullptr)) {}
    ref_ptr& operator=(ref_ptr other) noexcept {
        std::swap(p_, other.p_);
        return *this;
    }
    ~ref_ptr() {
        if (p_ && p_->leave()) delete p_;
    }

    T* get() const noexcept { return p_; }
    T& operator*() const noexcept { return *get_existing(); }
    T* operator->() const noexcept { return get_existing(); }
    explicit operator bool() const noexcept { return p_ != nullptr; }
    friend bool operator==(const ref_ptr&, const ref_ptr&) noexcept = default;

private:
    T* get_existing() const noexcept {
        assert(p_);
        return p_;
    }

    T* p_ = nullptr;
};

template <class T, class... Args>
ref_ptr<T> make_ref(Args&&... args) {
    return ref_ptr<T>(new T(std::forward<Args>(args)...));
}

/// The object, copied first if it has other owners: other owners never see a change.
template <class T>
T& own(ref_ptr<T>& p) {
    if (!p->unique()) p = make_ref<T>(*p);
    return *p;
}

/// The result of reading a node.
struct node_value : ref_counted {
    std::string data;
    node_stat stat;
    std::shared_ptr<const parsed_value> parsed;  ///< null: there is no parser, or it has failed
    bool readable = true;                        ///< false: its ACL denies this client the data
};
using value_ptr = ref_ptr<node_value>;

/// The state of what a cache reads of a node (its data, or the names of its children), see tree_sync.
enum class read_state : std::uint8_t {
    none,           ///< no watch is set, and no read is under way
    queued,         ///< will be read
    reading,        ///< a read is under way
    reading_again,  ///< a read is under way, and the node has changed since: will be read again
    watched,        ///< read, and the watch is set
};

class directory;

/// A node in a tree that snapshots share with the cache. Where readers look, a node that is shared is not changed:
/// own() copies it first.
struct tree_node : ref_counted {
    explicit tree_node(std::string n) : name(std::move(n)) {}
    tree_node(const tree_node&) = default;
    tree_node& operator=(const tree_node&) = delete;
    /// Destroys the nodes below without recursion: a tree may be deeper than a stack has room for.
    ~tree_node();

    std::string name;
    value_ptr value;              ///< null: not read yet; readers do not see such a node
    ref_ptr<directory> children;  ///< null: none

    // For the cache alone: readers do not use these members, which may change at any time.
    read_state data_state = read_state::none, children_state = read_state::none;
    bool data_refused = false, children_refused = false;  ///< its ACL denies this client the data, or the names
};

/// The children of a node, in the order of their names: a sorted array in chunks, so that a change copies one chunk and
/// the list of chunks, and not the whole array.
class directory : public ref_counted {
public:
    bool empty() const noexcept { return size_ == 0; }
    std::size_t size() const noexcept { return size_; }

    const tree_node* find(std::string_view name) const noexcept;
    /// For a directory that is not shared: the place of the child, which may itself be shared. Null: no such child.
    ref_ptr<tree_node>* place(std::string_view name);
    /// Precondition: there is no child of this name.
    tree_node& insert(std::string name);
    void erase(std::string_view name);

    template <class F>
    void for_each(F f) const {
        for (const auto& c : chunks_)
            for (const auto& n : c->nodes) f(*n);
    }

private:
    static constexpr std::size_t most = 64;  // the most nodes in a chunk
    struct chunk : ref_counted {
        std::vector<ref_ptr<tree_node>> nodes;  // never empty
    };

public:
    /// Goes through the children, in order. The directory must not change during that.
    class cursor {
    public:
        /// @param of null: no children.
        explicit cursor(const directory* of) noexcept : of_(of) {}
        /// Null: no further child.
        const tree_node* next() noexcept {
            if (!of_ || chunk_ == of_->chunks_.size()) return nullptr;
            const auto& nodes = of_->chunks_[chunk_]->nodes;
            assert(index_ < nodes.size() && "the directory has changed");
            const tree_node* const found = nodes[index_].get();
            if (++index_ == nodes.size()) {
                ++chunk_;
                index_ = 0;
            }
            return found;
        }

    private:
        const directory* of_;
        std::size_t chunk_ = 0, index_ = 0;
    };

private:
    std::size_t chunk_of(std::string_view name) const noexcept;
    static std::size_t index_in(const chunk& c, std::string_view name) noexcept;
    std::size_t split(std::size_t at);

    std::vector<ref_ptr<chunk>> chunks_;
    std::size_t size_ = 0;
};

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
