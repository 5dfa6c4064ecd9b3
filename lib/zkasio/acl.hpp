#pragma once

#include <zkasio/export.hpp>

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zkasio {

/// Permissions of an ACL entry; combine with `|`.
enum class permission : std::int32_t {
    none = 0,
    read = 1,    ///< read the data, list the children
    write = 2,   ///< change the data
    create = 4,  ///< create children
    remove = 8,  ///< remove children
    admin = 16,  ///< change the ACL
    all = 31,
};

constexpr permission operator|(permission a, permission b) noexcept {
    return static_cast<permission>(static_cast<std::int32_t>(a) | static_cast<std::int32_t>(b));
}
constexpr permission operator&(permission a, permission b) noexcept {
    return static_cast<permission>(static_cast<std::int32_t>(a) & static_cast<std::int32_t>(b));
}

/// The clients to which an ACL entry grants its permissions. Use the functions below rather than spelling schemes.
class acl_id {
public:
    acl_id(std::string scheme, std::string id) : scheme_(std::move(scheme)), id_(std::move(id)) {}
    const std::string& scheme() const noexcept { return scheme_; }
    const std::string& id() const noexcept { return id_; }
    friend bool operator==(const acl_id&, const acl_id&) = default;

private:
    std::string scheme_, id_;
};

ZKASIO_EXPORT acl_id anyone();         ///< world:anyone
ZKASIO_EXPORT acl_id authenticated();  ///< auth: the identities that this session has authenticated as
/// digest: hashes the password, see digest_id()
ZKASIO_EXPORT acl_id digest_user(std::string_view user, std::string_view password);
ZKASIO_EXPORT acl_id ip_address(std::string address_or_cidr);       ///< ip: "10.0.0.7" or "10.0.0.0/8"
ZKASIO_EXPORT acl_id x509_subject(std::string distinguished_name);  ///< x509: subject of a client certificate
/// sasl: the user of client_options::sasl(): of Kerberos, what the servers make of the principal.
ZKASIO_EXPORT acl_id sasl_user(std::string name);

/// "user:base64(sha1(user:password))", as ZooKeeper's DigestAuthenticationProvider stores it.
ZKASIO_EXPORT std::string digest_id(std::string_view user, std::string_view password);

class acl_entry {
public:
    acl_entry(permission granted, acl_id who) : granted_(granted), who_(std::move(who)) {}
    permission granted() const noexcept { return granted_; }
    const acl_id& who() const noexcept { return who_; }
    friend bool operator==(const acl_entry&, const acl_entry&) = default;

private:
    permission granted_;
    acl_id who_;
};

using acl = std::vector<acl_entry>;

/// The ACL with these entries: `zk.set_acl(path, acl_of(acl_entry(permission::read, anyone())))`. Within a co_await
/// expression, g++ 12 does not compile a list in braces instead, see coroutine_safety.hpp.
template <std::same_as<acl_entry>... More>
acl acl_of(acl_entry first, More... more) {
    acl entries;
    entries.reserve(1 + sizeof...(more));
    entries.push_back(std::move(first));
    (entries.push_back(std::move(more)), ...);
    return entries;
}

/// Stands for client_options::default_acl() of the client that creates the node or sets its ACL, alone or among other
/// entries. All options begin with it. No server knows it.
ZKASIO_EXPORT acl default_acl();
ZKASIO_EXPORT acl open_acl();         ///< every client may do everything (ZooKeeper's default)
/// Every identity that the creating session has at this moment may do everything; needs `add_auth` first.
/// *Danger*: a client that shows a TLS certificate has the certificate's subject as another identity, and so the node
/// is open to all that show the same certificate, whatever their password. Use creator_digest_acl() there.
ZKASIO_EXPORT acl creator_all_acl();
/// This user with this password may do everything, and nobody else: exactly one identity, also through TLS. A client
/// needs `client_options::auth("digest", "user:password")` to use such a node; to create it, not.
ZKASIO_EXPORT acl creator_digest_acl(std::string_view user, std::string_view password);
ZKASIO_EXPORT acl read_only_acl();    ///< every client may read

}  // namespace zkasio
