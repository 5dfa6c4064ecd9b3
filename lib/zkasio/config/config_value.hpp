#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/config/config_core.hpp>
#include <zkasio/config/config_format.hpp>
#include <zkasio/coroutines/coroutine_safety.hpp>
#include <zkasio/coroutines/kept_body.hpp>
#include <zkasio/create_options.hpp>
#include <zkasio/error.hpp>

#include <asio/awaitable.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace zkasio {

/// How a config_value behaves.
template <class T>
class config_options {
public:
    config_options() {}

    /// The value if there is no node, and until a good value has been read for the first time (none).
    config_options& default_value(T value) {
        default_ = std::make_shared<const T>(std::move(value));
        return *this;
    }
    /// Checks values that the format can read: `check(value)` throws or returns false for a bad one. Applies to values
    /// that other clients write, to values to be written here, and to default_value(). As config_format::parser,
    /// `check` may be called on any thread.
    template <class Check>
    config_options& validate(Check&& check) {
        using plain = typename detail::plain_body<Check>::type;
        if constexpr (std::is_void_v<std::invoke_result_t<plain&, const T&>>) {
            check_ = detail::safe_function<std::function<void(const T&)>>(std::forward<Check>(check));
        } else {
            auto good = detail::safe_function<std::function<bool(const T&)>>(std::forward<Check>(check));
            check_ = [good = std::move(good)](const T& value) {
                if (!good(value)) throw std::invalid_argument("validate() says no");
            };
        }
        return *this;
    }
    /// How initialize(), set() and update() create the node when there is none (a persistent one, and its parents).
    config_options& create_with(create_options how) { create_ = std::move(how); return *this; }

    const std::shared_ptr<const T>& default_value() const noexcept { return default_; }
    const std::function<void(const T&)>& check() const noexcept { return check_; }
    const create_options& create_with() const noexcept { return create_; }

private:
    std::shared_ptr<const T> default_;
    std::function<void(const T&)> check_;
    create_options create_ = create_options().parents(missing_parents::create_persistent);
};

}  // namespace zkasio

namespace zkasio::config_detail {

/// Reads and writes the values of a config_value: its format, behind the checks of its options.
template <class T>
struct config_rules {
    config_format<T> format;
    config_options<T> options;

    void check(const T& value) const {
        if (options.check()) options.check()(value);
    }
    std::shared_ptr<const T> read(std::string_view text) const {
        auto value = std::make_shared<const T>(format.parse()(text));
        check(*value);
        return value;
    }
    std::shared_ptr<const T> read_for_update(std::string_view text) const {
        auto value = read(text);
        if (format.before_update()) format.before_update()(text, *value);
        return value;
    }
    std::string text(const T& value) const {
        if (!format.print()) throw std::logic_error("its format does not say how to write a value");
        check(value);
        std::string printed = format.print()(value);
        // A printer may write a text that the parser refuses: NaN is null in JSON.
        try {
            read(printed);
        } catch (...) {
            throw_unreadable();
        }
        return printed;
    }
};

}  // namespace zkasio::config_detail

namespace zkasio {

/// The state of a config_value at one moment.
template <class T>
struct config_snapshot {
    /// The last good value; null if there has been none and there is no default.
    std::shared_ptr<const T> value;
    /// The version of the node's data, good or not; no_node_version if there is no node. For set().
    std::int32_t version = no_node_version;
    /// The reason why `value` is not the node's value: errc::invalid_argument for data that cannot be read, or that
    /// config_options::validate() refuses, with the reason in the text; zk_errc::no_auth; zk_errc::no_node if there is
    /// neither a node nor a default.
    std::optional<error> problem;
};

/// The states of a config_value, one after another. One coroutine at a time: a second one is refused with
/// errc::invalid_argument. A config_value may have any number of such streams.
template <class T>
class config_changes {
public:
    /// *Completes when* there is another value or another problem than the last that was told, with the newest state;
    /// the first time, when a server has told the state of the node.
    /// *Fails with* errc::client_closed when the client or the config_value is closed, and with any other error that
    /// has ended the config_value.
    /// *Cancellation* ends the wait only.
    asio::awaitable<config_snapshot<T>> next() const { return next_of(reader_); }

private:
    template <class>
    friend class config_value;
    explicit config_changes(config_detail::reader_ptr reader) : reader_(std::move(reader)) {}
    static asio::awaitable<config_snapshot<T>> next_of(config_detail::reader_ptr reader);

