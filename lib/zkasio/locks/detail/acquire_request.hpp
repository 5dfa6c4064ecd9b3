#pragma once

#include <zkasio/create_options.hpp>
#include <zkasio/lock_kind.hpp>
#include <zkasio/locks/acquire_options.hpp>
#include <zkasio/locks/detail/cohort/place_user.hpp>
#include <zkasio/locks/detail/queue/queue_names.hpp>
#include <zkasio/locks/lockable.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace zkasio::lock_detail {

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

}  // namespace zkasio::lock_detail
