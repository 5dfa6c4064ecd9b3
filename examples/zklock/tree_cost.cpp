#include "tree_cost.hpp"

#include <zkasio/error.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/pending.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <algorithm>
#include <utility>

namespace zklock {
namespace {

class tree_walk {
public:
    tree_walk(zkasio::client zk, std::string path, std::string chroot)
        : zk_(std::move(zk)), root_(std::move(path)), chroot_bytes_(chroot.size()) {}

    asio::awaitable<tree_cost> run() {
        const auto there = co_await zk_.exists(root_);
        if (!there) throw zkasio::error(zkasio::zk_errc::no_node, "cost", root_);
        take(root_, *there);
        while (!to_list_.empty()) {
            const std::string directory = std::move(to_list_.back());
            to_list_.pop_back();
            co_await list(directory);
        }
        const auto larger = [](const directory_cost& a, const directory_cost& b) { return a.children > b.children; };
        std::stable_sort(found_.directories.begin(), found_.directories.end(), larger);
        std::sort(found_.unreadable.begin(), found_.unreadable.end());
        co_return std::move(found_);
    }

private:
    static constexpr std::size_t at_a_time = 256;

    void take(const std::string& path, const zkasio::node_stat& stat) {
        ++found_.nodes;
        const auto bytes = static_cast<std::size_t>(stat.data_length);
        found_.data_bytes += bytes;
        if (bytes > found_.largest_node_bytes) {
            found_.largest_node_bytes = bytes;
            found_.largest_node = path;
        }
        if (stat.ephemeral_owner != 0) {
            ++found_.ephemerals;
            session_cost& owner = found_.sessions[stat.ephemeral_owner];
            ++owner.ephemerals;
            owner.end_bytes += 4 + chroot_bytes_ + path.size();
        }
        if (stat.num_children > 0) to_list_.push_back(path);
    }

    asio::awaitable<void> list(const std::string& directory) {
        std::vector<std::string> names;
        try {
            zkasio::node_children found = co_await zk_.children(directory);
            names = std::move(found.names);
        } catch (const zkasio::error& e) {
            const bool of_root = directory == root_;
            if (of_root || (e.code() != zkasio::zk_errc::no_node && e.code() != zkasio::zk_errc::no_auth)) throw;
            if (e.code() == zkasio::zk_errc::no_auth) found_.unreadable.push_back(directory);
            co_return;
        }
        directory_cost c;
        c.path = directory;
        c.children = names.size();
        c.list_bytes = 4;
        for (const std::string& name : names) c.list_bytes += 4 + name.size();
        found_.directories.push_back(std::move(c));
        if (directory == "/") std::erase(names, "zookeeper");
        for (std::size_t begin = 0; begin < names.size(); begin += at_a_time) {
            const std::size_t end = std::min(begin + at_a_time, names.size());
            std::vector<std::string> paths;
            for (std::size_t i = begin; i < end; ++i) paths.push_back(zkasio::join_path(directory, names[i]));
            co_await look_at(paths);
        }
    }

    // Requests that leave together.
    asio::awaitable<void> look_at(const std::vector<std::string>& paths) {
        std::vector<zkasio::pending_data> reads;
        for (const std::string& path : paths) reads.push_back(zkasio::toolbox(zk_).start_exists(path));
        for (std::size_t i = 0; i < paths.size(); ++i) {
            try {
                const zkasio::node_data node = co_await reads[i].result();
                take(paths[i], node.stat);
            } catch (const zkasio::error& e) {
                if (e.code() == zkasio::zk_errc::no_auth) found_.unreadable.push_back(paths[i]);
                if (e.code() != zkasio::zk_errc::no_node && e.code() != zkasio::zk_errc::no_auth) throw;
            }
        }
    }

    zkasio::client zk_;
    const std::string root_;
    const std::size_t chroot_bytes_;
    std::vector<std::string> to_list_;
    tree_cost found_;
};

}  // namespace

asio::awaitable<tree_cost> cost_of_tree(zkasio::client zk, std::string path, std::string chroot) {
    tree_walk walk(std::move(zk), std::move(path), std::move(chroot));
    co_return co_await walk.run();
}

}  // namespace zklock
