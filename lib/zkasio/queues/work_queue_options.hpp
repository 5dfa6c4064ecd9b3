#pragma once

#include <zkasio/acl.hpp>
#include <zkasio/export.hpp>

#include <utility>

namespace zkasio {

/// How an item is put into a work_queue: `put_options().priority(10)`.
class ZKASIO_EXPORT put_options {
public:
    put_options() {}
    /// Items of a lower number are handed out first (100). Throws errc::invalid_argument outside of 0 to 999.
    put_options& priority(int n);

    int priority() const noexcept { return priority_; }

private:
    int priority_ = 100;
};

/// The options of a work_queue. All processes that use a queue give the same ones.
class ZKASIO_EXPORT work_queue_options {
public:
    work_queue_options() {}
    /// The ACL of all nodes of the queue (open_acl()).
    work_queue_options& acl(zkasio::acl entries) {
        acl_ = std::move(entries);
        return *this;
    }

    const zkasio::acl& acl() const noexcept { return acl_; }

private:
    zkasio::acl acl_ = open_acl();
};

}  // namespace zkasio
