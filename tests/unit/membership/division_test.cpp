#include "support/catch.hpp"

#include <zkasio/error.hpp>
#include <zkasio/membership/detail/division.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace zkasio::membership_detail;

namespace {

using names = std::vector<std::string>;

names numbered(const std::string& prefix, std::size_t from, std::size_t to) {
    names all;
    for (std::size_t n = from; n <= to; ++n) all.push_back(prefix + std::to_string(n));
    std::sort(all.begin(), all.end());
    return all;
}

std::map<std::string, std::string> owners(const names& members, const names& partitions) {
    std::map<std::string, std::string> all;
    for (const std::string& m : members)
        for (const std::string& p : assign_by_rendezvous(m, members, partitions)) CHECK(all.emplace(p, m).second);
    CHECK(all.size() == partitions.size());
    return all;
}

partitioner_options of(const std::string& id) { return partitioner_options().id(id); }

planning_member publishing(const std::string& id, const names& partitions,
                           const partitioner_options& how = partitioner_options()) {
    return {id, plan_of(how, partitions)};
}

}  // namespace

TEST_CASE("rendezvous: the shares are equal, and each partition has one member", "[partitioner]") {
    for (const std::size_t members : {1u, 2u, 3u, 7u, 30u})
        for (const std::size_t partitions : {1u, 2u, 7u, 30u, 100u}) {
            INFO(members << " members, " << partitions << " partitions");
            std::map<std::string, std::size_t> shares;
            const names all = numbered("host-", 1, members);
            for (const auto& [partition, member] : owners(all, numbered("p", 1, partitions))) ++shares[member];
            for (const std::string& m : all)
                CHECK((shares[m] == partitions / members || shares[m] == partitions / members + 1));
        }
    CHECK(assign_by_rendezvous("c", {"a", "b"}, {"p"}).empty());
    CHECK(assign_by_rendezvous("a", {}, {"p"}).empty());
    CHECK(assign_by_rendezvous("a", {"a", "a"}, {"p", "q"}) == names{"p", "q"});
}

// Members of different versions divide together: so the result is never to be another one.
TEST_CASE("rendezvous: who gets what, for ever", "[partitioner]") {
    const names members{"a", "b", "c"}, partitions = numbered("p", 0, 9);
    std::string all;
    for (const auto& [partition, member] : owners(members, partitions)) all += member;
    CHECK(all == "bbbaacbcac");
}

TEST_CASE("rendezvous: few partitions move that could stay", "[partitioner]") {
    std::mt19937_64 random(1);
    const names partitions = numbered("p", 1000, 1299);
    for (const std::size_t members : {3u, 10u, 30u}) {
        std::size_t moved = 0, needed = 0;
        constexpr std::size_t runs = 20;
        for (std::size_t run = 0; run < runs; ++run) {
            names more;
            for (std::size_t n = 0; n <= members; ++n) more.push_back("host-" + std::to_string(random()));
            const std::string added = more.back();
            names fewer(more.begin(), more.end() - 1);
            std::sort(fewer.begin(), fewer.end());
            std::sort(more.begin(), more.end());
            const auto before = owners(fewer, partitions), after = owners(more, partitions);
            for (const std::string& p : partitions) {
                moved += before.at(p) != after.at(p);
                needed += after.at(p) == added;
            }
        }
        INFO(members << " members: " << moved << " have moved, " << needed << " had to");
        CHECK((moved - needed) * 10 < runs * partitions.size());
    }
}

TEST_CASE("plans: what is published is read again, and nothing else is a plan", "[partitioner]") {
    const names partitions = numbered("p", 1, 12);
    for (const std::string name : {"", "rendezvous", "by weight, 2", "\n"}) {
        const member_plan plan = plan_of(partitioner_options().assignment(&assign_in_turn, name), partitions);
        CHECK(parse_plan(to_text(plan)) == plan);
        CHECK(plan.assignment == (name.empty() ? "in turn" : name));
    }
    CHECK(plan_of(partitioner_options(), partitions).assignment == "rendezvous");
    const auto mine = [](const std::string&, const names&, const names& all) { return all; };
    CHECK(plan_of(partitioner_options().assignment(mine), partitions).assignment.empty());
    CHECK_THROWS_AS(partitioner_options().assignment(mine, std::string(257, 'x')), error);
    CHECK(plan_of(partitioner_options(), {"ab", "c"}) != plan_of(partitioner_options(), {"a", "bc"}));
    CHECK(plan_of(partitioner_options(), {"a", "b"}) != plan_of(partitioner_options(), {"a"}));
    for (const char* other : {"", "a", "host-1", "zkasio partitioner 2 1 ff x", "zkasio partitioner 1 ",
                              "zkasio partitioner 1 1", "zkasio partitioner 1 1 x y", "zkasio partitioner 1 -1 0 y",
                              "zkasio partitioner 1 99999999999999999999 0 y", "zkasio partitioner 1 1 ff"})
        CHECK_FALSE(parse_plan(other));
}

