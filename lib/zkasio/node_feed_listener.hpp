#pragma once

#include <zkasio/export.hpp>
#include <zkasio/types.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <system_error>
#include <vector>

namespace zkasio {

/// The kinds of reads of a node_feed. Each read leaves a watch.
enum class node_read {
    data,      ///< data and stat; the watch fires when the data are written, and when the node is removed
    stat,      ///< as `data`, but without the data: servers before 3.8.4 require no permission for this read. Also
               ///< watches a missing node: the watch then fires when the node is created
    children,  ///< the names of the children; the watch fires when a name is added or removed, and when the node is
               ///< removed
};

/// The answer to a read. Only the parts that the read has asked for are filled in, and `stat` always.
struct node_answer {
    std::string data;
    node_stat stat;
    std::vector<std::string> children;
};

/// The user of a node_feed, which reads and watches nodes. The members are called on the client's strand, outside of
/// the C library, in the order of the servers' messages: a change is reported before any answer that shows it.
/// Exceptions of the members are logged.
class ZKASIO_EXPORT node_feed_listener {
public:
    virtual ~node_feed_listener() = default;

    /// Whether the feed is to ask servers, on each connection, for one recursive watch of its root. Asked once, by
    /// toolbox::feed(). All feeds of one root share this watch.
    virtual bool wants_one_watch() const { return false; }
    /// There is a connection to a server that knows everything that was reported before: the listener may read. None of
    /// the watches that its reads leave exists.
    /// @param by_one_watch the root has a recursive watch, so reads leave none: changed() tells of each node at or
    /// below the root that is created, written or removed (and of no children), until the connection ends. False for a
    /// listener that does not want it, and where the server knows no such watch (before ZooKeeper 3.6).
    virtual void connected(bool by_one_watch) = 0;
    /// The connection is lost, and with it all reads under way and all watches: nothing more is reported of them. Not
    /// called when closed() is.
    virtual void disconnected() = 0;
    /// The last call. `why` is errc::client_closed, errc::forked, zk_errc::auth_failed, or errc::session_expired of a
    /// client that opens no other session.
    virtual void closed(std::error_code why) = 0;

    /// The answer to a read. @param code the server's error code, if the read failed; never the loss of the connection.
    virtual void answered(node_read what, const std::string& path, std::error_code code, node_answer answer) = 0;
    /// A watch has fired, and no longer exists, unless it is the recursive one. May also be called for nodes that are
    /// not watched.
    /// @param zxid of the transaction that has made the change; 0: no server has said it. Only a recursive watch tells
    /// it, from ZooKeeper 3.9 on.
    virtual void changed(node_change what, const std::string& path, std::int64_t zxid) = 0;
    /// A server has accepted a credential of client::add_auth(): nodes that this client could not read may be readable
    /// from now on. Does nothing, unless it is overridden.
    virtual void authenticated() {}

    /// Whether this listener has such a watch, or a read under way that leaves one: if so, no other user of the
    /// server's watch removes it.
    /// @param what node_read::stat stands for node_read::data, too: both leave the same watch.
    virtual bool watches(node_read what, const std::string& path) const = 0;
    /// Calls `f` for each watch of this listener. Calls for other watches do no harm.
    virtual void for_each_watch(const std::function<void(node_read, const std::string&)>& f) const = 0;
};

}  // namespace zkasio
