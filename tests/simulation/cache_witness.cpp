#include "simulation/cache_witness.hpp"

#include "simulation/simulation.hpp"

#include <zkasio/path.hpp>

#include <algorithm>

namespace zkasio::test {
namespace {

bool is_at_or_below(const std::string& path, const std::string& root) {
    return path == root || root == "/" || path.starts_with(root + '/');
}

// "/a/b" for "/t/a/b" below "/t".
std::string below_root(const std::string& path, const std::string& root) {
    if (path == root) return {};
    return root == "/" ? path : path.substr(root.size());
}

std::string words_of(const node_stat& stat) {
    return std::to_string(stat.czxid) + '/' + std::to_string(stat.mzxid) + '/' + std::to_string(stat.pzxid);
}

}  // namespace

std::size_t cache_scope::level(const std::string& path) const {
    const std::string rest = below_root(path, root);
    return static_cast<std::size_t>(std::count(rest.begin(), rest.end(), '/'));
}

bool cache_scope::covers(const std::string& path) const {
    if (!is_at_or_below(path, root) || level(path) > depth) return false;
    return left_out.empty() || (below_root(path, root) + '/').find('/' + left_out + '/') == std::string::npos;
}

void cache_witness::fail(const std::string& what) const { throw violation(who_ + ": " + what); }

cache_witness::nodes cache_witness::nodes_in(const tree_view& view) const {
    nodes all;
    view.for_each([&](const std::string& path, const cached_node& node) {
        if (!scope_.covers(path)) fail("shows " + path + ", which it is not to show");
        if (path != scope_.root && !all.contains(std::string(parent_path(path))))
            fail("shows " + path + " without its parent");
        if (view.find(path) != node) fail("finds another " + path + " than it lists");
        all.emplace(path, node);
    });
    if (view.size() != all.size())
        fail("says that there are " + std::to_string(view.size()) + " nodes, and shows " + std::to_string(all.size()));
    return all;
}

void cache_witness::look_at(const tree_view& view, const nodes& shown, std::int64_t connected_at) {
    const std::int64_t floor = view.current() ? connected_at : 0;
    const auto shows = [&](const std::string& path) {
        const auto node = shown.find(path);
        told_.shows(path, node == shown.end() ? cached_node() : node->second, scope_.has_data(path), floor);
    };
    if (scope_.root == "/") shows("/");
    for (const auto& [path, states] : history_.nodes())
        if (scope_.covers(path)) shows(path);
}

void cache_witness::sees(const tree_view& now, std::int64_t connected_at) {
    if (now.version() < version_) fail("its view has an older version than the one before");
    if (now.version() == version_) return;
    version_ = now.version();
    if (!now.ready()) fail("shows what is not ready");
    look_at(now, nodes_in(now), connected_at);
}

void cache_witness::apply(const node_delta& change) {
    cached_node& known = known_[change.path];
    if (known != change.before || known.data() != change.before.data())
        fail("a change of " + change.path + " does not begin with what was told last");
    if (change.before == change.after) fail("a change of " + change.path + " is none");
    known = change.after;
    if (!known) known_.erase(change.path);
    told_.shows(change.path, change.after, scope_.has_data(change.path));
}

void cache_witness::hears(const cache_update& update, std::size_t remembered, std::int64_t connected_at) {
    constexpr std::size_t all = 1000;  // no run has as many changes
    const bool first = !std::exchange(has_heard_, true);
    if (!update.now.ready()) fail("tells of what is not ready");
    if (first && !update.look_again) fail("does not say that one has to look at first");
    if (!first && update.look_again && remembered > all) fail("wants one to look again without reason");
    if (update.look_again && !update.changes.empty()) fail("tells changes that do not count");
    if (update.changes.size() > remembered) fail("remembers more than it should");
    for (const node_delta& change : update.changes) apply(change);
    nodes now = nodes_in(update.now);
    if (update.look_again) known_ = now;
    if (now != known_) fail("its changes do not lead to what it shows");
    look_at(update.now, now, connected_at);
}

void cache_witness::check_equal(const tree_view& now, const sim_tree& tree, also_stats stats) const {
    if (!now.ready() || !now.current()) fail("is not current although all is calm");
    std::size_t expected = 0;
    for (const auto& [path, node] : tree.nodes()) {
        if (!scope_.covers(path)) continue;
        ++expected;
        const cached_node shown = now.find(path);
        node_stat stat = shown.stat();
        if (stats == also_stats::no || !scope_.has_children(path)) {
            stat.pzxid = node.stat.pzxid;
            stat.cversion = node.stat.cversion;
            stat.num_children = node.stat.num_children;
        }
        if (!shown) fail("does not show " + path + " when all is calm");
        if (stat != node.stat || !shown.readable())
            fail("shows an old stat of " + path + " when all is calm: " + words_of(stat) + ", true is " +
                 words_of(node.stat));
        if (scope_.has_data(path) && shown.data() != node.data) fail("shows old data of " + path + " when all is calm");
    }
    if (now.size() != expected) fail("shows nodes that are gone when all is calm");
}

}  // namespace zkasio::test
