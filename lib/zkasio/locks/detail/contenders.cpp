#include <zkasio/locks/detail/contenders.hpp>

#include <zkasio/locks/detail/revocation_watch.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/certain.hpp>
#include <zkasio/recipe/errors.hpp>
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
    info.token = fencing_token(node.stat.czxid);
    info.revoke_requested = info.data == revoke_message;
    return info;
}

asio::awaitable<std::vector<contender_info>> read_contenders(client zk, std::string directory,
                                                             std::vector<queue_names::contender_name> names) {
    std::vector<contender_info> result;
    std::vector<std::string> paths;
    for (const queue_names::contender_name& name : names) paths.push_back(join_path(directory, name.name));
    const std::vector<pending_data> reads = toolbox(zk).start_gets(paths);
    for (std::size_t i = 0; i < names.size(); ++i) {
        std::optional<node_data> node;
        bool again = false;
        try {
            node = co_await if_exists(reads[i].result());
        } catch (const error& e) {
            if (e.code() != condition::retryable) throw;
            again = true;
        }
        if (again) node = co_await if_exists(zk.get(paths[i]));
        if (!node) continue;  // has left since the listing
        contender_info info = info_of(paths[i], std::move(*node));
        info.kind = names[i].kind;
        info.position = result.size();
        result.push_back(std::move(info));
    }
    co_return result;
}

void mark_holders(std::vector<contender_info>& in_order) noexcept {
    for (contender_info& c : in_order) {
        c.holds = c.position == 0 || c.kind == lock_kind::shared;
        if (c.kind == lock_kind::exclusive) return;
    }
}

void mark_noted(std::vector<contender_info>& all, const directory_note& note) {
    for (contender_info& c : all) {
        const std::string_view name = node_name(c.path);
        if (note.revokes(name)) c.revoke_requested = true;
        c.proclaimed = note.proclaimed_by(name);
    }
}

asio::awaitable<directory_note> read_note(client zk, std::string directory) {
    std::optional<node_data> found;
    try {
        found = co_await if_exists(zk.get(directory));
    } catch (const error& e) {
        if (e.code() != zk_errc::no_auth) throw;
    }
    co_return found ? directory_note::parse(found->data) : directory_note();
}

asio::awaitable<std::vector<contender_info>> contenders(client zk, std::string directory, queue_names names) {
    std::vector<std::string> found = co_await children_if_any(zk, directory);
    std::vector<contender_info> all = co_await read_contenders(zk, directory, names.in_order(std::move(found)));
    mark_holders(all);
    if (all.empty()) co_return all;
    const directory_note note = co_await read_note(zk, directory);
    mark_noted(all, note);
    co_return all;
}

asio::awaitable<std::vector<contender_info>> contenders(client zk, std::string path, lock_spec_ptr lock) {
    if (!lock) throw error(errc::invalid_argument, "contenders", {}, "this lock was moved from");
    co_return co_await errors_as("contenders", path, contenders(zk, path, lock->names.in(path)));
}

}  // namespace zkasio::lock_detail
