#include <zkasio/config/config_core.hpp>

#include <zkasio/config/detail/state_after.hpp>
#include <zkasio/modify.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/recipe/node_follower.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace zkasio::config_detail {

/// Behind a config_value: gets the node's states on the client's strand, and shows the latest one on any thread.
class config_core : public std::enable_shared_from_this<config_core> {
public:
    config_core(const client& zk, std::string path, value_parser parse, std::shared_ptr<const void> fallback);

    /// Starts to listen; to be called once.
    void begin() { listen(std::nullopt); }

    const operations& on() const noexcept { return on_; }
    const std::string& path() const noexcept { return path_; }
    const node_follower& follower() const noexcept { return follower_; }

    state_ptr latest() const;
    /// Throws the error that has ended the core, if the core has ended.
    void check() const;
    /// Notified of each new state, and of the end of the core.
    change_event& changes() noexcept { return change_; }

private:
    void listen(std::optional<node_mark> known);
    void hear(const node_report& said);
    void publish(state_ptr next, std::error_code ended);

    const operations on_;
    const std::string path_;
    const value_parser parse_;
    const std::shared_ptr<const void> fallback_;
    const node_follower follower_;

    mutable std::mutex mutex_;
    state_ptr latest_;  // guarded by the mutex, as ended_
    std::error_code ended_;
    change_event change_;
};

/// The implementation of a config_changes.
class config_reader {
public:
    explicit config_reader(core_ptr c) : core(std::move(c)) {}

    const core_ptr core;
    one_at_a_time reading;
    std::uint64_t told = 0;  // the number of the last state; only the coroutine that runs next() uses it
};

namespace {

state_ptr nothing_yet(std::shared_ptr<const void> fallback) {
    auto state = std::make_shared<config_state>();
    state->value = std::move(fallback);
    return state;
}

}  // namespace

config_core::config_core(const client& zk, std::string path, value_parser parse, std::shared_ptr<const void> fallback)
    : on_(zk),
      path_(std::move(path)),
      parse_(std::move(parse)),
      fallback_(std::move(fallback)),
      follower_(zk, path_, node_read::data),
      latest_(nothing_yet(fallback_)),
      change_(zk, mutex_) {}

// The core owns the follower, which keeps the function: so the function must not keep the core alive.
void config_core::listen(std::optional<node_mark> known) {
    follower_.tell_next(std::move(known), [weak = weak_from_this()](const node_report& said) {
        if (const auto self = weak.lock()) self->hear(said);
    });
}

void config_core::hear(const node_report& said) {
    if (said.ended) return publish(latest(), said.mark.code);
    publish(std::make_shared<config_state>(state_after(*latest(), said, path_, parse_, fallback_)), {});
    listen(said.mark);
}

// Waiters are told, and the old state is destroyed, without the lock.
void config_core::publish(state_ptr next, std::error_code ended) {
    std::unique_lock lock(mutex_);
    latest_.swap(next);
    if (!ended_) ended_ = ended;
    change_.notify_all(std::move(lock));
}

state_ptr config_core::latest() const {
    const std::lock_guard lock(mutex_);
    return latest_;
}

void config_core::check() const {
    const std::lock_guard lock(mutex_);
    if (ended_) throw error(ended_, "config", path_);
}

namespace {

const core_ptr& present(const core_ptr& core) {
    if (!core) throw error(errc::invalid_argument, "config", {}, "this config_value was moved from");
    return core;
}

}  // namespace

core_ptr open_config(const client& zk, std::string path, value_parser parse, std::shared_ptr<const void> fallback) {
    require_path("config", path);
    auto core = std::make_shared<config_core>(zk, std::move(path), std::move(parse), std::move(fallback));
    core->begin();
    return core;
}

std::shared_ptr<const void> keep_config_open(const client& zk, const core_ptr& core) {
    auto stop = [open = zk.keep_open(), core](const void*) { core->follower().stop(); };
    return {core.get(), std::move(stop)};
}

const std::string& path_of_config(const core_ptr& core) { return present(core)->path(); }
state_ptr state_of_config(const core_ptr& core) { return present(core)->latest(); }
reader_ptr reader_of_config(const core_ptr& core) { return std::make_shared<config_reader>(present(core)); }

// ------------------------------------------------------------------------------------------------------ waiting

