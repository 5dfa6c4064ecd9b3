#pragma once

#include <zkasio/coroutines/coroutine_safety.hpp>

#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace zkasio {

/// The functions that read a value from the data of a node, and write the value there.
template <class T>
class config_format {
public:
    using parser = std::function<T(std::string_view text)>;
    using printer = std::function<std::string(const T& value)>;
    using checker = std::function<void(std::string_view text, const T& value)>;

    /// Reads only: config_value::set() and config_value::update() are refused.
    /// @param parse throws any exception if the text cannot be read. May be called on any thread, by several threads
    /// concurrently.
    template <class Parse>
        requires(!std::is_base_of_v<config_format, std::remove_cvref_t<Parse>>)
    config_format(Parse&& parse)  // implicit: `config_value<int> c(zk, path, to_int)`
        : parse_(detail::safe_function<parser>(std::forward<Parse>(parse))) {}

    /// @param print returns the text that `parse` reads. May be called on the same threads as `parse`.
    template <class Parse, class Print>
    config_format(Parse&& parse, Print&& print)
        : parse_(detail::safe_function<parser>(std::forward<Parse>(parse))),
          print_(detail::safe_function<printer>(std::forward<Print>(print))) {}

    /// Called by config_value::update() with the text that is about to be replaced, and with the value that was read
    /// from that text.
    /// @param check throws if something in the text would be lost because the value does not have it (no check).
    template <class Check>
    config_format& before_update(Check&& check) {
        before_update_ = detail::safe_function<checker>(std::forward<Check>(check));
        return *this;
    }

    const parser& parse() const noexcept { return parse_; }
    /// Empty: the value cannot be written.
    const printer& print() const noexcept { return print_; }
    /// May be empty.
    const checker& before_update() const noexcept { return before_update_; }

private:
    parser parse_;
    printer print_;
    checker before_update_;
};

/// The format of a config_value that is given none. Defined by <zkasio/config/json.hpp>; if a compiler says that this
/// type is incomplete, include that header, or pass a format.
template <class T>
struct default_config_format;

}  // namespace zkasio
