#include <zkasio/barriers/latch.hpp>

#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/error.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/certain.hpp>
#include <zkasio/recipe/errors.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/recipe/node_follower.hpp>
#include <zkasio/recipe/toolbox.hpp>

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

struct reports {
    std::size_t missing = 0;
    bool done_exists = false;
};

asio::awaitable<reports> count(session on, std::string path, std::size_t wanted) {
    const std::vector<std::string> found = co_await children_if_any(on, path);
    reports r;
    r.done_exists = std::find(found.begin(), found.end(), done) != found.end();
    if (!r.done_exists && found.size() < wanted) r.missing = wanted - found.size();
    co_return r;
}

// If no report is missing, ensures that the waiting clients are told.
asio::awaitable<std::size_t> count_and_tell(session on, std::string path, std::size_t wanted, acl entries) {
    const reports now = co_await count(on, path, wanted);
    if (now.missing > 0 || now.done_exists) co_return now.missing;
    const create_options how = persistent_with(entries);
    co_await ensure_created(on, join_path(path, std::string(done)), bytes(), how);
    co_return 0;
}

asio::awaitable<std::size_t> report(client zk, std::string path, std::string id, std::size_t wanted, acl entries) {
    const std::string node = join_path(path, id);
    if (id.empty() || id == done || id.find('/') != std::string::npos || !path_problem(node).empty())
        throw error(errc::invalid_argument, "count_down", path, "an id is a node's name other than \"done\"");
    const session now = co_await toolbox(zk).current_session("count_down", path);
    const session on = now.patient();
    // A lost answer does not matter: the name of the node says all.
    const create_options how = persistent_with(entries);
    co_await ensure_created(on, node, bytes(), how);
    co_return co_await count_and_tell(on, path, wanted, std::move(entries));
}

asio::awaitable<std::size_t> missing_reports(client zk, std::string path, std::size_t wanted) {
    const session now = co_await toolbox(zk).current_session("remaining", path);
    const reports found = co_await count(now.patient(), path, wanted);
    co_return found.missing;
}

node_follower follower_of(const client& zk, const std::string& node, const std::string& path) {
    try {
        return {zk, node, node_read::data};
    } catch (const error& e) {
        throw error(e.code(), "wait", path, e.hint());
    }
}

asio::awaitable<void> until_none_missing(client zk, std::string path, std::size_t wanted, acl entries) {
    const std::string watched = join_path(path, std::string(done));
    const node_follower node = follower_of(zk, watched, path);
    std::optional<node_mark> known;
    for (;;) {
        std::chrono::milliseconds pause(1000);
        try {
            const session now = co_await toolbox(zk).current_session("wait", path);
            pause = now.timeout();
            const std::size_t missing = co_await count_and_tell(now.patient(), path, wanted, entries);
            if (missing == 0) break;
        } catch (const error& e) {
            // No report is missing, but this client may not create `done`. Its wait is over; other waiting clients
            // count, too.
            if (e.code() == zk_errc::no_auth && e.path() == watched) break;
            if (e.code() != condition::retryable && e.code() != errc::session_expired) throw;
        }
        try {
            const node_report seen = co_await timeout(pause, node.next(known));
            if (seen.ended) throw error(seen.mark.code, "wait", path);
            known = seen.mark;
            if (!known->code) break;  // `done` exists
        } catch (const error& e) {
            if (e.code() != errc::timed_out) rethrow_as("wait", path);
        }
    }
    co_await yield_turn();
}

}  // namespace

latch::latch(client zk, std::string path, std::size_t count, barrier_options options)
    : zk_(std::move(zk)), path_(std::move(path)), count_(count), options_(std::move(options)) {
    require_path("latch", path_);
    if (count == 0) throw error(errc::invalid_argument, "latch", path_, "it waits for at least one report");
}

asio::awaitable<std::size_t> latch::count_down(std::string id) const {
    return errors_as("count_down", path_, report(zk_, path_, std::move(id), count_, options_.acl()));
}
asio::awaitable<std::size_t> latch::remaining() const {
    return errors_as("remaining", path_, missing_reports(zk_, path_, count_));
}
asio::awaitable<void> latch::wait() const {
    return errors_as("wait", path_, until_none_missing(zk_, path_, count_, options_.acl()));
}

}  // namespace zkasio
