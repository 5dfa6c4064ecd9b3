#include <zkasio/cache/node_cache.hpp>

#include <zkasio/cache/detail/tree_sync.hpp>

#include <utility>

namespace zkasio {
namespace {

cache_detail::tree_scope one_node() {
    cache_detail::tree_scope scope;
    scope.depth = 0;
    return scope;
}

}  // namespace

node_cache::node_cache(const client& zk, std::string path, node_cache_options options)
    : cache(zk, std::move(path), one_node(), common_options(options)) {}

}  // namespace zkasio
