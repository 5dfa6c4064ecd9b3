#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/export.hpp>
#include <zkasio/retry_policy.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/steady_timer.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace zkasio {

namespace detail {
class core;
struct access;
}

/// The pauses between the attempts of an operation that is tried until it succeeds, its outcome is certain, or the
/// session is over. The client's retry_policy gives the length of each pause, see retry_policy::pause(). For writers of
/// recipes; from toolbox::make_back_off(), or with other pauses from toolbox::make_refusal_back_off(). Move-only; not
/// to be shared by several operations.
class ZKASIO_EXPORT back_off {
public:
    back_off(back_off&&) noexcept = default;
    back_off& operator=(back_off&&) noexcept = default;

    /// How long to wait before the next attempt.
    std::chrono::milliseconds next();

    /// *Completes when* a pause of next() has passed.
    /// *Cancellation*: ends the pause at once.
    asio::awaitable<void> pause() { return wait(next()); }
    /// As pause(), for the caller's `operation` on `path`: the error of a cancellation names both.
    asio::awaitable<void> pause(std::string operation, std::string path) {
        return wait_as(next(), std::move(operation), std::move(path));
    }

    /// For state machines: calls `f` on `executor` after a pause of next(), unless then() is called again or this
    /// object is destroyed before. To be called on `executor`. `f` must not throw.
    void then(const asio::any_io_executor& executor, std::function<void()> f);

    /// To be called after a successful attempt: the next pause is as short as the first.
    void reset() noexcept { attempt_ = 0; }

private:
    friend struct detail::access;
    friend class session_pace;
    // `pace` null: the client's.
    explicit back_off(std::shared_ptr<detail::core> core, std::optional<retry_policy> pace = std::nullopt)
        : core_(std::move(core)), pace_(std::move(pace)) {}
    static asio::awaitable<void> wait(std::chrono::milliseconds pause);
    static asio::awaitable<void> wait_as(std::chrono::milliseconds pause, std::string operation, std::string path);

    std::shared_ptr<detail::core> core_;
    std::optional<retry_policy> pace_;
    std::shared_ptr<asio::steady_timer> timer_;
    int attempt_ = 0;
};

/// The pauses of work that begins again in one session after another. The work itself may end each session: servers
/// that answer a request by ending the session do so each time. A session costs the servers two writes, so such
/// sessions must not follow each other as fast as servers open them. All work of a client pauses together, however much
/// there is of it. For writers of recipes; from toolbox::make_session_pace(). Move-only.
class ZKASIO_EXPORT session_pace {
public:
    session_pace(session_pace&&) noexcept = default;
    session_pace& operator=(session_pace&&) noexcept = default;

    /// To be called when the session of the work has ended, before the work begins in the next one.
    /// *Completes when* a session may be used: at once if the client's last session has lasted for its timeout,
    /// otherwise after a pause from its end on, also if it has ended during this pause. The first pause is that of
    /// the client's retry_policy; each further one is twice as long, up to ten seconds, and up to half as long
    /// again or shorter. The pauses begin again with the first when a session has lasted for its timeout.
    /// *Cancellation*: ends the pause at once.
    asio::awaitable<void> pause() { return wait(core_); }
    /// As pause(), for the caller's `operation` on `path`: the error of a cancellation names both.
    asio::awaitable<void> pause(std::string operation, std::string path) {
        return wait_as(core_, std::move(operation), std::move(path));
    }

private:
    friend struct detail::access;
    // Null, of a client that was moved from: there is no session, and no pause.
    explicit session_pace(std::shared_ptr<detail::core> core) noexcept : core_(std::move(core)) {}
    static asio::awaitable<void> wait(std::shared_ptr<detail::core> core);
    static asio::awaitable<void> wait_as(std::shared_ptr<detail::core> core, std::string operation, std::string path);

    std::shared_ptr<detail::core> core_;
};

}  // namespace zkasio
