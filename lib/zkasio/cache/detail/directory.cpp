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
    try {
        doomed->push_back(std::move(children));
    } catch (const std::exception&) {  // no memory: `children` destroys the nodes in it recursively
    }
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
    const bool first = chunks_.empty();
    if (first) chunks_.push_back(make_ref<chunk>());
    std::size_t at = first ? 0 : chunk_of(result.name);
    std::size_t i = index_in(*chunks_[at], result.name);
    if (chunks_[at]->nodes.size() == most) {
        // Names are often added in order: then the full chunk stays full, and the next chunk begins.
        const std::size_t keep = i == most ? most : most / 2;
        ref_ptr<chunk> rest = make_ref<chunk>();
        if (keep < most) {
            auto& nodes = own(chunks_[at]).nodes;
            const auto from = nodes.begin() + static_cast<std::ptrdiff_t>(keep);
            rest->nodes.assign(std::make_move_iterator(from), std::make_move_iterator(nodes.end()));
            nodes.erase(from, nodes.end());
        }
        chunks_.insert(chunks_.begin() + static_cast<std::ptrdiff_t>(at) + 1, std::move(rest));
        if (i >= keep) {
            ++at;
            i -= keep;
        }
    }
    auto& nodes = own(chunks_[at]).nodes;
    assert((i == nodes.size() || nodes[i]->name != result.name) && "the directory has a child of this name already");
    nodes.insert(nodes.begin() + static_cast<std::ptrdiff_t>(i), std::move(added));
    ++size_;
    return result;
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
