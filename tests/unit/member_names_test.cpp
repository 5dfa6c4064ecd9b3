#include "support/catch.hpp"

#include <zkasio/membership/detail/member_names.hpp>

using namespace zkasio;
using namespace zkasio::membership_detail;

namespace {

const std::string unique = "0123456789abcdef0123456789abcdef";

std::string id_in(group_names names, std::string_view name, std::string_view data = "") {
    const std::optional<member_info> member = member_of(names, name, data);
    return member ? member->id : "-";
}

}  // namespace

TEST_CASE("members are named as Curator and kazoo name them") {
    CHECK(member_name(group_names::curator, "host-1", unique) == "host-1");
    CHECK(member_name(group_names::kazoo_party, "host-1", unique) == unique + "__party__");
    CHECK(member_name(group_names::kazoo_shallow_party, "host-1", unique) == unique + "-host-1");
    CHECK(member_data(group_names::curator, "host-1", "load 7") == "load 7");
    CHECK(member_data(group_names::kazoo_party, "host-1", "") == "host-1");
    CHECK(member_data(group_names::kazoo_shallow_party, "host-1", "") == "host-1");
}

TEST_CASE("what a member's name and data say is read back") {
    CHECK(id_in(group_names::curator, "host-1", "load 7") == "host-1");
    CHECK(member_of(group_names::curator, "host-1", "load 7")->data == "load 7");
    CHECK(id_in(group_names::kazoo_party, unique + "__party__", "host-1") == "host-1");
    CHECK(id_in(group_names::kazoo_party, unique + "-host-1", "host-1") == "-");
    CHECK(id_in(group_names::kazoo_shallow_party, unique + "-host-1") == "host-1");
    CHECK(id_in(group_names::kazoo_shallow_party, unique + "-") == "");
    CHECK(id_in(group_names::kazoo_shallow_party, "an-operator") == "operator");
    CHECK(id_in(group_names::kazoo_shallow_party, "nothing") == "nothing");
    for (const group_names names : {group_names::curator, group_names::kazoo_shallow_party})
        CHECK(id_in(names, member_name(names, "a-b__party__", unique)) == "a-b__party__");
}

TEST_CASE("a view of a group finds members by their ids") {
    group_view view;
    for (const char* id : {"a", "c", "c", "e"}) view.members.push_back({id, "", std::string("/g/") + id});
    CHECK(view.contains("a"));
    CHECK(view.find("c") == &view.members[1]);
    CHECK(view.find("e") == &view.members[3]);
    CHECK_FALSE(view.contains("b"));
    CHECK_FALSE(view.contains("f"));
    CHECK_FALSE(group_view().contains("a"));
}
