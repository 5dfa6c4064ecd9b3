#pragma once

#include <zkasio/config/config_format.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

/// Checks whether a C++ type holds all of a JSON text, or only a part: nlohmann_json reads 1.9 as the int 1, and
/// 4294967297 as well. Needs the CMake target zkasio::json, as config/json.hpp, whose formats use these functions.
namespace zkasio::config_detail {

/// The members of objects that may be missing in the text that would be written.
enum class json_members {
    any,  ///< a type need not have all members of a text
    none,
};

/// Whether the number `was` of the text, and the number `is` that would be written for it, are the same.
inline bool is_same_number(const nlohmann::json& was, const nlohmann::json& is) {
    const auto compare = [&](auto exact) {
        if (is.is_number_unsigned()) return std::cmp_equal(exact, is.get<std::uint64_t>());
        if (is.is_number_integer()) return std::cmp_equal(exact, is.get<std::int64_t>());
        using integer = decltype(exact);
        const double value = is.get<double>();
        const double limit = std::ldexp(1.0, std::numeric_limits<integer>::digits);
        return value >= (exact < 0 ? -limit : 0) && value < limit && std::trunc(value) == value &&
               static_cast<integer>(value) == exact;
    };
    if (was.is_number_unsigned()) return compare(was.get<std::uint64_t>());
    if (was.is_number_integer()) return compare(was.get<std::int64_t>());
    const double value = was.get<double>();
    if (!is.is_number_float()) {
        // Above 2^53 a double need not be the decimal of the text: 9007199254740993.0 is read as ...992.
        const double exact = std::ldexp(1.0, std::numeric_limits<double>::digits);
        if (std::trunc(value) != value || std::abs(value) >= exact) return false;
        if (is.is_number_unsigned()) return value >= 0 && static_cast<std::uint64_t>(value) == is.get<std::uint64_t>();
        return static_cast<std::int64_t>(value) == is.get<std::int64_t>();
    }
    const double written = is.get<double>();
    if (written == value) return true;
    // A float may have fewer digits than the text, but no other magnitude.
    const bool fits = std::abs(value) <= double(std::numeric_limits<float>::max()) && written != 0;
    return fits && std::abs(written) <= double(std::numeric_limits<float>::max()) &&
           static_cast<float>(written) == static_cast<float>(value);
}

/// The first part of `was` that is lost in `is`: its place, and what would stand there. Empty: nothing is lost.
inline std::string json_loss(const nlohmann::json& was, const nlohmann::json& is, json_members may_be_missing) {
    using nlohmann::json;
    if (was.is_number() && is.is_number())
        return is_same_number(was, is) ? std::string() : ": " + was.dump() + " would become " + is.dump();
    const bool is_other_boolean = is.is_boolean() && was != is;
    if (was.is_boolean() && (is.is_number() || is_other_boolean))
        return ": " + was.dump() + " would become " + is.dump();
    if (was.is_object() && is.is_object()) {
        for (const auto& [name, value] : was.items()) {
            const auto written = is.find(name);
            std::string loss;
            if (written != is.end())
                loss = json_loss(value, *written, may_be_missing);
            else if (may_be_missing == json_members::none)
                loss = " would be lost";
            if (!loss.empty()) return "/" + name + loss;
        }
    }
    if (was.is_array() && is.is_array()) {
        if (is.size() < was.size())
            return ": of " + std::to_string(was.size()) + " elements " + std::to_string(was.size() - is.size()) +
                   " would be lost";
        const auto loss_at = [&](const json& from, const json& to) {
            for (std::size_t i = 0; i < from.size(); ++i)
                if (std::string loss = json_loss(from[i], to[i], may_be_missing); !loss.empty())
                    return "/" + std::to_string(i) + loss;
            return std::string();
        };
        std::string loss = loss_at(was, is);
        if (loss.empty() || was.size() != is.size()) return loss;
        // Sets write their elements in an order of their own.
        std::vector<json> from(was.begin(), was.end()), to(is.begin(), is.end());
        std::sort(from.begin(), from.end());
        std::sort(to.begin(), to.end());
        return loss_at(json(std::move(from)), json(std::move(to))).empty() ? std::string() : loss;
    }
    return {};
}

/// Whether a decimal ("-12.50e3") has digits other than 0 behind the point.
inline bool has_fraction(const std::string& decimal) {
    const std::size_t e = std::min(decimal.find_first_of("eE"), decimal.size());
    const std::size_t point = std::min(decimal.find('.'), e);
    const std::size_t last = decimal.find_last_of("123456789", e - 1);
    if (last == decimal.npos || last >= e) return false;
    const long exponent = e < decimal.size() ? std::strtol(decimal.c_str() + e + 1, nullptr, 10) : 0;
    // The place of the last digit that is not 0: 0 for units, 1 for tenths.
    const long place = last > point ? static_cast<long>(last - point) : -static_cast<long>(point - last - 1);
    return place > exponent;
}

/// *Fails with* std::range_error for what a text loses when it is parsed: integers that have more digits than
/// nlohmann_json keeps of them, decimals that nlohmann_json reads as integers although they are none
/// (1.00000000000000001), and members that an object has twice.
inline void refuse_loss_in_parsing(std::string_view text) {
    class checker final : public nlohmann::json_sax<nlohmann::json> {
    public:
        bool number_float(double value, const std::string& digits) override {
            bool same = true;
            if (digits.find_first_of(".eE") == std::string::npos) {
                char exact[400];
                std::snprintf(exact, sizeof exact, "%.0f", value);
                same = digits == exact;
            } else if (std::trunc(value) == value) {
                same = !has_fraction(digits);
            }
            if (!same) throw std::range_error("the number " + digits.substr(0, 60) + " has too many digits");
            return true;
        }
        bool null() override { return true; }
        bool boolean(bool) override { return true; }
        bool number_integer(std::int64_t) override { return true; }
        bool number_unsigned(std::uint64_t) override { return true; }
        bool string(std::string&) override { return true; }
        bool binary(nlohmann::json::binary_t&) override { return true; }
        bool start_object(std::size_t) override {
            names_.emplace_back();
            return true;
        }
        bool key(std::string& name) override {
            if (!names_.back().insert(name).second)
                throw std::range_error("the member " + nlohmann::json(name.substr(0, 60)).dump() + " is there twice");
            return true;
        }
        bool end_object() override {
            names_.pop_back();
            return true;
        }
        bool start_array(std::size_t) override { return true; }
        bool end_array() override { return true; }
        bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override { return false; }

    private:
        std::vector<std::set<std::string>> names_;  // of the members of the objects that are open
    };
    checker check;
    nlohmann::json::sax_parse(text, &check);
}

/// *Fails with* std::range_error if something of `was` is lost in `is`, the JSON that would be written for the value
/// that was read from `was`.
inline void refuse_loss(const nlohmann::json& was, const nlohmann::json& is, json_members may_be_missing) {
    const std::string loss = json_loss(was, is, may_be_missing);
    if (loss.empty()) return;
    throw std::range_error("its type does not hold what it says: " + (loss.starts_with(": ") ? loss.substr(2) : loss));
}

/// The values of `was` that `is` writes in another way, as "5m" becomes "300 s".
inline void find_rewritten(const nlohmann::json& was, const nlohmann::json& is, const nlohmann::json::json_pointer& at,
                           std::vector<nlohmann::json::json_pointer>& found) {
    using nlohmann::json;
    if (was == is || (was.is_number() && is.is_number())) return;
    if (was.is_object() && is.is_object()) {
        for (const auto& [name, value] : was.items())
            if (const auto written = is.find(name); written != is.end())
                find_rewritten(value, *written, at / name, found);
    } else if (was.is_array() && is.is_array()) {
        std::vector<json> from(was.begin(), was.end()), to(is.begin(), is.end());
        std::sort(from.begin(), from.end());
        std::sort(to.begin(), to.end());
        if (from == to) return;  // a set
        for (std::size_t i = 0; i < was.size() && i < is.size(); ++i) find_rewritten(was[i], is[i], at / i, found);
    } else {
        found.push_back(at);
    }
}

/// A value that no type reads as it reads `was`, unless the type does not look at its value.
inline nlohmann::json another_than(const nlohmann::json& was) {
    if (was.is_boolean()) return !was.get<bool>();
    if (was.is_number()) return was == 0 ? 1 : 0;
    return "\x01";
}

/// *Fails with* std::range_error if T writes `is` for `was`, and also if a value of `was` that `is` writes in another
/// way were any other: NLOHMANN_JSON_SERIALIZE_ENUM reads what is no enumerator, of whichever type, as the first one.
/// Each such value costs a conversion of all of `was`: no more are tried than are worth 16 MiB of text.
template <class T>
void refuse_unread(std::string_view text, nlohmann::json was, const nlohmann::json& is) {
    using nlohmann::json;
    std::vector<json::json_pointer> rewritten;
    find_rewritten(was, is, json::json_pointer(), rewritten);
    const std::size_t most = std::size_t{16} * 1024 * 1024 / (text.size() + 1) + 1;
    if (rewritten.size() > most) rewritten.resize(most);
    for (const json::json_pointer& at : rewritten) {
        json other = another_than(was[at]);
        std::swap(was[at], other);
        bool same = false;
        try {
            same = json(was.template get<T>()) == is;
        } catch (...) {
            // T reads the value, and refuses the other one.
        }
        std::swap(was[at], other);
        if (same)
            throw std::range_error("its type does not hold what it says: " + at.to_string() + ": " +
                                   was[at].dump().substr(0, 60) + " would become " + is[at].dump().substr(0, 60) +
                                   ", as any other value");
    }
}

}  // namespace zkasio::config_detail

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
