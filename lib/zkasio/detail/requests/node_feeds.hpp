#pragma once

#include <zkasio/detail/seam/request.hpp>
#include <zkasio/detail/telemetry/logger.hpp>
#include <zkasio/node_feed_listener.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace zkasio::detail {

/// The watch that such a read sets.
watch_kind kind_of(node_read what) noexcept;

/// One node_feed.
struct feed_state {
    std::string root;
    std::weak_ptr<node_feed_listener> listener;
    bool up = false;  ///< the listener was told of the current connection
    std::uint64_t number = 0;  ///< among those of its root, in the order of add()
    bool wants_one_watch = false;  ///< see node_feed_listener::wants_one_watch()
    bool is_stream = false;  ///< has no other way to hear of changes; a cache reads with watches instead
    bool wants_recursive = true;    ///< that one; false: changes of the root alone, and of the names of its children
    bool by_one_watch = false;     ///< has one, on this connection
    bool by_recursive = false;     ///< which is recursive

    // With one watch, reads of one turn travel together; while two batches are under way, others wait.
    using read = std::pair<node_read, std::string>;
    std::vector<read> batch;
    std::size_t batches_under_way = 0;
    bool reads_in_batches = true;
    std::size_t most_in_batch = 16;  // until the size of the nodes is known
    /// The answer to so many reads had so many bytes.
    void learn_size(std::size_t bytes, std::size_t reads) noexcept;
};
using feed_ptr = std::shared_ptr<feed_state>;

/// The node_feeds of a client: decides which feed is told of which change. Pure bookkeeping. On the strand.
class node_feeds {
public:
    explicit node_feeds(const logger& log) : log_(log) {}

    /// The caller then calls tell() in a turn of its own, if there is a connection.
    void add(const feed_ptr& f);
    void tell(const feed_ptr& f, bool by_one_watch, bool by_recursive = false);
    bool is_up() const noexcept { return up_; }
    /// Tells the feed's listener that the feed is closed; nothing is told afterwards. Also for a feed that was not
    /// added, because the client was closed before.
    void refuse(const feed_ptr& f, std::error_code why) const;
    /// The feed's listener is no longer called.
    void remove(feed_state& f);

    bool empty() const noexcept { return by_root_.empty(); }

    /// Rises with the end of each connection: answers to reads of an earlier connection are ignored.
    std::uint64_t connection() const noexcept { return connection_; }

    /// Returns the feeds, which are to be told.
    std::vector<feed_ptr> connected();
    /// @param forget called for each watch that the feeds had on the connection.
    void disconnected(const std::function<void(const std::string& path, watch_kind kind)>& forget);
    void closed(std::error_code why);
    /// The event loop is being destroyed.
    void clear() {
        by_root_.clear();
        last_found_.clear();
    }

    /// @param by_one_watch told by a recursive watch: to the feeds that have one. `at_root`: and to all others.
    void changed(node_change what, std::string_view path, bool by_one_watch, bool at_root = false,
                 std::int64_t zxid = 0);
    /// This client has presented a credential, and a server has accepted it.
    void authenticated() const;
    /// Whether a feed relies on this watch.
    bool watches(const std::string& path, watch_kind kind) const;
    /// Whether a feed of this root wants one watch.
    bool want_one_watch(const std::string& root) const;
    /// The one watch of this root has become recursive.
    void become_recursive(const std::string& root) const;

    void answered(const feed_ptr& to, node_read what, const std::string& path, std::error_code code,
                  node_answer&& answer) const;

private:
    using feeds_of_root = std::map<std::uint64_t, feed_ptr>;
    bool any_watches(const std::string& root, const feeds_of_root& its, node_read what, const std::string& path,
                     std::vector<std::shared_ptr<node_feed_listener>>& kept) const;

    std::vector<feed_ptr> all() const;
    std::vector<feed_ptr> above(std::string_view path) const;
    void tell_of_node(const feed_ptr& f, node_change what, std::string_view path, std::int64_t zxid) const;
    void call(const feed_ptr& f, const std::function<void(node_feed_listener&)>& what) const;

    const logger& log_;
    std::map<std::string, feeds_of_root, std::less<>> by_root_;  // none of them empty; there may be very many feeds
    std::uint64_t last_number_ = 0;
    // The feed that was found last to watch something of the kind: who leaves after others need not ask them all again.
    mutable std::map<std::pair<std::string, node_read>, std::uint64_t> last_found_;
    bool up_ = false;
    std::uint64_t connection_ = 1;
};

}  // namespace zkasio::detail
