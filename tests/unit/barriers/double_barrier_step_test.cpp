#include "support/catch.hpp"

#include <zkasio/barriers/detail/double_barrier_step.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace double_barrier_step_tests {

using namespace zkasio::barrier_detail;

namespace {

using names = std::vector<std::string>;

const std::string kazoos = "0123456789abcdef0123456789abcdef", kazoos_too = "1123456789abcdef0123456789abcdef";

// The member "b", born at 20, sees these children.
enter_view sees(names children) {
    enter_view seen;
    seen.own = "b";
    seen.born = 20;
    seen.children = barrier_children(std::move(children));
    return seen;
}

// The other members, by the czxids of their nodes.
std::vector<other_member> born_at(std::vector<std::int64_t> all) {
    std::vector<other_member> others;
    for (const std::int64_t born : all) others.push_back({"m" + std::to_string(born), born, false});
    return others;
}

enter_step of_two(const enter_view& seen) { return next_enter_step(seen, 2, false); }
enter_step of_exactly_two(const enter_view& seen) { return next_enter_step(seen, 2, true); }

leave_step leaves(names now, const names& inside) {
    return next_leave_step(barrier_children(std::move(now)), "b", inside);
}

using removal = leave_step::removal;

}  // namespace

TEST_CASE("double_barrier: ready is no member", "[barrier]") {
    const barrier_children seen({"c", "ready", "a"});
    CHECK(seen.members == names{"a", "c"});
    CHECK(seen.ready);
    CHECK(seen.has("c"));
    CHECK_FALSE(seen.has("ready"));
    CHECK_FALSE(barrier_children({"a"}).ready);
}

TEST_CASE("double_barrier: members are counted, with the own node and without ready", "[barrier]") {
    CHECK(of_two(sees({"b"})) == enter_step::wait);
    CHECK(of_two(sees({"a", "b"})) == enter_step::create_ready);
    CHECK(of_two(sees({"a", "b", "c"})) == enter_step::create_ready);
    CHECK(next_enter_step(sees({"b"}), 1, false) == enter_step::create_ready);
    CHECK(next_enter_step(sees({"a", "b"}), 3, false) == enter_step::wait);
}

TEST_CASE("double_barrier: without its own node a member counts nothing", "[barrier]") {
    enter_view gone = sees({"a", "c"});
    CHECK(of_two(gone) == enter_step::create_own);  // listed after an operator has removed it
    enter_view none = sees({"a", "b"});
    none.born.reset();
    none.ready_since = 30;
    none.ready_was_created = true;
    CHECK(of_two(none) == enter_step::create_own);
}

TEST_CASE("double_barrier: a ready younger than the own node lets the member pass", "[barrier]") {
    enter_view seen = sees({"b", "ready"});
    seen.ready_since = 21;
    CHECK(of_two(seen) == enter_step::pass);
    seen.children = barrier_children({"b"});  // a member of kazoo has removed it between the two reads
    CHECK(of_two(seen) == enter_step::pass);
    enter_view created = sees({"b"});
    created.ready_was_created = true;
    CHECK(of_two(created) == enter_step::pass);
    CHECK(of_two(sees({"b", "ready"})) == enter_step::pass);  // created after it was looked for
}

TEST_CASE("double_barrier: an older ready is that of a round, or left over", "[barrier]") {
    enter_view seen = sees({"a", "b", "c", "ready"});
    seen.ready_since = 10;
    CHECK(of_two(seen) == enter_step::read_others);
    seen.others = born_at({30, 9});
    CHECK(of_two(seen) == enter_step::join);
    CHECK(member_of_round(seen) == "m9");
    seen.others = born_at({11, 30});  // these wait as well
    CHECK(of_two(seen) == enter_step::remove_left_over);
    seen.others.emplace();
    CHECK(of_two(seen) == enter_step::remove_left_over);
    seen.children = barrier_children({"b"});  // gone in the meantime
    CHECK(of_two(seen) == enter_step::wait);
    seen.children = barrier_children({"a", "b"});
    CHECK(of_two(seen) == enter_step::create_ready);
}

