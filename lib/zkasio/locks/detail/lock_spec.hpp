#pragma once

#include <zkasio/create_options.hpp>
#include <zkasio/locks/detail/queue/queue_names.hpp>

#include <memory>
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

}  // namespace zkasio::lock_detail
