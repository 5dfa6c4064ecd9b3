#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/export.hpp>
#include <zkasio/types.hpp>

#include <asio/awaitable.hpp>

#include <memory>
#include <optional>
#include <string>

namespace zkasio {

namespace cache_detail {
struct stream_state;
}

class value_stream;

/// @param path need not exist. Throws errc::invalid_path.
ZKASIO_EXPORT value_stream watch_value(const client& zk, std::string path);

/// The states of one node, one after another: what watch_value() returns.
///
/// After every change there is a state after it; several changes may come as one, for it reads when it is asked. Never
/// an old one twice, and never an older one. It costs a watch of the server, and nothing else while nobody asks; the
/// watch does not count towards errc::too_many_watches. It outlives connections and sessions: behind each it looks
/// again, and tells what has changed meanwhile. A node that was removed and made anew with the same data is a change.
///
/// One coroutine at a time: a second one is refused with errc::invalid_argument. Any number of streams of one node, on
/// any executors.
///
/// *Lifetime*: move-only; ends when destroyed, in the background (client::idle() waits for that). Until then it keeps
/// the client open. What its members return may be awaited when it is gone. One that was moved from fails with
/// errc::invalid_argument.
class ZKASIO_EXPORT value_stream {
public:
    value_stream(value_stream&&) noexcept = default;
    value_stream& operator=(value_stream&& other) noexcept;
    ~value_stream();

    /// *Completes when* the state is another one than the last that was told, with the newest: the data and the stat,
    /// or nothing where there is no node. The first time with the state of now.
    /// *Fails with* zk_errc::no_auth when an ACL keeps the data from us, once: the next call completes when it may be
    /// read, or there is no node any more. As a change of an ACL fires no watch, it asks again, in the pauses of
    /// client_options::retry(). With errc::client_closed when the client is closed, or this; errc::forked;
    /// zk_errc::auth_failed; errc::session_expired of a client that opens no other session. Not with
    /// errc::not_connected: it waits for a connection, see timeout.hpp.
    /// *Cancellation* ends the wait only: the next call tells what this one has not told.
    asio::awaitable<std::optional<node_data>> next() const;

    /// Ends it; who awaits next() gets errc::client_closed.
    /// *Completes when* no watch is left on the servers. *Cancellation* ends the wait only.
    asio::awaitable<void> close() const;

private:
    friend value_stream watch_value(const client& zk, std::string path);
    value_stream(const client& zk, std::string path);
    std::shared_ptr<const void> open_;
    std::shared_ptr<cache_detail::stream_state> state_;
};

}  // namespace zkasio
