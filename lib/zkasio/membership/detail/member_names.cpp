#include <zkasio/membership/detail/member_names.hpp>

#include <zkasio/path.hpp>

#include <algorithm>
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
        case group_names::kazoo_shallow_party: return std::string(unique).append("-").append(id);
    }
    return std::string(id);
}

std::string member_data(group_names names, std::string_view id, std::string data) {
    return names == group_names::curator ? std::move(data) : std::string(id);
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
        case group_names::kazoo_shallow_party:
            member.id = name.substr(name.find('-') + 1);  // without a '-': all of it, as kazoo does
            break;
    }
    return member;
}

group_view members_in(group_names names, const children_view& children, const std::string& directory) {
    group_view view;
    view.current = children.current();
    view.readable = children.readable();
    children.for_each([&](const std::string& name, const cached_node& node) {
        std::optional<member_info> member = member_of(names, name, node.data());
        if (!member) return;
        member->path = join_path(directory, name);
        view.members.push_back(std::move(*member));
    });
    std::sort(view.members.begin(), view.members.end(), [](const member_info& a, const member_info& b) {
        return std::tie(a.id, a.path) < std::tie(b.id, b.path);
    });
    return view;
}

}  // namespace zkasio::membership_detail
