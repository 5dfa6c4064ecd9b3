#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/export.hpp>
#include <zkasio/types.hpp>

#include <asio/awaitable.hpp>

#include <functional>
#include <memory>
#include <string>
#include <system_error>

namespace zkasio {

namespace detail {
class core;
struct access;
struct watch_state;
}  // namespace detail

struct watch_event {
    node_change what = node_change::data_changed;
    std::string path;
};

/// A one-shot watch on a node, returned by a read together with the result of the read.
///
/// Every change after the read makes the watch fire, also a change that happens while the connection is lost: on the
/// next connection the client reads the node again, with a watch, and compares it with the result of the first read. If
/// a server refuses this read, the watch fires, too: the caller's next read tells the reason. Of several changes during
/// a cut, only the difference is reported: a node that was removed and re-created has changed its data.
/// Exceptions: a node that did not exist, and is created and removed again while the connection is lost, has not
/// changed. And while the ACL of the node does not let this client read the node, a change does not make the watch
/// fire, and after such a change the watch never fires on this connection (servers since CVE-2024-23944).
/// Watches of one node share one watch of the server, which is removed there when the last of them is destroyed.
/// Move-only. A watch that was made without arguments, or moved from, answers errc::invalid_argument, and its path() is
/// empty.
class ZKASIO_EXPORT watch {
public:
    watch() noexcept = default;
    watch(watch&& other) noexcept : use_(std::move(other.use_)) {}
    watch& operator=(watch&& other) noexcept {
        use_ = std::move(other.use_);
        return *this;
    }
    ~watch() = default;

    /// *Completes when* the node has changed; at once if it already has. May be awaited again.
    /// *Fails with* errc::session_expired, errc::client_closed, errc::forked or zk_errc::auth_failed when the session
    /// ends first.
    /// *Cancellation*: ends the wait; the watch stays.
    /// *Lifetime*: the returned awaitable keeps the watch, too: this object may be destroyed.
    asio::awaitable<watch_event> changed() const;

    /// For state machines on the client's strand: `f` is called there, once, when the node has changed (at once if it
    /// already has), or with an error if the session ends first. Several functions are called in the order in which
    /// they were given, none once this watch is destroyed. To be called on the strand. Exceptions of `f` are logged.
    void then(std::function<void(std::error_code, node_change)> f) const;

    const std::string& path() const noexcept;

private:
    friend struct detail::access;
    watch(std::shared_ptr<detail::core> core, std::shared_ptr<detail::watch_state> state, const std::string* root);

    struct use;
    std::shared_ptr<use> use_;  // the watch is given up with the last of these
};

/// The result of a read, and the watch that fires when the result is no longer true.
template <class T>
struct watched {
    T value{};
    watch changes{};
};

}  // namespace zkasio
