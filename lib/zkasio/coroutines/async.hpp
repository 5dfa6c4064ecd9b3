#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/error.hpp>
#include <zkasio/export.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/associated_cancellation_slot.hpp>
#include <asio/associated_executor.hpp>
#include <asio/associator.hpp>
#include <asio/async_result.hpp>
#include <asio/awaitable.hpp>
#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/co_spawn.hpp>
#include <asio/system_executor.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/use_future.hpp>

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

namespace zkasio {

namespace detail {

/// The code of a std::system_error. Rethrows any other exception.
ZKASIO_EXPORT std::error_code code_of_async(const std::exception_ptr& failed);

class body_run;

/// An operation that runs on a strand, and may be cancelled from anywhere.
class async_run {
public:
    ZKASIO_EXPORT explicit async_run(const asio::any_io_executor& on);

    ZKASIO_EXPORT asio::any_io_executor strand() const;
    ZKASIO_EXPORT asio::cancellation_slot slot() const;  ///< of the operation
    using cancel_function = std::function<void(asio::cancellation_type)>;
    ZKASIO_EXPORT cancel_function canceller() const;  ///< see body_run::canceller()
    using body_function = std::function<asio::awaitable<void>()>;
    ZKASIO_EXPORT asio::awaitable<void> run(body_function body) const;  ///< see run_body()

private:
    std::shared_ptr<body_run> run_;
};

/// Tokens that throw get the exception, with its text; others its code.
template <class Token>
inline constexpr bool throws = false;
template <class Executor>
inline constexpr bool throws<asio::use_awaitable_t<Executor>> = true;
template <class Allocator>
inline constexpr bool throws<asio::use_future_t<Allocator>> = true;

template <class Failure, class T>
struct async_signature {
    using type = void(Failure, T);
};
template <class Failure>
struct async_signature<Failure, void> {
    using type = void(Failure);
};
template <class Token, class T>
using async_signature_t =
    typename async_signature<std::conditional_t<throws<std::decay_t<Token>>, std::exception_ptr, std::error_code>,
                             T>::type;

/// What an operation's coroutine ends with: runs where the handler wants to be called.
template <bool Throws, class Handler>
struct async_completion {
    Handler handler;
    asio::cancellation_slot slot;  // of the handler

    template <class... T>
    void operator()(std::exception_ptr failed, T... value) {
        if (slot.is_connected()) slot.clear();
        if constexpr (Throws)
            std::move(handler)(std::move(failed), std::move(value)...);
        else
            std::move(handler)(code_of_async(failed), std::move(value)...);
    }
};

template <class T>
asio::awaitable<T> run_async(async_run run, asio::awaitable<T> operation) {
    if (!operation.valid()) throw error(errc::invalid_argument, "async", {}, "the operation is empty");
    if constexpr (std::is_void_v<T>) {
        async_run::body_function body = [&operation] { return std::move(operation); };
        co_await run.run(std::move(body));
    } else {
        std::optional<T> value;
        async_run::body_function body = [&operation, &value]() -> asio::awaitable<void> {
            T result = co_await std::move(operation);
            value.emplace(std::move(result));
        };
        co_await run.run(std::move(body));
        co_return std::move(*value);
    }
}

/// No executor of the caller's.
struct of_handler {};

template <bool Throws>
struct start_async {
    template <class Handler, class On, class T>
    void operator()(Handler&& handler, On on, asio::awaitable<T> operation) const {
        static_assert(std::is_void_v<T> || std::is_default_constructible_v<T>,
                      "when it fails, a default-constructed result is passed: return a std::optional");
        using completion = async_completion<Throws, std::decay_t<Handler>>;
        const async_run run(executor_of(handler, std::move(on)));
        completion ended{std::forward<Handler>(handler), {}};
        ended.slot = asio::get_associated_cancellation_slot(ended.handler);
        if (ended.slot.is_connected()) ended.slot.assign(run.canceller());
        asio::co_spawn(run.strand(), run_async(run, std::move(operation)),
                       asio::bind_cancellation_slot(run.slot(), std::move(ended)));
    }

private:
    template <class Handler>
    static asio::any_io_executor executor_of(const Handler&, asio::any_io_executor on) {
        return on;
    }
    template <class Handler>
    static asio::any_io_executor executor_of(const Handler& handler, of_handler) {
        using executor = asio::associated_executor_t<Handler>;
        constexpr bool is_named = std::is_convertible_v<executor, asio::any_io_executor> &&
                                  !std::is_same_v<executor, asio::system_executor>;
        static_assert(is_named, "the handler has no executor to run the operation on: write zkasio::async(executor, "
                                "operation, token), or asio::bind_executor(executor, handler)");
        if constexpr (is_named)
            return asio::get_associated_executor(handler);
        else
            return {};
    }
};

}  // namespace detail

/// Runs any operation of zkasio, or a coroutine of yours, and completes any of Asio's completion tokens:
///
///     zkasio::async(io.get_executor(), zk.get("/a"), [](std::error_code failed, zkasio::node_data read) { ... });
///     auto read = co_await zkasio::async(zk.get("/a"), asio::use_awaitable_t<asio::io_context::executor_type>());
///
/// The signature is `void(std::error_code, T)`, or `void(std::error_code)` for an operation without a result. When an
/// operation has failed, T is default-constructed: each result type has an empty state. `use_awaitable` (of any
/// executor) and `use_future`, as they are and not within other tokens, throw the exception itself, with operation and
/// path, instead of its code.
///
/// *Completes when* the operation does, on the handler's executor; a handler without one is called on the operation's.
/// That is a strand over `on`. Without `on`, it is one over the handler's executor; a handler that has none is refused
/// by the compiler.
/// *Fails with* the code of the operation's std::system_error. Any other exception, of a coroutine of yours, leaves
/// run() of the handler's executor, and the handler is not called; `use_awaitable` and `use_future` throw it.
/// *Memory*: the coroutines take theirs as all coroutines of Asio do, and not from the handler's associated allocator.
/// *Cancellation* by the handler's slot, of each type, cancels the operation; docs/cancellation.md says what that
/// means. It may be emitted on the handler's executor, whatever `on` is.
template <class T, class Token>
auto async(asio::any_io_executor on, asio::awaitable<T> operation, Token&& token) {
    using signature = detail::async_signature_t<Token, T>;
    return asio::async_initiate<Token, signature>(detail::start_async<detail::throws<std::decay_t<Token>>>(), token,
                                                  std::move(on), std::move(operation));
}
template <class T, class Token>
auto async(asio::awaitable<T> operation, Token&& token) {
    using signature = detail::async_signature_t<Token, T>;
    return asio::async_initiate<Token, signature>(detail::start_async<detail::throws<std::decay_t<Token>>>(), token,
                                                  detail::of_handler(), std::move(operation));
}

}  // namespace zkasio

/// @cond
namespace asio {

// All that a handler is associated with is that of its completion, too.
template <template <class, class> class Associator, bool Throws, class Handler, class Default>
struct associator<Associator, zkasio::detail::async_completion<Throws, Handler>, Default>
    : Associator<Handler, Default> {
    static auto get(const zkasio::detail::async_completion<Throws, Handler>& of) noexcept {
        return Associator<Handler, Default>::get(of.handler);
    }
    static auto get(const zkasio::detail::async_completion<Throws, Handler>& of, const Default& otherwise) noexcept {
        return Associator<Handler, Default>::get(of.handler, otherwise);
    }
};

}  // namespace asio
/// @endcond
