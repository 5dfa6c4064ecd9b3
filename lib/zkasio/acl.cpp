#include <zkasio/acl.hpp>

#include <zkasio/detail/base/sha1.hpp>

namespace zkasio {

acl_id anyone() { return {"world", "anyone"}; }
acl_id authenticated() { return {"auth", ""}; }
acl_id digest_user(std::string_view user, std::string_view password) { return {"digest", digest_id(user, password)}; }
acl_id ip_address(std::string address_or_cidr) { return {"ip", std::move(address_or_cidr)}; }
acl_id x509_subject(std::string distinguished_name) { return {"x509", std::move(distinguished_name)}; }

acl_id sasl_user(std::string name) { return {"sasl", std::move(name)}; }

std::string digest_id(std::string_view user, std::string_view password) {
    std::string secret(user);
    secret += ':';
    secret += password;
    return std::string(user) + ':' + detail::base64(detail::sha1(secret));
}

acl default_acl() { return {acl_entry{permission::all, acl_id{"zkasio", "default"}}}; }
acl open_acl() { return {acl_entry{permission::all, anyone()}}; }
acl creator_all_acl() { return {acl_entry{permission::all, authenticated()}}; }
acl creator_digest_acl(std::string_view user, std::string_view password) {
    return {acl_entry{permission::all, digest_user(user, password)}};
}
acl read_only_acl() { return {acl_entry{permission::read, anyone()}}; }

}  // namespace zkasio