    config_detail::reader_ptr reader_;
};

/// A typed value that follows the data of a node: configuration, limits, feature flags.
///
/// If another client writes data that cannot be read, or that config_options::validate() refuses, the last good value
/// stays, and snapshot() and changes() tell the problem. The last good value also stays if the node is removed, unless
/// there is a config_options::default_value(), which then becomes the value.
///
/// A change arrives one round trip after the server that this client is connected to has heard of it. A config_value
/// outlives connections and sessions: without a connection the last value stays, and with the next connection the node
/// is checked again. Costs one watch, and a read for each change; if several changes come quickly, the ones in between
/// may not be seen.
///
/// A value that another client has written is parsed on the client's strand: requests of this client wait for that.
///
/// *Lifetime*: move-only. Ends when destroyed, in the background (client::idle() waits for that); until then a
/// config_value keeps the client open. May be used on any thread. Awaitables that its members have returned may be
/// awaited after its destruction. A config_value that was moved from fails with errc::invalid_argument.
template <class T>
class config_value {
public:
    /// @param path need not exist. @param format for example a function from std::string_view to T.
    /// Throws errc::invalid_path, and errc::invalid_argument for a default that config_options::validate() refuses.
    config_value(const client& zk, std::string path, config_format<T> format,
                 config_options<T> options = config_options<T>());
    /// With JSON: include <zkasio/config/json.hpp>.
    config_value(const client& zk, std::string path, config_options<T> options = config_options<T>())
        : config_value(zk, std::move(path), default_config_format<T>::make(), std::move(options)) {}
    config_value(config_value&&) noexcept = default;
    config_value& operator=(config_value&&) noexcept = default;

    /// *Completes when* there is a value, if need be the default. A connection is waited for: put a deadline around
    /// ready(), see timeout.hpp.
    /// *Fails with* the config_snapshot::problem if a server has been asked and there is no value: use changes() to
    /// wait until another client writes one. Also with errc::client_closed, and with any other error that has ended the
    /// config_value.
    /// *Cancellation* ends the wait only.
    asio::awaitable<void> ready() const { return config_detail::config_ready(core_); }

    /// The current value: a copy of a pointer under a mutex. Never null after ready(), or if there is a default.
    std::shared_ptr<const T> value() const {
        return std::static_pointer_cast<const T>(config_detail::state_of_config(core_)->value);
    }
    config_snapshot<T> snapshot() const { return snapshot_of(*config_detail::state_of_config(core_)); }
    /// The reason why value() is not the node's value; nothing if it is. See config_snapshot::problem.
    std::optional<error> last_error() const { return config_detail::state_of_config(core_)->problem; }

    config_changes<T> changes() const { return config_changes<T>(config_detail::reader_of_config(core_)); }

    /// Creates the node with this value, unless there is a node: its value stays, good or not. As the start() of
    /// Curator's SharedValue.
    /// *Completes with* whether this call has created the node.
    /// *Fails with* errc::invalid_argument as set(), also if there is a node; and the errors of
    /// operations::create_unless_exists(), see error::outcome_unknown(): a call that is repeated after a lost answer
    /// may find its own node, and says false.
    /// *Cancellation*: the node may have been created.
    asio::awaitable<bool> initialize(T seed) const;

    /// Writes the value, and creates the node if there is none. value() shows the new value soon after, when the
    /// servers have told of the change; until then ready() may fail as before the call, and changes() tells of it. With
    /// a version: only if the node still has this version, see config_snapshot::version.
    /// *Completes with* the node's new version.
    /// *Fails with* errc::invalid_argument for a value that validate() refuses, or that the format cannot write, or
    /// could not read again; zk_errc::bad_version when another client has written, created or removed the node; and as
    /// operations do, see error::outcome_unknown().
    /// *Cancellation*: the value may have been written.
    ///
    /// A version is not enough where nodes are removed: the versions of a re-created node start again at 0. With g++ 12
    /// give a value that is an aggregate a name, see coroutine_safety.hpp.
    asio::awaitable<std::int32_t> set(T value, std::int32_t version = any_version) const;

