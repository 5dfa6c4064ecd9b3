#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

/// Needs the CMake target zkasio::json, as config/json.hpp.
namespace zkasio {

/// Parses JSON from an untrusted source. *Fails with* nlohmann::json::exception for a text that is no JSON, and with
/// std::length_error for arrays and objects in more than `deepest` levels, before the rest of the text is looked at: a
/// recursive walk through the result would need as much stack as the text has brackets.
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

}  // namespace zkasio
