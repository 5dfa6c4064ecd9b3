#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/coroutines/coroutine_safety.hpp>
#include <zkasio/error.hpp>
#include <zkasio/export.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/error.hpp>

#include <concepts>
#include <cstddef>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

namespace zkasio {

class task_scope;

namespace detail {

class scope_state;

/// Keeps the closure for as long as the coroutine that the closure has made runs.
template <class Task>
asio::awaitable<void> call_and_keep(Task task) {
    co_await task();
}

template <class Task>
concept task_function = requires(std::decay_t<Task>& task) {
    { task() } -> std::same_as<asio::awaitable<void>>;
};

using scope_body = std::function<asio::awaitable<void>(task_scope&)>;
/// Returns whether a write of the body or of a task may have been applied whose exception was dropped.
ZKASIO_EXPORT asio::awaitable<bool> run_task_scope(scope_body body);

}  // namespace detail

/// Coroutines that run concurrently and end together, in a scope made by with_task_scope().
///
/// The scope is cancelled, and with it the body and every task that has not ended, by
///   - the first exception of a task or of the body: body and tasks receive a terminal cancellation;
///   - cancel(): body and tasks receive a terminal cancellation, too;
///   - the cancellation of the coroutine that awaits with_task_scope(), also by the loss of a lock or a session around
///     it: body and tasks receive this cancellation, of every type that the coroutine has enabled.
/// Tasks receive cancellations of all types, not only terminal ones as after co_spawn.
///
/// One strand runs the body and the tasks: the caller's executor if that is an asio::strand<asio::any_io_executor>,
/// else a strand over it. Tasks that are to compute on several threads of a pool at a time switch to other executors.
/// All members are to be called on this strand, that is by the body and the tasks; other code posts to get_executor().
/// On any other thread the members fail with errc::invalid_argument.
///
/// *Lifetime*: until the body and all tasks have ended.
class ZKASIO_EXPORT task_scope {
public:
    task_scope(const task_scope&) = delete;
    task_scope& operator=(const task_scope&) = delete;

    /// Starts `task`, which runs at once until it suspends for the first time, as with co_spawn(). If the scope has
    /// been cancelled, the task is destroyed without being started, and the result is false. May be called by tasks,
    /// also when the body has ended.
    /// *Fails with* errc::invalid_argument for an awaitable that was moved from.
    /// *Lifetime*: the body's own objects end with the body, which may be before the tasks end. An object that a task
    /// refers to has to be outside of with_task_scope(), passed by value, or captured by the body's closure, which
    /// lives as long as the scope.
    bool spawn(asio::awaitable<void> task);

    /// Starts the coroutine that a callable returns. The callable is moved (or, if it has a name, copied), and lives
    /// until the task has ended: a lambda that is a coroutine may have captures.
    template <detail::task_function Task>
    bool spawn(Task&& task) {
        return spawn(detail::call_and_keep<std::decay_t<Task>>(std::forward<Task>(task)));
    }

    /// Cancels the scope, and with it the caller, whose next `co_await` fails, too. A second call does nothing.
    void cancel();
    /// Whether the scope has been cancelled, for any reason.
    bool cancelled() const;

    /// How many tasks have not ended yet. The body is not counted.
    std::size_t size() const;

    /// The strand.
    asio::any_io_executor get_executor() const;

private:
    friend class detail::scope_state;
    explicit task_scope(detail::scope_state& state) noexcept : state_(state) {}

    detail::scope_state& state_;
};

namespace detail {

// `Body` is a reference if the body has a name, else the closure itself, which then lives in this frame.
template <class T, class Body>
asio::awaitable<T> run_in_scope(Body body) {
    using plain = std::remove_cvref_t<Body>;
    if constexpr (is_std_function<plain> || std::is_pointer_v<plain>)
        if (!body) throw error(errc::invalid_argument, "with_task_scope", {}, "the body is empty");
    if constexpr (std::is_void_v<T>) {
        scope_body run = [&body](task_scope& tasks) -> asio::awaitable<void> { return body(tasks); };
        co_await run_task_scope(std::move(run));
    } else {
        std::optional<T> value;
        scope_body run = [&body, &value](task_scope& tasks) -> asio::awaitable<void> {
            T ended = co_await body(tasks);
            value.emplace(std::move(ended));
        };
        const bool outcome_unknown = co_await run_task_scope(std::move(run));
        if (!value) throw error(asio::error::operation_aborted, "with_task_scope", {}, {}, outcome_unknown);
        co_return std::move(*value);
    }
}

template <class Body>
auto start_scope(Body&& body) {
    using plain = std::remove_reference_t<Body>;
    using kept = std::conditional_t<std::is_lvalue_reference_v<Body>, Body, plain>;
    using result = typename std::invoke_result_t<plain&, task_scope&>::value_type;
    return run_in_scope<result, kept>(std::forward<Body>(body));
}

}  // namespace detail

/// Runs `body(scope)`, a coroutine that takes a task_scope& and spawns tasks into it.
///
/// *Completes when* the body and all tasks have really ended, with what the body returns. A task that has ended keeps
/// no memory.
/// *Fails with* the first exception of the body or of a task; later exceptions are dropped. An operation_aborted with
/// which the body or a task ends after the scope was cancelled is no such exception; without cancellation, it is one.
/// If a dropped exception, or a cancellation, has left the outcome of a write unknown, and the first exception is a
/// zkasio::error, it has error::outcome_unknown(). (An exception of the user's own cannot tell.)
/// *Cancellation*: cancels the scope. If the cancellation has ended the body or a task, or kept a task from being
/// started, this fails with asio::error::operation_aborted. If all have completed in spite of it, this completes with
/// what the body returns. A body that task_scope::cancel() has ended counts as completed if the body returns void;
/// otherwise this fails with operation_aborted.
/// *Lifetime*: a `body` with a name is not copied, and has to live until this completes; any other body is moved from,
/// see also zkasio::moved().
template <class Body>
auto with_task_scope(Body&& body) {
    if constexpr (detail::is_moved_callable<std::remove_cvref_t<Body>>)
        return detail::start_scope(std::move(body.from));
    else if constexpr (detail::refuse_unsafe<Body>())
        return detail::start_scope(std::forward<Body>(body));
    else
        return asio::awaitable<void>();
}

}  // namespace zkasio
