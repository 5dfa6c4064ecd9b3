#include <zkasio/detail/handles/throw_error.hpp>

#include <asio/error.hpp>

namespace zkasio::detail {

void throw_if_failed(const reply& r, std::string_view operation, std::string_view path) {
    if (!r.code) return;
    if (r.hung_up_at > 0) throw error::hung_up_at(operation, path, r.hung_up_at, r.sent);
    const bool says_why = r.code == errc::not_connected || r.code == zk_errc::no_node ||
                          r.code == zk_errc::auth_failed || r.code == errc::too_many_ephemerals ||
                          r.code == asio::error::operation_aborted;
    std::string_view hint = says_why ? std::string_view(r.data) : "";
    if (operation == "create" && r.code == zk_errc::no_node && hint.empty())
        hint = "the parent does not exist: create it, or ask for create_options::parents()";
    if (r.code == zk_errc::not_read_only)
        hint = r.data.empty() ? std::string_view("wait for client::connected()") : std::string_view(r.data);
    if (r.code == zk_errc::no_auth) hint = "the ACL does not allow it to this client: see get_acl() and add_auth()";
    if (r.code == zk_errc::invalid_acl) hint = "an unknown scheme, a malformed id, or auth: without add_auth()";
    throw error(r.code, operation, path, hint, r.sent);
}

void throw_if_failed(const reply& r) {
    if (!r.code) return;
    if (!r.asked) return throw_if_failed(r, {}, {});
    throw_if_failed(r, operation_name(*r.asked), path_of(*r.asked));
}

const std::shared_ptr<core>& there(const std::shared_ptr<core>& c, std::string_view operation, std::string_view path) {
    if (!c) throw error(errc::invalid_argument, operation, path, "this object was moved from");
    return c;
}

}  // namespace zkasio::detail
