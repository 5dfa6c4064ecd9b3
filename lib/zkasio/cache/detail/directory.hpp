#pragma once

#include <zkasio/cache/detail/ref_ptr.hpp>
#include <zkasio/cache/parsed_value.hpp>
#include <zkasio/types.hpp>

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zkasio::cache_detail {

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

}  // namespace zkasio::cache_detail
