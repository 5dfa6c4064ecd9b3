#include <zkasio/transact/unit.hpp>

#include <zkasio/error.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/transact/detail/unit_state.hpp>

#include <cstddef>

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
    if (const std::string problem = path_problem(path); !problem.empty())
        throw error(errc::invalid_path, operation, path, problem);
    return u.record;
}

// What a read has failed with: no_node is an answer, and the end of the session is remembered.
seen_node missing_node(unit_state& u, const error& e) {
    if (e.code() == zk_errc::no_node) return std::nullopt;
    if (e.code() == errc::session_expired) u.session_over = true;
    throw error(e);
}

asio::awaitable<seen_node> fetch(unit_ptr u, std::string path) {
    try {
        seen_node found = co_await u->on.get(path);
        co_return found;
    } catch (const error& e) {
        co_return missing_node(*u, e);
    }
}

// Notes the parents of a missing node that are missing as well. A parent that exists is no condition.
asio::awaitable<void> note_missing_parents(unit_ptr u, std::string path) {
    for (std::string parent(parent_path(path)); parent.size() > 1; parent = std::string(parent_path(parent))) {
        if (u->record.view(parent)) co_return;
        seen_node found = co_await fetch(u, parent);
        if (found) co_return;
        u->record.note_read(parent, std::nullopt);
    }
}

asio::awaitable<seen_node> noted(unit_ptr u, std::string path, seen_node found) {
    if (!found && u->with_parents->contains(path)) co_await note_missing_parents(u, path);
    running_unit(u, "get", path);
    co_return u->record.note_read(path, std::move(found));
}

asio::awaitable<seen_node> get_node(unit_ptr u, std::string path) {
    running_unit(u, "get", path);
    if (const seen_node* known = u->record.view(path)) co_return *known;
    seen_node found = co_await fetch(u, path);
    co_return co_await noted(u, path, std::move(found));
}

asio::awaitable<std::vector<seen_node>> get_nodes(unit_ptr u, std::vector<std::string> paths) {
    running_unit(u, "get_all", {});
    std::vector<std::optional<pending_data>> asked;
    for (const std::string& path : paths) {
        asked.emplace_back();
        if (!u->record.view(path)) asked.back().emplace(toolbox(u->on).start_get(path));
    }
    for (const std::optional<pending_data>& one : asked)
        if (one) co_await one->answered();
    std::vector<seen_node> all;
    for (std::size_t i = 0; i < paths.size(); ++i) {
        bool again = !asked[i];
        seen_node found;
        try {
            if (!again) found = asked[i]->get();
        } catch (const error& e) {
            again = e.code() == condition::retryable;
            if (!again) found = missing_node(*u, e);
        }
        seen_node seen;
        if (again)
            seen = co_await get_node(u, paths[i]);
        else
            seen = co_await noted(u, paths[i], std::move(found));
        all.push_back(std::move(seen));
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
