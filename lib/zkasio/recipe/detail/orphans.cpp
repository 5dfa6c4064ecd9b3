#include <zkasio/recipe/detail/orphans.hpp>

#include <zkasio/back_off.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/certain.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/recipe/pending.hpp>
#include <zkasio/recipe/reports.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/transaction.hpp>

#include <asio/dispatch.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

namespace zkasio::detail {
namespace {

struct orphan_node {
    std::string path;
    std::int64_t czxid = 0;
    std::int32_t version = 0;  // as of the last look
};
using orphan_nodes = std::vector<orphan_node>;

constexpr std::size_t most_orphans_at_once = 64;  // reads, and removals in one transaction

bool is_orphan(core& c, const session& on, const std::string& path, const node_stat& seen) {
    return seen.ephemeral_owner == on.id() && !c.requests().ephemerals().may_have_made(toolbox(on).whole_path(path));
}

// Those that exist, may be read, and are what `is` says.
asio::awaitable<orphan_nodes> orphans_among(session on, std::vector<std::string> paths,
                                            std::function<bool(const std::string&, const node_stat&)> is) {
    orphan_nodes found;
    std::vector<pending_data> asked;
    asked.reserve(paths.size());
    for (const std::string& path : paths) asked.push_back(toolbox(on).start_exists(path));
    for (std::size_t i = 0; i < paths.size(); ++i) {
        bool exists = false;
        node_data seen;
        try {
            seen = co_await asked[i].result();
            exists = true;
        } catch (const error& e) {
            if (e.code() != zk_errc::no_node && e.code() != zk_errc::no_auth) throw;
        }
        if (exists && is(paths[i], seen.stat)) found.push_back({paths[i], seen.stat.czxid, seen.stat.version});
    }
    co_return found;
}

// All orphans of a session are older than its first connection to this process, and a server that lags behind does not
// show them all before sync().
asio::awaitable<orphan_nodes> orphans_below(core_ptr core, session on, std::string directory,
                                            std::function<bool(const std::string&)> is_one) {
    co_await on.sync(directory);
    std::vector<std::string> names = co_await children_if_any(on, directory);
    std::vector<std::string> paths;
    for (const std::string& name : names)
        if (is_one(name)) paths.push_back(join_path(directory, name));
    std::erase_if(paths, [tools = toolbox(on), &budget = core->requests().ephemerals()](const std::string& path) {
        return budget.may_have_made(tools.whole_path(path));
    });
    orphan_nodes all;
    for (std::size_t begin = 0; begin < paths.size(); begin += most_orphans_at_once) {
        const std::size_t end = std::min(paths.size(), begin + most_orphans_at_once);
        std::vector<std::string> some(&paths[begin], &paths[begin] + (end - begin));
        std::function<bool(const std::string&, const node_stat&)> is =
            [&](const std::string& path, const node_stat& seen) { return is_orphan(*core, on, path, seen); };
        const orphan_nodes found = co_await orphans_among(on, std::move(some), std::move(is));
        all.insert(all.end(), found.begin(), found.end());
    }
    co_return all;
}

void warn_of_orphans(const session& on, const orphan_nodes& all, std::chrono::milliseconds lease) {
    constexpr std::size_t most_named = 5;
    std::string names;
    for (std::size_t i = 0; i < std::min(all.size(), most_named); ++i) names += (i == 0 ? "" : ", ") + all[i].path;
    if (all.size() > most_named) names += " and " + std::to_string(all.size() - most_named) + " more";
    log_warning(on,
                "the process that had this session before client_options::resume() has left " + names +
                    ": to be removed when this connection is " + std::to_string(lease.count()) + " ms old",
                {{"path", all.front().path}, {"nodes", std::to_string(all.size())}});
}

// False: the session is over.
asio::awaitable<bool> former_is_over(core_ptr core, session on) {
    asio::steady_timer timer(on.get_executor());
    while (!on.over()) {
        const auto rest = core->sessions().until_former_is_over(boot_clock::now());
        if (rest == rest.zero()) co_return true;
        timer.expires_after(rest);
        co_await timer.async_wait(asio::use_awaitable);
    }
    co_return false;
}

struct not_removed {
    not_removed() {}     // user-provided: see coroutine_safety.hpp
    orphan_nodes again;  // another client was at work on one of those in the same transaction
    orphan_nodes refused;
};

// Removes these in one request, which is not sent again: after a lost connection the former process may have the
// session for a while. Another client may have a node of the same name by now: what is removed was looked at right
// before.
asio::awaitable<not_removed> remove_some_orphans(session on, orphan_nodes some) {
    not_removed left;
    std::vector<std::string> paths;
    for (const orphan_node& o : some) paths.push_back(o.path);
    std::function<bool(const std::string&, const node_stat&)> is_same = [&](const std::string&, const node_stat& seen) {
        return std::any_of(some.begin(), some.end(), [&](const orphan_node& o) { return o.czxid == seen.czxid; });
    };
    const orphan_nodes there = co_await orphans_among(on, std::move(paths), std::move(is_same));
    if (there.empty()) co_return left;
    transaction steps;
    for (const orphan_node& o : there) steps.remove(o.path, o.version);
    std::optional<error> failed;
    try {
        co_await on.multi(std::move(steps));
    } catch (const error& e) {
        if (e.code() == condition::retryable || e.code() == condition::session_ended) throw;
        failed.emplace(e);
    }
    if (!failed) co_return left;
    const bool may_again = failed->code() == zk_errc::no_node || failed->code() == zk_errc::bad_version;
    const bool names_one =
        std::any_of(there.begin(), there.end(), [&](const orphan_node& o) { return o.path == failed->path(); });
    for (const orphan_node& o : there)
        (may_again || (names_one && o.path != failed->path()) ? left.again : left.refused).push_back(o);
    co_return left;
}

// Removes all, unless the session ends before.
asio::awaitable<void> remove_all_orphans(core_ptr core, session on, orphan_nodes left) {
    back_off pauses = toolbox(on).make_back_off(), refusal_pauses = toolbox(on).make_refusal_back_off();
    bool warned = false;
    orphan_nodes refused;
    while (!left.empty()) {
        const bool may_remove = co_await former_is_over(core, on);
        if (!may_remove) co_return;
        const auto end = left.begin() + static_cast<std::ptrdiff_t>(std::min(left.size(), most_orphans_at_once));
        bool look_later = false;
        try {
            orphan_nodes first(left.begin(), end);
            const not_removed some = co_await remove_some_orphans(on, std::move(first));
            left.erase(left.begin(), end);
            left.insert(left.begin(), some.again.begin(), some.again.end());
            look_later = !some.again.empty();  // the server may lag behind
            refused.insert(refused.end(), some.refused.begin(), some.refused.end());
        } catch (const error& e) {
            if (e.code() != condition::retryable) throw;
            look_later = true;
        }
        if (look_later) co_await pauses.pause();
        if (!left.empty() || refused.empty()) continue;
        if (!std::exchange(warned, true))
            log_warning(on,
                        "the servers refuse to remove " + refused.front().path +
                            ", which the process that had this session before client_options::resume() has left",
                        {{"path", refused.front().path}, {"nodes", std::to_string(refused.size())}});
        co_await refusal_pauses.pause();
        left = std::exchange(refused, {});
    }
}

asio::awaitable<void> warn_and_remove_orphans(core_ptr core, session on, orphan_nodes all) {
    if (all.empty()) co_return;
    const auto lease = std::chrono::milliseconds(core->current_session_record()->timeout_ms.load());
    warn_of_orphans(on, all, lease);
    try {
        co_await remove_all_orphans(core, on, std::move(all));
    } catch (const error& e) {
        if (e.code() != condition::session_ended) throw;
    }
}

asio::awaitable<void> search_and_remove_orphans(core_ptr core, session on, std::string directory,
                                                std::function<bool(const std::string&)> is_one) {
    back_off pauses = toolbox(on).make_back_off(), refusal_pauses = toolbox(on).make_refusal_back_off();
    for (;;) {
        bool retryable = false;
        try {
            const orphan_nodes found = co_await orphans_below(core, on, directory, is_one);
            co_await warn_and_remove_orphans(core, on, found);
            co_return;
        } catch (const error& e) {
            if (e.code() == condition::session_ended) co_return;
            retryable = e.code() == condition::retryable;
        }
        if (retryable)
            co_await pauses.pause();
        else
            co_await refusal_pauses.pause();
    }
}

}  // namespace

void begin_to_remove_orphans(core_ptr core, session on, std::string key, std::string directory,
                             std::function<bool(const std::string&)> is_one) {
    asio::dispatch(on.get_executor(), [core, on = on.patient(), key = std::move(key), directory = std::move(directory),
                                       is_one = std::move(is_one)] {
        if (on.over() || !core->sessions().current()->searched_for_orphans.emplace(key, 0).second) return;
        core->run_until_closed(search_and_remove_orphans(core, on, directory, is_one));
    });
}

// A node at this path that was there before any attempt of this process to create one: see toolbox::orphan_at().
asio::awaitable<std::optional<std::int64_t>> find_orphan(core_ptr core, session on, std::string path) {
    on = on.patient();
    const std::string key = toolbox(on).whole_path(path);
    const auto look = [core, on, key]() -> std::optional<std::int64_t> {
        const auto& searched = core->sessions().current()->searched_for_orphans;
        const auto it = searched.find(key);
        return !on.over() && it != searched.end() ? std::optional(it->second) : std::nullopt;
    };
    std::optional<std::int64_t> known = co_await asked_on_strand(on, "exists", path, look);
    if (!known) {
        const std::optional<node_stat> there = co_await newest_stat(on, path);
        const auto judge = [core, on, path, key, there]() -> std::int64_t {
            if (on.over()) return 0;
            const std::int64_t czxid = there && is_orphan(*core, on, path, *there) ? there->czxid : 0;
            const auto [at, is_new] = core->sessions().current()->searched_for_orphans.emplace(key, czxid);
            orphan_nodes found;
            if (is_new && czxid != 0) found.push_back({path, czxid, there->version});
            if (!found.empty()) core->run_until_closed(warn_and_remove_orphans(core, on, std::move(found)));
            return at->second;
        };
        known = co_await asked_on_strand(on, "exists", path, judge);
    }
    co_return *known == 0 ? std::nullopt : known;
}

asio::awaitable<std::optional<std::int64_t>> no_orphan() { co_return std::nullopt; }

}  // namespace zkasio::detail
