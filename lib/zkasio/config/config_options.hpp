#pragma once

#include <zkasio/coroutines/coroutine_safety.hpp>
#include <zkasio/coroutines/kept_body.hpp>
#include <zkasio/create_options.hpp>

#include <functional>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace zkasio {

/// How a config_value behaves.
template <class T>
class config_options {
public:
    config_options() {}

    /// The value if there is no node, and until a good value has been read for the first time (none).
    config_options& default_value(T value) {
        default_ = std::make_shared<const T>(std::move(value));
        return *this;
    }
    /// Checks values that the format can read: `check(value)` throws or returns false for a bad one. Applies to values
    /// that other clients write, to values to be written here, and to default_value(). As config_format::parser,
    /// `check` may be called on any thread.
    template <class Check>
    config_options& validate(Check&& check) {
        using plain = typename detail::plain_body<Check>::type;
        if constexpr (std::is_void_v<std::invoke_result_t<plain&, const T&>>) {
            check_ = detail::safe_function<std::function<void(const T&)>>(std::forward<Check>(check));
        } else {
            auto good = detail::safe_function<std::function<bool(const T&)>>(std::forward<Check>(check));
            check_ = [good = std::move(good)](const T& value) {
                if (!good(value)) throw std::invalid_argument("validate() says no");
            };
        }
        return *this;
    }
    /// How initialize(), set() and update() create the node when there is none (a persistent one, and its parents).
    config_options& create_with(create_options how) { create_ = std::move(how); return *this; }

    const std::shared_ptr<const T>& default_value() const noexcept { return default_; }
    const std::function<void(const T&)>& check() const noexcept { return check_; }
    const create_options& create_with() const noexcept { return create_; }

private:
    std::shared_ptr<const T> default_;
    std::function<void(const T&)> check_;
    create_options create_ = create_options().parents(missing_parents::create_persistent);
};

}  // namespace zkasio
