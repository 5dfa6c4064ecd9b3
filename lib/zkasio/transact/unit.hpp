#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/bytes.hpp>
#include <zkasio/create_options.hpp>
#include <zkasio/export.hpp>
#include <zkasio/types.hpp>

#include <asio/awaitable.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zkasio {

namespace transact_detail {
struct unit_state;
}  // namespace transact_detail

/// One run of the body of a transact(): what the body reads and writes. The writes are recorded, and sent all together
/// when the body has returned.
///
/// To be used on the executor of the body, also by coroutines that the body runs concurrently on that executor. Copies
/// name the same run. When the body has ended, and for a unit that was moved from, the members fail with
/// errc::invalid_argument.
class ZKASIO_EXPORT unit {
public:
    /// *Completes with* the node, or nothing if there is none: as this run has written it; else as this run has read it
    /// before; else as the server of this client knows it. The node is then a condition of the transaction: if another
    /// client writes, creates or removes the node before the end, nothing is written, and the body runs again. Of a
    /// node that this run has written, the stat is that from before; of one that this run has created, it is empty.
    /// *Fails with* the errors of operations::get() but zk_errc::no_node. An outage that the session survives ends
    /// nothing. If the session ends, the body should end with the error. The next session runs it again.
    /// *Cancellation*: ends the wait only.
    asio::awaitable<std::optional<node_data>> get(std::string path) const;

    /// As get() of each path, in the order of the paths. All requests are sent at once: one round trip.
    asio::awaitable<std::vector<std::optional<node_data>>> get_all(std::vector<std::string> paths) const;

    /// The writes of this transaction. A set() or remove() of a node that this run has not read has no condition. A
    /// write that contradicts what this run sees, such as a set() where there is no node, ends the transaction when the
    /// body has returned: with zk_errc::no_node or zk_errc::node_exists if what was read still holds, and else with
    /// another run. Throw errc::invalid_path.
    void set(std::string path, bytes data) const;
    /// @param how without parents, protection, containers and times to live, which a transaction cannot create. A
    /// sequential node has no name before the end: get() does not see it.
    void create(std::string path, bytes data = bytes(), create_options how = create_options()) const;
    /// Without the nodes below it: zk_errc::not_empty.
    void remove(std::string path) const;

    /// Made by transact().
    explicit unit(std::shared_ptr<transact_detail::unit_state> state) noexcept : state_(std::move(state)) {}

private:
    std::shared_ptr<transact_detail::unit_state> state_;
};

}  // namespace zkasio
