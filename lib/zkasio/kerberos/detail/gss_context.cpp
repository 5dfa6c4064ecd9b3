#include <zkasio/kerberos/detail/gss_context.hpp>

#include <gssapi/gssapi_krb5.h>

#include <stdexcept>

namespace zkasio::detail {
namespace {

class gss_buffer {
public:
    gss_buffer() = default;
    ~gss_buffer() {
        OM_uint32 ignored = 0;
        ::gss_release_buffer(&ignored, &buffer_);
    }
    gss_buffer(const gss_buffer&) = delete;
    gss_buffer& operator=(const gss_buffer&) = delete;
    gss_buffer_t get() noexcept { return &buffer_; }
    std::string text() const { return {static_cast<const char*>(buffer_.value), buffer_.length}; }

private:
    gss_buffer_desc buffer_ = GSS_C_EMPTY_BUFFER;
};

// The library only reads it.
gss_buffer_desc view_of(std::string_view text) noexcept { return {text.size(), const_cast<char*>(text.data())}; }

void append_status(std::string& text, OM_uint32 status, int kind) {
    OM_uint32 more = 0;
    do {
        OM_uint32 minor = 0;
        gss_buffer line;
        if (GSS_ERROR(::gss_display_status(&minor, status, kind, gss_mech_krb5, &more, line.get()))) return;
        if (line.text().empty()) continue;
        text += (text.empty() ? "" : ": ") + line.text();
    } while (more != 0);
}

void check(OM_uint32 major, OM_uint32 minor) {
    if (!GSS_ERROR(major)) return;
    std::string text = "Kerberos";
    append_status(text, major, GSS_C_GSS_CODE);
    if (minor != 0) append_status(text, minor, GSS_C_MECH_CODE);
    throw std::runtime_error(text);
}

}  // namespace

gss_context::gss_context(const std::string& principal) {
    gss_buffer_desc name = view_of(principal);
    OM_uint32 minor = 0;
    const OM_uint32 major =
        ::gss_import_name(&minor, &name, const_cast<gss_OID>(GSS_KRB5_NT_PRINCIPAL_NAME), &server_);
    check(major, minor);
}

gss_context::~gss_context() {
    OM_uint32 ignored = 0;
    if (context_ != GSS_C_NO_CONTEXT) ::gss_delete_sec_context(&ignored, &context_, GSS_C_NO_BUFFER);
    if (server_ != GSS_C_NO_NAME) ::gss_release_name(&ignored, &server_);
}

std::string gss_context::go_on(std::string_view token) {
    constexpr OM_uint32 wanted = GSS_C_MUTUAL_FLAG | GSS_C_SEQUENCE_FLAG | GSS_C_INTEG_FLAG;
    gss_buffer_desc in = view_of(token);
    gss_buffer out;
    OM_uint32 minor = 0, granted = 0;
    const OM_uint32 major = ::gss_init_sec_context(
        &minor, GSS_C_NO_CREDENTIAL, &context_, server_, const_cast<gss_OID>(gss_mech_krb5), wanted, 0,
        GSS_C_NO_CHANNEL_BINDINGS, token.empty() ? GSS_C_NO_BUFFER : &in, nullptr, out.get(), &granted, nullptr);
    check(major, minor);
    is_established_ = (major & GSS_S_CONTINUE_NEEDED) == 0;
    if (is_established_ && (granted & wanted) != wanted)
        throw std::runtime_error("Kerberos: the server has not proved who it is");
    return out.text();
}

std::string gss_context::unwrap(std::string_view token) {
    gss_buffer_desc in = view_of(token);
    gss_buffer out;
    OM_uint32 minor = 0;
    check(::gss_unwrap(&minor, context_, &in, out.get(), nullptr, nullptr), minor);
    return out.text();
}

std::string gss_context::wrap(std::string_view text) {
    gss_buffer_desc in = view_of(text);
    gss_buffer out;
    OM_uint32 minor = 0;
    constexpr int not_encrypted = 0;
    check(::gss_wrap(&minor, context_, not_encrypted, GSS_C_QOP_DEFAULT, &in, nullptr, out.get()), minor);
    return out.text();
}

std::string chosen_layer(std::string_view offered) {
    constexpr char no_layer = 1;
    if (offered.size() != 4) throw std::runtime_error("Kerberos: the server's offer of layers is malformed");
    if ((offered[0] & no_layer) == 0)
        throw std::runtime_error("Kerberos: the server demands more than authentication (qop)");
    return {no_layer, 0, 0, 0};
}

}  // namespace zkasio::detail
