#include <zkasio/testing/detail/sim/sim_tree.hpp>

#include <zkasio/path.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <tuple>

namespace zkasio::testing_detail {

using namespace detail;

sim_tree::sim_tree() { nodes_.emplace("/", sim_node()); }

const sim_node* sim_tree::find(const std::string& path) const {
    const auto it = nodes_.find(path);
    return it == nodes_.end() ? nullptr : &it->second;
}

void sim_tree::for_each_child(const std::string& path,
                              const std::function<void(std::string, const sim_node&)>& f) const {
    const std::string prefix = path == "/" ? path : path + '/';
    for (auto it = nodes_.upper_bound(prefix); it != nodes_.end() && it->first.starts_with(prefix); ++it)
        if (it->first.find('/', prefix.size()) == std::string::npos) f(it->first.substr(prefix.size()), it->second);
}

std::vector<std::string> sim_tree::children(const std::string& path) const {
    std::vector<std::string> names;
    for_each_child(path, [&](std::string name, const sim_node&) { names.push_back(std::move(name)); });
    return names;
}

std::vector<std::string> sim_tree::children_as_listed(const std::string& path) const {
    struct child {
        std::string name;
        std::int64_t czxid;
        std::size_t bucket = 0;
    };
    std::vector<child> all;
    for_each_child(path, [&](std::string name, const sim_node& node) {
        all.push_back({std::move(name), node.stat.czxid});
    });
    std::size_t buckets = 8;
    while (all.size() * 4 > buckets * 3) buckets *= 2;
    for (child& one : all) {
        std::uint32_t hash = 0;
        for (const char c : one.name) hash = 31 * hash + static_cast<unsigned char>(c);
        one.bucket = (hash ^ (hash >> 16)) & (buckets - 1);
    }
    std::sort(all.begin(), all.end(), [](const child& a, const child& b) {
        return std::tie(a.bucket, a.czxid, a.name) < std::tie(b.bucket, b.czxid, b.name);
    });
    std::vector<std::string> names;
    names.reserve(all.size());
    for (child& one : all) names.push_back(std::move(one.name));
    return names;
}

std::vector<std::string> sim_tree::ephemerals_of(std::int64_t session) const {
    std::vector<std::string> paths;
    for (const auto& [path, node] : nodes_)
        if (node.stat.ephemeral_owner == session && session != 0) paths.push_back(path);
    return paths;
}

multi_result sim_tree::perform(const multi_op& op, sim_txn& txn, const identities* who) {
    if (const auto* c = std::get_if<create_request>(&op)) return create(*c, txn, who);
    if (const auto* s = std::get_if<set_request>(&op)) return set(*s, txn, who);
    if (const auto* r = std::get_if<remove_request>(&op)) return remove(*r, txn, who);
    return check(std::get<check_op>(op), who);
}

std::error_code sim_tree::perform(const std::vector<multi_op>& ops, sim_txn& txn, std::vector<multi_result>& results,
                                  const identities* who) {
    const std::size_t changes_before = txn.changes.size();
    before_.clear();
    undoable_ = true;
    results.clear();
    std::error_code failed;
    for (auto op = ops.begin(); op != ops.end() && !failed; ++op) {
        results.push_back(perform(*op, txn, who));
        failed = results.back().code;
        if (std::holds_alternative<create_request>(*op)) results.back().stat.reset();  // a server sends only the path
    }
    undoable_ = false;
    if (failed) {
        for (auto b = before_.rbegin(); b != before_.rend(); ++b) {
            if (b->second)
                nodes_[b->first] = std::move(*b->second);
            else
                nodes_.erase(b->first);
        }
        txn.changes.resize(changes_before);
        for (multi_result& before : results) before = multi_result{};
        results.back().code = failed;
        multi_result behind;
        behind.code = zk_errc::runtime_inconsistency;
        results.resize(ops.size(), behind);
    }
    return failed;
}

multi_result sim_tree::create(const create_request& r, sim_txn& txn, const identities* who) {
    multi_result result;
    const std::optional<acl> kept = who ? as_kept(r.acl, *who) : acl();
    // As in a server, the root is its own parent: so it exists, for a client that would create it.
    const auto parent = nodes_.find(r.path == "/" ? r.path : std::string(parent_path(r.path)));
    result.path = r.path;
    if (parent != nodes_.end() && is_sequential(r.mode)) {
        char number[16];
        std::snprintf(number, sizeof number, "%010d", static_cast<std::int32_t>(parent->second.created_children));
        result.path += number;
    }
    // The order of the checks is that of a server.
    if (!kept)
        result.code = zk_errc::invalid_acl;
    else if (parent == nodes_.end())
        result.code = zk_errc::no_node;
    else if (who && !permits(parent->second.acl, permission::create, *who))
        result.code = zk_errc::no_auth;
    else if (nodes_.contains(result.path))
        result.code = zk_errc::node_exists;
    else if (is_ephemeral(parent->second.mode))
        result.code = zk_errc::no_children_for_ephemerals;
    if (result.code) return result;

    sim_node node;
    node.data = r.data;
    node.acl = *kept;
    node.mode = r.mode;
    node.stat.czxid = node.stat.mzxid = node.stat.pzxid = txn.zxid;
    node.stat.ctime = node.stat.mtime = txn.time;
    if (is_ephemeral(r.mode)) node.stat.ephemeral_owner = txn.session;
    if (has_ttl(r.mode)) node.ttl = r.ttl;
    node.stat.data_length = static_cast<std::int32_t>(r.data.size());
    result.stat = node.stat;
    record(sim_change::kind::created, result.path, std::move(node), txn);
    return result;
}

multi_result sim_tree::set(const set_request& r, sim_txn& txn, const identities* who) {
    multi_result result;
    result.code = refusal(r.path, permission::write, who);
    if (!result.code) result = check({r.path, r.version}, nullptr);
    if (result.code) return result;
    sim_node node = nodes_.at(r.path);
    node.data = r.data;
    node.stat.mzxid = txn.zxid;
    node.stat.mtime = txn.time;
    ++node.stat.version;
    node.stat.data_length = static_cast<std::int32_t>(r.data.size());
    result.stat = node.stat;
    record(sim_change::kind::data_set, r.path, std::move(node), txn);
    return result;
}

multi_result sim_tree::remove(const remove_request& r, sim_txn& txn, const identities* who) {
    multi_result result;
    if (find(r.path)) result.code = refusal(std::string(parent_path(r.path)), permission::remove, who);
    if (!result.code) result = check({r.path, r.version}, nullptr);
    if (!result.code && nodes_.at(r.path).stat.num_children > 0) result.code = zk_errc::not_empty;
    if (!result.code) record(sim_change::kind::removed, r.path, nodes_.at(r.path), txn);
    return result;
}

multi_result sim_tree::set_acl(const set_acl_request& r, sim_txn& txn, const identities* who) {
    multi_result result;
    const std::optional<acl> kept = who ? as_kept(r.acl, *who) : r.acl;
    result.code = kept ? refusal(r.path, permission::admin, who) : zk_errc::invalid_acl;
    if (!result.code && r.version != any_version && r.version != nodes_.at(r.path).stat.aversion)
        result.code = zk_errc::bad_version;
    if (result.code) return result;
    change_acl(r.path, *kept, txn);
    result.stat = nodes_.at(r.path).stat;
    return result;
}

void sim_tree::touch_acls(const std::string& path, sim_txn& txn) {
    if (find(path)) change_acl(path, nodes_.at(path).acl, txn);
    for (const std::string& name : children(path)) touch_acls(join_path(path, name), txn);
}

void sim_tree::change_acl(const std::string& path, zkasio::acl kept, sim_txn& txn) {
    sim_node node = nodes_.at(path);
    node.acl = std::move(kept);
    ++node.stat.aversion;
    record(sim_change::kind::acl_set, path, std::move(node), txn);
}

std::error_code sim_tree::refusal(const std::string& path, permission wanted, const identities* who) const {
    const sim_node* node = find(path);
    if (!node) return zk_errc::no_node;
    if (who && !permits(node->acl, wanted, *who)) return zk_errc::no_auth;
    return {};
}

multi_result sim_tree::check(const check_op& r, const identities* who) const {
    multi_result result;
    const sim_node* node = find(r.path);
    if (!node)
        result.code = zk_errc::no_node;
    else if (who && !permits(node->acl, permission::read, *who))
        result.code = zk_errc::no_auth;
    else if (r.version != any_version && r.version != node->stat.version)
        result.code = zk_errc::bad_version;
    return result;
}

void sim_tree::record(sim_change::kind what, const std::string& path, sim_node node, sim_txn& txn) {
    if (undoable_) {
        keep(path);
        keep(std::string(parent_path(path)));
    }
    txn.changes.push_back({what, path, std::move(node)});
    apply(txn.changes.back(), txn.zxid);
}

void sim_tree::keep(const std::string& path) {
    const sim_node* node = find(path);
    before_.emplace_back(path, node ? std::optional<sim_node>(*node) : std::nullopt);
}

void sim_tree::apply(const sim_change& c, std::int64_t zxid) {
    switch (c.what) {
        case sim_change::kind::created: nodes_[c.path] = c.node; return parent_changed(c.path, zxid, true);
        case sim_change::kind::removed: nodes_.erase(c.path); return parent_changed(c.path, zxid, false);
        case sim_change::kind::data_set: {
            sim_node& node = nodes_.at(c.path);
            node.data = c.node.data;
            node.stat.mzxid = c.node.stat.mzxid;
            node.stat.mtime = c.node.stat.mtime;
            node.stat.version = c.node.stat.version;
            node.stat.data_length = c.node.stat.data_length;
            return;
        }
        case sim_change::kind::acl_set: {
            sim_node& node = nodes_.at(c.path);
            node.acl = c.node.acl;
            node.stat.aversion = c.node.stat.aversion;
        }
    }
}

void sim_tree::parent_changed(const std::string& path, std::int64_t zxid, bool created) {
    sim_node& parent = nodes_.at(std::string(parent_path(path)));
    if (created) ++parent.created_children;
    parent.stat.num_children += created ? 1 : -1;
    parent.stat.pzxid = zxid;
    // The number that a server shows: creations and removals.
    parent.stat.cversion = static_cast<std::int32_t>(2 * parent.created_children) - parent.stat.num_children;
}

void sim_tree::set_next_sequence(const std::string& path, std::int32_t next) {
    nodes_.at(path).created_children = static_cast<std::uint32_t>(next);
}

}  // namespace zkasio::testing_detail
