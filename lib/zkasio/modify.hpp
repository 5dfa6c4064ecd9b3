#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/coroutines/coroutine_safety.hpp>
#include <zkasio/create_options.hpp>
#include <zkasio/export.hpp>
#include <zkasio/operations.hpp>
#include <zkasio/types.hpp>

#include <asio/awaitable.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace zkasio {

/// How modify() behaves.
class ZKASIO_EXPORT modify_options {
public:
    modify_options() {}
    /// How the node is created when there is none (a persistent one, and its parents).
    modify_options& create_with(create_options how) {
        create_ = std::move(how);
        return *this;
    }
    /// Finds out the outcome of a write whose answer is lost, by receipts in this directory, see receipts.hpp (none).
    /// The directory is created when it is missing, and needs the permission to create nodes. Throws
    /// errc::invalid_path.
    modify_options& receipts(std::string directory);
    /// How many attempts there are (no limit); attempts that ended because their session ended do not count. Throws
    /// errc::invalid_argument for less than one.
    modify_options& tries(int n);

    const create_options& create_with() const noexcept { return create_; }
    const std::string& receipts() const noexcept { return receipts_; }
    std::optional<int> tries() const noexcept { return tries_; }

private:
    create_options create_ = create_options().parents(missing_parents::create_persistent);
    std::string receipts_;
    std::optional<int> tries_;
};

/// The node as modify() has left it.
struct modified {
    bool written = false;                 ///< false: `change` has returned nothing
    std::optional<std::int32_t> version;  ///< of the node's data; nothing: there is no node
    std::int64_t zxid = 0;                ///< of the write that the data come from; 0: there is no node
};

namespace detail {
using node_change_function = std::function<std::optional<std::string>(std::optional<node_data>)>;
ZKASIO_EXPORT asio::awaitable<modified> modify_node(operations on, std::string path, node_change_function change,
                                                    modify_options how);
}  // namespace detail

/// Reads a node, and writes what `change(node)` returns. If another client writes between the two, modify() does both
/// again: of concurrent calls no change is lost. `change` is a plain function, called on the caller's executor once for
/// each attempt. It gets a std::optional<node_data>, nothing if there is no node, and returns the new data as a
/// std::optional<std::string>. Nothing: the node stays as it is. A missing node is created.
///
/// Of several modify() and transact() of one client that meet conflicts at a node, one at a time goes on.
///
/// Not fair: whoever is nearer to the servers writes first. Beside clients that write the node all the time, a far one
/// may be late each time, without a bound: transact() and atomic_counter have promote_to() for that.
///
/// *Completes when* the node was written, or `change` has returned nothing. A node that was left as it is was read from
/// the server of this client, which may lag behind.
/// *Fails with* the exceptions of `change`; zk_errc::bad_version after modify_options::tries(); the errors of
/// operations::get(), set() and create_unless_exists(); std::errc::result_out_of_range for a node whose version has
/// become negative, after 2^31 - 1 writes: no write can name it as its condition. In all these cases nothing was
/// written, unless error::outcome_unknown() is true.
/// *Cancellation*: before the write is sent, nothing is written; after that, see error::outcome_unknown().
///
/// *When the answer to the write is lost*:
///
///   - Without modify_options::receipts(), the write is not repeated. modify() fails with the error of the write
///     (zk_errc::connection_loss, errc::session_expired), and error::outcome_unknown() is true.
///   - With receipts, the change is applied exactly once: the receipt tells whether the write was applied. An outage
/// that the session survives ends nothing. If the session ends before the receipt was read, modify() fails with
/// errc::session_expired and error::outcome_unknown(). If the session ends before the write was sent, a modify() on a
/// client begins again in the next session; on a session, it fails.
///
/// A version does not tell a re-created node from the node before: if the node is deleted, re-created and written as
/// often as before between the read and the write, modify() overwrites the new data.
///
/// With receipts, `create_with()` takes no containers and no times to live, which a transaction cannot create.
/// @param on a client, or a session. @param path of the node.
template <class Change>
asio::awaitable<modified> modify(operations on, std::string path, Change&& change,
                                 modify_options how = modify_options()) {
    return detail::modify_node(std::move(on), std::move(path),
                               detail::safe_function<detail::node_change_function>(std::forward<Change>(change)),
                               std::move(how));
}

}  // namespace zkasio
