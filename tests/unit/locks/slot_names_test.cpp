#include "support/catch.hpp"

#include <zkasio/locks/detail/slot_rest.hpp>

#include <string>
#include <vector>

namespace slot_names_tests {

using namespace zkasio::lock_detail;

namespace {

// "0 3*": the numbers, those that were used before with a star.
std::string free_of(const std::vector<std::string>& children, std::uint32_t n) {
    std::string all;
    for (const free_slot& slot : free_slots(children, n)) {
        if (!all.empty()) all += ' ';
        all += std::to_string(slot.number) + (slot.used_before ? "*" : "");
    }
    return all;
}

}  // namespace

TEST_CASE("slots: a number is a name of its own", "[slots]") {
    CHECK(slot_of("0", 8) == 0u);
    CHECK(slot_of("7", 8) == 7u);
    for (const char* name : {"8", "07", "00", "-1", "+1", "1 ", "", "x", "1x", "used-1", "clock", "99999999999"})
        CHECK_FALSE(slot_of(name, 8));
    CHECK(used_name(12) == "used-12");
}

TEST_CASE("slots: the lowest free numbers come first", "[slots]") {
    CHECK(free_of({}, 3) == "0 1 2");
    CHECK(free_of({"1"}, 3) == "0 2");
    CHECK(free_of({"2", "0", "1"}, 3).empty());
    CHECK(free_of({"3", "01", "x", "_c_0"}, 3) == "0 1 2");
    CHECK(free_of({"used-0", "1"}, 3) == "0* 2");
}

TEST_CASE("slots: which free numbers were used before", "[slots]") {
    CHECK(free_of({"0", "used-0", "used-1", "clock"}, 4) == "1* 2 3");
    CHECK(free_of({"used-0", "used-1", "used-2"}, 3) == "0* 1* 2*");
    CHECK(free_of({"used-00", "used-", "used-9"}, 3) == "0 1 2");
}

TEST_CASE("slots: an acquire tries the lowest number first, and others after refusals", "[slots]") {
    const auto order = [](std::uint32_t n, unsigned refusals, std::uint64_t random) {
        std::vector<free_slot> free = free_slots({}, n);
        spread(free, refusals, random);
        std::vector<std::uint32_t> numbers;
        for (const free_slot& slot : free) numbers.push_back(slot.number);
        return numbers;
    };
    using numbers = std::vector<std::uint32_t>;
    CHECK(order(6, 0, 5) == numbers{0, 1, 2, 3, 4, 5});
    CHECK(order(6, 1, 4) == numbers{0, 1, 2, 3, 4, 5});
    CHECK(order(6, 1, 7) == numbers{3, 0, 1, 2, 4, 5});
    CHECK(order(6, 2, 5) == numbers{5, 0, 1, 2, 3, 4});
    CHECK(order(6, 1000, 8) == numbers{2, 3, 4, 5, 0, 1});
    CHECK(order(1, 3, 8) == numbers{0});
    CHECK(order(0, 3, 8).empty());
    CHECK(order(65'536, 8, 65'535).front() == 65'535);
}

}  // namespace slot_names_tests
