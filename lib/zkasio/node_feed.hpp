#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/export.hpp>
#include <zkasio/types.hpp>
#include <zkasio/watch.hpp>

#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

namespace zkasio {

namespace detail {
class core;
struct access;
struct feed_state;
}  // namespace detail

/// What a node_feed is asked to read. Each leaves a watch.
enum class node_read {
    data,      ///< data and stat; the watch is about both, and about the removal of the node
    stat,      ///< the same without the data, for which servers before 3.8.4 want no permission; watches for a missing
               ///< node too
    children,  ///< the names of the children; the watch is about them, and about the removal of the node
};

/// What was read. Only what was asked for is filled in; `stat` always.
struct node_answer {
    std::string data;
    node_stat stat;
    std::vector<std::string> children;
};

/// Who reads and watches by a node_feed. Everything is called on the client's strand, outside of the C library, in the
/// order in which the servers tell it: a change is told before any answer that shows it. What is thrown is logged.
class ZKASIO_EXPORT node_feed_listener {
public:
    virtual ~node_feed_listener();

    /// There is a connection, whose server knows all that was told before: reads may be asked for. No watch of ours
    /// stands.
    virtual void connected() = 0;
    /// The connection is gone, and with it all reads that are under way and all watches: nothing is told of them any
    /// more. Not called when closed() is.
    virtual void disconnected() = 0;
    /// Nothing will follow: errc::client_closed, errc::forked, zk_errc::auth_failed, or errc::session_expired of a
    /// client that opens no other session.
    virtual void closed(std::error_code why) = 0;

    /// The answer to a read. @param code the server's, if it is none; never that the connection was lost.
    virtual void answered(node_read what, const std::string& path, std::error_code code, node_answer answer) = 0;
    /// A watch has fired, and is gone. May also be told of nodes that are not watched.
    virtual void changed(node_change what, const std::string& path) = 0;
    /// A server has accepted a credential of client::add_auth(): what was refused may be readable from now on. Does
    /// nothing, unless it is overridden.
    virtual void authenticated();

    /// Whether such a watch stands, or a read that leaves one is under way: then nobody else removes it.
    /// @param what node_read::stat stands for node_read::data, too: their watch is one.
    virtual bool watches(node_read what, const std::string& path) const = 0;
    /// Calls `f` for each watch that stands. It does no harm if it calls it for others, too.
    virtual void for_each_watch(const std::function<void(node_read, const std::string&)>& f) const = 0;
};

/// Reads and watches any number of nodes for one listener: what caches are made of. For writers of recipes; from
/// client::feed().
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