TEST_CASE("double_barrier: exactly() refuses by age", "[barrier]") {
    enter_view seen = sees({"a", "b"});
    CHECK(of_exactly_two(seen) == enter_step::create_ready);
    seen.children = barrier_children({"a", "b", "c"});
    CHECK(of_exactly_two(seen) == enter_step::read_others);
    seen.others = born_at({1, 2});
    CHECK(of_exactly_two(seen) == enter_step::refuse);
    seen.others = born_at({1, 30});
    CHECK(of_exactly_two(seen) == enter_step::create_ready);
    seen.others = born_at({1});  // the other has left
    CHECK(of_exactly_two(seen) == enter_step::create_ready);
    seen.others = born_at({1, 2});
    seen.ready_since = 21;
    seen.ready_was_created = true;
    CHECK(of_exactly_two(seen) == enter_step::refuse);
    CHECK(of_two(seen) == enter_step::pass);
    enter_view late = sees({"a", "b", "ready"});
    late.ready_since = 10;
    late.others = born_at({9});
    CHECK(of_exactly_two(late) == enter_step::join);
}

TEST_CASE("double_barrier: members that have joined a round keep it alive, and are of it", "[barrier]") {
    enter_view seen = sees({"a", "b", "ready"});
    seen.ready_since = 10;
    seen.others = born_at({11});
    CHECK(of_two(seen) == enter_step::remove_left_over);
    seen.others->front().joined = true;
    CHECK(of_two(seen) == enter_step::join);
    seen.joined = true;
    seen.others.reset();
    CHECK(of_two(seen) == enter_step::pass);

    std::vector<other_member> others = born_at({9, 11, 12});
    others.back().joined = true;
    CHECK(members_inside(others, 10) == names{"m9", "m12"});
    CHECK(members_inside(others, std::nullopt) == names{"m9", "m11", "m12"});
}

TEST_CASE("double_barrier: the lowest waits for the highest, the others for the lowest", "[barrier]") {
    const leave_step lowest = leaves({"b", "c", "d", "ready"}, {"b", "c", "d"});
    CHECK(lowest.first == removal::nothing);
    CHECK(lowest.then_wait_for == "d");
    const leave_step middle = leaves({"a", "b", "d", "ready"}, {"a", "b", "d"});
    CHECK(middle.first == removal::own);
    CHECK(middle.then_wait_for == "a");
    const leave_step removed = leaves({"a", "d", "ready"}, {"a", "b", "d"});
    CHECK(removed.first == removal::nothing);
    CHECK(removed.then_wait_for == "a");
}

TEST_CASE("double_barrier: the last removes its node with ready, and ready never without its node", "[barrier]") {
    const leave_step last = leaves({"b", "ready"}, {"a", "b"});
    CHECK(last.first == removal::own_and_ready);
    CHECK(last.then_wait_for.empty());
    CHECK(leaves({"b"}, {"b"}).first == removal::own);
    const leave_step done = leaves({}, {"a", "b"});
    CHECK(done.first == removal::nothing);
    CHECK(done.then_wait_for.empty());
    CHECK(leaves({"ready"}, {"a", "b"}).first == removal::nothing);
}

TEST_CASE("double_barrier: members that came later are not waited for, and keep ready", "[barrier]") {
    const leave_step beside_new_ones = leaves({"a", "b", "c", "ready"}, {"b"});
    CHECK(beside_new_ones.first == removal::own);
    CHECK(beside_new_ones.then_wait_for.empty());
    const leave_step done = leaves({"a", "c", "ready"}, {"b"});
    CHECK(done.first == removal::nothing);
    CHECK(done.then_wait_for.empty());
    CHECK(leaves({"a", "b", "c", "d"}, {"b", "c"}).then_wait_for == "c");
}

TEST_CASE("double_barrier: ready does not stay behind with members of kazoo alone", "[barrier]") {
    const leave_step alone = leaves({kazoos, "b", "ready"}, {kazoos, "b"});
    CHECK(alone.first == removal::own_and_ready);
    CHECK(alone.then_wait_for == kazoos);
    CHECK(leaves({kazoos, kazoos_too, "b", "ready"}, {kazoos, kazoos_too, "b"}).first == removal::own_and_ready);
    CHECK(leaves({kazoos, "b"}, {kazoos, "b"}).first == removal::own);
    CHECK(leaves({kazoos, "a", "b", "ready"}, {kazoos, "a", "b"}).first == removal::own);
    const std::string curators = "01234567-89ab-4def-8123-456789abcdef";
    CHECK(leaves({curators, "b", "ready"}, {curators, "b"}).first == removal::own);
}

}  // namespace double_barrier_step_tests
