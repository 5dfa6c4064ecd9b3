#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/export.hpp>
#include <zkasio/types.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

/// What the parser of a cache makes of a node's data: see cache_options::parse() and cached_node::parsed().
namespace zkasio::cache_detail {

struct parsed_value {
    virtual ~parsed_value() = default;
};

template <class T>
struct parsed_as final : parsed_value {
    explicit parsed_as(T v) : value(std::move(v)) {}
    const T value;
};

using node_parser =
    std::function<std::shared_ptr<const parsed_value>(const std::string& path, const std::string& data)>;

}  // namespace zkasio::cache_detail

namespace zkasio {

namespace cache_detail {
struct stream_state;
}

class value_stream;

/// @param path need not exist. Throws errc::invalid_path.
ZKASIO_EXPORT value_stream watch_value(const client& zk, std::string path);

/// The states of one node, one after another: the result of watch_value().
///
/// Every change is followed by a state that is at least as new. Several changes may be reported as one, because the
/// stream reads the node only while next() is awaited. The stream never reports a state twice, and never goes back to
/// an older state. While next() is not awaited, the stream costs one watch of the server and nothing else. The stream
/// outlives connections and sessions: with each new one it reads the node again, and reports a change that happened in
/// between. A node that was removed and re-created with the same data is a change.
///
/// One coroutine at a time may await next(): a second one is refused with errc::invalid_argument. A node may have any
/// number of streams, on any executors.
///
/// *Lifetime*: move-only. Destroying a stream ends it, in the background (client::idle() waits for that). Until then
/// the stream keeps the client open. The awaitables that the members return may be awaited after the stream is
/// destroyed. A moved-from stream fails with errc::invalid_argument.
class ZKASIO_EXPORT value_stream {
public:
    value_stream(value_stream&&) noexcept = default;
    value_stream& operator=(value_stream&&) noexcept = default;

    /// *Completes when* the state differs from the last one that was reported, with the newest state: the data and the
    /// stat, or nothing if there is no node. The first call completes with the present state.
    /// *Fails with* zk_errc::no_auth, once, when an ACL denies this client the data. The next call then completes when
    /// the data may be read or the node is gone. As a change of an ACL fires no watch, the stream reads again, after
    /// pauses that grow from a second to five minutes: about as long after the change as the data were denied. Also
    /// with errc::client_closed when the client or the stream is closed; errc::forked; zk_errc::auth_failed;
    /// errc::session_expired, for a client that opens no other session. Not with errc::not_connected: next() waits for
    /// a connection, see timeout.hpp.
    /// *Cancellation* ends only the wait: the next call reports the state that this call has not reported.
    asio::awaitable<std::optional<node_data>> next() const;

    /// As next(), but completes when the state that differs from the last reported one has not changed for the time
    /// `quiet`, or `at_most` after the first change: many changes in a short time are one.
    /// *Fails with* what next() fails with (zk_errc::no_auth when that state has lasted, too); errc::invalid_argument
    /// for a negative time.
    asio::awaitable<std::optional<node_data>> settled(any_duration quiet,
                                                      any_duration at_most = std::chrono::nanoseconds::max()) const;

    /// Ends the stream; a pending next() fails with errc::client_closed.
    /// *Completes when* no watch of the stream is left on the servers.
    /// *Cancellation* ends only the wait.
    asio::awaitable<void> close() const;

private:
    friend value_stream watch_value(const client& zk, std::string path);
    value_stream(const client& zk, std::string path);
    std::shared_ptr<cache_detail::stream_state> state_;  // shared with a pending next()
    std::shared_ptr<const void> open_;                   // stops the stream when destroyed
};

class children_stream;

/// @param path of the parent; need not exist. Throws errc::invalid_path.
ZKASIO_EXPORT children_stream watch_children(const client& zk, std::string path);

/// The lists of the names of one node's children, one list after another: the result of watch_children(). As
/// value_stream, but changes of data do not count. For the data of the children, see children_cache.
class ZKASIO_EXPORT children_stream {
public:
    children_stream(children_stream&&) noexcept = default;
    children_stream& operator=(children_stream&&) noexcept = default;

    /// As value_stream::next(): completes with the sorted names and the stat of the parent, or with nothing if there is
    /// no node. A child that was removed and re-created is a change.
    asio::awaitable<std::optional<node_children>> next() const;

    /// As value_stream::settled().
    asio::awaitable<std::optional<node_children>> settled(any_duration quiet,
                                                          any_duration at_most = std::chrono::nanoseconds::max()) const;

    /// As value_stream::close().
    asio::awaitable<void> close() const;

private:
    friend children_stream watch_children(const client& zk, std::string path);
    children_stream(const client& zk, std::string path);
    std::shared_ptr<cache_detail::stream_state> state_;  // shared with a pending next()
    std::shared_ptr<const void> open_;                   // stops the stream when destroyed
};

}  // namespace zkasio
