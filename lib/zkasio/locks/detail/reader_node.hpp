#pragma once

#include <zkasio/locks/detail/acquire_request.hpp>
#include <zkasio/session.hpp>

#include <asio/awaitable.hpp>

#include <optional>
#include <string>

namespace zkasio::lock_detail {

/// Replaces the node of a writer that has the lock, `writer`, by a reader's node, `path`, with the same sequence
/// number, in one transaction. Repeats the transaction until its outcome is certain. Nothing: the writer's node is
/// gone, or the new node is gone already.
asio::awaitable<std::optional<created>> replace_by_reader_node(session on, lock_spec_ptr as, std::string path,
                                                               std::string writer);

}  // namespace zkasio::lock_detail
