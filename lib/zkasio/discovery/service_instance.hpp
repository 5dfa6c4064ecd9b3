#pragma once

#include <zkasio/export.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zkasio {

/// How long the node of a service_instance lives, as in Curator's ServiceType. An announcement that is withdrawn or
/// destroyed removes the node in any case: the types differ in what is left when the process or its session dies. A
/// node that is to outlive a process that ends in order is written as any other node, see to_json().
enum class service_type {
    dynamic,             ///< the servers remove the node when the session ends
    fixed,               ///< "STATIC": the node stays until it is removed, or announced again and withdrawn
    permanent,           ///< as fixed
    dynamic_sequential,  ///< as dynamic; and the server appends a number to the name of the node
};
ZKASIO_EXPORT const char* to_string(service_type type) noexcept;

/// One process that offers a service, and where to reach it: Curator's ServiceInstance, written in the same format.
///
/// A value. The setters do not check their arguments: to_json() does.
class ZKASIO_EXPORT service_instance {
public:
    /// An instance of this service, with a random id (a UUID), registered now.
    /// @param name of the service. The name and the id are names of nodes.
    explicit service_instance(std::string name);

    service_instance& id(std::string s) { id_ = std::move(s); return *this; }
    service_instance& address(std::string s) { address_ = std::move(s); return *this; }
    service_instance& port(std::optional<std::uint16_t> p) { port_ = p; return *this; }
    service_instance& ssl_port(std::optional<std::uint16_t> p) { ssl_port_ = p; return *this; }
    /// Further information for clients: a text of JSON ("null"). A Java program that reads an object here gets a Map,
    /// unless the object's "@class" names another type. For Java programs, an array has to have the form
    /// ["java.util.ArrayList", [1, 2]].
    service_instance& payload(std::string json) { payload_ = std::move(json); return *this; }
    service_instance& registered(std::chrono::sys_time<std::chrono::milliseconds> t) { registered_ = t; return *this; }
    service_instance& type(service_type t) { type_ = t; return *this; }
    /// Curator's UriSpec, a text of JSON ("null"): kept unchanged. See uri_spec_of() and uri_of().
    service_instance& uri_spec(std::string json) { uri_spec_ = std::move(json); return *this; }
    /// False: clients are not to use the instance, for now.
    service_instance& enabled(bool on) { enabled_ = on; return *this; }

    const std::string& name() const noexcept { return name_; }
    const std::string& id() const noexcept { return id_; }
    const std::string& address() const noexcept { return address_; }
    std::optional<std::uint16_t> port() const noexcept { return port_; }
    std::optional<std::uint16_t> ssl_port() const noexcept { return ssl_port_; }
    const std::string& payload() const noexcept { return payload_; }
    std::chrono::sys_time<std::chrono::milliseconds> registered() const noexcept { return registered_; }
    service_type type() const noexcept { return type_; }
    const std::string& uri_spec() const noexcept { return uri_spec_; }
    bool enabled() const noexcept { return enabled_; }

    /// The number under this key in a payload that is a JSON object. Nothing if there is no such number, or if the
    /// payload is not JSON.
    std::optional<double> payload_number(std::string_view key) const;

    /// The text that Curator's JsonInstanceSerializer writes. The field "enabled" is written only if it is false:
    /// Curator's default does not write the field, and takes a missing field for true.
    /// Throws errc::invalid_argument for an empty name or id, for a payload or a uri_spec() that is not JSON, and for
    /// texts that are not UTF-8.
    std::string to_json() const;

    /// The instance that the text describes. Other missing fields than the name and the id are empty; further fields,
    /// and a wrong "@class", are ignored. payload() and uri_spec() are kept as in the text, digit by digit.
    /// Throws errc::invalid_argument if the text is no instance: no JSON or no object, an object without a name or
    /// without an id, a field of another type, a port above 65535, an unknown service type, values nested in more than
    /// 100 others.
    static service_instance from_json(std::string_view text);

    friend bool operator==(const service_instance&, const service_instance&) = default;

private:
    service_instance() noexcept;  // all fields are empty

    std::string name_, id_, address_;
    std::optional<std::uint16_t> port_, ssl_port_;
    std::string payload_ = "null", uri_spec_ = "null";
    std::chrono::sys_time<std::chrono::milliseconds> registered_{};
    service_type type_ = service_type::dynamic;
    bool enabled_ = true;
};

/// Curator's UriSpec of a text such as "{scheme}://{address}:{port}/{path}", in the JSON that
/// service_instance::uri_spec() takes. Throws errc::invalid_argument for braces that do not match, and for a text that
/// is not UTF-8.
ZKASIO_EXPORT std::string uri_spec_of(std::string_view text);

/// The address of an instance by its uri_spec(); "" for an instance without one. As Curator's UriSpec.build(), replaces
/// {name}, {id}, {address}, {port}, {ssl-port}, {registration-time-utc} (milliseconds), {service-type} ("dynamic"), and
/// {scheme}: "https" for an instance with an ssl_port(), else "http". "{[}" and "{]}" are braces. A field that nothing
/// is known of becomes "".
/// Throws errc::invalid_argument for a uri_spec() that is no UriSpec.
/// @param fields further fields, and values that replace those of the instance.
ZKASIO_EXPORT std::string uri_of(const service_instance& is, const std::map<std::string, std::string>& fields = {});

namespace discovery_detail {
struct listing;
struct make_service_view;
}  // namespace discovery_detail

/// A node among the instances of a service that is no instance: its name, and why it cannot be used. The name is "" for
/// the directory of the service, if its ACL does not let this client list the directory.
struct unreadable_instance {
    std::string node, why;
};

/// The instances of a service at some moment. Never changes, is cheap to copy, and may be used on any thread. Each
/// instance is the one that its node describes, under the name of the node: as for Curator, a different name or id
/// within the data does not matter.
class ZKASIO_EXPORT service_view {
public:
    /// A view of nothing.
    service_view() noexcept = default;

    /// Rises with each change; 0 in a view of nothing.
    std::uint64_t version() const noexcept;
    /// Whether the view is known to match the servers: there is a connection, and all was read since that connection
    /// began.
    bool current() const noexcept;

    /// The readable instances, in the order of the names of their nodes; also those that provider::pick() leaves out.
    std::vector<service_instance> instances() const;
    /// Calls `f(node, instance)` for each of these instances.
    void for_each(const std::function<void(const std::string& node, const service_instance& instance)>& f) const;
    std::vector<unreadable_instance> unreadable() const;

private:
    friend struct discovery_detail::make_service_view;
    explicit service_view(std::shared_ptr<const discovery_detail::listing> l) noexcept : listing_(std::move(l)) {}
    std::shared_ptr<const discovery_detail::listing> listing_;
};

}  // namespace zkasio
