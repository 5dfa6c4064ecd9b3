#include <zkasio/cache/children_cache.hpp>

#include <zkasio/cache/detail/tree_sync.hpp>
#include <zkasio/path.hpp>

namespace zkasio {
namespace {

cache_detail::tree_scope children_only(bool with_data) {
    cache_detail::tree_scope scope;
    scope.depth = 1;
    scope.root_data = false;
    scope.data = with_data;
    return scope;
}

}  // namespace

bool children_view::readable() const {
    const cached_node parent = tree_.find(parent_);
    return !parent || parent.readable();
}

cached_node children_view::find(std::string_view name) const {
    const bool is_name = !name.empty() && name.find('/') == std::string_view::npos;
    return is_name ? tree_.find(join_path(parent_, name)) : cached_node();
}

children_cache::children_cache(const client& zk, std::string path, children_cache_options options)
    : cache(zk, std::move(path), children_only(options.with_data()), common_options(options)) {}

}  // namespace zkasio
