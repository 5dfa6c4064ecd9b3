#include <zkasio/election/detail/leader_reader.hpp>

#include <zkasio/coroutines/task_scope.hpp>
#include <zkasio/locks/directory_note.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/if_exists.hpp>

#include <optional>
#include <utility>
#include <vector>

namespace zkasio::election_detail {
namespace {

leader_seen leads(std::string path, std::optional<std::string> data, const node_stat& stat, watch changes) {
    leader_seen seen;
    leader_info& leader = seen.view.leader.emplace();
    seen.view.state = leader_state::leader;
    leader.path = std::move(path);
    leader.data = std::move(data);
    leader.session_id = stat.ephemeral_owner;
    leader.token = fencing_token(stat.czxid);
    seen.changes = std::move(changes);
    return seen;
}

leader_seen nobody_leads(watch changes) {
    leader_seen seen;
    seen.view.state = leader_state::nobody;
    seen.changes = std::move(changes);
    return seen;
}

enum class node_access {
    readable,
    refused,
    gone
};

// `seen` is written if the node is readable.
asio::awaitable<node_access> read_node(session on, std::string path, leader_seen& seen) {
    std::error_code refused;
    try {
        watched<node_data> node = co_await on.get_and_watch(path);
        seen = leads(path, std::move(node.value.data), node.value.stat, std::move(node.changes));
    } catch (const error& e) {
        if (e.code() != zk_errc::no_node && e.code() != zk_errc::no_auth) throw;
        refused = e.code();
    }
    if (refused) co_return refused == zk_errc::no_node ? node_access::gone : node_access::refused;
    co_return node_access::readable;
}

// The candidates with a watch. If the directory does not exist, only exists() can set a watch. Nothing: the directory
// has just been created.
asio::awaitable<std::optional<watched<node_children>>> watch_directory(session on, std::string path) {
    std::optional<watched<node_children>> candidates = co_await if_exists(on.children_and_watch(path));
    if (candidates) co_return std::move(candidates);
    watched<std::optional<node_stat>> directory = co_await on.exists_and_watch(path);
    if (directory.value) co_return std::nullopt;
    watched<node_children> empty;
    empty.changes = std::move(directory.changes);
    co_return empty;
}

// Nothing: the node has gone. Of a node that this client may not read, servers from 3.8.4 on do not tell the stat
// either (since CVE-2024-23944): then only its name is known, and the stat is all zero.
asio::awaitable<std::optional<node_stat>> stat_of(session on, std::string path) {
    try {
        co_return co_await on.exists(path);
    } catch (const error& e) {
        if (e.code() != zk_errc::no_auth) throw;
    }
    co_return node_stat();
}

}  // namespace

asio::awaitable<void> until_changed(const leader_seen& seen) {
    auto race = [&](task_scope& tasks) -> asio::awaitable<void> {
        tasks.spawn([&]() -> asio::awaitable<void> {
            co_await seen.changes.changed();
            tasks.cancel();
        });
        if (!seen.note) co_return;
        tasks.spawn([&]() -> asio::awaitable<void> {
            co_await seen.note->changed();
            tasks.cancel();
        });
    };
    co_await with_task_scope(race);
}

asio::awaitable<leader_seen> read_leader(session on, std::string path, name_scheme names) {
    for (;;) {
        // Without a watch: while there is a leader, the other candidates do not matter. A later candidate stands behind
        // the leader, and before a directory can go, the leader's node goes.
        const std::vector<std::string> all = co_await children_if_any(on, path);
        const std::string first = names.first_of(all, path);
        const std::string node = join_path(path, first);
        if (!first.empty()) {
            // The directory's data, with what the leader has proclaimed: see directory_note.
            std::optional<watched<node_data>> note = co_await if_exists(on.get_and_watch(path));
            if (!note) continue;
            leader_seen seen;
            const node_access access = co_await read_node(on, node, seen);
            if (access == node_access::gone) continue;
            if (access == node_access::readable) {
                std::optional<std::string> said = directory_note::parse(note->value.data).proclaimed_by(first);
                if (said) seen.view.leader->data = std::move(said);
                seen.note = std::move(note->changes);
                co_return std::move(seen);
            }
        }
        // Servers do not tell of a change of a node that this client may not read (since CVE-2024-23944): then the
        // directory is watched, as when there is no leader.
        std::optional<watched<node_children>> still = co_await watch_directory(on, path);
        if (!still || names.first_of(still->value.names, path) != first) continue;
        if (first.empty()) co_return nobody_leads(std::move(still->changes));
        const std::optional<node_stat> stat = co_await stat_of(on, node);
        if (stat) co_return leads(node, std::nullopt, *stat, std::move(still->changes));
    }
}

}  // namespace zkasio::election_detail
