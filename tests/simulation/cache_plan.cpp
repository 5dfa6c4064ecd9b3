#include "simulation/cache_plan.hpp"

#include <zkasio/cache/children_cache.hpp>
#include <zkasio/cache/node_cache.hpp>
#include <zkasio/cache/tree_cache.hpp>

namespace zkasio::test {

cache_plan::cache_plan(simulation& s, tree_writer& where) : kind_(static_cast<cache_kind>(s.pick(3))) {
    scope.root = s.chance(5) ? "/" : s.chance(60) ? "/t" : where.random_path();
    if (s.chance(50)) remembered = 1 + s.pick(4);
    if (s.chance(50)) reads = 1 + s.pick(3);
    if (kind_ != cache_kind::node && s.chance(25)) scope.data = scope.root_data = false;
    switch (kind_) {
        case cache_kind::tree:
            if (s.chance(40)) scope.depth = s.pick(3);
            if (s.chance(25)) scope.left_out = "c";
            return;
        case cache_kind::children:
            scope.depth = 1;
            scope.root_data = false;
            return;
        case cache_kind::node: scope.depth = 0; return;
    }
}

std::shared_ptr<const cache> cache_plan::make(const client& zk) const {
    if (kind_ == cache_kind::node) {
        node_cache_options o;
        return std::make_shared<node_cache>(zk, scope.root, o.remembered_changes(remembered).reads_at_a_time(reads));
    }
    if (kind_ == cache_kind::children) {
        children_cache_options o;
        if (!scope.data) o.without_data();
        return std::make_shared<children_cache>(zk, scope.root,
                                                o.remembered_changes(remembered).reads_at_a_time(reads));
    }
    tree_cache_options o;
    if (!scope.data) o.without_data();
    o.depth(scope.depth).remembered_changes(remembered).reads_at_a_time(reads);
    if (!scope.left_out.empty()) {
        const tree_cache_options::path_filter wanted = [of = scope](const std::string& path) {
            return of.covers(path);
        };
        o.filter(wanted);
    }
    return std::make_shared<tree_cache>(zk, scope.root, std::move(o));
}

}  // namespace zkasio::test
