#pragma once

#include <zkasio/locks/detail/lock_spec.hpp>
#include <zkasio/session.hpp>

#include <asio/awaitable.hpp>

#include <optional>
#include <string>

namespace zkasio::lock_detail {

enum class reader_node_role {
    joins,     ///< the holder keeps its node: both nodes stand at the same place
    replaces,  ///< the same transaction removes the holder's node
};

/// Creates a reader's node, `path`, in one transaction with a check that the node `holder` exists, whose contender
/// holds the lock and has the same sequence number. Repeats the transaction until its outcome is certain. Nothing: the
/// holder's node is gone, or the new node is gone already.
asio::awaitable<std::optional<created>> create_reader_node(session on, lock_spec_ptr as, std::string path,
                                                           std::string holder, reader_node_role role);

}  // namespace zkasio::lock_detail
