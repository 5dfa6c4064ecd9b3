#include <zkasio/testing/detail/sim/sim_acl.hpp>

#include <asio/ip/network_v4.hpp>

#include <algorithm>
#include <string>

namespace zkasio::testing_detail {
namespace {

bool is_authenticated(const acl_id& one) { return one.scheme() != "ip"; }

// "10.0.0.1", which is a network of one address, or "10.0.0.0/8". Servers read the numbers as decimal ones, also "010".
std::optional<asio::ip::network_v4> network_of(const std::string& id) {
    std::string plain;
    bool begins = true;  // a number
    for (std::size_t i = 0; i < id.size(); ++i) {
        const bool digit_follows = i + 1 < id.size() && id[i + 1] >= '0' && id[i + 1] <= '9';
        if (begins && id[i] == '0' && digit_follows) continue;
        begins = id[i] == '.' || id[i] == '/';
        plain.push_back(id[i]);
    }
    asio::error_code failed;
    const bool one = plain.find('/') == std::string::npos;
    const asio::ip::network_v4 network = asio::ip::make_network_v4(one ? plain + "/32" : plain, failed);
    if (failed) return std::nullopt;
    return network.canonical();
}

bool is_valid(const acl_id& one) {
    if (one.scheme() == "world") return one.id() == "anyone";
    if (one.scheme() == "digest") {  // two parts, where empty ones at the end do not count: Java's String.split()
        const std::string id = one.id().substr(0, one.id().find_last_not_of(':') + 1);
        return std::count(id.begin(), id.end(), ':') == 1;
    }
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
    const auto keep = [&kept](const acl_entry& e) {  // servers drop entries that are there twice
        if (std::find(kept.begin(), kept.end(), e) == kept.end()) kept.push_back(e);
    };
    for (const acl_entry& e : given) {
        if (e.who().scheme() != "auth") {
            if (!is_valid(e.who())) return std::nullopt;
            keep(e);
            continue;
        }
        if (std::none_of(who.begin(), who.end(), is_authenticated)) return std::nullopt;
        for (const acl_id& one : who)
            if (is_authenticated(one)) keep(acl_entry(e.granted(), one));
    }
    if (kept.empty()) return std::nullopt;
    if (kept == open) return acl();
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
