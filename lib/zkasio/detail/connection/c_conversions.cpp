#include <zkasio/detail/connection/c_conversions.hpp>

#include <zkasio/error.hpp>

#include <algorithm>

namespace zkasio::detail {

std::error_code to_code(int rc) {
    if (rc == ZOK) return {};
    if (rc == ZSESSIONEXPIRED) return errc::session_expired;
    if (rc == ZCLOSING) return errc::client_closed;
    return static_cast<zk_errc>(rc);
}

bool outcome_unknown(int rc) { return make_error_code(static_cast<zk_errc>(rc)) == condition::outcome_unknown; }

node_stat to_stat(const ::Stat& s) {
    node_stat r;
    r.czxid = s.czxid;
    r.mzxid = s.mzxid;
    r.pzxid = s.pzxid;
    r.ctime = s.ctime;
    r.mtime = s.mtime;
    r.ephemeral_owner = s.ephemeralOwner;
    r.version = s.version;
    r.cversion = s.cversion;
    r.aversion = s.aversion;
    r.data_length = s.dataLength;
    r.num_children = s.numChildren;
    return r;
}

int to_flags(create_mode m) {
    switch (m) {
        case create_mode::persistent: return ZOO_PERSISTENT;
        case create_mode::ephemeral: return ZOO_EPHEMERAL;
        case create_mode::persistent_sequential: return ZOO_PERSISTENT_SEQUENTIAL;
        case create_mode::ephemeral_sequential: return ZOO_EPHEMERAL_SEQUENTIAL;
        case create_mode::container: return ZOO_CONTAINER;
        case create_mode::persistent_ttl: return ZOO_PERSISTENT_WITH_TTL;
        case create_mode::persistent_sequential_ttl: return ZOO_PERSISTENT_SEQUENTIAL_WITH_TTL;
    }
    return ZOO_PERSISTENT;
}

std::optional<acl> to_acl(const ACL_vector& v) {
    acl result;
    for (int32_t i = 0; i < v.count; ++i) {
        const ::Id* const who = v.data ? &v.data[i].id : nullptr;
        if (!who || !who->scheme || !who->id) return std::nullopt;
        result.emplace_back(static_cast<permission>(v.data[i].perms), acl_id(who->scheme, who->id));
    }
    return result;
}

// A vector that is null on the wire has the count -1.
std::optional<std::vector<std::string>> to_names(const String_vector& v) {
    std::vector<std::string> result;
    for (int32_t i = 0; i < v.count; ++i) {
        if (!v.data || !v.data[i]) return std::nullopt;
        result.emplace_back(v.data[i]);
    }
    return result;
}

}  // namespace zkasio::detail
