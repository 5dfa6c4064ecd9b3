#include "find_locks.hpp"

#include <zkasio/coroutines/task_scope.hpp>
#include <zkasio/error.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/pending.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <string_view>
#include <utility>

namespace zklock {
namespace {

// A node that the search has still to look at.
struct pending_node {
    std::string path;
    bool noted = false;  // a note about its parent says already that not all of it can be read
};

struct listing_under_way {
    pending_node node;
    zkasio::pending_children answer;
};

// A node whose children may be contenders.
struct directory {
    pending_node node;
    std::vector<std::string> children;
};

// Servers end the name of a sequential node with ten characters or more, of which the first may be a '-'.
bool has_sequence_number(std::string_view name) noexcept {
    constexpr std::size_t digits = 9;
    return name.size() > digits &&
           name.find_first_not_of("0123456789", name.size() - digits) == std::string_view::npos;
}

// True for every lock that has contenders, and for every semaphore.
bool may_be_lock(const std::vector<std::string>& children) noexcept {
    return std::any_of(children.begin(), children.end(), [](const std::string& name) {
        return has_sequence_number(name) || name == "leases";
    });
}

class tree_search {
public:
    tree_search(zkasio::client zk, std::string path) : zk_(std::move(zk)), root_(path) {
        pending_.push_back({std::move(path)});
    }

    asio::awaitable<lock_search> run() {
        while (!pending_.empty()) {
            co_await list_nodes();
            co_await read_directories();  // may find more nodes
        }
        const auto by_path = [](const lock_view& a, const lock_view& b) { return a.path < b.path; };
        std::sort(found_.locks.begin(), found_.locks.end(), by_path);
        std::sort(found_.unreadable.begin(), found_.unreadable.end());
        co_return std::move(found_);
    }

private:
    static constexpr std::size_t at_a_time = 64;

    // One request for each node: the list of the children comes with the stat of their parent.
    asio::awaitable<void> list_nodes() {
        while (!pending_.empty() || !under_way_.empty()) {
            // From the end, depth first: the list of pending nodes stays short where the tree is deep.
            while (!pending_.empty() && under_way_.size() < at_a_time) {
                zkasio::pending_children answer = zkasio::toolbox(zk_).start_children(pending_.back().path);
                under_way_.push_back({std::move(pending_.back()), std::move(answer)});
                pending_.pop_back();
            }
            listing_under_way oldest = std::move(under_way_.front());
            under_way_.pop_front();
            try {
                zkasio::node_children found = co_await answer_of(oldest);
                take(std::move(oldest.node), std::move(found));
            } catch (const zkasio::error& e) {
                leave_out(oldest.node, e);
            }
        }
    }

    asio::awaitable<zkasio::node_children> answer_of(const listing_under_way& asked) {
        try {
            co_return co_await asked.answer.result();
        } catch (const zkasio::error& e) {
            if (e.code() != zkasio::condition::retryable) throw;
        }
        co_return co_await zk_.children(asked.node.path);
    }

    void take(pending_node node, zkasio::node_children found) {
        ++found_.looked_at;
        const bool single_node = found.stat.is_ephemeral();
        if (single_node && node.path != root_) {
            ++found_.ephemeral;
        } else if (single_node || may_be_lock(found.names)) {
            directories_.push_back({std::move(node), std::move(found.names)});
        } else {
            for (const std::string& name : found.names) add(node.path, name, node.noted);
        }
    }

    // To be called in a handler of `e`, which is thrown again unless the search goes on without the node.
    void leave_out(const pending_node& node, const zkasio::error& e) {
        const bool gone = e.code() == zkasio::zk_errc::no_node;
        if (!gone && (e.code() != zkasio::zk_errc::no_auth || node.path == root_)) throw;
        if (gone && node.path == root_) found_.exists = false;
        if (!gone && !node.noted) found_.unreadable.push_back(node.path);
    }

    asio::awaitable<void> read_directories() {
        while (!directories_.empty()) {
            const std::size_t n = std::min(directories_.size(), at_a_time);
            auto body = [&](zkasio::task_scope& tasks) -> asio::awaitable<void> {
                for (std::size_t i = 0; i < n; ++i) {
                    tasks.spawn(read_directory(std::move(directories_.back())));
                    directories_.pop_back();
                }
                co_return;
            };
            co_await zkasio::with_task_scope(body);
        }
    }

    asio::awaitable<void> read_directory(directory d) {
        try {
            lock_view v = co_await read_lock(zk_, d.node.path);
            take(std::move(v), d.node.noted);
        } catch (const zkasio::error& e) {
            leave_out(d, e);
        }
    }

    // As for a node. But list_lock() fails as a whole when one contender cannot be read, and among the contenders there
    // may be directories that can.
    void leave_out(const directory& d, const zkasio::error& e) {
        const bool of_contender = e.code() == zkasio::zk_errc::no_auth && e.path() != d.node.path;
        if (!of_contender) return leave_out(d.node, e);
        if (!d.node.noted) found_.unreadable.push_back(d.node.path);
        for (const std::string& name : d.children) add(d.node.path, name, true);
    }

    void take(lock_view v, bool noted) {
        const bool semaphore = v.kind == directory_kind::semaphore;
        // Of a semaphore, these are names in two directories, where nothing but its own nodes is.
        if (!semaphore)
            for (const std::string& name : v.foreign) add(v.path, name, noted);
        if (semaphore || !v.contenders.empty()) found_.locks.push_back(std::move(v));
    }

    void add(const std::string& parent, const std::string& name, bool noted) {
        if (parent == "/" && name == "zookeeper") return;
        pending_.push_back({zkasio::join_path(parent, name), noted});
    }

    zkasio::client zk_;
    const std::string root_;
    std::vector<pending_node> pending_;
    std::deque<listing_under_way> under_way_;
    std::vector<directory> directories_;
    lock_search found_;
};

}  // namespace

asio::awaitable<lock_search> find_locks(zkasio::client zk, std::string path) {
    tree_search search(std::move(zk), std::move(path));
    co_return co_await search.run();
}

}  // namespace zklock
