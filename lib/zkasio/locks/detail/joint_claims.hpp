#pragma once

#include <zkasio/locks/detail/acquire_request.hpp>
#include <zkasio/locks/lock_claim.hpp>
#include <zkasio/session.hpp>

#include <asio/awaitable.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace zkasio::lock_detail {

/// The claims of several locks, or none.
struct joint_claims {
    std::vector<std::shared_ptr<lock_claim>> claims;
    std::int64_t token = 0;
    std::string lost;  ///< without claims: the node of the first lock that was lost before all were ours; "": refused
};

/// Enters several queues in one transaction and waits until this session has all locks. If one place or one lock is
/// lost before, all are given up at once, and the caller has to start over. All locks have the same token.
asio::awaitable<joint_claims> contend_for_all(session on, std::vector<acquire_request> requests);

}  // namespace zkasio::lock_detail
