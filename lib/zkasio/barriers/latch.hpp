#pragma once

#include <zkasio/acl.hpp>
#include <zkasio/asio_version.hpp>
#include <zkasio/barriers/barrier.hpp>
#include <zkasio/client.hpp>
#include <zkasio/export.hpp>

#include <asio/awaitable.hpp>

#include <cstddef>
#include <string>

namespace zkasio {

/// Waits until a number of things have happened, each reported once, in any process: std::latch over ZooKeeper. A thing
/// is known by its id: to report it again, after a crash, a lost answer or a restart, changes nothing.
///
/// Layout: `<path>/<id>` for each report, and `<path>/done` when all have been made; all persistent, to be removed by
/// the program when it needs them no longer. Waiting clients watch `done` only, and count the reports from time to
/// time: the process that has made the last report may end before it creates `done`.
///
/// May be used from any executor. Copies name the same latch. The awaitables of the members may be awaited when the
/// object is gone. A moved-from latch fails with errc::invalid_argument.
class ZKASIO_EXPORT latch {
public:
    /// @param count how many ids; the same for all who name the path. Throws errc::invalid_path, and
    /// errc::invalid_argument for 0.
    latch(client zk, std::string path, std::size_t count, barrier_options options = barrier_options());

    /// Reports the thing `id`: a node's name, other than "done".
    /// *Completes with* the number of reports that are missing.
    /// *Fails with* errc::invalid_argument for another id; and as operations::create(). The report may have been made
    /// then. A second call is always safe.
    /// *Cancellation*: the report may be made.
    asio::awaitable<std::size_t> count_down(std::string id) const;

    /// *Completes with* the number of reports that are missing, as the server of this client knows it. Only reads.
    asio::awaitable<std::size_t> remaining() const;

    /// *Completes when* no report is missing; over connections and sessions. Creates `done` if the last writer has not,
    /// and this client may.
    /// *Fails with* zk_errc::no_auth for a client that may not list the reports; else as barrier::wait().
    /// *Cancellation*: ends the wait.
    asio::awaitable<void> wait() const;

    const std::string& path() const noexcept { return path_; }

private:
    client zk_;
    std::string path_;
    std::size_t count_;
    barrier_options options_;
};

}  // namespace zkasio
