#pragma once

#include <zkasio/config/config_format.hpp>
#include <zkasio/parse_json.hpp>

#include <nlohmann/json.hpp>

#include <string_view>

/// JSON for config_value, by nlohmann_json. Needs the CMake target zkasio::json (the component `json` of the installed
/// package), which adds that library.
namespace zkasio {

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
