#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/export.hpp>
#include <zkasio/node_feed_listener.hpp>

#include <memory>
#include <string>

namespace zkasio {

namespace detail {
class core;
struct access;
struct feed_state;
}  // namespace detail

/// Reads and watches any number of nodes for one listener: what caches are made of. For writers of recipes; from
/// toolbox::feed().
///
/// Differs from operations::get_and_watch() in that the watches belong to one connection: they are not set again after
/// a reconnect, when the listener has to look at everything again in any case. So their number is not limited by what
/// fits into one request (errc::too_many_watches), and nothing is kept here for any of them: the listener knows them.
/// All watches of one node, of whoever, share one watch of the server.
///
/// Move-only. Once it is destroyed, its listener is told nothing any more; whoever destroys it leaves its watches
/// before, or else they stay until they fire or the session ends. Its members are for the client's strand; it may be
/// destroyed on any thread.
class ZKASIO_EXPORT node_feed {
public:
    node_feed() noexcept = default;
    node_feed(node_feed&& other) noexcept = default;
    node_feed& operator=(node_feed&& other) noexcept;
    ~node_feed();

    /// Asks a server; the listener is told the answer. While there is no connection, nothing happens.
    /// @param path of the root, or of a node below it.
    void read(node_read what, std::string path) const;

    /// That watch, which stands, is needed no more: it is removed on the server, unless somebody else has it too.
    /// node_feed_listener::watches() must say no by now.
    void leave(node_read what, const std::string& path) const;

private:
    friend struct detail::access;
    node_feed(std::shared_ptr<detail::core> core, std::shared_ptr<detail::feed_state> state);

    std::shared_ptr<detail::core> core_;
    std::shared_ptr<detail::feed_state> state_;
};

}  // namespace zkasio