TEST_CASE("division: members of one version use their assignment, those of several take partitions in turn",
          "[partitioner]") {
    const names all = numbered("p", 1, 9), ids{"a", "b", "c"};
    const std::vector<planning_member> same{publishing("a", all), publishing("b", all), publishing("c", all)};
    const auto in_turn = partitioner_options().assignment(&assign_in_turn);
    for (const std::string& id : ids) {
        CHECK(divide(of(id), same, all).assigned == assign_by_rendezvous(id, ids, all));
        std::vector<planning_member> mixed = same;
        mixed[1].plan.reset();  // kazoo
        CHECK(divide(of(id), mixed, all).assigned == assign_in_turn(id, ids, all));
        CHECK(divide(of(id), mixed, all).difference.empty());
        mixed[1] = publishing("b", all, in_turn);
        CHECK(divide(of(id), mixed, all).assigned == assign_in_turn(id, ids, all));
        CHECK(divide(of(id), mixed, all).stands_in_for.empty());
        const auto greedy = [](const std::string&, const names&, const names& these) { return these; };
        CHECK(divide(of(id).assignment(greedy), mixed, all).assigned == all);  // a function without a name
        CHECK(divide(of(id).assignment(greedy, "greedy"), mixed, all).assigned == assign_in_turn(id, ids, all));
    }
}

TEST_CASE("division: each partition of a list has one member that stands for it or in for it", "[partitioner]") {
    const names old_list = numbered("p", 1, 40), new_list = numbered("p", 0, 40);
    const std::vector<planning_member> members{publishing("a", old_list), publishing("b", new_list),
                                               publishing("c", old_list), publishing("d", new_list)};
    const names ids{"a", "b", "c", "d"};
    for (const bool is_new : {false, true}) {
        const names& list = is_new ? new_list : old_list;
        std::multiset<std::string> taken;
        for (const char* id : {"a", "b", "c", "d"}) {
            const bool has_it = (*id == 'b' || *id == 'd') == is_new;
            if (!has_it) continue;
            const division d = divide(of(id), members, list);
            CHECK(d.assigned == assign_by_rendezvous(id, ids, list));
            CHECK(d.difference == "the lists of partitions differ: 40 partitions: a, c; 41 partitions: b, d");
            for (const std::string& p : d.assigned) CHECK_FALSE(d.stands_in_for.contains(p));
            taken.insert(d.stands_in_for.begin(), d.stands_in_for.end());
        }
        for (const std::string& p : list) CHECK(taken.count(p) <= 1);
        for (const char* id : {"a", "b", "c", "d"}) {
            const bool differs = (*id == 'b' || *id == 'd') != is_new;
            if (!differs) continue;
            for (const std::string& p : assign_by_rendezvous(id, ids, list)) CHECK(taken.count(p) == 1);
        }
    }
}

TEST_CASE("division: nobody stands in for a member that publishes nothing", "[partitioner]") {
    const names old_list = numbered("p", 1, 8), new_list = numbered("p", 0, 8), ids{"a", "b", "k"};
    const std::vector<planning_member> members{publishing("a", old_list), publishing("b", new_list), {"k", {}}};
    const division d = divide(of("b"), members, new_list);
    for (const std::string& p : assign_in_turn("k", ids, new_list)) CHECK_FALSE(d.stands_in_for.contains(p));
    for (const std::string& p : assign_in_turn("a", ids, new_list)) CHECK(d.stands_in_for.contains(p));
}

TEST_CASE("division: functions with and without a name do not go together, and the log says so", "[partitioner]") {
    const names all = numbered("p", 1, 8);
    const auto mine = [](const std::string& me, const names& members, const names& these) {
        return assign_in_turn(me, members, these);
    };
    std::vector<planning_member> members;
    for (const char* id : {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"})
        members.push_back(publishing(id, all, partitioner_options().assignment(mine)));
    members.push_back(publishing("m", all));
    const division d = divide(of("m"), members, all);
    CHECK(d.difference == "these have assignments without a name, and others do not: a, b, c, d, e, f, g, h, i, j and "
                          "2 more");
    CHECK(d.stands_in_for.size() + d.assigned.size() == all.size());
}
