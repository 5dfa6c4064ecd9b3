#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/export.hpp>
#include <zkasio/sasl_mechanism.hpp>

#include <asio/any_io_executor.hpp>

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace zkasio {

/// For which servers a client asks for tickets: `zookeeper/<host>@<default realm>`, unless set otherwise. Every setter
/// returns the object.
class kerberos_options {
public:
    using host_function = std::function<std::string(const sasl_server&)>;

    /// ("zookeeper") The first part of the servers' principal.
    kerberos_options& service(std::string name) { service_ = std::move(name); return *this; }
    /// One host for all servers, instead of their names in the list of servers. "host@REALM" names the realm, too.
    kerberos_options& host(std::string name) {
        host_ = [name = std::move(name)](const sasl_server&) { return name; };
        return *this;
    }
    /// The same for each server. @param f called on kerberos()'s executor, before each login.
    kerberos_options& host(host_function f) { host_ = std::move(f); return *this; }

    const std::string& service() const noexcept { return service_; }
    const host_function& host() const noexcept { return host_; }  ///< empty: the name in the list of servers

private:
    std::string service_ = "zookeeper";
    host_function host_;
};

/// SASL's GSSAPI with Kerberos 5 (RFC 4752): `client_options("zk1.example.com:2181").sasl(kerberos(threads))`. Needs
/// the CMake target zkasio::kerberos (the component `kerberos` of the installed package), which adds MIT's
/// libgssapi_krb5.
///
/// The client is who the ticket is for that is in the default credential cache ($KRB5CCNAME; kinit), or in the default
/// client keytab ($KRB5_CLIENT_KTNAME), with which the library gets and renews tickets by itself. The servers have to
/// prove who they are. Their names are taken from the list of servers as they are: the DNS is not asked for others.
/// Nothing of the connection is encrypted after the login: see client_options::tls().
/// @param blocking where the library may wait for a KDC that does not answer, for many seconds: a thread pool, not the
/// client's event loop. Each client occupies one thread at most. It has to exist until all clients with this mechanism
/// are closed; destroying a thread pool waits for the library.
/// *Throws* zkasio::error, errc::invalid_argument, if `blocking` is empty, or the service is.
ZKASIO_EXPORT std::shared_ptr<const sasl_mechanism> kerberos(asio::any_io_executor blocking,
                                                             kerberos_options options = {});

}  // namespace zkasio
