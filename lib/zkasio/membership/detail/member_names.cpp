#include <zkasio/membership/detail/member_names.hpp>

#include <zkasio/path.hpp>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace zkasio::membership_detail {
namespace {

constexpr std::string_view party_marker = "__party__";

}  // namespace

std::string member_name(group_names names, std::string_view id, std::string_view unique) {
    switch (names) {
        case group_names::curator: break;
        case group_names::kazoo_party: return std::string(unique).append(party_marker);
        case group_names::kazoo_shallow_party:
        case group_names::kazoo_shallow_party_with_data: return std::string(unique).append("-").append(id);
    }
    return std::string(id);
}

std::string member_data(group_names names, std::string_view id, std::string data) {
    return has_member_data(names) ? std::move(data) : std::string(id);
}

std::optional<member_info> member_of(group_names names, std::string_view name, std::string_view data) {
    member_info member;
    switch (names) {
        case group_names::curator:
            member.id = name;
            member.data = data;
            break;
        case group_names::kazoo_party:
            if (name.find(party_marker) == std::string_view::npos) return std::nullopt;
            member.id = data;
            break;
        case group_names::kazoo_shallow_party_with_data: member.data = data; [[fallthrough]];
        case group_names::kazoo_shallow_party:
            member.id = name.substr(name.find('-') + 1);  // without a '-': all of it, as kazoo does
            break;
    }
    return member;
}

namespace {

bool is_before(const member_info& a, const member_info& b) noexcept {
    return std::tie(a.id, a.path) < std::tie(b.id, b.path);
}

std::optional<member_info> member_at(group_names names, const std::string& path, const cached_node& node) {
    if (!node) return std::nullopt;
    std::optional<member_info> member = member_of(names, node_name(path), node.data());
    if (member) member->path = path;
    return member;
}

}  // namespace

group_view members_in(group_names names, const children_view& children, const std::string& directory) {
    group_view view;
    view.current = children.current();
    view.readable = children.readable();
    children.for_each([&](const std::string& name, const cached_node& node) {
        std::optional<member_info> member = member_at(names, join_path(directory, name), node);
        if (member) view.members.push_back(std::move(*member));
    });
    std::sort(view.members.begin(), view.members.end(), &is_before);
    return view;
}

namespace {

// Whether any member differs from what it was before these changes: a member may have gone and come again.
bool have_changed_members(group_names names, const std::vector<node_delta>& changes, const std::string& directory) {
    struct states {
        const node_delta *first, *last;
    };
    std::map<std::string_view, states> by_path;
    for (const node_delta& change : changes)
        if (change.path != directory)
            by_path.try_emplace(change.path, states{&change, &change}).first->second.last = &change;
    return std::any_of(by_path.begin(), by_path.end(), [&](const auto& node) {
        const states& s = node.second;
        return member_at(names, s.first->path, s.first->before) != member_at(names, s.last->path, s.last->after);
    });
}

}  // namespace

bool apply_changes(group_view& view, group_names names, const std::vector<node_delta>& changes,
                   const std::string& directory) {
    for (const node_delta& change : changes) {
        if (change.path == directory) continue;
        const std::optional<member_info> before = member_at(names, change.path, change.before);
        std::optional<member_info> after = member_at(names, change.path, change.after);
        if (before == after) continue;
        std::vector<member_info>& members = view.members;
        const auto is_there = [&](auto at) { return at != members.end() && at->path == change.path; };
        if (before) {
            const auto at = std::lower_bound(members.begin(), members.end(), *before, &is_before);
            const bool keeps_its_place = after && after->id == before->id;
            if (is_there(at) && !keeps_its_place) members.erase(at);
        }
        if (after) {
            const auto at = std::lower_bound(members.begin(), members.end(), *after, &is_before);
            if (is_there(at))
                *at = std::move(*after);
            else
                members.insert(at, std::move(*after));
        }
    }
    return have_changed_members(names, changes, directory);
}

}  // namespace zkasio::membership_detail
