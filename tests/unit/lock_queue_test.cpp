#include "unit/error_of.hpp"

#include <zkasio/recipes/detail/lock_queue.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::recipes::detail;
using zkasio::test::error_of;
using zkasio::test::has;

namespace {

using names = std::vector<std::string>;

constexpr std::int32_t lowest = std::numeric_limits<std::int32_t>::min();
constexpr std::int32_t highest = std::numeric_limits<std::int32_t>::max();

std::string id_of(int contender) { return "0000000" + std::to_string(contender) + "-1111-4222-8333-444444444444"; }

// As a server numbers it.
std::string node(int contender, std::int32_t sequence) {
    char number[16];
    std::snprintf(number, sizeof number, "%010d", sequence);
    return "_c_" + id_of(contender) + "-lock-" + number;
}

lock_step step_of(const names& children, const std::string& mine, const std::string& id) {
    return next_step(children, mine, id, "lock-", "/locks/a");
}

using kind = lock_step::kind;

}  // namespace

TEST_CASE("lock queue: sequence numbers", "[lock_queue]") {
    const auto sequence = [](std::string_view name) { return sequence_of(name, "lock-"); };
    CHECK(sequence("_c_6d6a-lock-0000000012") == 12);
    CHECK(sequence("lock-0000000000") == 0);
    CHECK(sequence("lock-2147483647") == highest);
    CHECK(sequence("lock--2147483648") == lowest);
    CHECK(sequence("lock--000000001") == -1);  // "%010d" counts the sign
    CHECK(sequence("lock-lock-0000000007") == 7);
    CHECK(sequence("lock-0000000001-lock-0000000007") == 7);
    CHECK(sequence_of("__READ__0000000003", "__READ__") == 3);

    for (const char* name :
         {"", "lock-", "lock-1", "lock-000000001", "lock-000000000x", "lock-0000000001x", "lock-x0000000001",
          "lock- 000000001", "lock-+000000001", "lock-2147483648", "lock--2147483649", "lock-9999999999", "0000000001",
          "Lock-0000000001", "lock0000000001", "lock-0000000001\n", "lease", "lock---00000001"}) {
        INFO(name);
        CHECK(sequence(name) == std::nullopt);
    }
}

TEST_CASE("lock queue: order of sequence numbers wraps around", "[lock_queue]") {
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

TEST_CASE("lock queue: every order of the list and every place in the queue", "[lock_queue]") {
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
        names in_queue;
        for (std::size_t i = 0; i < queue.size(); ++i) in_queue.push_back(node(static_cast<int>(i), queue[i]));
        names list = in_queue;
        std::sort(list.begin(), list.end());
        do {
            REQUIRE(in_order(list, "lock-", "/locks/a") == in_queue);
            for (std::size_t me = 0; me < in_queue.size(); ++me) {
                const lock_step step = step_of(list, in_queue[me], id_of(static_cast<int>(me)));
                REQUIRE(step.what == (me == 0 ? kind::owned : kind::wait));
                REQUIRE(step.position == me);
                REQUIRE(step.predecessor == (me == 0 ? "" : in_queue[me - 1]));
                REQUIRE(step.duplicates.empty());
            }
        } while (std::next_permutation(list.begin(), list.end()));
    }
}

TEST_CASE("lock queue: own node missing", "[lock_queue]") {
    const names others{node(1, 1), node(2, 2), node(3, 4)};
    for (const std::int32_t sequence : {0, 3, 9}) {
        const lock_step step = step_of(others, node(9, sequence), id_of(9));
        CHECK(step.what == kind::gone);
        CHECK(step.predecessor.empty());
        CHECK(step.duplicates.empty());
    }
    CHECK(step_of({}, node(9, 0), id_of(9)).what == kind::gone);
    CHECK(step_of(others, "", id_of(9)).what == kind::gone);
    CHECK(step_of(others, "lock-1", id_of(9)).what == kind::gone);  // that is nobody's node

    // The same sequence number under another name is not ours.
    CHECK(step_of({node(1, 5)}, node(9, 5), id_of(9)).what == kind::gone);
}

TEST_CASE("lock queue: duplicates of our own are no contenders", "[lock_queue]") {
    // A create that was sent twice: one of the nodes is ours, the others are to be removed.
    const names children{node(1, 3), node(9, 4), node(9, 6), node(2, 5), node(9, 2)};
    const lock_step step = step_of(children, node(9, 6), id_of(9));
    CHECK(step.what == kind::wait);
    CHECK(step.predecessor == node(2, 5));
    CHECK(step.position == 2);
    CHECK(step.duplicates == names{node(9, 4), node(9, 2)});

    const lock_step alone = step_of({node(9, 4), node(9, 6)}, node(9, 6), id_of(9));
    CHECK(alone.what == kind::owned);
    CHECK(alone.position == 0);
    CHECK(alone.duplicates == names{node(9, 4)});

    const lock_step gone = step_of({node(9, 4), node(1, 5)}, node(9, 6), id_of(9));
    CHECK(gone.what == kind::gone);
    CHECK(gone.duplicates == names{node(9, 4)});
}

TEST_CASE("lock queue: nobody waits for a successor", "[lock_queue]") {
    const lock_step step = step_of({node(1, 8), node(2, 9), node(9, 7)}, node(9, 7), id_of(9));
    CHECK(step.what == kind::owned);
    CHECK(step.position == 0);
    CHECK(step.predecessor.empty());
}

TEST_CASE("lock queue: a foreign child is named", "[lock_queue]") {
    for (const std::string& foreign : {std::string("config"), std::string("lock-1"), std::string("lock-99999999990")}) {
        for (std::size_t at = 0; at < 3; ++at) {
            names children{node(1, 1), node(9, 2)};
            children.insert(children.begin() + static_cast<std::ptrdiff_t>(at), foreign);
            const auto in_step = error_of([&] { step_of(children, node(9, 2), id_of(9)); });
            const auto in_list = error_of([&] { in_order(children, "lock-", "/locks/a"); });
            for (const auto& e : {in_step, in_list}) {
                REQUIRE(e);
                CHECK(e->code() == errc::foreign_child);
                CHECK(e->path() == "/locks/a");
                CHECK(has(e->what(), '"' + foreign + '"'));
                CHECK(has(e->what(), "lock-<sequence>"));
            }
        }
    }
    // Of several the first in the list.
    const auto e = error_of([&] { step_of({node(9, 1), "second", "first"}, node(9, 1), id_of(9)); });
    REQUIRE(e);
    CHECK(has(e->what(), "\"second\""));
}

TEST_CASE("lock queue: another marker is foreign", "[lock_queue]") {
    const names children{"_c_x-write-0000000001"};
    CHECK(error_of([&] { step_of(children, node(9, 1), id_of(9)); }));
    CHECK(in_order(children, "write-", "/d") == children);
    CHECK(in_order({}, "lock-", "/d").empty());
}
