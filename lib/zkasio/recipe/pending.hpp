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
#include <type_traits>

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

    /// Withdraws a request that was not sent yet: the request ends with asio::error::operation_aborted, and is without
    /// effect. To be called on the client's strand. False: the request was sent, is answered, is a removal, or was
    /// started with others (toolbox::start_gets()).
    bool withdraw() const;

protected:
    friend struct detail::access;
    pending(std::shared_ptr<detail::core> core, std::shared_ptr<detail::kept_reply> kept_reply,
            const std::string* root, std::string_view operation, std::string path);
    detail::reply& answer() const;
    detail::reply& good() const;

    std::shared_ptr<detail::core> core_;
    std::shared_ptr<detail::kept_reply> kept_;
    const std::string* root_;          // see client::rooted()
    std::string_view operation_;  // a literal
    std::string path_;

private:
    static asio::awaitable<void> until_answered(pending self);
};

/// A started request with a result: as that of operations::create(), children() or get(); nothing of a removal, whose
/// result() completes when the node is certain to be gone.
template <class Result>
class ZKASIO_EXPORT pending_result : public pending {
public:
    asio::awaitable<Result> result() const;
    /// The result of an answered request, without waiting. As result(), returns a copy, and may be called again.
    Result get() const;
    /// After success: whether the node was there. False: another client has removed the node, or this request has
    /// removed it on a connection that was lost before the answer came.
    bool found() const
        requires std::is_void_v<Result>;

private:
    friend struct detail::access;
    using pending::pending;
};

using pending_create = pending_result<created>;
using pending_children = pending_result<node_children>;
using pending_data = pending_result<node_data>;
using pending_removal = pending_result<void>;
template <>
void pending_result<void>::get() const;

/// A read that also sets a watch.
template <class Result>
class ZKASIO_EXPORT pending_watched : public pending {
public:
    pending_watched(pending_watched&&) noexcept = default;
    pending_watched& operator=(pending_watched&&) = delete;
    /// Removes the watch when the request is answered, unless get() has returned the watch.
    ~pending_watched();

    /// As operations::get_and_watch() or children_and_watch(), once it is answered. A second call fails with
    /// errc::invalid_argument.
    watched<Result> get();

private:
    friend struct detail::access;
    pending_watched(std::shared_ptr<detail::core> core, std::shared_ptr<detail::kept_reply> kept_reply,
                    const std::string* root, std::shared_ptr<detail::watch_state> watch, std::string_view operation,
                    std::string path);

    std::shared_ptr<detail::watch_state> watch_;
};

using pending_watched_data = pending_watched<node_data>;
using pending_watched_children = pending_watched<node_children>;

}  // namespace zkasio
