#pragma once

#include <zkasio/config/config_format.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

/// JSON for config_value, by nlohmann_json. Needs the CMake target zkasio::json (the component `json` of the installed
/// package), which adds that library.
namespace zkasio {

/// JSON from somebody who is not to be trusted. *Fails with* nlohmann::json::exception for what is no JSON, and with
/// std::length_error for arrays and objects in more than `deepest` levels, before what follows is looked at: whoever
/// walks through the result recursively would need as much stack as the text has brackets.
inline nlohmann::json parse_json(std::string_view text, std::size_t deepest = 64) {
    using event = nlohmann::json::parse_event_t;
    const auto look = [deepest](int depth, event what, const nlohmann::json&) {
        const bool opens = what == event::object_start || what == event::array_start;
        if (opens && static_cast<std::size_t>(depth) >= deepest)
            throw std::length_error("JSON in more than " + std::to_string(deepest) + " levels");
        return true;
    };
    return nlohmann::json::parse(text, look);
}

/// What fits into which type is what nlohmann_json says: it takes 1.9 for the int 1, and a number that is too large for
/// an int without its upper bits. Where that matters, read it as a larger type, or as double, and look at it in
/// config_options::validate().
///
/// T has from_json() and to_json(), see NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE, or is nlohmann::json itself.
template <class T>
config_format<T> json_format() {
    return config_format<T>([](std::string_view text) { return parse_json(text).template get<T>(); },
                            [](const T& value) { return nlohmann::json(value).dump(); });
}

template <class T>
struct default_config_format {
    static config_format<T> make() { return json_format<T>(); }
};

}  // namespace zkasio
