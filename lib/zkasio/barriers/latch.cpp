#include <zkasio/barriers/latch.hpp>

#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/error.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/ensure_created.hpp>
#include <zkasio/recipe/if_exists.hpp>
#include <zkasio/recipe/node_follower.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/recipe/wait_as.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zkasio {
namespace {

constexpr std::string_view done = "done";

create_options persistent_with(const acl& entries) {
    create_options how;
    how.acl(entries).parents(missing_parents::create_persistent);
    return how;
}

// How many reports are missing. If none is, ensures that the waiting clients are told.
asio::awaitable<std::size_t> count(session on, std::string path, std::size_t wanted, acl entries) {
    const std::vector<std::string> found = co_await children_if_any(on, path);
    const bool told = std::find(found.begin(), found.end(), done) != found.end();
    if (told) co_return 0;
    if (found.size() < wanted) co_return wanted - found.size();
    const create_options how = persistent_with(entries);
    co_await ensure_created(on, join_path(path, std::string(done)), bytes(), how);
    co_return 0;
}

asio::awaitable<std::size_t> report(client zk, std::string path, std::string id, std::size_t wanted, acl entries) {
    if (id.empty() || id == done || id.find('/') != std::string::npos)
        throw error(errc::invalid_argument, "count_down", path, "an id is a node's name other than \"done\"");
    const session now = co_await toolbox(zk).current_session("count_down", path);
    const session on = now.patient();
    // A lost answer does not matter: the name of the node says all.
    const create_options how = persistent_with(entries);
    co_await ensure_created(on, join_path(path, id), bytes(), how);
    co_return co_await count(on, path, wanted, std::move(entries));
}

asio::awaitable<std::size_t> missing_reports(client zk, std::string path, std::size_t wanted, acl entries) {
    const session now = co_await toolbox(zk).current_session("remaining", path);
    co_return co_await count(now.patient(), path, wanted, std::move(entries));
}

asio::awaitable<void> until_none_missing(client zk, std::string path, std::size_t wanted, acl entries) {
    const node_follower node(zk, join_path(path, std::string(done)), node_read::data);
    std::optional<node_mark> known;
    for (;;) {
        std::chrono::milliseconds pause(1000);
        try {
            const session now = co_await toolbox(zk).current_session("wait", path);
            pause = now.timeout();
            const std::size_t missing = co_await count(now.patient(), path, wanted, entries);
            if (missing == 0) break;
        } catch (const error& e) {
            if (e.code() != condition::retryable && e.code() != errc::session_expired) throw;
        }
        try {
            const node_report seen = co_await timeout(pause, node.next(known));
            if (seen.ended) throw error(seen.mark.code, "wait", path);
            known = seen.mark;
        } catch (const error& e) {
            if (e.code() != errc::timed_out) throw;
        }
    }
    co_await yield_turn();
}

}  // namespace

latch::latch(client zk, std::string path, std::size_t count, barrier_options options)
    : zk_(std::move(zk)), path_(std::move(path)), count_(count), options_(std::move(options)) {
    if (const std::string problem = path_problem(path_); !problem.empty())
        throw error(errc::invalid_path, "latch", path_, problem);
    if (count == 0) throw error(errc::invalid_argument, "latch", path_, "it waits for at least one report");
}

asio::awaitable<std::size_t> latch::count_down(std::string id) const {
    return report(zk_, path_, std::move(id), count_, options_.acl());
}
asio::awaitable<std::size_t> latch::remaining() const { return missing_reports(zk_, path_, count_, options_.acl()); }
asio::awaitable<void> latch::wait() const { return until_none_missing(zk_, path_, count_, options_.acl()); }

}  // namespace zkasio
