#include <zkasio/election/leader_observer.hpp>

#include <zkasio/clock.hpp>
#include <zkasio/coroutines/task_scope.hpp>
#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/error.hpp>
#include <zkasio/locks/directory_note.hpp>
#include <zkasio/locks/name_scheme.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/certain.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/session.hpp>
#include <zkasio/watch.hpp>

#include <asio/awaitable.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zkasio::election_detail {

/// A server's answer about an election. When the answer is no longer true, one of the watches fires.
struct leader_seen {
    leader_view view;
    watch changes;
    std::optional<watch> note;  ///< on the data of the directory; only if the leader's node was read
};

/// *Completes when* one of the watches has fired.
/// *Fails with* what watch::changed() fails with.
asio::awaitable<void> until_changed(const leader_seen& seen);

/// Reads who leads, as far as the server of this session knows. leader_info::since is not filled in.
/// *Fails with* errc::session_expired when the session ends, else as leader_observer::next(), and with what is
/// condition::retryable.
asio::awaitable<leader_seen> read_leader(session on, std::string path, name_scheme names);

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
                // The name of a node without an id recurs when the directory is re-created: the node that was read need
                // not be the one that was listed, and then others may stand ahead of it. A scheme whose own names have
                // ids sees such nodes, too. If the node that was read is still there after another listing, it was
                // there when the children were listed.
                if (!has_contender_id(first)) {
                    const std::vector<std::string> now = co_await children_if_any(on, path);
                    if (names.first_of(now, path) != first) continue;
                    const std::optional<node_stat> still = co_await stat_of(on, node);
                    if (!still || fencing_token(still->czxid) != seen.view.leader->token) continue;
                }
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

namespace zkasio {

using election_detail::leader_seen;

std::string_view to_string(leader_state s) noexcept {
    switch (s) {
        case leader_state::leader: return "leader";
        case leader_state::nobody: return "nobody";
        case leader_state::unknown: return "unknown";
    }
    return "?";
}

struct leader_observer::state {
    state(client c, std::string p, name_scheme n) : zk(std::move(c)), path(std::move(p)), names(std::move(n)) {}

    const client zk;
    const std::string path;
    const name_scheme names;
    one_at_a_time reading;

    // Used only by the coroutine that runs next():
    std::optional<session_events> events;
    std::optional<leader_view> told;   // the view that next() has returned last
    std::optional<leader_seen> seen;   // the last answer of a server; nothing: not known to be still true
    std::optional<leader_info> last;   // the leader that was seen last
    std::int64_t synced_session = 0;
    boot_clock::time_point connected_until = boot_clock::now();  // there was a connection at this moment

    bool connected() const { return zk.state() == session_state::connected; }
    bool is_news() const { return !told || seen->view != *told; }
    std::chrono::nanoseconds patience() const;
    void keep(leader_seen found);

    static asio::awaitable<void> read(std::shared_ptr<state> self);
    static asio::awaitable<void> until_news(std::shared_ptr<state> self);
    static asio::awaitable<void> until_cut_off(std::shared_ptr<state> self);
    static asio::awaitable<leader_view> next(std::shared_ptr<state> self);
};

// A dead connection is noticed after two thirds of the session timeout: this is the last third.
std::chrono::nanoseconds leader_observer::state::patience() const {
    const std::chrono::milliseconds granted = zk.session_now().timeout();
    return (granted.count() > 0 ? granted : zk.options().session_timeout()) / 3;
}

void leader_observer::state::keep(leader_seen found) {
    if (std::optional<leader_info>& leader = found.view.leader) {
        const bool known = last && last->token == leader->token && last->path == leader->path;
        leader->since = known ? last->since : std::chrono::system_clock::now();
        last = leader;
    }
    seen = std::move(found);
    connected_until = boot_clock::now();
}

asio::awaitable<void> leader_observer::state::read(std::shared_ptr<state> self) {
    const session on = co_await toolbox(self->zk).current_session("observe", self->path);
    if (on.id() != self->synced_session) {
        // The server of a new session may lag behind that of the old one, and show an older leader.
        co_await on.sync(self->path);
        self->synced_session = on.id();
    }
    leader_seen found = co_await election_detail::read_leader(on, self->path, self->names);
    self->keep(std::move(found));
}

// Completes when `seen` differs from the view that was told last.
asio::awaitable<void> leader_observer::state::until_news(std::shared_ptr<state> self) {
    back_off pauses = toolbox(self->zk).make_back_off();
    session_pace pace = toolbox(self->zk).make_session_pace();
    for (;;) {
        bool failed = false, is_over = false;
        try {
            if (!self->seen) {
                co_await read(self);
                pauses.reset();
            }
            if (self->is_news()) co_return;
            co_await election_detail::until_changed(*self->seen);
        } catch (const error& e) {
            failed = e.code() == condition::retryable;
            const bool another_session =
                e.code() == errc::session_expired && self->zk.options().renewal() == session_renewal::automatic;
            if (!failed && !another_session) throw;
            is_over = another_session;
        }
        self->seen.reset();
        if (failed) co_await pauses.pause("observe", self->path);
        if (!is_over) continue;
        co_await pace.pause("observe", self->path);
    }
}

// Completes when there was no connection for so long that the leader that was told is no longer valid.
asio::awaitable<void> leader_observer::state::until_cut_off(std::shared_ptr<state> self) {
    auto until_connected = [&]() -> asio::awaitable<void> {
        while (!self->connected()) co_await self->events->next();
    };
    for (;;) {
        while (self->connected()) {
            co_await self->events->next();
            self->connected_until = boot_clock::now();
        }
        const bool back = co_await run_with_deadline(self->connected_until + self->patience(), until_connected);
        if (!back) co_return;
    }
}

asio::awaitable<leader_view> leader_observer::state::next(std::shared_ptr<state> self) {
    if (!self) throw error(errc::invalid_argument, "observe", {}, "this observer was moved from");
    const auto turn = self->reading.begin("observe", self->path, "next() of this observer");
    if (self->connected()) self->connected_until = boot_clock::now();

    std::optional<leader_view> found;
    auto race = [&](task_scope& tasks) -> asio::awaitable<void> {
        tasks.spawn([&]() -> asio::awaitable<void> {
            co_await until_news(self);
            if (!found) found = self->seen->view;
            tasks.cancel();
        });
        if (self->told && self->told->state == leader_state::unknown) co_return;
        tasks.spawn([&]() -> asio::awaitable<void> {
            co_await until_cut_off(self);
            if (!found) found.emplace();
            tasks.cancel();
        });
    };
    try {
        if (!self->events) self->events.emplace(self->zk.events());
        co_await with_task_scope(race);
    } catch (const error&) {
        rethrow_as("observe", self->path);
    }
    // A view from before the connection was lost must not be told again: the next call reads the leader again.
    if (found->state == leader_state::unknown) self->seen.reset();
    self->told = found;
    co_return std::move(*found);
}

namespace {

std::string checked_directory(std::string path) {
    require_path("leader_observer", path);
    return path;
}

}  // namespace

leader_observer::leader_observer(client zk, std::string path, name_scheme names)
    : state_(std::make_shared<state>(std::move(zk), checked_directory(std::move(path)), std::move(names))) {}

asio::awaitable<leader_view> leader_observer::next() const { return state::next(state_); }

}  // namespace zkasio
