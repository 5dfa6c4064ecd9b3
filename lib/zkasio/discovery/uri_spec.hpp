#pragma once

#include <zkasio/discovery/service_instance.hpp>
#include <zkasio/export.hpp>

#include <map>
#include <string>
#include <string_view>

namespace zkasio {

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

}  // namespace zkasio
