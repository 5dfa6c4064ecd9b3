#include "support/catch.hpp"

#include <zkasio/locks/detail/slot_names.hpp>

#include <string>
#include <vector>

namespace slot_names_tests {

using namespace zkasio::lock_detail;

namespace {

// "0 3*": the numbers, those that were used before with a star.
std::string free_of(const std::vector<std::string>& children, std::uint32_t n, bool rests) {
    std::string all;
    for (const free_slot& slot : free_slots(children, n, rests)) {
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
    CHECK(free_of({}, 3, false) == "0 1 2");
    CHECK(free_of({"1"}, 3, false) == "0 2");
    CHECK(free_of({"2", "0", "1"}, 3, false).empty());
    CHECK(free_of({"3", "01", "x", "_c_0"}, 3, false) == "0 1 2");
    CHECK(free_of({"used-0", "1"}, 3, false) == "0* 2");
}

TEST_CASE("slots: numbers that rest end with one that never was used", "[slots]") {
    CHECK(free_of({}, 3, true) == "0");
    CHECK(free_of({"0", "used-0", "used-1", "clock"}, 4, true) == "1* 2");
    CHECK(free_of({"used-0", "used-1", "used-2"}, 3, true) == "0* 1* 2*");
    CHECK(free_of({"used-00", "used-", "used-9"}, 3, true) == "0");
}

}  // namespace slot_names_tests
