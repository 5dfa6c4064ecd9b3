#pragma once

#include <zkasio/acl.hpp>
#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/export.hpp>

#include <asio/awaitable.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace zkasio {

namespace counter_detail {
struct allocator_state;
}

class ZKASIO_EXPORT id_options {
public:
    id_options() {}
    /// How many ids a process takes at a time (1000). All allocators of one path have the same number. Throws
    /// errc::invalid_argument for 0.
    id_options& block(std::uint32_t ids);
    /// The ACL of the node (client_options::default_acl()).
    id_options& acl(zkasio::acl entries) {
        acl_ = std::move(entries);
        return *this;
    }

    std::uint32_t block() const noexcept { return block_; }
    const zkasio::acl& acl() const noexcept { return acl_; }

private:
    std::uint32_t block_ = 1000;
    zkasio::acl acl_ = default_acl();
};

/// Numbers that no process is given twice, over all processes that name the same path: from 0 up, each process a block
/// at a time. Without a lock and without a conflict: the number of a block is the version that ZooKeeper gives to an
/// unconditional write, a different one for each writer. A block costs one round trip, and the next one is fetched when
/// a quarter of a block is left. Processes do not wait for each other: a far process waits for its own round trips, and
/// a process that has lost its connection waits for its next one.
///
/// Ids are unique, not dense: what is left of a block when a process ends is never given out, nor is a block whose
/// answer was lost. Ids of one process rise; those of several processes are mixed. There are 2^31 - 1 blocks; when all
/// are taken, next() fails.
///
/// If the node is deleted and re-created, or the servers are restored from a backup, blocks begin again, and ids are
/// given out a second time. An allocator that has used the node before notices that with its next block, and gives out
/// nothing from then on; unless other processes have taken so many blocks of the restored node before that its version
/// is higher than ever. A process that begins afterwards does not notice. So after a restore: end all processes that
/// take ids, and write the node, with its own data, at least as often as blocks were given out since the backup.
///
/// May be used from any executor, try_next() from any thread. Copies share their blocks. The awaitables of the members
/// may be awaited when the allocator is gone. A moved-from allocator fails with errc::invalid_argument.
class ZKASIO_EXPORT id_allocator {
public:
    /// @param path of the node that counts the blocks; created, with its parents, when it is missing. Throws
    /// errc::invalid_path.
    id_allocator(client zk, std::string path, id_options options = id_options());

    /// *Completes with* the next id; most often without a request, and at once.
    /// *Fails with* errc::invalid_argument if the node is no id_allocator's, or has blocks of another size;
    /// std::errc::result_out_of_range when there are no more blocks; zk_errc::data_inconsistency if the node was
    /// re-created or restored, from then on always: make another allocator; and as operations::set().
    /// *Cancellation*: ends the wait; a block that arrives serves the next call.
    asio::awaitable<std::uint64_t> next() const;

    /// The next id, if there is one in this process; else nothing, and next() has to be awaited. Also fetches the next
    /// block in time.
    std::optional<std::uint64_t> try_next() const;

    const std::string& path() const;

private:
    std::shared_ptr<counter_detail::allocator_state> state_;
};

/// The next unique number of a node: the version that the node gets by being written. One round trip, and no two calls
/// get the same number, whichever processes they come from. For numbers that are needed seldom; see id_allocator.
/// *Completes with* a number above 0. If an answer was lost, a number is left out.
/// *Fails with* std::errc::result_out_of_range after 2^31 - 1 numbers, and as operations::set().
/// @param path of a node of its own; created, with its parents, when it is missing. Each call makes the node's data
/// empty, whichever program has written them. If the node is deleted and re-created, or restored from a backup, numbers
/// begin again, and no call notices.
ZKASIO_EXPORT asio::awaitable<std::int32_t> next_number(client zk, std::string path);

}  // namespace zkasio
