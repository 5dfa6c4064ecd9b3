#include <zkasio/barriers/detail/barrier_requests.hpp>

#include <zkasio/error.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/certain.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <optional>
#include <utility>

namespace zkasio::barrier_detail {

asio::awaitable<barrier_children> children_of(session on, std::string directory) {
    std::vector<std::string> found = co_await children_if_any(on, std::move(directory));
    co_return barrier_children(std::move(found));
}

asio::awaitable<std::vector<other_member>> read_others(session on, std::string directory, std::string own,
                                                       std::vector<std::string> members) {
    std::erase(members, own);
    std::vector<other_member> there;
    auto read = [&]() -> asio::awaitable<void> {
        there.clear();
        std::vector<pending_data> asked;
        for (const std::string& member : members)
            asked.push_back(toolbox(on).start_exists(join_path(directory, member)));
        for (std::size_t i = 0; i < members.size(); ++i) {
            const std::optional<node_data> found = co_await if_exists(asked[i].result());
            if (!found) continue;
            other_member& member = there.emplace_back();
            member.name = members[i];
            member.born = found->stat.czxid;
            member.joined = found->stat.version > 0;
        }
    };
    co_await retry_until_certain(toolbox(on).make_back_off(), read);
    co_return there;
}

asio::awaitable<bool> remove_left_over(session on, std::string directory, std::int64_t czxid,
                                       std::vector<other_member> others) {
    const std::string ready = join_path(directory, std::string(ready_name));
    try {
        const node_data there = co_await on.get(ready);
        if (there.stat.czxid != czxid) co_return true;
        const node_stat marked = co_await on.set(ready, there.data, there.stat.version);
        if (marked.czxid != czxid) co_return true;
        transaction steps;
        for (const other_member& other : others) steps.check(join_path(directory, other.name), 0);
        steps.remove(ready, marked.version);
        co_await on.multi(std::move(steps));
    } catch (const error& e) {
        if (e.code() == condition::retryable) co_return false;
        if (e.code() != zk_errc::no_node && e.code() != zk_errc::bad_version) throw;
    }
    co_return true;
}

}  // namespace zkasio::barrier_detail
