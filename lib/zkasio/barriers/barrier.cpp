#include <zkasio/barriers/barrier.hpp>

#include <zkasio/error.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/certain.hpp>
#include <zkasio/recipe/errors.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/recipe/node_follower.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <cstdint>
#include <optional>
#include <system_error>
#include <utility>

namespace zkasio {
namespace {

asio::awaitable<bool> close_gate(client zk, std::string path, acl entries) {
    const session now = co_await toolbox(zk).current_session("set", path);
    const session on = now.patient();
    create_options how;
    how.acl(std::move(entries)).parents(missing_parents::create_persistent);
    const std::string mine = new_protection_id();
    back_off pauses = toolbox(on).make_back_off();
    bool maybe_closed = false;  // by an attempt whose answer was lost
    try {
        for (;; co_await pauses.pause()) {
            std::optional<node_data> there;
            std::optional<error> hung_up;
            try {
                const std::optional<created> made = co_await on.create_unless_exists(path, mine, how);
                if (made || !maybe_closed) co_return made.has_value();
                there = co_await on.get(path);
            } catch (const error& e) {
                maybe_closed = maybe_closed || e.outcome_unknown();
                if (e.code() != condition::retryable && e.code() != zk_errc::no_node) throw;
                if (e.hung_up()) hung_up.emplace(e);
            }
            if (hung_up) {
                co_await on.sync(path);
                there = co_await if_exists(on.get(path));
                maybe_closed = maybe_closed && there.has_value();
                if (!there) throw hung_up->not_applied();
            }
            if (there) co_return there->data == mine;
        }
    } catch (const error& e) {
        throw error(e.code(), "set", e.path(), e.hint(), maybe_closed);
    } catch (const std::system_error& e) {  // of a pause that was cancelled
        throw error(e.code(), "set", path, {}, maybe_closed);
    }
}

asio::awaitable<bool> open_gate(client zk, std::string path) {
    session_pace pace = toolbox(zk).make_session_pace();
    for (;;) {
        const session on = co_await toolbox(zk).current_session("remove", path);
        const pending_removal removal = toolbox(on).ensure_removed(path);
        try {
            co_await removal.result();
            co_return removal.found();
        } catch (const error& e) {
            if (e.code() != errc::session_expired) throw;
        }
        co_await pace.pause("remove", path);
    }
}

asio::awaitable<bool> is_closed(client zk, std::string path) {
    const std::optional<node_stat> there = co_await errors_as("is_set", path, zk.exists(path));
    co_return there.has_value();
}

asio::awaitable<void> until_removed(client zk, std::string path) {
    const node_follower node(zk, path, node_read::data);
    std::optional<node_mark> known;
    std::int64_t closed_by = 0;  // czxid of the node that closes the barrier; 0: not known yet
    for (;;) {
        const node_report seen = co_await node.next(known);
        if (seen.ended) throw error(seen.mark.code, "wait", path);
        known = seen.mark;
        if (known->code == zk_errc::no_node) co_return;
        if (known->code) continue;
        // Another node of the same name: the barrier was open in between.
        if (closed_by != 0 && closed_by != known->czxid) co_return;
        closed_by = known->czxid;
    }
}

asio::awaitable<void> until_open(client zk, std::string path) {
    if (path.empty()) throw error(errc::invalid_argument, "wait", path, "this barrier was moved from");
    try {
        co_await until_removed(std::move(zk), path);
    } catch (const error&) {
        rethrow_as("wait", path);
    }
    co_await yield_turn();
}

}  // namespace

barrier::barrier(client zk, std::string path, barrier_options options)
    : zk_(std::move(zk)), path_(std::move(path)), options_(std::move(options)) {
    require_path("barrier", path_);
}

asio::awaitable<bool> barrier::set() const { return close_gate(zk_, path_, options_.acl()); }
asio::awaitable<bool> barrier::remove() const { return open_gate(zk_, path_); }
asio::awaitable<bool> barrier::is_set() const { return is_closed(zk_, path_); }
asio::awaitable<void> barrier::wait() const { return until_open(zk_, path_); }

}  // namespace zkasio
