#include "node_text.hpp"

#include <zkasio/printable.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>

namespace zklock {

std::string hex(std::int64_t number) { return zkasio::session_id_text(number); }

std::string to_text_time(std::int64_t ms_since_1970) {
    const auto seconds = static_cast<std::time_t>(ms_since_1970 / 1000);
    std::tm parts{};
    ::gmtime_r(&seconds, &parts);
    std::array<char, 32> day{};
    std::strftime(day.data(), day.size(), "%Y-%m-%dT%H:%M:%S", &parts);
    std::array<char, 8> rest{};
    std::snprintf(rest.data(), rest.size(), ".%03dZ", static_cast<int>(ms_since_1970 % 1000));
    return std::string(day.data()) + rest.data();
}

std::chrono::milliseconds age_of(std::int64_t ms_since_1970) {
    using namespace std::chrono;
    const auto now = duration_cast<milliseconds>(system_clock::now().time_since_epoch());
    return std::max(now - milliseconds(ms_since_1970), milliseconds(0));
}

nlohmann::ordered_json to_json(const zkasio::node_stat& s) {
    nlohmann::ordered_json j{{"czxid", s.czxid},   {"mzxid", s.mzxid},       {"pzxid", s.pzxid},
                             {"ctime", s.ctime},   {"mtime", s.mtime},       {"version", s.version},
                             {"cversion", s.cversion}, {"aversion", s.aversion}, {"data_length", s.data_length},
                             {"num_children", s.num_children}};
    j["ephemeral_owner"] = nullptr;
    if (s.ephemeral_owner != 0) j["ephemeral_owner"] = hex(s.ephemeral_owner);
    return j;
}

std::string base64(std::string_view data) {
    constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    for (std::size_t i = 0; i < data.size(); i += 3) {
        const std::size_t n = std::min<std::size_t>(3, data.size() - i);
        unsigned bits = 0;
        for (std::size_t k = 0; k < 3; ++k) bits = bits << 8 | (k < n ? static_cast<unsigned char>(data[i + k]) : 0U);
        for (std::size_t k = 0; k < 4; ++k) text += k <= n ? digits[bits >> (18 - 6 * k) & 63] : '=';
    }
    return text;
}

nlohmann::ordered_json json_text(const std::string& data) {
    try {
        const nlohmann::ordered_json text = data;
        static_cast<void>(text.dump());  // throws for what is not UTF-8
        return text;
    } catch (const nlohmann::ordered_json::type_error&) {
        return {{"base64", base64(data)}};
    }
}

std::string dump(const nlohmann::ordered_json& j, json_layout how) {
    const std::string text = j.dump(how == json_layout::pretty ? 2 : -1, ' ', false,
                                    nlohmann::ordered_json::error_handler_t::replace);
    // JSON need not escape U+007F to U+009F, which terminals obey. They are in strings, for nothing else is not ASCII.
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto at = [&text](std::size_t k) { return k < text.size() ? static_cast<unsigned char>(text[k]) : 0U; };
        const bool two = at(i) == 0xc2 && at(i + 1) >= 0x80 && at(i + 1) < 0xa0;
        if (!two && at(i) != 0x7f) {
            result += text[i];
            continue;
        }
        std::array<char, 8> escaped{};
        std::snprintf(escaped.data(), escaped.size(), "\\u%04x", two ? at(i + 1) : at(i));
        result += escaped.data();
        if (two) ++i;
    }
    return result + "\n";
}

}  // namespace zklock
