#pragma once

#include <zkasio/client.hpp>
#include <zkasio/locks/contender_info.hpp>
#include <zkasio/locks/detail/lock_spec.hpp>
#include <zkasio/locks/detail/queue/queue_names.hpp>
#include <zkasio/locks/directory_note.hpp>

#include <asio/awaitable.hpp>

#include <string>
#include <vector>

namespace zkasio::lock_detail {

/// Describes a contender by its node.
contender_info info_of(std::string path, node_data node);

/// The contenders with these names, in this order, each with its position; not those that have left.
asio::awaitable<std::vector<contender_info>> read_contenders(client zk, std::string directory,
                                                             std::vector<queue_names::contender_name> names);
/// Marks those that hold the lock, as the order of the queue says.
void mark_holders(std::vector<contender_info>& in_order) noexcept;
/// Marks what the data of the lock's directory say of the contenders.
void mark_noted(std::vector<contender_info>& all, const directory_note& note);

/// What the data of a directory say of its contenders: nothing for a directory that this client may not read.
asio::awaitable<directory_note> read_note(client zk, std::string directory);

/// All contenders in `directory`, in the order of the queue.
asio::awaitable<std::vector<contender_info>> contenders(client zk, std::string directory, queue_names names);
/// @param lock null if its object was moved from: errc::invalid_argument.
asio::awaitable<std::vector<contender_info>> contenders(client zk, std::string path, lock_spec_ptr lock);

}  // namespace zkasio::lock_detail
