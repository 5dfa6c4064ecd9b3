#pragma once

#include <zkasio/config/config_core.hpp>
#include <zkasio/config/config_format.hpp>
#include <zkasio/config/config_options.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace zkasio::config_detail {

/// Reads and writes the values of a config_value: its format, behind the checks of its options.
template <class T>
struct config_rules {
    config_format<T> format;
    config_options<T> options;

    void check(const T& value) const {
        if (options.check()) options.check()(value);
    }
    std::shared_ptr<const T> read(std::string_view text) const {
        auto value = std::make_shared<const T>(format.parse()(text));
        check(*value);
        return value;
    }
    std::shared_ptr<const T> read_for_update(std::string_view text) const {
        auto value = read(text);
        if (format.before_update()) format.before_update()(text, *value);
        return value;
    }
    std::string text(const T& value) const {
        if (!format.print()) throw std::logic_error("its format does not say how to write a value");
        check(value);
        std::string printed = format.print()(value);
        // A printer may write a text that the parser refuses: NaN is null in JSON.
        try {
            read(printed);
        } catch (...) {
            throw_unreadable();
        }
        return printed;
    }
};

}  // namespace zkasio::config_detail
