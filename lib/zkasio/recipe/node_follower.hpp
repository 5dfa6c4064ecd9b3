#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/export.hpp>
#include <zkasio/recipe/node_feed.hpp>
#include <zkasio/types.hpp>

#include <asio/awaitable.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

namespace zkasio {

namespace detail {
class follow_engine;
}

/// Identifies one state of a node: if two marks are equal, nothing has changed.
struct node_mark {
    std::error_code code;   ///< none: the node exists; zk_errc::no_node: there is no node; else why it cannot be read
    std::int64_t czxid = 0;  ///< differs for another node of the same name
    std::int64_t zxid = 0;   ///< of the last change: mzxid, or pzxid for the children
    /// A hash of the children's names: the removal of a child need not change pzxid (ClickHouse Keeper).
    std::size_t names = 0;

    friend bool operator==(const node_mark&, const node_mark&) = default;
};

/// A server's answer to a read of a node.
struct node_report {
    node_mark mark;
    node_answer answer;
    bool ended = false;  ///< nothing follows: mark.code is the reason
};

/// Follows one node: tells its newest state on request, and waits while the caller knows that state already. The base
/// of streams and configuration; for writers of recipes.
///
/// The node is read on request, and not before: without a request, changes cost nothing but one event. In between there
/// is one watch. A follower outlives connections and sessions, and reads again with each connection. A node that cannot
/// be read (zk_errc::no_auth) is a state like any other; since no watch fires for a change of an ACL, the node is read
/// again after the pauses of toolbox::make_refusal_back_off(), as long as a request waits.
///
/// Move-only. The destructor ends the follower, in the background (client::idle() waits for that). Does not keep the
/// client open. A moved-from object fails with errc::invalid_argument.
class ZKASIO_EXPORT node_follower {
public:
    using listener = std::function<void(node_report)>;

    /// @param what node_read::data or node_read::children. @param path need not exist. Throws errc::invalid_path.
    node_follower(const client& zk, std::string path, node_read what);
    node_follower(node_follower&&) noexcept = default;
    node_follower& operator=(node_follower&& other) noexcept;
    ~node_follower();

    /// Calls `tell` once, on the client's strand, as soon as the newest state is another one than `known`. Replaces an
    /// earlier request, whose `tell` is then not called. May be called on any thread, also by `tell`, which must not
    /// throw. After node_report::ended, another request is told the same again, in a later turn: make no more requests.
    void tell_next(std::optional<node_mark> known, listener tell) const;

    /// tell_next() for a coroutine.
    /// *Completes when* the newest state is another one than `known`, with the report.
    /// *Fails with* asio::error::operation_aborted when another request replaces this one; with errc::client_closed
    /// when the client is closed; and with errc::forked.
    /// *Cancellation*: ends the wait, and the node is not read for it again.
    asio::awaitable<node_report> next(std::optional<node_mark> known) const;

    /// Tells the pending request that nothing follows (node_report::ended, errc::client_closed), and leaves the watch.
    /// *Completes when* no watch of this follower is left on the servers.
    /// *Cancellation*: ends the wait only.
    asio::awaitable<void> close() const;
    /// As close(), but does not wait until the watch is gone.
    void stop() const noexcept;

private:
    std::shared_ptr<detail::follow_engine> engine_;
};

}  // namespace zkasio
