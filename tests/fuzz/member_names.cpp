// Names and data of the nodes of groups. The first line is the id of a member, the second the name of a node, the rest
// data.
#include "fuzz/fuzz.hpp"

#include <zkasio/membership/detail/member_names.hpp>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace zkasio::fuzz;
    using namespace zkasio::membership_detail;
    using zkasio::group_names;
    std::string_view rest = view(data, size);
    const std::string_view id = take_line(rest), name = take_line(rest);
    constexpr std::string_view unique = "0123456789abcdef0123456789abcdef";
    for (const group_names names : {group_names::curator, group_names::kazoo_party, group_names::kazoo_shallow_party}) {
        const std::string own_name = member_name(names, id, unique);
        const std::string own_data = member_data(names, id, std::string(rest));
        const auto member = member_of(names, own_name, own_data);
        require(member && member->id == id, "a member is found under its id", own_name);
        require(member->data == (names == group_names::curator ? rest : std::string_view()), "and has its data", rest);
        const auto other = member_of(names, name, rest);
        const bool is_member = names != group_names::kazoo_party || name.find("__party__") != std::string_view::npos;
        require(other.has_value() == is_member, "kazoo's parties look for their marker", name);
        if (!other) continue;
        require(names == group_names::kazoo_party ? other->id == rest : name.ends_with(other->id),
                "an id is the end of the name, or the data", name);
    }
    return 0;
}
