#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/export.hpp>
#include <zkasio/types.hpp>
#include <zkasio/watch.hpp>

#include <asio/awaitable.hpp>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace zkasio {

namespace detail {
class core;
struct access;
struct reply;
struct kept_reply;
struct watch_state;
}  // namespace detail

/// A started request, which goes on whether a coroutine awaits it or not. Requests that are started one after another
/// without a co_await between them travel together and are answered after one round trip. The coroutines of the members
/// may be awaited when the object is gone. A moved-from object fails with errc::invalid_argument, and so do get() and
/// found() before the request was answered.
class ZKASIO_EXPORT pending {
public:
    /// Waits until the request was answered, without looking at the answer. *Cancellation*: ends the wait only.
    asio::awaitable<void> answered() const;

    /// For state machines on the client's strand, to be called there: `f` is called when the request was answered (at
    /// once if it was), also if this object is gone; several functions in the given order. Exceptions of `f` are
    /// logged.
    void then(std::function<void()> f) const;

protected:
    friend struct detail::access;
    pending(std::shared_ptr<detail::core> core, std::shared_ptr<detail::kept_reply> kept_reply,
            std::string_view operation, std::string path);
    detail::reply& answer() const;
    detail::reply& good() const;

    std::shared_ptr<detail::core> core_;
    std::shared_ptr<detail::kept_reply> kept_;
    std::string_view operation_;  // a literal
    std::string path_;

private:
    static asio::awaitable<void> until_answered(pending self);
};

class ZKASIO_EXPORT pending_create : public pending {
public:
    /// As operations::create().
    asio::awaitable<created> result() const;
    /// The result of an answered request, without waiting.
    created get() const;

    /// Withdraws a request that was not sent yet: the request ends with asio::error::operation_aborted, and no node is
    /// created. To be called on the client's strand. False: the request was sent, or is answered.
    bool withdraw() const;

private:
    friend struct detail::access;
    using pending::pending;
};

class ZKASIO_EXPORT pending_children : public pending {
public:
    /// result(): as operations::children(). get(): the same for an answered request, without waiting. Both return
    /// copies, and may be called again.
    asio::awaitable<node_children> result() const;
    node_children get() const;

private:
    friend struct detail::access;
    using pending::pending;
};

class ZKASIO_EXPORT pending_data : public pending {
public:
    /// result(): as operations::get(). get(): the same for an answered request, without waiting. Both return copies,
    /// and may be called again.
    asio::awaitable<node_data> result() const;
    node_data get() const;

private:
    friend struct detail::access;
    using pending::pending;
};

/// A read that also sets a watch.
class ZKASIO_EXPORT pending_watched : public pending {
public:
    pending_watched(pending_watched&&) noexcept = default;
    pending_watched& operator=(pending_watched&&) = delete;

protected:
    friend struct detail::access;
    pending_watched(std::shared_ptr<detail::core> core, std::shared_ptr<detail::kept_reply> kept_reply,
                    std::shared_ptr<detail::watch_state> watch, std::string_view operation, std::string path);
    /// Removes the watch when the request is answered, unless take_watch() has returned the watch.
    ~pending_watched();
    /// Throws errc::invalid_argument the second time.
    watch take_watch();

    std::shared_ptr<detail::watch_state> watch_;
};

class ZKASIO_EXPORT pending_watched_data : public pending_watched {
public:
    /// As operations::get_and_watch(), once it is answered. A second call fails with errc::invalid_argument.
    watched<node_data> get();

private:
    friend struct detail::access;
    using pending_watched::pending_watched;
};

class ZKASIO_EXPORT pending_watched_children : public pending_watched {
public:
    /// As operations::children_and_watch(), once it is answered. A second call fails with errc::invalid_argument.
    watched<node_children> get();

private:
    friend struct detail::access;
    using pending_watched::pending_watched;
};

class ZKASIO_EXPORT pending_removal : public pending {
public:
    /// *Completes when* the node is certain to be gone.
    asio::awaitable<void> result() const;
    void get() const;
    /// After success: whether the node was there. False: another client has removed the node, or this request has
    /// removed it on a connection that was lost before the answer came.
    bool found() const;

private:
    friend struct detail::access;
    using pending::pending;
};

}  // namespace zkasio
