#include "support/catch.hpp"

#include <zkasio/error.hpp>
#include <zkasio/queues/detail/item_names.hpp>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace item_names_tests {

using namespace zkasio;
using namespace zkasio::queue_detail;

TEST_CASE("queue items: names are those of kazoo's LockingQueue", "[work_queue]") {
    CHECK(item_prefix(100) == "entry-100-");
    CHECK(item_prefix(0) == "entry-000-");
    CHECK(item_prefix(7) == "entry-007-");
    CHECK(item_prefix(999) == "entry-999-");
    CHECK(prefix_of("entry-100-0000000012") == "entry-100-");
    CHECK(prefix_of("entry-100--000000012") == "entry-100-");
    CHECK(prefix_of("entry-100--2147483648") == "entry-100-");
    CHECK(prefix_of("entry-1000-0000000012") == "entry-1000-");
    for (const char* name :
         {"", "entry-", "entry-100-", "entry-0000000012", "entry-10-0000000012", "item-100-0000000012", "entry-100-12",
          "entry-1x0-0000000012", "entry-100-00000000xx", "entry--0000000012"}) {
        INFO(name);
        CHECK(prefix_of(name).empty());
    }
}

TEST_CASE(
    "queue items: by priority, then as they were put, also where numbers "
    "wrap around",
    "[work_queue]") {
    const std::vector<std::string> right = {
        "entry-005-0000000009",  "entry-100-2147483646", "entry-100-2147483647", "entry-100--2147483648",
        "entry-100--2147483647", "entry-100--000000001", "entry-100-0000000000", "entry-101-2147483645",
    };
    std::vector<std::string> children = right;
    children.erase(children.begin());  // its number is too far away from the others
    children.erase(children.begin() + 4, children.begin() + 6);
    const std::vector<std::string> expected = children;
    std::sort(children.begin(), children.end());
    do {
        CHECK(in_order(children, "/q") == expected);
    } while (std::next_permutation(children.begin(), children.end()));
    CHECK(in_order({"entry-100-0000000001", "entry-005-0000000002", "entry-100-0000000000"}, "/q") ==
          std::vector<std::string>{"entry-005-0000000002", "entry-100-0000000000", "entry-100-0000000001"});
    CHECK(in_order({}, "/q").empty());
}

TEST_CASE("queue items: a child that is no item is named", "[work_queue]") {
    std::string said;
    try {
        in_order({"entry-100-0000000001", "lock-0000000002"}, "/q/entries");
    } catch (const error& e) {
        CHECK(e.code() == errc::foreign_child);
        said = e.what();
    }
    CHECK(said ==
          "receive /q/entries: directory has children that are no contenders (child "
          "\"lock-0000000002\" is no item of this queue: use a "
          "directory of its own)");
}

TEST_CASE("queue items: the names of items that wait for a time, and of dead ones", "[work_queue]") {
    const server_time due{std::chrono::milliseconds(0x18f0a1b2c3d)};
    CHECK(later_prefix(due, 7) == "0018f0a1b2c3d-007-");
    const std::optional<later_item> item = parse_later("0018f0a1b2c3d-007-0000000012");
    REQUIRE(item);
    CHECK(item->due == due);
    CHECK(item->name == "0018f0a1b2c3d-007-0000000012");
    CHECK(item->prefix == "entry-007-");
    const std::optional<later_item> wrapped = parse_later("0018f0a1b2c3d-100--2147483648");
    REQUIRE(wrapped);
    CHECK(wrapped->prefix == "entry-100-");
    for (const char* name :
         {"", "0018f0a1b2c3d", "0018f0a1b2c3d-", "0018f0a1b2c3d-0000000012", "0018f0a1b2c3x-100-0000000012",
          "-018f0a1b2c3d-100-0000000012", "18f0a1b2c3d-100-0000000012", "notes"}) {
        INFO(name);
        CHECK_FALSE(parse_later(name));
    }
    CHECK(dead_name("entry-100-0000000012", 0x1a2b) == "entry-100-0000000012.1a2b");
    CHECK(prefix_of_dead("entry-100-0000000012.1a2b") == "entry-100-");
    CHECK(prefix_of_dead("entry-100--2147483648.0") == "entry-100-");
    CHECK(prefix_of_dead("notes").empty());
    CHECK(prefix_of_dead("").empty());
}

}  // namespace item_names_tests
