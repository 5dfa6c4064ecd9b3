#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/export.hpp>
#include <zkasio/node_feed_listener.hpp>

#include <cstdint>
#include <memory>
#include <string>

namespace zkasio {

namespace detail {
class core;
struct access;
struct feed_state;
}  // namespace detail

/// Reads and watches any number of nodes for one listener: the base of caches. For writers of recipes; made by
/// toolbox::feed().
///
/// Unlike the watches of operations::get_and_watch(), the watches of a node_feed are not set again after a reconnect,
/// when the listener has to read everything again in any case. So no state is kept here for a watch: the listener knows
/// its watches. All watches of one node, of any user of the client, share one watch of the server.
///
/// Move-only. After its destruction, the listener is told nothing. The owner calls leave() for the watches before the
/// destruction; otherwise they stay until they fire or the session ends. The members are for the client's strand; the
/// destructor may run on any thread.
class ZKASIO_EXPORT node_feed {
public:
    node_feed() noexcept = default;
    node_feed(node_feed&& other) noexcept = default;
    node_feed& operator=(node_feed&& other) noexcept;
    ~node_feed();

    /// Asks a server; the listener is told the answer. While there is no connection, nothing happens.
    /// @param path of the root, or of a node below it.
    void read(node_read what, std::string path) const;

    /// Whether the listener will be told of a connection that is there: a server was asked for a recursive watch. If
    /// the feed is destroyed now, the watch is removed after the answer.
    bool waits() const;

    /// Removes a standing watch on the server, unless another user of the client has this watch, too.
    /// node_feed_listener::watches() must return false for it by now.
    void leave(node_read what, const std::string& path) const;

private:
    friend struct detail::access;
    node_feed(std::shared_ptr<detail::core> core, std::shared_ptr<detail::feed_state> state, const std::string* root,
              std::shared_ptr<node_feed_listener> of_view);

    std::shared_ptr<detail::core> core_;
    std::shared_ptr<detail::feed_state> state_;
    const std::string* root_ = nullptr;                       // see client::rooted()
    std::shared_ptr<node_feed_listener> of_view_;  // stands between a view's listener and the client
};

}  // namespace zkasio
