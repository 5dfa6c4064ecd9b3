#include <zkasio/cache/detail/directory.hpp>

#include <algorithm>
#include <cassert>
#include <exception>

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

}  // namespace zkasio::cache_detail
