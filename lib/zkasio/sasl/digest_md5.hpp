#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/export.hpp>
#include <zkasio/sasl_mechanism.hpp>

#include <asio/any_io_executor.hpp>

#include <functional>
#include <memory>
#include <string>

namespace zkasio {

/// SASL's DIGEST-MD5 (RFC 2831) as ZooKeeper's servers offer it, for the users in the section `Server` of their JAAS
/// configuration: `client_options("zk1:2181").sasl(digest_md5("alice", "wonder"))`. Needs the CMake target zkasio::sasl
/// (the component `sasl` of the installed package), which adds OpenSSL's libcrypto.
///
/// The password is not sent, and the server has to prove that it knows it: one that does not is left. But nothing of
/// the connection is encrypted or protected after that, and MD5 is weak: whoever reads the login can try passwords.
/// Use it with client_options::tls().
///
/// *Throws* zkasio::error, errc::invalid_argument, for an empty user or one with a NUL.
/// @param user UTF-8, and so is the password.
ZKASIO_EXPORT std::shared_ptr<const sasl_mechanism> digest_md5(std::string user, std::string password);

/// The same, with a password that may change. It has to be known to one of the servers at least: when all have refused
/// a login since the last connection, no other is made, see client_options::sasl().
/// @param password called for each connection; concurrently, if several clients share the mechanism. An exception ends
/// the attempt to connect, and its text is told as the reason.
/// @param where `password` is called; empty: as part of the client, which does nothing else meanwhile.
ZKASIO_EXPORT std::shared_ptr<const sasl_mechanism> digest_md5(std::string user,
                                                               std::function<std::string()> password,
                                                               asio::any_io_executor where = {});

}  // namespace zkasio
