#include <zkasio/cache/tree_view.hpp>

#include <zkasio/cache/detail/cache_board.hpp>
#include <zkasio/cache/detail/tree_store.hpp>

#include <utility>

namespace zkasio {

using cache_detail::node_value;

cached_node::cached_node(const node_value* value) noexcept : value_(value) {
    if (value_) value_->share();
}

cached_node::cached_node(const cached_node& other) noexcept : cached_node(other.value_) {}
cached_node::cached_node(cached_node&& other) noexcept : value_(std::exchange(other.value_, nullptr)) {}

cached_node& cached_node::operator=(cached_node other) noexcept {
    std::swap(value_, other.value_);
    return *this;
}

cached_node::~cached_node() {
    if (value_ && value_->leave()) delete value_;
}

namespace {

const node_value& none() noexcept {
    static const node_value empty;
    return empty;
}

}  // namespace

const std::string& cached_node::data() const noexcept { return (value_ ? *value_ : none()).data; }
const node_stat& cached_node::stat() const noexcept { return (value_ ? *value_ : none()).stat; }
bool cached_node::readable() const noexcept { return value_ && value_->readable; }

const cache_detail::parsed_value* cached_node::parsed_data() const noexcept {
    return value_ ? value_->parsed.get() : nullptr;
}

bool cached_node::is_same(const cached_node& other) const noexcept {
    if (!value_ || !other.value_) return value_ == other.value_;
    return stat().czxid == other.stat().czxid && stat().mzxid == other.stat().mzxid && readable() == other.readable();
}

using namespace cache_detail;

bool tree_view::ready() const noexcept { return snapshot_ && snapshot_->ready; }
bool tree_view::current() const noexcept { return snapshot_ && snapshot_->current; }
std::uint64_t tree_view::version() const noexcept { return snapshot_ ? snapshot_->version : 0; }
std::size_t tree_view::size() const noexcept { return snapshot_ ? snapshot_->size : 0; }

namespace {

const tree_node* node_at(const snapshot* s, std::string_view path) noexcept {
    if (!s || !s->root || !is_within(*s->root_path, path)) return nullptr;
    if (path.size() > 1 && path.ends_with('/')) return nullptr;
    const tree_node* const node = find_below(s->root.get(), below(*s->root_path, path));
    return node && node->value ? node : nullptr;
}

}  // namespace

cached_node tree_view::find(std::string_view path) const {
    const tree_node* const node = node_at(snapshot_.get(), path);
    return node ? make_view::node(node->value) : cached_node();
}

std::vector<std::string> tree_view::names(std::string_view path) const {
    std::vector<std::string> all;
    for_each_child(path, [&](const std::string& name, const cached_node&) { all.push_back(name); });
    return all;
}

void tree_view::for_each_child(
    std::string_view path, const std::function<void(const std::string& name, const cached_node& node)>& f) const {
    const tree_node* const node = node_at(snapshot_.get(), path);
    if (!node || !node->children) return;
    node->children->for_each([&](const tree_node& child) {
        if (child.value) f(child.name, make_view::node(child.value));
    });
}

void tree_view::for_each(const std::function<void(const std::string& path, const cached_node& node)>& f) const {
    if (!snapshot_ || !snapshot_->root) return;
    visit_tree(*snapshot_->root_path, *snapshot_->root, visit_order::parents_first,
               [&](const std::string& path, const tree_node& node) {
                   if (node.value) f(path, make_view::node(node.value));
                   return static_cast<bool>(node.value);
               });
}

}  // namespace zkasio
