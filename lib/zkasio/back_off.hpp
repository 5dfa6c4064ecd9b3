#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/export.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/steady_timer.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <utility>

namespace zkasio {

namespace detail {
class core;
struct access;
}

/// The pauses between the attempts of something that is tried until it succeeds, is certain, or the session is over:
/// those of the client's retry_policy, see retry_policy::pause(). For writers of recipes; from
/// toolbox::make_back_off(). Move-only; for one who tries.
class ZKASIO_EXPORT back_off {
public:
    back_off(back_off&&) noexcept = default;
    back_off& operator=(back_off&&) noexcept = default;

    /// How long to wait before the next attempt.
    std::chrono::milliseconds next();

    /// *Completes when* next() has passed. *Cancellation*: ends it at once.
    asio::awaitable<void> pause() { return wait(next()); }

    /// For state machines: calls `f` on `executor` when next() has passed, unless this is called again or destroyed
    /// before. To be called there. `f` must not throw.
    void then(const asio::any_io_executor& executor, std::function<void()> f);

    /// It has worked: the next pause is the first again.
    void reset() noexcept { attempt_ = 0; }

private:
    friend struct detail::access;
    explicit back_off(std::shared_ptr<detail::core> core) : core_(std::move(core)) {}
    static asio::awaitable<void> wait(std::chrono::milliseconds pause);

    std::shared_ptr<detail::core> core_;
    std::shared_ptr<asio::steady_timer> timer_;
    int attempt_ = 0;
};

}  // namespace zkasio
