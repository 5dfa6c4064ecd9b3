#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/config/config_core.hpp>
#include <zkasio/config/config_format.hpp>
#include <zkasio/config/config_options.hpp>
#include <zkasio/coroutine_safety.hpp>
#include <zkasio/error.hpp>

#include <asio/awaitable.hpp>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace zkasio {

/// What a config_value knew at some moment.
template <class T>
struct config_snapshot {
    /// The last good one; null where there has been none, and there is no default.
    std::shared_ptr<const T> value;
    /// Of what the node holds, good or not; no_node_version where there is no node. For set().
    std::int32_t version = no_node_version;
    /// Why `value` is not what the node holds: errc::invalid_argument for what cannot be read, or is refused by
    /// config_options::validate(), with the reason in the text; zk_errc::no_auth; zk_errc::no_node where there is no
    /// node and no default.
    std::optional<error> problem;
};

/// The states of a config_value, one after another. One coroutine at a time: a second one is refused with
/// errc::invalid_argument. Any number of streams.
template <class T>
class config_changes {
public:
    /// *Completes when* there is another value or another problem than the last that was told, with the newest; the
    /// first time when a server has said what there is. *Fails with* errc::client_closed when the client is closed, or
    /// the config_value, or what else has ended it. *Cancellation* ends the wait only.
    asio::awaitable<config_snapshot<T>> next() const { return next_of(reader_); }

private:
    template <class>
    friend class config_value;
    explicit config_changes(config_detail::reader_ptr reader) : reader_(std::move(reader)) {}
    static asio::awaitable<config_snapshot<T>> next_of(config_detail::reader_ptr reader);

    config_detail::reader_ptr reader_;
};

/// A typed value in a node, which follows what is written there: configuration, limits, feature flags.
///
/// Nonsense does not hurt: when somebody writes what cannot be read, or what config_options::validate() refuses, the
/// last good value stays, and the problem is told, by snapshot() and changes(). So does the value of a node that is
/// removed, unless there is a config_options::default_value(), which then counts.
///
/// A change is here one round trip after the server that this client is connected to has heard of it. It outlives
/// connections and sessions: without one the last value counts, and with the next one it looks again. Costs one watch,
/// and a read for each change; when several changes come quickly, the ones in between may not be seen.
///
/// The parser runs on the client's strand: requests of this client wait for it.
///
/// *Lifetime*: move-only; ends when destroyed, in the background (client::idle() waits for that). Until then it keeps
/// the client open. May be used on any thread. What its members return may be awaited when it is gone. One that was
/// moved from fails with errc::invalid_argument.
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
    config_value& operator=(config_value&& other) noexcept;
    ~config_value() {
        if (core_) config_detail::stop_config(core_);
    }

    /// *Completes when* there is a value, if need be the default. *Fails with* the config_snapshot::problem when a
    /// server has been asked, and there is none: use changes() to wait until somebody writes one. With
    /// errc::client_closed and what else ends it. A connection is waited for: put a deadline around it, see
    /// timeout.hpp.
    /// *Cancellation* ends the wait only.
    asio::awaitable<void> ready() const { return config_detail::config_ready(core_); }

    /// The value of now: a copy of a pointer under a mutex. Never null after ready(), nor where there is a default.
    std::shared_ptr<const T> value() const {
        return std::static_pointer_cast<const T>(config_detail::state_of_config(core_)->value);
    }
    config_snapshot<T> snapshot() const { return snapshot_of(*config_detail::state_of_config(core_)); }
    /// Why value() is not what the node holds; nothing if it is. See config_snapshot::problem.
    std::optional<error> last_error() const { return config_detail::state_of_config(core_)->problem; }

    config_changes<T> changes() const { return config_changes<T>(config_detail::reader_of_config(core_)); }

    /// Writes the value, and creates the node if there is none. value() shows it when the servers have told of it, soon
    /// after. With a version: only if that is still the node's, see config_snapshot::version.
    /// *Completes with* the node's new version.
    /// *Fails with* errc::invalid_argument for what validate() refuses, or the format cannot write, or could not read
    /// again;
    /// zk_errc::bad_version when somebody else has written, created or removed the node; and as operations do, see
    /// error::outcome_unknown(). *Cancellation*: the value may have been written.
    ///
    /// A version is not enough where nodes are removed: one that was made anew counts from 0 again. With g++ 12 give a
    /// value that is an aggregate a name, see coroutine_safety.hpp.
    asio::awaitable<std::int32_t> set(T value, std::int32_t version = any_version) const;

    /// Reads what the servers have, and writes `change(value)` for it, a plain function; from the beginning when
    /// somebody else has written meanwhile. So of two who do this at a time no change is lost. It begins with the
    /// default where there is no node. Beside somebody who removes the node and makes it anew it may overwrite what he
    /// has written, as set() with a version.
    /// *Completes with* what it has written. *Fails with* what `change` throws; zk_errc::no_node where there is no node
    /// and no default; errc::invalid_argument for a value that cannot be read, whatever the last good one was, or of
    /// which the format says that a part of it would be lost; and as set(). When the answer is lost it is not tried
    /// again: error::outcome_unknown(). *Cancellation*: as set().
    template <class Change>
    asio::awaitable<config_snapshot<T>> update(Change&& change) const {
        using function = std::function<T(T)>;
        return updated(core_, rules_, detail::safe_function<function>(std::forward<Change>(change)));
    }

    /// Ends it: what waits fails with errc::client_closed; value() goes on showing what was known last.
    /// *Completes when* no watch is left on the servers. *Cancellation* ends the wait only.
    asio::awaitable<void> close() const { return config_detail::close_config(core_); }

    const std::string& path() const { return config_detail::path_of_config(core_); }

private:
    template <class>
    friend class config_changes;

    // What values have to be like.
    struct rules {
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
            // A printer may write what no reader takes: NaN is null in JSON.
            try {
                read(printed);
            } catch (...) {
                config_detail::throw_unreadable();
            }
            return printed;
        }
    };
    using rules_ptr = std::shared_ptr<const rules>;

    static config_snapshot<T> snapshot_of(const config_detail::config_state& state);
    static asio::awaitable<config_snapshot<T>> updated(config_detail::core_ptr core, rules_ptr rules,
                                                       std::function<T(T)> change);

    std::shared_ptr<const void> open_;
    rules_ptr rules_;
    config_detail::core_ptr core_;
};

// -------------------------------------------------------------------------------------------- what stands behind it

template <class T>
asio::awaitable<config_snapshot<T>> config_changes<T>::next_of(config_detail::reader_ptr reader) {
    const config_detail::state_ptr state = co_await config_detail::next_config_state(std::move(reader));
    co_return config_value<T>::snapshot_of(*state);
}

template <class T>
config_value<T>::config_value(const client& zk, std::string path, config_format<T> format, config_options<T> options)
    : open_(zk.keep_open()) {
    std::shared_ptr<const T> fallback = options.default_value();
    rules_ = std::make_shared<const rules>(rules{std::move(format), std::move(options)});
    if (fallback) config_detail::explained("config", path, [&] { rules_->check(*fallback); });
    config_detail::value_parser parse = [rules = rules_](std::string_view text) { return rules->read(text); };
    core_ = config_detail::open_config(zk, std::move(path), std::move(parse), std::move(fallback));
}

template <class T>
config_value<T>& config_value<T>::operator=(config_value&& other) noexcept {
    const config_value gone = std::move(*this);
    open_ = std::move(other.open_);
    rules_ = std::move(other.rules_);
    core_ = std::move(other.core_);
    return *this;
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
