#include "support/catch.hpp"
#include "unit/support/counting_new.hpp"

#include <zkasio/cache/detail/cache_board.hpp>
#include <zkasio/cache/detail/tree_store.hpp>
#include <zkasio/membership/detail/member_names.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace zkasio::membership_detail;
using namespace zkasio::test;

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

namespace {

using namespace zkasio::cache_detail;

/// The directory "/g", as a cache knows it.
class directory_of_members {
public:
    directory_of_members() { set("", ""); }

    /// @param data nothing: the node is removed. The change is added to `changes`.
    void set(const std::string& name, const std::optional<std::string>& data) {
        const std::string path = name.empty() ? "/g" : "/g/" + name;
        const tree_node* const known = store_.find(path);
        const value_ptr before = known ? known->value : value_ptr();
        value_ptr after;
        if (data) {
            after = make_ref<node_value>();
            after->data = *data;
            after->stat.mzxid = ++zxid_;
            if (!known) store_.add(path);
            store_.set_value(path, after);
        } else {
            store_.remove(path, [](const std::string&, const value_ptr&) {});
        }
        if (before || after) changes.push_back({path, make_view::node(before), make_view::node(after)});
    }
    children_view view() const {
        auto taken = std::make_shared<snapshot>();
        taken->root_path = std::make_shared<const std::string>("/g");
        taken->root = store_.root();
        taken->size = store_.size();
        taken->ready = taken->current = true;
        return children_view(make_view::tree(std::move(taken)), "/g");
    }

    std::vector<node_delta> changes;

private:
    tree_store store_{"/g"};
    std::int64_t zxid_ = 0;
};

}  // namespace

TEST_CASE("a view of a group that follows the changes is the one that a look at all members would give") {
    for (const auto names : {group_names::curator, group_names::kazoo_party, group_names::kazoo_shallow_party}) {
        std::mt19937 random(3);
        directory_of_members members;
        group_view view = members_in(names, members.view(), "/g");
        members.changes.clear();
        for (int step = 0; step < 2000; ++step) {
            const std::string number = std::to_string(random() % 30);
            const std::string name = random() % 2 ? number + "__party__" : "x-" + number;
            const bool is_removed = random() % 3 == 0;
            members.set(name, is_removed ? std::optional<std::string>() : std::to_string(random() % 5));
            if (random() % 3 > 0) continue;
            const group_view before = view;
            const bool is_other = apply_changes(view, names, members.changes, "/g");
            members.changes.clear();
            const group_view wanted = members_in(names, members.view(), "/g");
            REQUIRE(view == wanted);
            REQUIRE(is_other == (view != before));
        }
    }
}

TEST_CASE("a view of a group follows changes of members that it does not have, or has already") {
    directory_of_members members;
    members.set("b", "1");
    group_view view = members_in(group_names::curator, members.view(), "/g");
    members.changes.clear();
    members.set("b", "2");
    members.set("a", "1");
    members.set("z", "1");
    const group_view wanted = members_in(group_names::curator, members.view(), "/g");
    for (int again = 0; again < 2; ++again) {
        apply_changes(view, group_names::curator, members.changes, "/g");
        CHECK(view == wanted);
    }
    members.changes.clear();
    members.set("z", std::nullopt);
    members.set("a", std::nullopt);
    for (int again = 0; again < 2; ++again) apply_changes(view, group_names::curator, members.changes, "/g");
    CHECK(view == members_in(group_names::curator, members.view(), "/g"));
}

#ifdef ZKASIO_TEST_COUNTS_NEW
TEST_CASE("a change of one member of very many does not cost a look at all of them") {
    directory_of_members members;
    for (int i = 0; i < 5000; ++i) members.set("member-with-a-long-name-" + std::to_string(i), "some data of a member");
    group_view view = members_in(group_names::curator, members.view(), "/g");
    view.members.reserve(6000);
    members.changes.clear();
    members.set("member-with-a-long-name-2500", "other data of a member");
    members.set("member-with-a-long-name-2500a", "data of a member");
    members.set("member-with-a-long-name-1", std::nullopt);
    const long before = news;
    const bool is_other = apply_changes(view, group_names::curator, members.changes, "/g");
    const long asked = news - before;
    CHECK(is_other);
    CHECK(asked < 50);
    CHECK(view == members_in(group_names::curator, members.view(), "/g"));
}
#endif
