#include "support/texts.hpp"
#include "unit/support/error_of.hpp"

#include <zkasio/locks/detail/queue/queue_names.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace zkasio::lock_detail;
using zkasio::test::error_of;
using zkasio::test::has;
using zkasio::test::texts;

namespace {

constexpr std::int32_t lowest = std::numeric_limits<std::int32_t>::min();
constexpr std::int32_t highest = std::numeric_limits<std::int32_t>::max();

// As a server numbers it.
std::string node(int contender, std::int32_t sequence, const std::string& marker = "lock-") {
    char number[16];
    std::snprintf(number, sizeof number, "%010d", sequence);
    return "_c_0000000" + std::to_string(contender) + "-1111-4222-8333-444444444444-" + marker + number;
}

const queue_names exclusive_only(name_scheme::curator(), "lock-", "", "/locks/a");
const queue_names both_kinds(name_scheme::curator(), "__WRIT__", "__READ__", "/locks/a");

texts in_order(const queue_names& n, texts list) {
    texts names;
    for (const auto& c : n.in_order(std::move(list))) names.push_back(c.name);
    return names;
}

}  // namespace

TEST_CASE("queue names: a marker of digits and dashes is told from the number behind it", "[queue]") {
    for (const std::string marker : {"0", "7", "-", "--", "00", "-0", "1-"}) {
        const queue_names names(name_scheme::custom("", marker), marker, "", "/locks/a");
        for (const auto& [digits, sequence] :
             std::vector<std::pair<std::string, std::int32_t>>{{"0000000000", 0},
                                                               {"0000000007", 7},
                                                               {"2147483647", highest},
                                                               {"-000000001", -1},
                                                               {"-1000000000", -1'000'000'000},
                                                               {"-2147483648", lowest}}) {
            const std::string name = names.prefix(names.new_id(), lock_kind::exclusive) + digits;
            INFO(name);
            CHECK(names.parse(name).sequence == sequence);
            CHECK(names.digits(name) == digits);
        }
    }
}

TEST_CASE("queue names: sequence numbers", "[queue]") {
    const auto sequence = [](std::string_view name) { return sequence_of(name, "lock-"); };
    CHECK(sequence("_c_6d6a-lock-0000000012") == 12);
    CHECK(sequence("lock-0000000000") == 0);
    CHECK(sequence("lock-2147483647") == highest);
    CHECK(sequence("lock--2147483648") == lowest);
    CHECK(sequence("lock--000000001") == -1);  // "%010d" counts the sign
    CHECK(sequence("lock-lock-0000000007") == 7);
    CHECK(sequence("lock-0000000001-lock-0000000007") == 7);
    CHECK(sequence_of("__READ__0000000003", "__READ__") == 3);
    CHECK(sequence_of("x--0000000005", "-") == 5);  // eleven characters are one of -1000000000 and below
    CHECK(sequence_of("x---000000005", "-") == -5);
    CHECK(sequence_of("x--1000000000", "") == -1'000'000'000);

    for (const char* name :
         {"", "lock-", "lock-1", "lock-000000001", "lock-000000000x", "lock-0000000001x", "lock-x0000000001",
          "lock- 000000001", "lock-+000000001", "lock-2147483648", "lock--2147483649", "lock-9999999999", "0000000001",
          "Lock-0000000001", "lock0000000001", "lock-0000000001\n", "lease", "lock---00000001",
          "lock--000000000"}) {
        INFO(name);
        CHECK(sequence(name) == std::nullopt);
    }
}

TEST_CASE("queue names: order of sequence numbers wraps around", "[queue]") {
    CHECK(before(1, 2));
    CHECK_FALSE(before(2, 1));
    CHECK_FALSE(before(2, 2));
    CHECK(before(-1, 0));
    CHECK(before(highest, lowest));
    CHECK_FALSE(before(lowest, highest));
    CHECK(before(highest - 1, highest));
    CHECK(before(lowest, lowest + 1));
    CHECK(before(0, highest));  // 2^31 - 1 apart
    CHECK(before(lowest + 1, 0));
    CHECK_FALSE(before(highest, 0));
}

TEST_CASE("queue names: every order of the list", "[queue]") {
    const std::vector<std::vector<std::int32_t>> queues{
        {0},
        {7, 8},
        {0, 1, 2, 3, 4},
        {5, 9, 100, 101, 2000000000},
        {2147483646, 2147483647, lowest, lowest + 1},  // the wrap-around, in its middle
        {highest, lowest},
        {highest - 3, highest - 1, lowest, lowest + 2, lowest + 5},
        {-3, -2, -1, 0, 1},
    };
    for (const auto& queue : queues) {
        texts in_queue;
        for (std::size_t i = 0; i < queue.size(); ++i) in_queue.push_back(node(static_cast<int>(i), queue[i]));
        texts list = in_queue;
        std::sort(list.begin(), list.end());
        do {
            REQUIRE(in_order(exclusive_only, list) == in_queue);
        } while (std::next_permutation(list.begin(), list.end()));
    }
    CHECK(exclusive_only.in_order({}).empty());
}

TEST_CASE("queue names: readers and writers", "[queue]") {
    const auto read = both_kinds.parse("_c_x-__READ__0000000003"), write = both_kinds.parse("_c_x-__WRIT__0000000004");
    CHECK((read.kind == lock_kind::shared && read.sequence == 3));
    CHECK((write.kind == lock_kind::exclusive && write.sequence == 4));
    // A writer that is becoming a reader has both nodes for a moment.
    const auto both = both_kinds.in_order({node(1, 5, "__READ__"), node(1, 5, "__WRIT__"), node(2, 4, "__READ__")});
    CHECK(both[0].kind == lock_kind::shared);
    CHECK(both[1].kind == lock_kind::exclusive);
    CHECK(both[2].kind == lock_kind::shared);
    CHECK(both_kinds.digits("_c_x-__READ__0000000003") == "0000000003");
    CHECK(both_kinds.digits("_c_x-__WRIT__-000000003") == "-000000003");
    CHECK(both_kinds.prefix("u", lock_kind::shared) == "_c_u-__READ__");
    CHECK(both_kinds.prefix("u", lock_kind::exclusive) == "_c_u-__WRIT__");
}

TEST_CASE("queue names: kazoo's", "[queue]") {
    const queue_names kazoo(name_scheme::kazoo(), "__lock__", "__rlock__", "/k");
    const std::string hex = "0123456789abcdef0123456789abcdef";
    CHECK(kazoo.parse(hex + "__lock__0000000007").kind == lock_kind::exclusive);
    CHECK(kazoo.parse(hex + "__rlock__0000000007").kind == lock_kind::shared);
    CHECK(kazoo.prefix(hex, lock_kind::exclusive) == hex + "__lock__");
    CHECK(kazoo.new_id().size() == 32);
    CHECK(kazoo.new_id().find('-') == std::string::npos);
    CHECK(error_of([&] { kazoo.parse(node(1, 1)); }));
}

TEST_CASE("queue names: your own", "[queue]") {
    const name_scheme mine = name_scheme::custom("job-", ".w.", ".r.");
    const queue_names names(mine, mine.write_marker(), mine.read_marker(), "/d");
    CHECK(names.prefix("u", lock_kind::exclusive) == "job-u.w.");
    CHECK(names.parse("job-u.r.0000000001").kind == lock_kind::shared);
    const auto refused = [](const std::string& prefix, const std::string& exclusive, const std::string& shared) {
        const auto e = error_of([&] { name_scheme::custom(prefix, exclusive, shared); });
        return e && e->code() == errc::invalid_argument;
    };
    CHECK(refused("", "", ""));
    CHECK(refused("a/", "x", ""));
    CHECK(refused("", "lock-", "unlock-"));
    CHECK(refused("", "unlock-", "lock-"));
    CHECK(refused("", std::string("a\0b", 3), ""));
    // "x-1000000000" is a number behind either.
    CHECK(refused("", "x-", "x"));
    CHECK(refused("", "x", "x-"));
    CHECK(refused("", "-", "x"));
    CHECK(refused("", "x", "ax-"));
    CHECK_FALSE(refused("", "-x-", "-r-"));
}

TEST_CASE("queue names: a foreign child is named", "[queue]") {
    for (const std::string& foreign : {std::string("config"), std::string("lock-1"), std::string("lock-99999999990")}) {
        for (std::size_t at = 0; at < 3; ++at) {
            texts children{node(1, 1), node(9, 2)};
            children.insert(children.begin() + static_cast<std::ptrdiff_t>(at), foreign);
            const auto e = error_of([&] { exclusive_only.in_order(children); });
            REQUIRE(e);
            CHECK(e->code() == errc::foreign_child);
            CHECK(e->path() == "/locks/a");
            CHECK(has(e->what(), '"' + foreign + '"'));
            CHECK(has(e->what(), "lock-<sequence>"));
        }
    }
    // Of several the first in the list.
    const auto e = error_of([&] { exclusive_only.in_order({node(9, 1), "second", "first"}); });
    REQUIRE(e);
    CHECK(has(e->what(), "\"second\""));
    CHECK(error_of([&] { exclusive_only.parse(node(1, 1, "__WRIT__")); }));
    CHECK(error_of([&] { both_kinds.parse(node(1, 1)); }));
}

TEST_CASE("queue names: children that a scheme does not know are passed over where it allows them", "[queue]") {
    const name_scheme both = name_scheme::plain("w_", "r_"), lenient = both.allow_foreign_children();
    CHECK_FALSE(both.has_id());
    CHECK_FALSE(both.foreign_children_allowed());
    CHECK_FALSE(lenient.has_id());
    CHECK(lenient.foreign_children_allowed());
    CHECK(name_scheme::custom("", "w_").has_id());
    const queue_names strict(both, "w_", "r_", "/d"), names(lenient, "w_", "r_", "/d");
    const texts all{"w_0000000002", "log_replicas", "r_0000000001", "w_1"};
    CHECK(in_order(names, all) == texts{"r_0000000001", "w_0000000002"});
    CHECK(in_order(names, {"log_replicas"}).empty());
    CHECK_FALSE(names.contender("log_replicas"));
    CHECK_FALSE(names.may_contend("log_replicas"));
    CHECK(names.may_contend("w_0000000002"));
    CHECK(names.may_contend("r_0000000002"));
    CHECK(strict.may_contend("log_replicas"));
    CHECK(names.contender("w_0000000002")->sequence == 2);
    CHECK(error_of([&] { in_order(strict, all); })->code() == errc::foreign_child);
    CHECK(error_of([&] { names.parse("log_replicas"); })->code() == errc::foreign_child);
    CHECK(lenient.first_of(all, "/d") == "w_0000000002");
    CHECK(lenient.first_of({"log_replicas"}, "/d").empty());
    CHECK(error_of([&] { both.first_of(all, "/d"); })->code() == errc::foreign_child);
    CHECK(error_of([] { name_scheme::plain(""); })->code() == errc::invalid_argument);
}

TEST_CASE("queue names: whoever came first holds the mutex, whatever the names begin with", "[queue]") {
    const name_scheme latch = name_scheme::curator_latch();
    const auto named = [](const std::string& begin, const std::string& number) { return begin + "-latch-" + number; };
    CHECK(latch.first_of({}, "/e").empty());
    const texts rising{named("b", "0000000003"), named("c", "0000000002"), named("a", "0000000011")};
    CHECK(latch.first_of(rising, "/e") == named("c", "0000000002"));
    const texts wrapped{named("a", "-2147483648"), named("b", "2147483647"), named("c", "-2147483647")};
    CHECK(latch.first_of(wrapped, "/e") == named("b", "2147483647"));
    const auto e = error_of([&] { latch.first_of({named("a", "0000000001"), node(1, 1)}, "/e"); });
    REQUIRE(e);
    CHECK(e->code() == errc::foreign_child);
    CHECK(e->path() == "/e");
}
