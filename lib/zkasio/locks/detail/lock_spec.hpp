#pragma once

#include <zkasio/acl.hpp>
#include <zkasio/locks/detail/queue_names.hpp>

#include <memory>
#include <string>
#include <utility>

namespace zkasio::lock_detail {

/// A lock: the directory of its queue, and what the nodes of our contenders look like there. Shared by all who acquire
/// the lock through one object.
struct lock_spec {
    lock_spec(std::string where, queue_names n, std::string d, zkasio::acl entries)
        : directory(std::move(where)), names(std::move(n)), data(std::move(d)), acl(std::move(entries)) {}
    std::string directory;
    queue_names names;
    std::string data;
    zkasio::acl acl;
};
using lock_spec_ptr = std::shared_ptr<const lock_spec>;

}  // namespace zkasio::lock_detail