    /// Reads the node's value from the servers, and writes `change(value)`; `change` is a plain function. If another
    /// client has written between the two, update() starts again: of two concurrent updates no change is lost. Not
    /// fair, as modify(): beside clients that write all the time, a far one may be late without a bound. If there is no
    /// node, update() starts with the default. If another client deletes and re-creates the node at the same time,
    /// update() can overwrite the new value, as set() with a version: versions start again at 0.
    /// *Completes with* the state that was written.
    /// *Fails with* the exceptions of `change`; zk_errc::no_node if there is neither a node nor a default;
    /// errc::invalid_argument for a value of the node that cannot be read, even if an earlier one was good, or of which
    /// the format says that a part would be lost; and as set(). When the answer is lost, the write is not repeated:
    /// error::outcome_unknown(). std::errc::result_out_of_range as modify().
    /// *Cancellation*: as set().
    template <class Change>
    asio::awaitable<config_snapshot<T>> update(Change&& change) const {
        using function = std::function<T(T)>;
        return updated(core_, rules_, detail::safe_function<function>(std::forward<Change>(change)));
    }

    /// Ends the config_value: waiting operations fail with errc::client_closed, and value() goes on showing the last
    /// value.
    /// *Completes when* no watch is left on the servers.
    /// *Cancellation* ends the wait only.
    asio::awaitable<void> close() const { return config_detail::close_config(core_); }

    const std::string& path() const { return config_detail::path_of_config(core_); }

private:
    template <class>
    friend class config_changes;

    using rules = config_detail::config_rules<T>;
    using rules_ptr = std::shared_ptr<const rules>;

    static config_snapshot<T> snapshot_of(const config_detail::config_state& state);
    static asio::awaitable<config_snapshot<T>> updated(config_detail::core_ptr core, rules_ptr rules,
                                                       std::function<T(T)> change);

    rules_ptr rules_;
    config_detail::core_ptr core_;
    std::shared_ptr<const void> open_;  // stops the core when destroyed
};

// -------------------------------------------------------------------------------------------- what stands behind it

template <class T>
asio::awaitable<config_snapshot<T>> config_changes<T>::next_of(config_detail::reader_ptr reader) {
    const config_detail::state_ptr state = co_await config_detail::next_config_state(std::move(reader));
    co_return config_value<T>::snapshot_of(*state);
}

template <class T>
config_value<T>::config_value(const client& zk, std::string path, config_format<T> format, config_options<T> options) {
    std::shared_ptr<const T> fallback = options.default_value();
    rules_ = std::make_shared<const rules>(rules{std::move(format), std::move(options)});
    if (fallback) config_detail::explained("config", path, [&] { rules_->check(*fallback); });
    config_detail::value_parser parse = [rules = rules_](std::string_view text) { return rules->read(text); };
    core_ = config_detail::open_config(zk, std::move(path), std::move(parse), std::move(fallback));
    open_ = config_detail::keep_config_open(zk, core_);
}

template <class T>
config_snapshot<T> config_value<T>::snapshot_of(const config_detail::config_state& state) {
    config_snapshot<T> now;
    now.value = std::static_pointer_cast<const T>(state.value);
    now.version = state.version;
    now.problem = state.problem;
    return now;
}

template <class T>
asio::awaitable<std::int32_t> config_value<T>::set(T value, std::int32_t version) const {
    std::function<std::string()> print = [rules = rules_, value = std::move(value)] { return rules->text(value); };
    return config_detail::set_config(core_, std::move(print), version,
                                     rules_ ? rules_->options.create_with() : create_options());
}

template <class T>
asio::awaitable<bool> config_value<T>::initialize(T seed) const {
    std::function<std::string()> print = [rules = rules_, seed = std::move(seed)] { return rules->text(seed); };
    return config_detail::initialize_config(core_, std::move(print),
                                            rules_ ? rules_->options.create_with() : create_options());
}

template <class T>
asio::awaitable<config_snapshot<T>> config_value<T>::updated(config_detail::core_ptr core, rules_ptr rules,
                                                             std::function<T(T)> change) {
    config_snapshot<T> written;
    auto changed = [&](std::optional<std::string_view> text) {
        const std::string& path = config_detail::path_of_config(core);
        const std::shared_ptr<const T> before =
            text ? config_detail::explained("update", path, [&] { return rules->read_for_update(*text); })
                 : rules->options.default_value();
        if (!before) throw config_detail::no_value_to_update(path);
        written.value = std::make_shared<const T>(change(*before));
        return config_detail::explained("update", path, [&] { return rules->text(*written.value); });
    };
    const std::function<std::string(std::optional<std::string_view>)> step = changed;
    const create_options how = rules ? rules->options.create_with() : create_options();
    written.version = co_await config_detail::update_config(core, step, how);
    co_return written;
}

}  // namespace zkasio
