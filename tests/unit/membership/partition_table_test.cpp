#include "support/catch.hpp"

#include <zkasio/error.hpp>
#include <zkasio/membership/detail/partition_table.hpp>

using namespace zkasio;
using namespace zkasio::membership_detail;

namespace {

using names = std::vector<std::string>;

std::error_code refusal_of(names partitions) {
    try {
        checked_partitions("/p", std::move(partitions));
    } catch (const error& e) {
        return e.code();
    }
    return {};
}

}  // namespace

TEST_CASE("partitions are assigned in turn as kazoo does") {
    const names all{"a", "b", "c", "d", "e"};
    CHECK(assign_in_turn("m1", {"m1"}, all) == all);
    CHECK(assign_in_turn("m1", {"m1", "m2"}, all) == names{"a", "c", "e"});
    CHECK(assign_in_turn("m2", {"m1", "m2"}, all) == names{"b", "d"});
    CHECK(assign_in_turn("m3", {"m1", "m2"}, all).empty());
    CHECK(assign_in_turn("m3", {"m1", "m2", "m3"}, {"a", "b"}).empty());
    CHECK(assign_in_turn("m1", {}, all).empty());
}

TEST_CASE("the state of a partitioner follows from what is assigned and what is owned") {
    const std::set<std::string> ab{"a", "b"}, a{"a"}, c{"c"}, none;
    CHECK(state_of(true, ab, ab) == partitioner_state::acquired);
    CHECK(state_of(true, none, none) == partitioner_state::acquired);
    CHECK(state_of(true, ab, a) == partitioner_state::allocating);
    CHECK(state_of(false, ab, ab) == partitioner_state::allocating);
    CHECK(state_of(true, a, ab) == partitioner_state::releasing);
    CHECK(state_of(false, ab, c) == partitioner_state::releasing);
    CHECK(to_string(partitioner_state::idle) == "idle");
    CHECK(to_string(partitioner_state::allocating) == "allocating");
    CHECK(to_string(partitioner_state::acquired) == "acquired");
    CHECK(to_string(partitioner_state::releasing) == "releasing");
}

TEST_CASE("partitions are names of nodes and each is there once") {
    CHECK(checked_partitions("/p", {"b", "a"}) == names{"a", "b"});
    CHECK(refusal_of({"a", "b", "a"}) == errc::invalid_argument);
    CHECK(refusal_of({}) == errc::invalid_argument);
    CHECK(refusal_of({"a/b"}) == errc::invalid_argument);
    CHECK(refusal_of({""}) == errc::invalid_argument);
    CHECK(refusal_of({".."}) == errc::invalid_argument);
}

TEST_CASE("a table tells what is owned and refuses what is no partition") {
    partition_table table({"a", "b", "c"});
    CHECK(table.state() == partitioner_state::idle);
    table.begin("/p");
    CHECK_THROWS_AS(table.begin("/p"), error);
    CHECK(table.state() == partitioner_state::allocating);
    CHECK(table.assign("/p", {"c", "a"}, true) == std::set<std::string>{"a", "c"});
    table.add("a");
    CHECK(table.state() == partitioner_state::allocating);
    table.add("c");
    CHECK(table.state() == partitioner_state::acquired);
    CHECK(table.owned() == names{"a", "c"});
    CHECK_THROWS_AS(table.assign("/p", {"d"}, true), error);
    table.unsettle();
    CHECK(table.state() == partitioner_state::allocating);
    table.assign("/p", {"a"}, true);
    CHECK(table.state() == partitioner_state::releasing);
    table.remove("c");
    CHECK(table.state() == partitioner_state::acquired);
    table.remove("a");
    table.assign("/p", {}, true);
    CHECK(table.state() == partitioner_state::acquired);
    table.end();
    CHECK(table.state() == partitioner_state::idle);
    table.begin("/p");
    CHECK(table.state() == partitioner_state::allocating);
    table.end();
}

TEST_CASE("a partitioner has an id of its own") {
    CHECK(partitioner_options().id() != partitioner_options().id());
    CHECK_THROWS_AS(partitioner_options().settle(std::chrono::seconds(-1)), error);
}
