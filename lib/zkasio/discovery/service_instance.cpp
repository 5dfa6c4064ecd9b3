#include <zkasio/discovery/service_instance.hpp>

#include <zkasio/config/json.hpp>
#include <zkasio/discovery/detail/roster.hpp>
#include <zkasio/error.hpp>
#include <zkasio/operations.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <stdexcept>

namespace zkasio {
namespace {

using nlohmann::json;

constexpr std::array<const char*, 4> type_names{"DYNAMIC", "STATIC", "PERMANENT", "DYNAMIC_SEQUENTIAL"};
constexpr std::size_t most_nested = 100;

[[noreturn]] void refuse(const std::string& what) { throw error(errc::invalid_argument, "service_instance", {}, what); }

// Shortens the text of a nlohmann_json exception, which may cite the whole input.
[[noreturn]] void refuse(const char* what, const json::exception& why) {
    constexpr std::size_t most_cited = 200;
    const std::string text = why.what();
    refuse(std::string(what) + ": " + text.substr(0, std::min(text.size(), most_cited)));
}

json parsed(std::string_view text, const char* what, std::size_t deepest = most_nested) {
    try {
        return parse_json(text, deepest);
    } catch (const json::exception& e) {
        refuse(what, e);
    } catch (const std::length_error& e) {
        refuse(std::string(what) + ": " + e.what());
    }
}

// Null counts as missing, as for Curator.
const json* field(const json& of, const char* name) {
    const auto found = of.find(name);
    return found == of.end() || found->is_null() ? nullptr : &*found;
}

[[noreturn]] void refuse_field(const char* name) { refuse(std::string("the value of \"") + name + "\" is no such"); }

// Curator and zkasio always write both. Without them, a text of JSON describes something else. (The address may be
// missing: a UriSpec can do without.)
void require_name_and_id(const std::string& name, const std::string& id) {
    if (name.empty() || id.empty()) refuse("no name or no id");
}

std::string text_of(const json& of, const char* name) {
    const json* f = field(of, name);
    if (!f) return {};
    if (!f->is_string()) refuse_field(name);
    return f->get<std::string>();
}

std::optional<std::int64_t> integer_of(const json& of, const char* name, std::int64_t least, std::int64_t most) {
    const json* f = field(of, name);
    if (!f) return std::nullopt;
    if (!f->is_number_integer()) refuse_field(name);
    const bool too_large =
        f->is_number_unsigned() && f->get<std::uint64_t>() > std::uint64_t(std::numeric_limits<std::int64_t>::max());
    const auto value = too_large ? most : f->get<std::int64_t>();
    if (too_large || value < least || value > most) refuse_field(name);
    return value;
}

std::optional<std::uint16_t> port_of(const json& of, const char* name) {
    const auto value = integer_of(of, name, 0, 65535);
    if (!value) return std::nullopt;
    return static_cast<std::uint16_t>(*value);
}

service_type type_of(const json& of) {
    const std::string text = text_of(of, "serviceType");
    if (text.empty()) return service_type::dynamic;
    for (std::size_t i = 0; i < type_names.size(); ++i)
        if (text == type_names[i]) return static_cast<service_type>(i);
    refuse_field("serviceType");
}

constexpr std::string_view white_space = " \t\r\n";

// The position after the value that begins at `begin` of a text of JSON.
std::size_t end_of_value(std::string_view text, std::size_t begin) {
    std::size_t open = 0;
    bool in_string = false;
    for (std::size_t i = begin; i < text.size(); ++i) {
        const char c = text[i];
        if (in_string) {
            if (c == '\\') ++i;
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            ++open;
        } else if (open == 0 &&
                   (c == ',' || c == '}' || c == ']' || c == ':' || white_space.find(c) != std::string_view::npos)) {
            return i;
        } else if (c == '}' || c == ']') {
            --open;
        }
    }
    return text.size();
}

// The text of a member's value within the valid text of an object: so numbers keep their digits, and members their
// order. Of several members with the same name, the last one is used, as by nlohmann_json.
std::string json_of(std::string_view object, std::string_view name) {
    std::string_view found = "null";
    const auto skip = [&](std::size_t from) {
        return std::min(object.find_first_not_of(white_space, from), object.size());
    };
    for (std::size_t at = skip(object.find('{') + 1); at < object.size() && object[at] == '"';) {
        const std::size_t key_end = end_of_value(object, at);
        const auto key = json::parse(object.substr(at, key_end - at)).get<std::string>();
        const std::size_t begin = skip(object.find(':', key_end) + 1), end = end_of_value(object, begin);
        if (key == name) found = object.substr(begin, end - begin);
        at = skip(end);
        if (at < object.size() && object[at] == ',') at = skip(at + 1);
    }
    return std::string(found);
}

std::string number_or_null(std::optional<std::uint16_t> value) { return value ? std::to_string(*value) : "null"; }

// A user's text, if it is JSON; otherwise throws.
const std::string& checked_json(const std::string& text, const char* what) {
    parsed(text, what, most_nested - 1);
    return text;
}

std::string quoted(const std::string& text, const char* what) {
    try {
        return json(text).dump();
    } catch (const json::exception& e) {
        refuse(what, e);  // not UTF-8
    }
}

}  // namespace

const char* to_string(service_type type) noexcept { return type_names[static_cast<std::size_t>(type)]; }

service_instance::service_instance() noexcept = default;

service_instance::service_instance(std::string name)
    : name_(std::move(name)),
      id_(new_protection_id()),
      registered_(std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now())) {}

