#pragma once

#include <zkasio/client.hpp>
#include <zkasio/locks/detail/slot_rest.hpp>
#include <zkasio/locks/lock_options.hpp>
#include <zkasio/locks/lockable.hpp>

namespace zkasio::lock_detail {

/// The attempts of `slots` and `unfair_mutex`: the guard of a number, or of the one node.
lock_attempt attempts_at_slot(client zk, slot_spec spec, acquire_options how);

}  // namespace zkasio::lock_detail
