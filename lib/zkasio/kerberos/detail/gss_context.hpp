#pragma once

#include <gssapi/gssapi.h>

#include <string>
#include <string_view>

namespace zkasio::detail {

/// The client's side of one Kerberos login. Functions throw std::runtime_error with the library's text, which contains
/// names, and never a token or a key. begin() and the first go_on() may wait for a KDC.
class gss_context {
public:
    /// @param principal of the server: "zookeeper/zk1", "zookeeper/zk1@REALM"
    explicit gss_context(const std::string& principal);
    ~gss_context();
    gss_context(const gss_context&) = delete;
    gss_context& operator=(const gss_context&) = delete;

    /// The token that answers the server's, empty at first. Until is_established().
    std::string go_on(std::string_view token);
    bool is_established() const noexcept { return is_established_; }

    /// What the server has wrapped.
    std::string unwrap(std::string_view token);
    std::string wrap(std::string_view text);

private:
    gss_name_t server_ = GSS_C_NO_NAME;
    gss_ctx_id_t context_ = GSS_C_NO_CONTEXT;
    bool is_established_ = false;
};

/// The answer to what a server offers behind the context (RFC 4752, 3.1): no layer, and no other identity. Throws
/// std::runtime_error if the server demands a layer.
std::string chosen_layer(std::string_view offered);

}  // namespace zkasio::detail
