#pragma once

#include <zkasio/cache/detail/tree_sync.hpp>
#include <zkasio/error.hpp>
#include <zkasio/path.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace zkasio::test {

/// A ZooKeeper in memory with one client, a tree_sync, and all that is between the two: requests and news that are on
/// their way. Each step is one of them, so that a test can take them in any order that a real connection allows.
class tree_servers {
public:
    struct node {
        std::string data;
        node_stat stat;
        bool secret = false;  ///< its ACL forbids to read it
    };
    using tree = std::map<std::string, node>;

    /// Since 3.8.4 servers tell nobody of the stat either who may not read the node, and of no change of it.
    bool stat_needs_permission = false;
    /// Watches that the client did not name when it lost the connection: its library would set them again.
    std::size_t not_named = 0;
    /// Watches that the client gave up, and has none, since it has one for all nodes.
    std::size_t not_set = 0;

    explicit tree_servers(cache_detail::tree_sync& client) : client_(client) { nodes_["/"]; }

    const tree& nodes() const noexcept { return nodes_; }
    bool up() const noexcept { return up_; }

    // ----------------------------------------------------------------------------------------- what others do
    void create(const std::string& path, std::string data = "", std::int64_t owner = 0, bool secret = false) {
        const auto parent = nodes_.find(parent_of(path));
        if (nodes_.contains(path) || parent == nodes_.end() || parent->second.stat.ephemeral_owner != 0) return;
        node& n = nodes_[path];
        n.data = std::move(data);
        n.stat.czxid = n.stat.mzxid = n.stat.pzxid = ++zxid_;
        n.stat.ephemeral_owner = owner;
        n.secret = secret;
        fire(data_watches_, path, node_change::created);
        children_changed(parent_of(path));
    }
    void set(const std::string& path, std::string data) {
        const auto n = nodes_.find(path);
        if (n == nodes_.end()) return;
        n->second.data = std::move(data);
        n->second.stat.mzxid = ++zxid_;
        ++n->second.stat.version;
        fire(data_watches_, path, node_change::data_changed);
    }
    void remove(const std::string& path) {
        const auto n = nodes_.find(path);
        if (n == nodes_.end() || path == "/" || has_children(path)) return;
        const bool hidden = is_hidden(path);
        nodes_.erase(n);
        ++zxid_;
        const bool data = data_watches_.erase(path) > 0;
        const bool children = child_watches_.erase(path) > 0;
        if ((data || children || is_told_of(path)) && !hidden) news_.push_back(event{node_change::removed, path});
        children_changed(parent_of(path));
    }
    void remove_all(const std::string& path) {
        const tree all = nodes_;
        for (auto n = all.rbegin(); n != all.rend(); ++n)
            if (n->first == path || n->first.starts_with(path + "/")) remove(n->first);
    }
    void forbid(const std::string& path, bool secret) {
        const auto n = nodes_.find(path);
        if (n == nodes_.end()) return;
        n->second.secret = secret;
        ++n->second.stat.aversion;  // no watch tells of that
    }
    /// From now on this client may read what is secret, by a credential or by the address that it has: no node changes.
    void authenticate() { authenticated_ = true; }

    // ----------------------------------------------------------------------------------------- what is under way
    /// @param by_one_watch a recursive watch of the root is set before anything is read.
    void connect(bool by_one_watch = false) {
        up_ = true;
        recursive_ = by_one_watch;
        client_.connected(by_one_watch);
    }
    void disconnect() {
        up_ = false;
        requests_.clear();
        std::set<std::string> data, children;
        client_.for_each_watch([&](node_read what, const std::string& path) {
            (what == node_read::children ? children : data).insert(path);
        });
        forget_unheard_of();
        for (const std::string& path : data_watches_) not_named += !data.contains(path);
        for (const std::string& path : child_watches_) not_named += !children.contains(path);
        news_.clear();
        data_watches_.clear();
        child_watches_.clear();
        client_.disconnected();
    }
    /// The client sends a read. False: it has none, or may not.
    bool send(std::size_t most_under_way = 4) {
        if (!up_ || client_.under_way() >= most_under_way) return false;
        auto next = client_.next_read();
        leave();
        if (!next) return false;
        requests_.push_back(std::move(*next));
        ++reads_;
        return true;
    }
    /// The server takes the next request.
    bool serve() {
        if (requests_.empty()) return false;
        const cache_detail::tree_sync::read r = std::move(requests_.front());
        requests_.pop_front();
        news_.push_back(answer_to(r));
        return true;
    }
    /// The client hears the next news.
    bool hear() {
        if (news_.empty()) return false;
        auto next = std::move(news_.front());
        news_.pop_front();
        if (auto* e = std::get_if<event>(&next)) client_.changed(e->what, e->path);
        if (auto* a = std::get_if<answer>(&next)) client_.answered(a->what, a->path, a->code, std::move(a->value));
        leave();
        return true;
    }
    /// Until nothing is left to do.
    void settle() {
        do {
            client_.resume();
            while (send() || serve() || hear()) {
            }
        } while (client_.put_off());
    }