asio::awaitable<void> config_ready(core_ptr core) {
    const auto has_value = [core = present(core)] {
        const state_ptr state = core->latest();
        if (state->number > 0 && state->value) return true;
        core->check();
        if (state->number > 0) throw *state->problem;
        return false;
    };
    co_await core->changes().until(has_value, "ready", core->path());
    co_await yield_turn();
}

asio::awaitable<state_ptr> next_config_state(reader_ptr reader) {
    if (!reader) throw error(errc::invalid_argument, "config", {}, "these changes were moved from");
    const core_ptr core = reader->core;
    const auto turn = reader->reading.begin("config", core->path(), "next() of these changes");
    const auto untold = [core, reader] {
        core->check();
        state_ptr state = core->latest();
        return state->number > reader->told ? state : nullptr;
    };
    state_ptr next = co_await core->changes().until(untold, "next", core->path());
    reader->told = next->number;
    co_return next;
}

asio::awaitable<void> close_config(core_ptr core) { co_await present(core)->follower().close(); }

// ------------------------------------------------------------------------------------------------------ writing

error no_value_to_update(const std::string& path) {
    return error(zk_errc::no_node, "update", path, "there is no value to change: set() one, or give a default_value()");
}

void throw_refusal(std::string_view operation, const std::string& path) {
    throw error(errc::invalid_argument, operation, path, "the value is refused: " + reason_in_flight());
}

void throw_unreadable() { throw std::invalid_argument("what is written for it cannot be read: " + reason_in_flight()); }

namespace {

// The new version of the node; nothing if `version` is not the node's version any longer.
asio::awaitable<std::optional<std::int32_t>> write(operations on, std::string path, std::string text,
                                                   std::int32_t version, create_options how) {
    try {
        if (version == no_node_version) {
            const std::optional<created> made = co_await on.create_unless_exists(path, text, how);
            if (!made) co_return std::nullopt;
            co_return made->stat.version;
        }
        if (version == any_version) {
            const node_stat stat = co_await on.create_or_set(path, text, how);
            co_return stat.version;
        }
        const node_stat stat = co_await on.set(path, text, version);
        co_return stat.version;
    } catch (const error& e) {
        const bool conflict = e.code() == zk_errc::bad_version || (version >= 0 && e.code() == zk_errc::no_node);
        if (!conflict) throw;
    }
    co_return std::nullopt;
}

// As write(), with failures reported as failures of `operation`.
asio::awaitable<std::optional<std::int32_t>> write_as(std::string operation, core_ptr core, std::string text,
                                                      std::int32_t version, create_options how) {
    try {
        const std::optional<std::int32_t> written =
            co_await write(core->on(), core->path(), std::move(text), version, how);
        co_return written;
    } catch (const error& e) {
        throw failure_of(operation, core->path(), e);
    }
}

}  // namespace

asio::awaitable<std::int32_t> set_config(core_ptr core, std::function<std::string()> print, std::int32_t version,
                                         create_options how) {
    const std::string& path = present(core)->path();
    if (version < no_node_version) throw error(errc::invalid_argument, "set", path, "a version is not negative");
    std::string text = explained("set", path, print);
    const std::optional<std::int32_t> written = co_await write_as("set", core, std::move(text), version, how);
    if (!written) throw error(zk_errc::bad_version, "set", path, "somebody else has written, created or removed it");
    co_return *written;
}

asio::awaitable<bool> initialize_config(core_ptr core, std::function<std::string()> print, create_options how) {
    std::string text = explained("initialize", present(core)->path(), print);
    const std::optional<std::int32_t> written =
        co_await write_as("initialize", core, std::move(text), no_node_version, how);
    co_return written.has_value();
}

asio::awaitable<std::int32_t> update_config(
    core_ptr core, std::function<std::string(std::optional<std::string_view> text)> change, create_options how) {
    const std::string& path = present(core)->path();
    bool refused = false;  // the exception is one of `change`: it is passed on unchanged
    auto changed = [&](std::optional<node_data> before) -> std::optional<std::string> {
        std::optional<std::string_view> text;
        if (before) text = before->data;
        refused = true;
        std::string next = change(text);
        refused = false;
        return next;
    };
    modify_options options;
    options.create_with(how);
    try {
        const modified done = co_await modify(core->on(), path, changed, options);
        co_return *done.version;
    } catch (const error& e) {
        if (refused) throw;
        throw failure_of("update", path, e);
    }
}

}  // namespace zkasio::config_detail
