#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/export.hpp>
#include <zkasio/recipe/node_feed.hpp>
#include <zkasio/types.hpp>

#include <asio/awaitable.hpp>

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

/// By what one state of a node is told from another: of the same marks, nothing has changed.
struct node_mark {
    std::error_code code;   ///< none: the node exists; zk_errc::no_node: it does not; else why it cannot be read
    std::int64_t czxid = 0;  ///< another one is another node of the same name
    std::int64_t zxid = 0;   ///< of the last change: mzxid, or pzxid for the children

    friend bool operator==(const node_mark&, const node_mark&) = default;
};

/// What a server has said of a node.
struct node_report {
    node_mark mark;
    node_answer answer;
    bool ended = false;  ///< nothing follows: mark.code says why
};

/// Follows one node: tells its newest state whenever it is asked, and waits while that is the one that is known
/// already. What streams and configuration are made of; for writers of recipes.
///
/// It reads when it is asked, and not before: changes that nobody asks about cost nothing but one event. In between
/// there is one watch. It outlives connections and sessions; with each connection it looks again. What cannot be read
/// (zk_errc::no_auth) is a state as others are; for a change of an ACL fires no watch, it is asked for again in the
/// pauses of the client's retry_policy, as long as somebody waits.
///
/// Move-only; ends when destroyed, in the background (client::idle() waits for that). Does not keep the client open.
/// One that was moved from fails with errc::invalid_argument.
class ZKASIO_EXPORT node_follower {
public:
    using listener = std::function<void(node_report)>;

    /// @param what node_read::data or node_read::children. @param path need not exist. Throws errc::invalid_path.
    node_follower(const client& zk, std::string path, node_read what);
    node_follower(node_follower&&) noexcept = default;
    node_follower& operator=(node_follower&& other) noexcept;
    ~node_follower();

    /// Calls `tell` once, on the client's strand, as soon as the newest state is another one than `known`. In place of
    /// what was asked before, which is not told any more. May be called on any thread, also by `tell`, which must not
    /// throw. After node_report::ended it is told the same again, in a later turn: do not ask any more.
    void tell_next(std::optional<node_mark> known, listener tell) const;

    /// The same for a coroutine: completes with the report. When another one asks meanwhile, this *fails with*
    /// asio::error::operation_aborted; with errc::client_closed when the client is closed, and errc::forked.
    /// *Cancellation* ends the wait, and nothing is read any more for it.
    asio::awaitable<node_report> next(std::optional<node_mark> known) const;

    /// Tells who waits that it has ended (errc::client_closed), and leaves the watch. *Completes when* nothing is left
    /// of it on the servers. *Cancellation* ends the wait only.
    asio::awaitable<void> close() const;
    /// The same without waiting.
    void stop() const noexcept;

private:
    std::shared_ptr<detail::follow_engine> engine_;
};

}  // namespace zkasio
