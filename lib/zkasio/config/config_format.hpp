#pragma once

#include <zkasio/coroutine_safety.hpp>

#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace zkasio {

/// How a value is read from the data of a node, and written there.
template <class T>
class config_format {
public:
    using parser = std::function<T(std::string_view text)>;
    using printer = std::function<std::string(const T& value)>;
    using checker = std::function<void(std::string_view text, const T& value)>;

    /// Reads only: config_value::set() and config_value::update() are refused.
    /// @param parse throws, whatever it likes, when it can make no sense of the text. May be called on any thread, by
    /// several at once.
    template <class Parse>
        requires(!std::is_base_of_v<config_format, std::remove_cvref_t<Parse>>)
    config_format(Parse&& parse)  // implicit: `config_value<int> c(zk, path, to_int)`
        : parse_(detail::safe_function<parser>(std::forward<Parse>(parse))) {}

    /// @param print makes the text that `parse` reads. May be called as that.
    template <class Parse, class Print>
    config_format(Parse&& parse, Print&& print)
        : parse_(detail::safe_function<parser>(std::forward<Parse>(parse))),
          print_(detail::safe_function<printer>(std::forward<Print>(print))) {}

    /// Called by config_value::update() with the text that it is about to replace, and with the value that was read
    /// from it. @param check throws if something would be lost that the value does not have (no check).
    template <class Check>
    config_format& before_update(Check&& check) {
        before_update_ = detail::safe_function<checker>(std::forward<Check>(check));
        return *this;
    }

    const parser& parse() const noexcept { return parse_; }
    /// Empty: it cannot be written.
    const printer& print() const noexcept { return print_; }
    /// May be empty.
    const checker& before_update() const noexcept { return before_update_; }

private:
    parser parse_;
    printer print_;
    checker before_update_;
};

/// What a config_value has when it is given no format. Defined by <zkasio/config/json.hpp>; if a compiler says that
/// this type is incomplete, include that, or pass a format.
template <class T>
struct default_config_format;

}  // namespace zkasio
