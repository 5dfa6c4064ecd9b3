#pragma once

#include <zkasio/detail/requests/wait_table.hpp>
#include <zkasio/detail/seam/request.hpp>

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zkasio::detail {

/// What an answer says of a watched node. Two answers that are equal: the node has not changed in between.
struct seen_state {
    enum class how : std::uint8_t { missing, there, refused } is = how::missing;
    std::int64_t czxid = 0, zxid = 0;             // zxid: mzxid, or pzxid for the children
    std::int32_t cversion = 0, num_children = 0;  // the removal of a child need not change pzxid (ClickHouse Keeper)
    bool operator==(const seen_state&) const = default;
};
seen_state seen_in(const reply& r, watch_kind kind) noexcept;

/// The interest of one waiter in one change of one node. Many waiters share one watch of the server.
struct watch_state {
    std::string path;
    watch_kind kind = watch_kind::data;
    node_event event = node_event::data_changed;  // valid once the watch has fired
    one_shot_ptr fired = std::make_shared<one_shot_state>();
    std::uint64_t number = 0;  // of the waiter in watch_registry; 0: the server has not set the watch yet
    seen_state seen;            // the waiter waits for a change since
    bool is_set = false;       // the server has set the watch on this connection; it may have fired since
};
using watch_ptr = std::shared_ptr<watch_state>;

/// Makes the watch_state of a request that sets a watch.
watch_ptr watch_by(const request& r);

/// The watches that the server holds for this session, and their waiters. One server watch per path and kind. Pure
/// bookkeeping: the caller sends the requests. Lives on the strand.
///
/// No watch outlives its connection. On the next one, the first answer that sets the watch again is compared with what
/// each waiter has seen: waiters of another state are told of the change, and the others have the new watch.
///
/// The watches of feeds are not counted here: a feed knows its watches. The caller says whether a feed needs a watch
/// (node_feeds::watches()) when the removal of that watch is decided.
class watch_registry {
public:
    /// @param chroot_length the length in bytes of the chroot, which is prepended to each path.
    explicit watch_registry(std::size_t chroot_length = 0) : chroot_length_(chroot_length) {}

    /// A request that sets a watch is about to be sent.
    void begin(const std::string& path, watch_kind kind);

    /// The request of begin() was answered. `live`: the server has set the watch. `who` is null when the caller has
    /// left, and for a question. True when the watch has no user left, so that it has to be removed: after
    /// take_changed().
    /// @param seen nothing: the answer says nothing of the node.
    bool finish(const std::string& path, watch_kind kind, bool live, watch_ptr who,
                const std::optional<seen_state>& seen = seen_state());
    /// The waiters that finish() has found to wait for a change that has happened. They are to be woken.
    std::vector<watch_ptr> take_changed() noexcept { return std::exchange(changed_, {}); }

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

    /// The connection is gone, and with it all watches. Returns those that the server has had.
    std::vector<std::pair<std::string, watch_kind>> end_connection();
    /// The reads that set the watches of all waiters again, on a new connection.
    std::list<request> questions() const;
    /// Whether the watch of this question still has to be set again.
    bool is_unset(const watch_target& of) const;

    /// A feed has left a watch that the server holds: true when it has to be removed.
    /// @param feed_needs_it another feed needs the watch.
    bool left_by_feed(const std::string& path, watch_kind kind, bool feed_needs_it);

    /// A feed asks for a read that will set a watch.
    void feed_reads() noexcept { ++feed_reads_; }
    /// The read was answered. True: since feed_reads() a watch was kept for a feed, perhaps for the sake of this read.
    /// If the read has not set the watch, the caller calls left_by_feed().
    bool feed_answered(const std::string& path, watch_kind kind);

    /// The server has sent an event. Returns the watches that the event ends, so that their waiters can be woken.
    std::vector<watch_ptr> fire(node_event e, std::string_view path);

    /// The session is over. Returns all watches, so that their waiters can be told.
    std::vector<watch_ptr> clear();

    /// The kind of the watch on the server: the configuration is an ordinary node, unless a chroot hides it.
    watch_kind server_kind(watch_kind kind) const noexcept {
        return kind == watch_kind::config && chroot_length_ == 0 ? watch_kind::data : kind;
    }

    bool live(const std::string& path, watch_kind kind) const;
    /// The server has the watch no longer, without an event: its waiters need it again, as questions() does. False: it
    /// has no waiters.
    bool unset(const std::string& path, watch_kind kind);
    /// Whether somebody waits for such a change, or is about to.
    bool has(const std::string& path, watch_kind kind) const;
    std::size_t size() const noexcept { return entries_.size(); }

private:
    struct entry {
        std::map<std::uint64_t, watch_ptr> waiters;  // in the order in which they came; there may be very many
        int registering = 0;    // requests under way that will set the watch
        bool live = false;      // the server has set the watch
        bool removing = false;  // a removal is under way
    };
    using key = std::pair<std::string, watch_kind>;
    using iterator = std::map<key, entry>::iterator;

    key key_of(const std::string& path, watch_kind kind) const { return {path, server_kind(kind)}; }
    static bool is_used(const entry& e) noexcept { return !e.waiters.empty() || e.registering > 0; }
    static bool is_unset(const entry& e) noexcept { return !e.waiters.empty() && !e.live; }
    void check(const entry& e) const noexcept;
    void keep(key k);
    void compare(const key& k, entry& e, const seen_state& now);
    bool unused(iterator it);
    // Below a chroot the C client sets the watch of the configuration at one path and would remove it at another: the
    // watch stays, for its next user.
    bool can_be_removed(const key& k) const noexcept { return k.second != watch_kind::config || chroot_length_ == 0; }

    std::map<key, entry> entries_;
    std::vector<watch_ptr> changed_;
    std::size_t feed_reads_ = 0;
    std::set<key> kept_;  // while there are feed_reads_: watches of the server that were kept for feeds
    std::size_t chroot_length_;
    std::uint64_t last_number_ = 0;
};

}  // namespace zkasio::detail
