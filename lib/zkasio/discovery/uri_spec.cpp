#include <zkasio/discovery/uri_spec.hpp>

#include <zkasio/config/parse_json.hpp>
#include <zkasio/error.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <stdexcept>

namespace zkasio {
namespace {

using nlohmann::ordered_json;

[[noreturn]] void refuse_spec(std::string_view why) { throw error(errc::invalid_argument, "uri_spec", {}, why); }

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view white_space = " \t\r\n";
    const std::size_t begin = text.find_first_not_of(white_space);
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(white_space) + 1 - begin);
}

std::string lower(std::string text) {
    for (char& c : text)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return text;
}

std::string text_of(std::optional<std::uint16_t> port) { return port ? std::to_string(*port) : std::string(); }

std::map<std::string, std::string> fields_of(const service_instance& is) {
    return {{"[", "{"},
            {"]", "}"},
            {"scheme", is.ssl_port() ? "https" : "http"},
            {"name", is.name()},
            {"id", is.id()},
            {"address", is.address()},
            {"port", text_of(is.port())},
            {"ssl-port", text_of(is.ssl_port())},
            {"registration-time-utc", std::to_string(is.registered().time_since_epoch().count())},
            {"service-type", lower(to_string(is.type()))}};
}

}  // namespace

std::string uri_spec_of(std::string_view text) {
    ordered_json parts = ordered_json::array();
    const auto add = [&](std::string_view value, bool variable) {
        if (!value.empty() || variable) parts.push_back({{"value", std::string(value)}, {"variable", variable}});
    };
    while (!text.empty()) {
        const std::size_t open = text.find_first_of("{}");
        if (open != std::string_view::npos && text[open] == '}') refuse_spec("a } without a { before it");
        add(text.substr(0, open), false);
        if (open == std::string_view::npos) break;
        text.remove_prefix(open + 1);
        const std::size_t close = text.find_first_of("{}");
        if (close == std::string_view::npos) refuse_spec("a { without a } behind it");
        if (text[close] == '{') refuse_spec("a { within a field");
        add(trimmed(text.substr(0, close)), true);
        text.remove_prefix(close + 1);
    }
    ordered_json spec;
    spec["parts"] = std::move(parts);
    try {
        return spec.dump();
    } catch (const ordered_json::exception&) {
        refuse_spec("the text is not UTF-8");
    }
}

std::string uri_of(const service_instance& is, const std::map<std::string, std::string>& fields) {
    constexpr std::size_t most_nested = 100;
    std::map<std::string, std::string> known = fields_of(is);
    for (const auto& [name, value] : fields) known[name] = value;
    std::string uri;
    try {
        const nlohmann::json spec = parse_json(is.uri_spec(), most_nested);
        if (spec.is_null()) return uri;
        for (const nlohmann::json& part : spec.at("parts")) {
            const auto value = part.at("value").get<std::string>();
            const bool variable = part.at("variable").get<bool>();
            uri += variable ? known[value] : value;
        }
    } catch (const nlohmann::json::exception&) {
        refuse_spec("this is no UriSpec");
    } catch (const std::length_error&) {
        refuse_spec("this is no UriSpec");
    }
    return uri;
}

}  // namespace zkasio
