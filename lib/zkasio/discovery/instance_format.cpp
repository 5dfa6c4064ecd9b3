#include <zkasio/discovery/instance_format.hpp>

#include <zkasio/config/json.hpp>
#include <zkasio/error.hpp>

#include <nlohmann/json.hpp>

#include <charconv>
#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <utility>

namespace zkasio {
namespace {

using nlohmann::json;

constexpr std::size_t deepest_nested = 100;

[[noreturn]] void refuse_instance(const std::string& why) {
    throw error(errc::invalid_argument, "instance_format", {}, why);
}

service_instance instance_at(const instance_format::node& of, std::string address, std::uint16_t port) {
    service_instance is{std::string(of.service)};
    is.id(std::string(of.name)).address(std::move(address)).port(port).registered({});
    return is;
}

void require_address(const service_instance& is) {
    if (is.address().empty() || !is.port()) refuse_instance("an instance needs an address and a port in this format");
}

// -------------------------------------------------------------------------------------------------- ServerSets

json parsed_object(std::string_view text) {
    json all;
    try {
        all = parse_json(text, deepest_nested);
    } catch (const std::exception&) {  // the message of nlohmann_json may cite the whole text
        refuse_instance("the data are not JSON");
    }
    if (!all.is_object()) refuse_instance("the data are no JSON object");
    return all;
}

service_instance read_member(const instance_format::node& of) {
    const json all = parsed_object(of.data);
    const auto endpoint = all.find("serviceEndpoint");
    if (endpoint == all.end() || !endpoint->is_object()) refuse_instance("there is no \"serviceEndpoint\"");
    const auto host = endpoint->find("host"), port = endpoint->find("port");
    if (host == endpoint->end() || !host->is_string()) refuse_instance("there is no \"host\"");
    const bool is_port = port != endpoint->end() && port->is_number_unsigned() && port->get<std::uint64_t>() <= 65535;
    if (!is_port) refuse_instance("there is no \"port\" from 0 to 65535");
    const auto status = all.find("status");
    service_instance is = instance_at(of, host->get<std::string>(), port->get<std::uint16_t>());
    // Of the members that came first, none has a status.
    return is.enabled(status == all.end() || *status == "ALIVE").payload(std::string(of.data));
}

std::string written_member(const service_instance& is) {
    require_address(is);
    json all = is.payload() == "null" ? json::object() : parsed_object(is.payload());
    if (!all.contains("additionalEndpoints")) all["additionalEndpoints"] = json::object();
    all["serviceEndpoint"] = {{"host", is.address()}, {"port", *is.port()}};
    all["status"] = is.enabled() ? "ALIVE" : "STOPPING";
    try {
        return all.dump();
    } catch (const json::exception&) {
        refuse_instance("a text is not UTF-8");
    }
}

// ------------------------------------------------------------------------------------------------- host and port

service_instance read_host_and_port(const instance_format::node& of) {
    std::string_view text = of.data.empty() ? of.name : of.data;
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.remove_suffix(1);
    const auto colon = text.rfind(':');
    std::uint16_t port = 0;
    const char* const end = text.data() + text.size();
    const char* const digits = colon == text.npos ? end : text.data() + colon + 1;
    const auto number = std::from_chars(digits, end, port);
    std::string_view host = text.substr(0, std::min(colon, text.size()));
    const bool has_brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
    if (has_brackets) host = host.substr(1, host.size() - 2);
    const bool is_host = !host.empty() && (has_brackets || host.find_first_of(":[]") == host.npos);
    if (digits == end || number.ec != std::errc() || number.ptr != end || !is_host)
        refuse_instance("this is no \"<address>:<port>\"");
    return instance_at(of, std::string(host), port);
}

std::string written_host_and_port(const service_instance& is) {
    require_address(is);
    const bool is_v6 = is.address().find(':') != std::string::npos;
    return (is_v6 ? '[' + is.address() + ']' : is.address()) + ':' + std::to_string(*is.port());
}

service_instance read_curators(const instance_format::node& of) { return service_instance::from_json(of.data); }
std::string written_for_curator(const service_instance& is) { return is.to_json(); }

}  // namespace

instance_format::instance_format() : instance_format(read_curators, written_for_curator) {}

instance_format::instance_format(reader read, writer write) : read_(std::move(read)), write_(std::move(write)) {
    if (!read_) refuse_instance("the reader is empty");
}

instance_format instance_format::server_sets() { return instance_format(read_member, written_member); }
instance_format instance_format::host_and_port() { return instance_format(read_host_and_port, written_host_and_port); }

std::string instance_format::write(const service_instance& is) const {
    if (!write_) refuse_instance("this format has no writer: instances can only be looked up");
    return write_(is);
}

}  // namespace zkasio
