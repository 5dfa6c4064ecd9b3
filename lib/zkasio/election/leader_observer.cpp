#include <zkasio/election/leader_observer.hpp>

#include <zkasio/clock.hpp>
#include <zkasio/coroutines/task_scope.hpp>
#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/election/detail/leader_reader.hpp>
#include <zkasio/error.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/one_at_a_time.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <optional>
#include <utility>

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
    for (;;) {
        bool failed = false;
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
        }
        self->seen.reset();
        if (failed) co_await pauses.pause("observe", self->path);
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
        rethrow_step_as("observe", self->path);
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
