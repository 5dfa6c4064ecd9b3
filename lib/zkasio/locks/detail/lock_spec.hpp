#pragma once

#include <zkasio/client.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/create_options.hpp>
#include <zkasio/lock_kind.hpp>
#include <zkasio/locks/detail/queue/queue_names.hpp>
#include <zkasio/locks/lock_options.hpp>
#include <zkasio/locks/lockable.hpp>
#include <zkasio/session.hpp>

#include <asio/awaitable.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace zkasio::lock_detail {

/// Told of a contender that serves others, see acquire_request::user.
class place_user {
public:
    virtual ~place_user() = default;
    /// The acquire is decided: ask queue_claim::granted(). On the strand, in a turn of its own.
    virtual void decided() noexcept = 0;
    /// Another client or an operator has asked for the lock back. On the strand.
    virtual void asked_back() noexcept = 0;
    /// A try_acquire() of this session was refused because of the contender, an owner. On the strand, in a turn of its
    /// own.
    virtual void tried() noexcept = 0;
    /// Since when one guard has had the lock of the contender, an owner, if no body runs under that guard. On the
    /// strand.
    virtual std::optional<boot_clock::time_point> idle_guard_since() const noexcept = 0;
};

/// A lock: the directory of its queue, and the form of our contenders' nodes in it. Shared by all acquires through one
/// lock object. Constant data is built here once and not for each contender.
struct lock_spec {
    lock_spec(std::string where, queue_names n, std::string d, acl entries, bool stays = false)
        : directory(std::move(where)),
          names(std::move(n)),
          data(std::move(d)),
          node(std::move(create_options().mode(create_mode::ephemeral_sequential).acl(std::move(entries)))),
          key("lock_queue " + names.key() + ' ' + directory),
          directory_stays(stays) {}
    std::string directory;
    queue_names names;
    std::string data;
    create_options node;  // how a contender's node is created
    std::string key;      // the key of the lock's queue among a session's locals, see toolbox::local()
    bool directory_stays;
    bool has_own_data = false;  // `data` are those of one acquire
};
using lock_spec_ptr = std::shared_ptr<const lock_spec>;

/// The same lock for a contender whose node has these data. Nothing: the data of the lock object.
inline lock_spec_ptr with_data(lock_spec_ptr lock, const std::optional<std::string>& data) {
    if (!lock || !data) return lock;
    lock_spec own = *lock;
    own.data = *data;
    own.has_own_data = true;
    return std::make_shared<const lock_spec>(std::move(own));
}

/// The user's position_observer of one acquire, and the position that it was told last.
struct observation {
    explicit observation(position_observer f) : tell(std::move(f)) {}
    /// The acquire has ended: objects that `tell` refers to may be gone. From any thread; waits while `tell` runs on
    /// another one.
    void end() {
        const std::lock_guard lock(telling);
        over = true;
    }
    position_observer tell;
    std::optional<queue_position> told{};
    // Held while `tell` runs: an acquire that is cancelled on another thread does not end before `tell` has returned.
    // Recursive, since `tell` may cancel its own acquire.
    std::recursive_mutex telling;
    bool over = false;  // guarded by `telling`
};

/// The request of a contender: the lock, and how to acquire it.
struct acquire_request {
    acquire_request(lock_spec_ptr s, lock_kind k, if_contended p = if_contended::wait)
        : spec(std::move(s)), kind(k), when_contended(p) {}
    lock_spec_ptr spec;
    lock_kind kind;
    if_contended when_contended;
    std::shared_ptr<observation> observed;
    /// Only the place in the queue is wanted, not a lease: the place is given back when its node is deleted or when the
    /// claim is given up, and not when the connection or the lease is lost.
    bool keeps_place = false;
    /// The wait and the hold are not reported: the user of the place reports its own.
    bool reported_by_user = false;
    /// Told once the acquire is decided.
    std::weak_ptr<place_user> user;
};

/// Throws errc::invalid_path when `path` cannot be the directory of a lock of this client.
void check_directory(std::string_view recipe, const client& zk, const std::string& path);

/// Creates a recipe's directory, and its missing ancestors, as containers, which the server removes when they have been
/// unused for a while. To be called when a create has found no parent; the caller then repeats that create. So a
/// directory that another client has created is no error, nor is an unknown outcome.
/// @param stays the directory and its missing ancestors are persistent.
asio::awaitable<void> make_directory(session on, std::string path, acl entries, bool stays = false);
asio::awaitable<void> make_directory(session on, lock_spec_ptr of);

}  // namespace zkasio::lock_detail
