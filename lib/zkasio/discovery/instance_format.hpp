#pragma once

#include <zkasio/discovery/service_instance.hpp>
#include <zkasio/export.hpp>

#include <functional>
#include <string>
#include <string_view>

namespace zkasio {

/// How the instances of a registry are written into the data of their nodes, and read from there:
/// registry_options::format(). By default in Curator's JSON.
///
/// A value. Its functions may be called on any thread, several at once.
class ZKASIO_EXPORT instance_format {
public:
    /// One child of a service's node.
    struct node {
        std::string_view service;  ///< the service: the name of the node above
        std::string_view name;
        std::string_view data;
    };
    /// Returns the instance that a node describes. An exception makes the node unreadable(), with what() as the reason.
    /// Called once for each state of a node. With registered({}), the same data give equal instances.
    using reader = std::function<service_instance(const node& of)>;
    /// Returns the data of the node of an instance. An exception is what announce() or update() fails with.
    using writer = std::function<std::string(const service_instance& is)>;

    /// Curator's: service_instance::to_json() and from_json().
    instance_format();
    /// Throws errc::invalid_argument if `read` is empty.
    /// @param write if empty, the instances can only be looked up: announce() fails with errc::invalid_argument.
    explicit instance_format(reader read, writer write = nullptr);

    /// Twitter's ServerSets, as Finagle and Aurora write them: a JSON object with "serviceEndpoint" ("host", "port"),
    /// "additionalEndpoints" and "status". enabled() means "ALIVE". The whole object is the payload(): so
    /// payload_number("shard") is the shard, and what a written payload has besides these fields is kept. Their nodes
    /// are called member_<number>: announce with an id() such as "member_0000000007", which no other member has. (With
    /// service_type::dynamic_sequential, the server appends the number, but the name begins with another id, `_c_...`:
    /// programs that look for names beginning with "member_" do not see such a node.)
    static instance_format server_sets();

    /// "<address>:<port>", or "[<address>]:<port>" for an IPv6 address: the data of a node, or, of a node without data,
    /// its name.
    static instance_format host_and_port();

    /// Throws what the reader throws.
    service_instance read(const node& of) const { return read_(of); }
    /// Throws what the writer throws.
    std::string write(const service_instance& is) const;

private:
    reader read_;
    writer write_;
};

}  // namespace zkasio
