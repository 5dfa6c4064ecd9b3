#pragma once

#include <zkasio/client.hpp>
#include <zkasio/locks/acquire_options.hpp>
#include <zkasio/locks/detail/slot_rest.hpp>
#include <zkasio/locks/if_contended.hpp>
#include <zkasio/locks/lock_guard.hpp>

#include <asio/awaitable.hpp>

#include <optional>

namespace zkasio::lock_detail {

/// An attempt of `slots` and `unfair_mutex`: the guard of a number, or of the one node.
asio::awaitable<std::optional<lock_guard>> take_slot(client zk, slot_spec spec, acquire_options how,
                                                     if_contended when_contended);

}  // namespace zkasio::lock_detail
