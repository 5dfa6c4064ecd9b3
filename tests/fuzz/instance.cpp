// The JSON of a service instance, and the UriSpec in it, as any program of any language may have written them.
#include "fuzz/fuzz.hpp"

#include <zkasio/discovery/service_instance.hpp>
#include <zkasio/error.hpp>

namespace {

using namespace zkasio::fuzz;
using zkasio::service_instance;

bool is_same(const service_instance& a, const service_instance& b) {
    return a.name() == b.name() && a.id() == b.id() && a.address() == b.address() && a.port() == b.port() &&
           a.ssl_port() == b.ssl_port() && a.payload() == b.payload() && a.registered() == b.registered() &&
           a.type() == b.type() && a.uri_spec() == b.uri_spec() && a.enabled() == b.enabled();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text = view(data, size);
    const auto documented = [](const zkasio::error& e) {
        require(e.code() == zkasio::errc::invalid_argument, "only invalid_argument is documented", e.what());
    };
    service_instance with_spec{"orders"};
    try {
        with_spec.uri_spec(zkasio::uri_spec_of(text));
    } catch (const zkasio::error& e) {
        documented(e);
    }
    static_cast<void>(zkasio::uri_of(with_spec));  // must not throw
    // Whatever is in the setters, to_json() refuses it or writes what is read again.
    std::string_view rest = text;
    service_instance made{std::string(take_line(rest))};
    made.address(std::string(take_line(rest))).payload(std::string(take_line(rest))).uri_spec(std::string(rest));
    try {
        const service_instance again = service_instance::from_json(made.to_json());
        // White space around a text of JSON is not kept.
        require(made.payload().find(again.payload()) != std::string::npos, "a payload is read again", text);
        require(made.uri_spec().find(again.uri_spec()) != std::string::npos, "a UriSpec is read again", text);
        made.payload(again.payload()).uri_spec(again.uri_spec());
        require(is_same(again, made), "what is written is read again", text);
    } catch (const zkasio::error& e) {
        documented(e);
    }
    static_cast<void>(made.payload_number("weight"));

    service_instance read{std::string()};
    try {
        read = service_instance::from_json(text);
    } catch (const zkasio::error& e) {
        documented(e);
        return 0;
    }
    static_cast<void>(read.payload_number("weight"));
    try {
        static_cast<void>(zkasio::uri_of(read));
    } catch (const zkasio::error& e) {
        documented(e);
    }
    const std::string printed = read.to_json();  // must not throw
    const service_instance again = service_instance::from_json(printed);
    require(is_same(read, again), "what is accepted can be written, and read again", text);
    require(again.to_json() == printed, "in the same words", text);
    return 0;
}
