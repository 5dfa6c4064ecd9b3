#include <zkasio/testing/detail/sim/sim_acl.hpp>

#include <asio/ip/network_v4.hpp>

#include <algorithm>
#include <string>

namespace zkasio::testing_detail {
namespace {

bool is_authenticated(const acl_id& one) { return one.scheme() != "ip"; }

// "10.0.0.1", which is a network of one address, or "10.0.0.0/8".
std::optional<asio::ip::network_v4> network_of(const std::string& id) {
    asio::error_code failed;
    const bool one = id.find('/') == std::string::npos;
    const asio::ip::network_v4 network = asio::ip::make_network_v4(one ? id + "/32" : id, failed);
    if (failed) return std::nullopt;
    return network.canonical();
}

bool is_valid(const acl_id& one) {
    if (one.scheme() == "world") return one.id() == "anyone";
    if (one.scheme() == "digest") return std::count(one.id().begin(), one.id().end(), ':') == 1;
    return one.scheme() == "ip" && network_of(one.id());
}

bool covers(const acl_id& entry, const acl_id& who) {
    if (entry.scheme() != "ip" || who.scheme() != "ip") return entry == who;
    const auto network = network_of(entry.id()), address = network_of(who.id());
    return network && address && (*network == *address || address->is_subnet_of(*network));
}

}  // namespace

bool permits(const acl& entries, permission wanted, const identities& who) {
    if (entries.empty() || wanted == permission::none) return true;
    return std::any_of(entries.begin(), entries.end(), [&](const acl_entry& e) {
        if ((e.granted() & wanted) == permission::none) return false;
        if (e.who() == anyone()) return true;
        return std::any_of(who.begin(), who.end(), [&](const acl_id& one) { return covers(e.who(), one); });
    });
}

std::optional<acl> as_kept(const acl& given, const identities& who) {
    static const acl open = open_acl();
    if (given == open) return acl();
    acl kept;
    for (const acl_entry& e : given) {
        if (e.who().scheme() != "auth") {
            if (!is_valid(e.who())) return std::nullopt;
            kept.push_back(e);
            continue;
        }
        const std::size_t before = kept.size();
        for (const acl_id& one : who)
            if (is_authenticated(one)) kept.emplace_back(e.granted(), one);
        if (kept.size() == before) return std::nullopt;
    }
    if (kept.empty()) return std::nullopt;
    return kept;
}

acl as_shown(const acl& kept, bool secrets) {
    if (kept.empty()) return open_acl();
    if (secrets) return kept;
    acl shown;
    for (const acl_entry& e : kept) {
        const std::string& id = e.who().id();
        if (e.who().scheme() == "digest")
            shown.emplace_back(e.granted(), acl_id("digest", id.substr(0, id.find(':')) + ":x"));
        else
            shown.push_back(e);
    }
    return shown;
}

}  // namespace zkasio::testing_detail
