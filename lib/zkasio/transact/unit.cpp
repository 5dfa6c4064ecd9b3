#include <zkasio/transact/unit.hpp>

#include <zkasio/error.hpp>
#include <zkasio/path.hpp>
#include <zkasio/transact/detail/unit_state.hpp>

#include <system_error>

namespace zkasio {

using namespace transact_detail;

namespace {

using unit_ptr = std::shared_ptr<unit_state>;

unit_state& running_unit(const unit_ptr& state, const char* operation, const std::string& path) {
    if (!state) throw error(errc::invalid_argument, operation, path, "this unit was moved from");
    if (state->ended) throw error(errc::invalid_argument, operation, path, "the body of this unit has ended");
    return *state;
}

unit_record& record_for_write(const unit_ptr& state, const char* operation, const std::string& path) {
    unit_state& u = running_unit(state, operation, path);
    require_path(operation, path);
    return u.record;
}

// What a failed read tells the body: after no_node, that there is no node. Any other error is thrown; the end of the
// session is noted before.
seen_node missing_node(unit_state& u, const error& e) {
    if (e.code() == zk_errc::no_node) return std::nullopt;
    if (e.code() == errc::session_expired) u.session_over = e;
    throw error(e);
}

// The answer to a request that was sent ahead; nothing if there is none, or if its connection was lost.
asio::awaitable<std::optional<seen_node>> fetch_ahead(unit_ptr u, std::string path) {
    const auto sent = u->ahead.extract(path);
    if (sent.empty()) co_return std::nullopt;
    try {
        node_data found = co_await sent.mapped().result();
        co_return std::make_optional<seen_node>(std::move(found));
    } catch (const error& e) {
        if (e.code() != condition::retryable) co_return std::make_optional(missing_node(*u, e));
    }
    co_return std::nullopt;
}

asio::awaitable<seen_node> fetch(unit_ptr u, std::string path) {
    std::optional<seen_node> ahead = co_await fetch_ahead(u, path);
    if (ahead) co_return std::move(*ahead);
    try {
        seen_node found = co_await u->on.get(path);
        co_return found;
    } catch (const error& e) {
        co_return missing_node(*u, e);
    }
}

// Notes the parents of a missing node that are missing as well, as the servers have them: a parent that the body
// creates is missing before. A parent that exists is no condition.
asio::awaitable<void> note_missing_parents(unit_ptr u, std::string path) {
    for (std::string parent(parent_path(path)); parent.size() > 1; parent = std::string(parent_path(parent))) {
        if (u->record.has_read(parent)) co_return;
        seen_node found = co_await fetch(u, parent);
        running_unit(u, "get", path);
        if (found) co_return;
        u->record.note_missing(parent);
    }
}

asio::awaitable<seen_node> get_node(unit_ptr u, std::string path) {
    running_unit(u, "get", path);
    if (const seen_node* known = u->record.view(path)) co_return *known;
    seen_node found = co_await fetch(u, path);
    if (!found && u->with_parents->contains(path)) co_await note_missing_parents(u, path);
    running_unit(u, "get", path);
    co_return u->record.note_read(path, std::move(found));
}

asio::awaitable<std::vector<seen_node>> get_nodes(unit_ptr u, std::vector<std::string> paths) {
    running_unit(u, "get_all", {});
    for (const std::string& path : paths) u->read_ahead(path);
    std::vector<seen_node> all;
    for (const std::string& path : paths) {
        seen_node found = co_await get_node(u, path);
        all.push_back(std::move(found));
    }
    co_return all;
}

}  // namespace

asio::awaitable<std::optional<node_data>> unit::get(std::string path) const {
    return get_node(state_, std::move(path));
}
asio::awaitable<std::vector<std::optional<node_data>>> unit::get_all(std::vector<std::string> paths) const {
    return get_nodes(state_, std::move(paths));
}

void unit::set(std::string path, bytes data) const {
    record_for_write(state_, "set", path).set(path, std::move(data).take());
}
void unit::create(std::string path, bytes data, create_options how) const {
    record_for_write(state_, "create", path).create(path, std::move(data).take(), std::move(how));
}
void unit::remove(std::string path) const { record_for_write(state_, "remove", path).remove(path); }

}  // namespace zkasio
