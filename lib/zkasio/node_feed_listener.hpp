#pragma once

#include <zkasio/export.hpp>
#include <zkasio/types.hpp>

#include <functional>
#include <string>
#include <system_error>
#include <vector>

namespace zkasio {

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
    virtual ~node_feed_listener() = default;

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
    virtual void authenticated() {}

    /// Whether such a watch stands, or a read that leaves one is under way: then nobody else removes it.
    /// @param what node_read::stat stands for node_read::data, too: their watch is one.
    virtual bool watches(node_read what, const std::string& path) const = 0;
    /// Calls `f` for each watch that stands. It does no harm if it calls it for others, too.
    virtual void for_each_watch(const std::function<void(node_read, const std::string&)>& f) const = 0;
};

}  // namespace zkasio
