#include <zkasio/cache/tree_cache.hpp>

#include <zkasio/cache/detail/tree_sync.hpp>

namespace zkasio {
namespace {

cache_detail::tree_scope scope_of(const tree_cache_options& o) {
    cache_detail::tree_scope scope;
    scope.depth = o.depth();
    scope.root_data = scope.data = o.with_data();
    scope.filter = o.filter();
    scope.filter_below = o.filter_below();
    return scope;
}

}  // namespace

tree_cache::tree_cache(const client& zk, std::string path, tree_cache_options options)
    : cache(zk, std::move(path), scope_of(options), common_options(options)) {}

}  // namespace zkasio
