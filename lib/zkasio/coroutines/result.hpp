#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/coroutines/kept_body.hpp>
#include <zkasio/error.hpp>
#include <zkasio/export.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>

#include <exception>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

namespace zkasio {

namespace detail {

/// Why a result has no value.
struct result_failure {
    explicit result_failure(error e, std::exception_ptr original = nullptr) noexcept
        : what(std::move(e)), thrown(std::move(original)) {}

    error what;
    std::exception_ptr thrown;  ///< null: `what` is thrown; else the original exception, which nests another one
};

/// In a `catch (...)`: the handled exception, if it is a zkasio::error or a cancellation. Rethrows any other exception.
ZKASIO_EXPORT result_failure current_failure();
[[noreturn]] ZKASIO_EXPORT void rethrow_failure(const result_failure& f);
/// The failure of a result that was made without a value and without an error.
ZKASIO_EXPORT const result_failure& empty_result();
[[noreturn]] ZKASIO_EXPORT void throw_has_a_value();

/// The common part of result<T> and result<void>.
template <class Stored>
class result_base {
public:
    bool has_value() const noexcept { return state_.index() == 1; }
    explicit operator bool() const noexcept { return has_value(); }

    /// *Fails with* errc::invalid_argument when there is a value.
    const zkasio::error& error() const {
        if (has_value()) throw_has_a_value();
        return failure().what;
    }

protected:
    using state = std::variant<std::monostate, Stored, result_failure>;
    result_base() = default;
    template <std::size_t Index, class Argument>
    result_base(std::in_place_index_t<Index> index, Argument&& argument)
        : state_(index, std::forward<Argument>(argument)) {}

    template <class Self>
    static auto&& checked(Self&& self) {
        if (!self.has_value()) rethrow_failure(self.failure());
        return std::get<1>(std::forward<Self>(self).state_);
    }

private:
    const result_failure& failure() const {
        const auto* there = std::get_if<2>(&state_);
        return there ? *there : empty_result();
    }
    state state_;
};

}  // namespace detail

/// The value of an operation, or the error that it has failed with; from as_result(). Named as in C++23's
/// std::expected.
///
/// Without a value, value() throws the error, and so do operator* and operator->, which is safer than in std::expected.
/// If an exception was nested in the error (see throw_with_body_failure()), it is nested in the thrown error, too.
///
/// A result that was made without arguments is an error, errc::invalid_argument: for asio::use_future, Asio makes such
/// results and replaces them.
template <class T>
class [[nodiscard]] result : public detail::result_base<T> {
    static_assert(std::is_object_v<T> && !std::is_const_v<T>, "a result is of a plain type, or void");
    using base = detail::result_base<T>;

public:
    using value_type = T;
    using error_type = zkasio::error;

    result() = default;
    result(T value) : base(std::in_place_index<1>, std::move(value)) {}
    result(zkasio::error e) : base(std::in_place_index<2>, std::move(e)) {}

    T& value() & { return base::checked(*this); }
    const T& value() const& { return base::checked(*this); }
    T&& value() && { return base::checked(std::move(*this)); }

    T& operator*() & { return value(); }
    const T& operator*() const& { return value(); }
    T&& operator*() && { return std::move(*this).value(); }
    T* operator->() { return &value(); }
    const T* operator->() const { return &value(); }

private:
    template <class U>
    friend asio::awaitable<result<U>> as_result(asio::awaitable<U> operation);
    explicit result(detail::result_failure f) : base(std::in_place_index<2>, std::move(f)) {}
};

/// The result of an operation that returns nothing: `result<void>(std::in_place)` is its success.
template <>
class [[nodiscard]] result<void> : public detail::result_base<std::in_place_t> {
    using base = detail::result_base<std::in_place_t>;

public:
    using value_type = void;
    using error_type = zkasio::error;

    result() = default;
    explicit result(std::in_place_t success) : base(std::in_place_index<1>, success) {}
    result(zkasio::error e) : base(std::in_place_index<2>, std::move(e)) {}

    void value() const { base::checked(*this); }
    void operator*() const { value(); }

private:
    template <class U>
    friend asio::awaitable<result<U>> as_result(asio::awaitable<U> operation);
    explicit result(detail::result_failure f) : base(std::in_place_index<2>, std::move(f)) {}
};

/// `result<lock_guard> r = co_await as_result(lock.acquire())`: runs any operation, and returns its error as a value
/// instead of throwing an exception.
///
/// *Completes when* the operation does. A zkasio::error becomes a value, and so does the operation_aborted with which
/// Asio's own operations end when they are cancelled (in an error whose operation is named "operation").
/// *Fails with* every other exception of the operation, which is a user's exception.
/// *Cancellation*: cancels the operation, whose error is returned. As always with Asio, a coroutine that was cancelled
/// cannot await anything else: its next co_await throws, even that of an as_result().
template <class T>
asio::awaitable<result<T>> as_result(asio::awaitable<T> operation) {
    if (!operation.valid())
        co_return result<T>(error(errc::invalid_argument, "as_result", {}, "the operation is empty"));
    std::optional<detail::result_failure> failed;
    try {
        if constexpr (std::is_void_v<T>) {
            co_await std::move(operation);
            co_return result<T>(std::in_place);
        } else {
            T value = co_await std::move(operation);
            co_return result<T>(std::move(value));
        }
    } catch (...) {
        failed = detail::current_failure();
    }
    co_return result<T>(std::move(*failed));
}

template <class T, class Executor>
    requires(!std::is_same_v<Executor, asio::any_io_executor>)
asio::awaitable<T, Executor> as_result(asio::awaitable<T, Executor> operation) {
    detail::refuse_other_executor<Executor, T>();
    return operation;
}

}  // namespace zkasio
