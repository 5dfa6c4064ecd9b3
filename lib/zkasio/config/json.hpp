#pragma once

#include <zkasio/config/config_format.hpp>
#include <zkasio/config/json_round_trip.hpp>
#include <zkasio/config/parse_json.hpp>

#include <nlohmann/json.hpp>

#include <string_view>

/// JSON for config_value, by nlohmann_json. Needs the CMake target zkasio::json (the component `json` of the installed
/// package), which adds that library.
namespace zkasio {

/// A text that T cannot hold is refused, and not cut: 4294967297, 1.9 and true for an int, -1 for an unsigned, four
/// elements for a std::array of three. The numbers, booleans and array elements of a text have to be the same in the
/// text that would be written for the value; a float may have fewer digits.
///
/// Strings may be written in another way, if T reads them: with another string in its place, from_json() fails, or
/// gives a value that is written differently. That refuses a misspelt enumerator, which NLOHMANN_JSON_SERIALIZE_ENUM
/// reads as the first one, and a number, null or the like in its place. So from_json() is called again for each string
/// that is written in another way (in a text of n bytes for 16 MiB / n of them), with "\x01" in place of the string, or
/// with another number or boolean. A second name of the first enumerator is refused as well.
///
/// A text in which an object has a member twice is refused.
///
/// A text may have members that T does not have. Such members are ignored, but config_value::update() refuses the text,
/// since the members would be lost.
///
/// T has from_json() and to_json(), see NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE, or is nlohmann::json itself.
template <class T>
config_format<T> json_format() {
    using config_detail::json_members;
    config_format<T> format(
        [](std::string_view text) {
            const nlohmann::json what = parse_json(text);
            config_detail::refuse_loss_in_parsing(text);
            T value = what.template get<T>();
            const nlohmann::json written = value;
            config_detail::refuse_loss(what, written, json_members::any);
            config_detail::refuse_unread<T>(text, what, written);
            return value;
        },
        [](const T& value) { return nlohmann::json(value).dump(); });
    format.before_update([](std::string_view text, const T& value) {
        config_detail::refuse_loss(parse_json(text), nlohmann::json(value), json_members::none);
    });
    return format;
}

template <class T>
struct default_config_format {
    static config_format<T> make() { return json_format<T>(); }
};

}  // namespace zkasio