std::optional<double> service_instance::payload_number(std::string_view key) const {
    try {
        const json object = parsed(payload_, "payload");
        if (!object.is_object()) return std::nullopt;
        const auto found = object.find(std::string(key));
        if (found == object.end() || !found->is_number()) return std::nullopt;
        return found->get<double>();
    } catch (const error&) {  // no JSON
        return std::nullopt;
    }
}

// By hand: keeps Curator's order of the fields, and texts that are JSON already.
std::string service_instance::to_json() const {
    require_name_and_id(name_, id_);
    std::string s = "{\"name\":" + quoted(name_, "name");
    s += ",\"id\":" + quoted(id_, "id");
    s += ",\"address\":" + (address_.empty() ? "null" : quoted(address_, "address"));
    s += ",\"port\":" + number_or_null(port_);
    s += ",\"sslPort\":" + number_or_null(ssl_port_);
    s += ",\"payload\":" + checked_json(payload_, "payload");
    s += ",\"registrationTimeUTC\":" + std::to_string(registered_.time_since_epoch().count());
    s += ",\"serviceType\":\"" + std::string(to_string(type_)) + '"';
    s += ",\"uriSpec\":" + checked_json(uri_spec_, "uri_spec");
    if (!enabled_) s += ",\"enabled\":false";
    return s + '}';
}

service_instance service_instance::from_json(std::string_view text) {
    const json o = parsed(text, "no instance");
    if (!o.is_object()) refuse("no object");
    service_instance s;
    s.name_ = text_of(o, "name");
    s.id_ = text_of(o, "id");
    s.address_ = text_of(o, "address");
    s.port_ = port_of(o, "port");
    s.ssl_port_ = port_of(o, "sslPort");
    s.payload_ = json_of(text, "payload");
    const auto time = integer_of(o, "registrationTimeUTC", std::numeric_limits<std::int64_t>::min(),
                                 std::numeric_limits<std::int64_t>::max());
    s.registered_ = std::chrono::sys_time<std::chrono::milliseconds>(std::chrono::milliseconds(time.value_or(0)));
    s.type_ = type_of(o);
    s.uri_spec_ = json_of(text, "uriSpec");
    if (const json* on = field(o, "enabled")) {
        if (!on->is_boolean()) refuse_field("enabled");
        s.enabled_ = on->get<bool>();
    }
    require_name_and_id(s.name_, s.id_);
    return s;
}

namespace {

using nlohmann::ordered_json;

[[noreturn]] void refuse_spec(std::string_view why) { throw error(errc::invalid_argument, "uri_spec", {}, why); }

std::string_view trimmed(std::string_view text) {
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

std::uint64_t service_view::version() const noexcept { return listing_ ? listing_->version : 0; }
bool service_view::current() const noexcept { return listing_ && listing_->current; }

void service_view::for_each(
    const std::function<void(const std::string& node, const service_instance& instance)>& f) const {
    if (!listing_) return;
    listing_->members.for_each([&](const discovery_detail::member_ptr& m) { f(m->node, m->instance); });
}

std::vector<service_instance> service_view::instances() const {
    std::vector<service_instance> all;
    if (listing_) all.reserve(listing_->members.size());
    for_each([&](const std::string&, const service_instance& instance) { all.push_back(instance); });
    return all;
}

std::vector<unreadable_instance> service_view::unreadable() const {
    return listing_ ? *listing_->unreadable : std::vector<unreadable_instance>();
}

}  // namespace zkasio
