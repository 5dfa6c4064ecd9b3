#pragma once

#include <zkasio/detail/requests/wait_table.hpp>
#include <zkasio/detail/seam/request.hpp>

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zkasio::detail {

/// The interest of one waiter in one change of one node. Many waiters share one watch of the server.
struct watch_state {
    std::string path;
    watch_kind kind = watch_kind::data;
    node_event event = node_event::data_changed;  // valid once the watch has fired
    one_shot_ptr fired = std::make_shared<one_shot_state>();
    std::uint64_t number = 0;  // of the waiter in watch_registry; 0: the server has not set the watch yet
    /// The watch ends with the connection, without an event: its owner sets it again on the next connection. Other
    /// watches are set again by the library, all in one request (fact 23): so only these others have a budget.
    bool of_connection = false;
    /// The owner can do without the watch: set only while half of the budget is free.
    bool is_spare = false;

    /// Whether the server has set the watch, which may have fired since.
    bool is_set() const noexcept { return number != 0; }
};
using watch_ptr = std::shared_ptr<watch_state>;

/// Makes the watch_state of a request that sets a watch.
watch_ptr watch_by(const request& r);

/// The watches that the server holds for this session, and their waiters. One server watch per path and kind. Pure
/// bookkeeping: the caller sends the requests. Lives on the strand.
///
/// The watches of feeds are not counted here: a feed knows its watches. The caller says whether a feed needs a watch
/// (node_feeds::watches()) when the removal of that watch is decided.
class watch_registry {
public:
    /// @param chroot_length the length in bytes of the chroot, which is prepended to each path.
    explicit watch_registry(std::size_t chroot_length = 0) : chroot_length_(chroot_length) {}

    /// How many bytes of paths may be watched at a time by waiters that outlive connections, see backend_traits.
    void set_budget(std::size_t path_bytes) noexcept { path_budget_ = path_bytes; }

    /// Whether a waiter's watch outlives the connection.
    enum class lasting {
        no,
        yes,
        spare  // yes, if half of the budget is free
    };

    /// A request that sets a watch is about to be sent. False when the budget has no room for the watch.
    bool begin(const std::string& path, watch_kind kind, lasting l = lasting::yes);

    /// The request of begin() was answered. `live`: the server has set the watch. `who` is null when the caller has
    /// left. True when the watch has no user left, so that it has to be removed. @param l as in begin().
    bool finish(const std::string& path, watch_kind kind, bool live, watch_ptr who, lasting l = lasting::yes);

    /// A waiter leaves. True when the watch has to be removed.
    bool leave(const watch_state& who);

    /// The removal is about to be sent. True when it should still be sent. False when another request has asked for the
    /// watch since (the removal would also remove a watch that was asked for before it), or when a feed needs this one.
    bool confirm_removal(const std::string& path, watch_kind kind, bool feed_needs_it);

    /// The removal was answered, or was not possible. True when the watch still has to be removed. @param gone the
    /// server no longer has the watch.
    bool removed(const std::string& path, watch_kind kind, bool gone);

    /// The server does not remove the watch: the watch stays until a request uses it again, or the connection ends.
    void left_standing(const std::string& path, watch_kind kind);

    /// The connection is gone, and with it the watches `of_connection` and those without a user. Returns the watches
    /// that the library must not set again.
    std::vector<std::pair<std::string, watch_kind>> end_connection();

    /// A feed has left a watch that the server holds: true when it has to be removed.
    /// @param feed_needs_it another feed needs the watch.
    bool left_by_feed(const std::string& path, watch_kind kind, bool feed_needs_it);

    /// A feed asks for a read that will set a watch.
    void feed_reads() noexcept { ++feed_reads_; }
    /// The read was answered. True: since feed_reads() a watch was kept for a feed, perhaps for the sake of this read.
    /// If the read has not set the watch, the caller calls left_by_feed().
    bool feed_answered(const std::string& path, watch_kind kind);

    /// Whether a user that is counted here has the watch, or has asked for it.
    bool wanted(const std::string& path, watch_kind kind) const;

    /// The server has sent an event. Returns the watches that the event ends, so that their waiters can be woken.
    std::vector<watch_ptr> fire(node_event e, std::string_view path);

    /// The session is over. Returns all watches, so that their waiters can be told.
    std::vector<watch_ptr> clear();

    /// The kind of the watch on the server: the configuration is an ordinary node, unless a chroot hides it.
    watch_kind server_kind(watch_kind kind) const noexcept {
        return kind == watch_kind::config && chroot_length_ == 0 ? watch_kind::data : kind;
    }

    bool live(const std::string& path, watch_kind kind) const;
    std::size_t size() const noexcept { return entries_.size(); }
    std::size_t path_bytes() const noexcept { return path_bytes_; }  ///< of the watches that outlive a connection

private:
    struct entry {
        std::map<std::uint64_t, watch_ptr> waiters;  // in the order in which they came; there may be very many
        int registering = 0;    // requests under way that will set the watch
        int lasting = 0;        // how many of the waiters and of these requests outlive the connection
        bool live = false;      // the server has set the watch
        bool removing = false;  // a removal is under way
    };
    using key = std::pair<std::string, watch_kind>;
    using iterator = std::map<key, entry, std::less<>>::iterator;

    key key_of(const std::string& path, watch_kind kind) const { return {path, server_kind(kind)}; }
    static bool is_used(const entry& e) noexcept { return !e.waiters.empty() || e.registering > 0; }
    void check() const noexcept;
    void check(const entry& e) const noexcept;
    void keep(key k);
    void count(iterator it, int more_lasting);
    bool unused(iterator it);
    // Below a chroot the C client sets the watch of the configuration at one path and would remove it at another: the
    // watch stays, for its next user.
    bool can_be_removed(const key& k) const noexcept { return k.second != watch_kind::config || chroot_length_ == 0; }
    std::size_t cost(const std::string& path) const noexcept { return path.size() + chroot_length_ + 4; }

    std::map<key, entry, std::less<>> entries_;
    std::size_t feed_reads_ = 0;
    std::set<key> kept_;  // while there are feed_reads_: watches of the server that were kept for feeds
    std::size_t chroot_length_;
    std::size_t path_bytes_ = 0, path_budget_ = std::numeric_limits<std::size_t>::max();
    std::uint64_t last_number_ = 0;
};

}  // namespace zkasio::detail
