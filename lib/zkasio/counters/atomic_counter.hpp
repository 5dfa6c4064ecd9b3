#pragma once

#include <zkasio/acl.hpp>
#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/config/config_format.hpp>
#include <zkasio/export.hpp>

#include <asio/awaitable.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace zkasio {

// How other libraries write numbers into nodes: formats for atomic_counter, and for config_value. A text that is no
// such number is refused, and nothing is written over it.

/// Curator's SharedCount, and kazoo's Counter with support_curator=True: 4 bytes, the highest first. Empty data: 0.
ZKASIO_EXPORT config_format<std::int32_t> curator_count();

/// Curator's DistributedAtomicLong: 8 bytes, the highest first. Empty data: 0.
ZKASIO_EXPORT config_format<std::int64_t> curator_long();

/// kazoo's Counter with an int: decimal digits. Empty data: 0. A kazoo Counter of floating-point numbers writes "1.0",
/// which is refused.
ZKASIO_EXPORT config_format<std::int64_t> kazoo_counter();

namespace counter_detail {
struct counter_state;
}

/// All counters of one path need the same options: the additions of a session are written with the options of its first
/// counter.
class ZKASIO_EXPORT counter_options {
public:
    counter_options() {}
    /// How the number is written into the node (curator_long()).
    counter_options& format(config_format<std::int64_t> f) {
        format_ = std::move(f);
        return *this;
    }
    /// The directory of the receipts, see receipts.hpp (the counter's own node). Every client needs the permission to
    /// create nodes there.
    counter_options& receipts(std::string directory) {
        receipts_ = std::move(directory);
        return *this;
    }
    /// The ACL of the counter's node and of the receipts (client_options::default_acl()).
    counter_options& acl(zkasio::acl entries) {
        acl_ = std::move(entries);
        return *this;
    }
    /// After tries() writes that other clients were ahead of, a writer takes the mutex at this path (none),
    /// as Curator's PromotedToLock. While the mutex has contenders, all writers of this path, add() and
    /// compare_and_set(), wait in its queue before they write: so a writer in the queue is overtaken by each other
    /// client twice at most, by writes that were under way, and also a slow or far client has its turn. A writer
    /// without this path is not bound. The mutex is for these turns alone: whoever holds it holds up all writers; a
    /// writer that is cut off in its turn, until its session ends. Costs a read for each write, sent together with it,
    /// and a lock only under such a load. Throws errc::invalid_path.
    counter_options& promote_to(std::string lock_path);
    /// See promote_to() (3). Throws errc::invalid_argument for a negative number.
    counter_options& tries(int n);

    const config_format<std::int64_t>& format() const noexcept { return format_; }
    const std::string& receipts() const noexcept { return receipts_; }
    const zkasio::acl& acl() const noexcept { return acl_; }
    const std::string& promote_to() const noexcept { return promote_to_; }
    int tries() const noexcept { return tries_; }

private:
    config_format<std::int64_t> format_ = curator_long();
    zkasio::acl acl_ = default_acl();
    std::string receipts_, promote_to_;
    int tries_ = 3;
};

/// A number that any number of processes add to. Each addition counts exactly once, also if answers are lost: the
/// outcome of a write is found out by a receipt (see receipts.hpp), where Curator's DistributedAtomicLong and kazoo's
/// Counter may count an addition twice. With the default format the node is that of a DistributedAtomicLong, and may be
/// shared with it; with kazoo_counter(), that of kazoo's Counter.
///
/// Additions that the coroutines of one session make while a write is under way are one write of their sum, in the
/// order of their calls; each gets its own result. So a counter costs one round trip for each write, however many
/// coroutines add. Writes of several sessions exclude each other by the version of the node. Without
/// counter_options::promote_to() that is not fair: beside clients that write all the time, a far one may be late each
/// time, without a bound.
///
/// A node that does not exist counts as 0, and is created, with its parents, by the first write. If an operator deletes
/// the node, the counter begins again at 0. Versions begin again with it, and a write names only the version that it
/// expects. Receipts below the node go with the node, so a client notices the new node at its next write. With
/// counter_options::receipts(), or if the node goes between the read and the first write of a session, a new node that
/// was written as often as the old one is taken for the old one: that write overwrites the new number.
///
/// After 2^31 - 1 writes the version becomes negative, and no write can name it as its condition: additions then fail
/// with std::errc::result_out_of_range until the node is deleted and re-created.
///
/// May be used from any executor. Copies name the same counter. The awaitables of the members may be awaited when the
/// counter is gone. A moved-from counter fails with errc::invalid_argument.
class ZKASIO_EXPORT atomic_counter {
public:
    /// Throws errc::invalid_path.
    atomic_counter(client zk, std::string path, counter_options options = counter_options());

    /// *Completes with* the number as the server of this client knows it.
    /// *Fails with* errc::invalid_argument for data that the format does not read; and as operations::get().
    asio::awaitable<std::int64_t> get() const;

    /// *Completes with* the number after this addition. An outage that the session survives ends nothing; an addition
    /// that no server has been asked for when its session ends is made in the next session.
    /// *Fails with* errc::not_connected when there is no connection at first, for client_options::connection_timeout.
    /// std::errc::result_out_of_range if the sum has more than 64 bits: nothing is written for this
    /// addition. errc::invalid_argument for data that the format does not read: nothing is written.
    /// errc::session_expired and others with error::outcome_unknown() if the session ends while a write is under way.
    /// *Cancellation*: an addition that waits for its turn is not made; else see error::outcome_unknown().
    asio::awaitable<std::int64_t> add(std::int64_t delta) const;

    /// Writes `desired` if the number is `expected`.
    /// *Completes with* whether the number was `expected`. As the server of this client may lag behind, false is
    /// returned only after a sync().
    /// *Fails with*, and *Cancellation*: as add().
    asio::awaitable<bool> compare_and_set(std::int64_t expected, std::int64_t desired) const;

    /// Creates the node with this number, unless there is a node.
    /// *Completes with* whether the node was created. *Fails with* the errors of operations::create_unless_exists().
    asio::awaitable<bool> initialize(std::int64_t number) const;

    const std::string& path() const;

private:
    std::shared_ptr<counter_detail::counter_state> state_;
};

}  // namespace zkasio
