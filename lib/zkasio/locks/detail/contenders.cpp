#include <zkasio/locks/detail/contenders.hpp>

#include <zkasio/path.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <algorithm>

namespace zkasio::lock_detail {

contender_info info_of(std::string path, node_data node) {
    contender_info info;
    info.path = std::move(path);
    info.session_id = node.stat.ephemeral_owner;
    info.data = std::move(node.data);
    info.created_ms = node.stat.ctime;
    return info;
}

asio::awaitable<std::vector<contender_info>> contenders(client zk, std::string directory, queue_names names) {
    std::vector<contender_info> result;
    node_children found;
    std::error_code none;
    try {
        found = co_await zk.children(directory);
    } catch (const error& e) {
        if (e.code() != zk_errc::no_node) throw;
        none = e.code();
    }
    if (none) co_return result;
    const auto ordered = names.in_order(std::move(found.names));
    constexpr std::size_t window = 256;  // requests under way
    for (std::size_t begin = 0; begin < ordered.size(); begin += window) {
        const std::size_t end = std::min(ordered.size(), begin + window);
        std::vector<pending_data> reads;
        for (std::size_t i = begin; i < end; ++i)
            reads.push_back(toolbox(zk).start_get(join_path(directory, ordered[i].name)));
        for (std::size_t i = begin; i < end; ++i) {
            node_data node;
            bool gone = false, again = false;
            try {
                node = co_await reads[i - begin].result();
            } catch (const error& e) {
                gone = e.code() == zk_errc::no_node;  // left since the listing
                again = !gone && e.code() == condition::retryable;
                if (!gone && !again) throw;
            }
            if (again) {
                try {
                    node = co_await zk.get(join_path(directory, ordered[i].name));
                } catch (const error& e) {
                    if (e.code() != zk_errc::no_node) throw;
                    gone = true;
                }
            }
            if (gone) continue;
            contender_info info = info_of(join_path(directory, ordered[i].name), std::move(node));
            info.kind = ordered[i].kind;
            info.position = result.size();
            result.push_back(std::move(info));
        }
    }
    co_return result;
}

asio::awaitable<std::vector<contender_info>> contenders(client zk, lock_spec_ptr lock) {
    if (!lock) throw error(errc::invalid_argument, "contenders", {}, "this lock was moved from");
    co_return co_await contenders(zk, lock->directory, lock->names);
}

}  // namespace zkasio::lock_detail