    /// Refuses the next read for now, as a server does that has too much to do.
    void put_off_next() { put_off_ = true; }

    /// All that were sent.
    std::size_t reads() const noexcept { return reads_; }
    std::size_t watches() const noexcept { return data_watches_.size() + child_watches_.size(); }
    bool watched(node_read what, const std::string& path) const {
        return (what == node_read::children ? child_watches_ : data_watches_).contains(path);
    }

private:
    struct event {
        node_change what;
        std::string path;
    };
    struct answer {
        node_read what;
        std::string path;
        std::error_code code;
        node_answer value;
    };

    // The library knows of a watch when it has the answer.
    void forget_unheard_of() {
        for (const auto& next : news_)
            if (const auto* a = std::get_if<answer>(&next)) watches_of(a->what).erase(a->path);
    }
    // As node_feed does it.
    void leave() {
        for (const auto& r : client_.take_left()) {
            not_set += recursive_;
            if (!client_.watches(r.what, r.path)) watches_of(r.what).erase(r.path);
        }
    }
    bool is_hidden(const std::string& path) const {
        const auto n = nodes_.find(path);
        return stat_needs_permission && n != nodes_.end() && is_secret(n->second);
    }
    bool is_secret(const node& n) const noexcept { return n.secret && !authenticated_; }
    static std::string parent_of(const std::string& path) { return std::string(parent_path(path)); }
    bool has_children(const std::string& path) const {
        const auto next = nodes_.upper_bound(path + "/");
        return next != nodes_.end() && next->first.starts_with(path + "/");
    }
    std::set<std::string>& watches_of(node_read what) {
        return what == node_read::children ? child_watches_ : data_watches_;
    }
    // By the recursive watch.
    bool is_told_of(const std::string& path) const {
        const std::string& root = client_.tree().root_path();
        return up_ && recursive_ && (path == root || root == "/" || path.starts_with(root + "/"));
    }
    void fire(std::set<std::string>& watches, const std::string& path, node_change what) {
        const bool watched = watches.erase(path) > 0 || (what != node_change::children_changed && is_told_of(path));
        if (watched && !is_hidden(path)) news_.push_back(event{what, path});
    }
    void children_changed(const std::string& path) {
        node& parent = nodes_.at(path);
        parent.stat.pzxid = zxid_;
        ++parent.stat.cversion;
        fire(child_watches_, path, node_change::children_changed);
    }
    answer answer_to(const cache_detail::tree_sync::read& r) {
        answer a{r.what, r.path, {}, {}};
        if (std::exchange(put_off_, false)) {
            a.code = zk_errc::throttled;
            return a;
        }
        const auto n = nodes_.find(r.path);
        if (n == nodes_.end()) {
            a.code = zk_errc::no_node;
            if (r.what == node_read::stat && !recursive_) data_watches_.insert(r.path);
            return a;
        }
        if (is_secret(n->second) && (r.what != node_read::stat || stat_needs_permission)) {
            a.code = zk_errc::no_auth;
            return a;
        }
        a.value.stat = n->second.stat;
        for (const auto& [path, child] : nodes_) a.value.stat.num_children += path != "/" && parent_of(path) == r.path;
        if (r.what == node_read::data) a.value.data = n->second.data;
        if (r.what == node_read::children)
            for (const auto& [path, child] : nodes_)
                if (path != "/" && parent_of(path) == r.path) a.value.children.emplace_back(node_name(path));
        if (!recursive_) watches_of(r.what).insert(r.path);
        return a;
    }

    cache_detail::tree_sync& client_;
    tree nodes_;
    std::int64_t zxid_ = 0;
    std::size_t reads_ = 0;
    std::set<std::string> data_watches_, child_watches_;
    std::deque<cache_detail::tree_sync::read> requests_;
    std::deque<std::variant<event, answer>> news_;
    bool up_ = false, recursive_ = false, put_off_ = false, authenticated_ = false;
};

}  // namespace zkasio::test
