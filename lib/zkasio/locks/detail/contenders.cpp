#include <zkasio/locks/detail/contenders.hpp>

#include <zkasio/path.hpp>
#include <zkasio/recipe/if_exists.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <algorithm>
#include <optional>
#include <utility>

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
    std::vector<std::string> found = co_await children_if_any(zk, directory);
    const auto ordered = names.in_order(std::move(found));
    constexpr std::size_t window = 256;  // most requests under way
    for (std::size_t begin = 0; begin < ordered.size(); begin += window) {
        const std::size_t end = std::min(ordered.size(), begin + window);
        std::vector<pending_data> reads;
        for (std::size_t i = begin; i < end; ++i)
            reads.push_back(toolbox(zk).start_get(join_path(directory, ordered[i].name)));
        for (std::size_t i = begin; i < end; ++i) {
            std::optional<node_data> node;
            bool again = false;
            try {
                node = co_await if_exists(reads[i - begin].result());
            } catch (const error& e) {
                if (e.code() != condition::retryable) throw;
                again = true;
            }
            if (again) node = co_await if_exists(zk.get(join_path(directory, ordered[i].name)));
            if (!node) continue;  // has left since the listing
            contender_info info = info_of(join_path(directory, ordered[i].name), std::move(*node));
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
