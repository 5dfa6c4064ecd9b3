#pragma once

#include <zkasio/detail/base/fork_mark.hpp>
#include <zkasio/sasl_mechanism.hpp>

#include <asio/any_io_executor.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace zkasio::detail {

class body_run;

/// Runs the steps of one client's mechanism, where the mechanism wants them to run. One at a time, also of different
/// connections: a mechanism that hangs occupies one thread, however often the client tries again.
///
/// A step may end when its connection, the client or the client's event loop is gone: the step shares nothing with
/// these but a state of its own. On the client's strand, as all of its callers.
class sasl_steps {
public:
    /// What the steps of one connection share. Only a step touches the conversation.
    struct talk {
        std::shared_ptr<const sasl_mechanism> mechanism;
        sasl_server server;
        std::unique_ptr<sasl_conversation> conversation;
    };
    using talk_ptr = std::shared_ptr<talk>;
    struct outcome {
        std::optional<sasl_step> made;
        std::string failure;  ///< if none was made
    };

    /// @param clients executor for a mechanism that names none
    /// @param wake called from any thread when a step has ended; it must not call back
    sasl_steps(std::shared_ptr<const sasl_mechanism> mechanism, asio::any_io_executor clients,
               std::function<void()> wake);
    ~sasl_steps() { stop(); }
    sasl_steps(const sasl_steps&) = delete;
    sasl_steps& operator=(const sasl_steps&) = delete;

    talk_ptr begin(sasl_server with) const;
    /// False: an earlier step has not ended. Its end wakes the client, too.
    bool start(const talk_ptr& of, std::string challenge);
    /// The outcome of the step that was started, once there is one.
    std::optional<outcome> take(const talk_ptr& of);
    /// The connection is over: its step is cancelled.
    void abandon(const talk_ptr& of) noexcept;
    /// The client's event loop is being destroyed: it is woken no more.
    void stop() noexcept;

private:
    struct state;
    struct job;
    static asio::awaitable<void> make_step(std::shared_ptr<job> j, std::string challenge);

    std::shared_ptr<const sasl_mechanism> mechanism_;
    asio::any_io_executor clients_;
    const std::function<void()> wake_;  // a step does not own it: it may own an executor of the client's loop
    std::shared_ptr<state> state_;
    std::weak_ptr<body_run> run_;  // of the step that was started last
    fork_mark made_here_;
};

}  // namespace zkasio::detail
