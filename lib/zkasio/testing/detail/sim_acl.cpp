#include <zkasio/testing/detail/sim_acl.hpp>

#include <algorithm>
#include <string>

namespace zkasio::testing_detail {
namespace {

bool is_authenticated(const acl_id& one) { return one.scheme() != "ip"; }

bool is_valid(const acl_id& one) {
    if (one.scheme() == "world") return one.id() == "anyone";
    if (one.scheme() == "digest") return std::count(one.id().begin(), one.id().end(), ':') == 1;
    return one.scheme() == "ip" && !one.id().empty();
}

}  // namespace

bool permits(const acl& entries, permission wanted, const identities& who) {
    if (entries.empty() || wanted == permission::none) return true;
    return std::any_of(entries.begin(), entries.end(), [&](const acl_entry& e) {
        if ((e.granted() & wanted) == permission::none) return false;
        return e.who() == anyone() || std::find(who.begin(), who.end(), e.who()) != who.end();
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
