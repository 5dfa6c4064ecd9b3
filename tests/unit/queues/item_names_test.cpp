#include "support/catch.hpp"

#include <zkasio/error.hpp>
#include <zkasio/queues/detail/item_layout.hpp>

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace item_names_tests {

using namespace zkasio;
using namespace zkasio::queue_detail;
using texts = std::vector<std::string>;

namespace {

const item_names kazoo(queue_kind::kazoo_locking), plain(queue_kind::curator), urgent(queue_kind::curator_priority),
    timed(queue_kind::curator_delay), named(queue_kind::curator_id), simple(queue_kind::curator_simple);

server_time at(std::int64_t ms) { return server_time(std::chrono::milliseconds(ms)); }
put_options priority(int n) { return put_options().priority(n); }

std::error_code refusal(const item_names& names, const put_options& how) {
    try {
        static_cast<void>(names.prefix(how));
    } catch (const error& e) {
        return e.code();
    }
    return {};
}

}  // namespace

TEST_CASE("queue items: names are those of kazoo's LockingQueue", "[work_queue]") {
    CHECK(kazoo.prefix(put_options()) == "entry-100-");
    CHECK(kazoo.prefix(priority(0)) == "entry-000-");
    CHECK(kazoo.prefix(priority(7)) == "entry-007-");
    CHECK(kazoo.prefix(priority(999)) == "entry-999-");
    CHECK(kazoo.prefix_of("entry-100-0000000012") == "entry-100-");
    CHECK(kazoo.prefix_of("entry-100--000000012") == "entry-100-");
    CHECK(kazoo.prefix_of("entry-100--2147483648") == "entry-100-");
    CHECK(kazoo.prefix_of("entry-1000-0000000012") == "entry-1000-");
    for (const char* name :
         {"", "entry-", "entry-100-", "entry-0000000012", "entry-10-0000000012", "item-100-0000000012", "entry-100-12",
          "entry-1x0-0000000012", "entry-100-00000000xx", "entry--0000000012"}) {
        INFO(name);
        CHECK(kazoo.prefix_of(name).empty());
    }
    CHECK(item_names(queue_kind::kazoo).prefix(priority(7)) == "entry-007-");
}

TEST_CASE("queue items: names are those of Curator's queues", "[work_queue]") {
    CHECK(plain.prefix(put_options()) == "queue-");
    CHECK(simple.prefix(put_options()) == "qn-");
    CHECK(urgent.prefix(put_options()) == "queue-100000064");
    CHECK(urgent.prefix(priority(0)) == "queue-100000000");
    CHECK(urgent.prefix(priority(-1)) == "queue-0FFFFFFFF");
    CHECK(urgent.prefix(priority(std::numeric_limits<int>::max())) == "queue-17FFFFFFF");
    CHECK(urgent.prefix(priority(std::numeric_limits<int>::min())) == "queue-080000000");
    CHECK(timed.prefix(put_options(), at(0x18f0a1b2c3d)) == "queue-|18F0A1B2C3D|");
    CHECK(timed.prefix(put_options(), at(1)) == "queue-|00000001|");
    CHECK(named.prefix(put_options().id("a/b|c d")) == "queue-|a_b_c d|");
    struct row {
        const item_names& names;
        const char* name;
        const char* prefix;
    };
    for (const row& r : {row{plain, "queue-0000000012", "queue-"},
                         {plain, "queue--000000012", "queue-"},
                         {plain, "queue--2147483648", "queue-"},
                         {plain, "queue-2147483647", "queue-"},
                         {plain, "queue-1000000640000000012", ""},
                         {plain, "queue-|a|0000000012", ""},
                         {plain, "queue-", ""},
                         {plain, "queue-12", ""},
                         {plain, "qn-0000000012", ""},
                         {simple, "qn-0000000012", "qn-"},
                         {simple, "qn--2147483648", "qn-"},
                         {simple, "queue-0000000012", ""},
                         {simple, "xqn-0000000012", ""},
                         {urgent, "queue-1000000640000000012", "queue-100000064"},
                         {urgent, "queue-0FFFFFFFF2147483647", "queue-0FFFFFFFF"},
                         {urgent, "queue-100000064-2147483648", "queue-100000064"},
                         {urgent, "queue-100000064-000000001", "queue-100000064"},
                         {urgent, "queue-2000000640000000012", ""},
                         {urgent, "queue-10000006g0000000012", ""},
                         {urgent, "queue-0000000012", "queue-"},
                         {urgent, "queue--2147483648", "queue-"},
                         {urgent, "queue-12", ""},
                         {urgent, "queue-00000000120", ""},
                         {timed, "queue-|18F0A1B2C3D|0000000012", "queue-|18F0A1B2C3D|"},
                         {timed, "queue-|18f0a1b2c3d|-2147483648", "queue-|18f0a1b2c3d|"},
                         {timed, "queue-|7FFFFFFFFFFFFFFF|0000000012", "queue-|7FFFFFFFFFFFFFFF|"},
                         {timed, "queue-|FFFFFFFFFFFFFFFF|0000000012", ""},
                         {timed, "queue-|-1|0000000012", ""},
                         {timed, "queue-||0000000012", ""},
                         {timed, "queue-|0000000012", ""},
                         {timed, "queue-|xyz|0000000012", ""},
                         {timed, "queue-0000000012", "queue-"},
                         {timed, "queue--2147483648", "queue-"},
                         {timed, "qn-0000000012", ""},
                         {named, "queue-0000000012", ""},
                         {named, "queue-|a_b|0000000012", "queue-|a_b|"},
                         {named, "queue-|0000000007|-2147483648", "queue-|0000000007|"},
                         {named, "queue-||0000000012", ""},
                         {named, "queue-|a|b|0000000012", ""},
                         {named, "queue-|a|", ""}}) {
        INFO(r.name);
        CHECK(r.names.prefix_of(r.name) == r.prefix);
    }
}

TEST_CASE("queue items: an item that Curator has put again, without priority or time, is the first", "[work_queue]") {
    const texts urgent_ones = {"queue-0000000012", "queue-0800000000000000001", "queue-1000000010000000000"};
    CHECK(urgent.in_order({urgent_ones[2], urgent_ones[0], urgent_ones[1]}, "/q") == urgent_ones);
    const texts timed_ones = {"queue-0000000012", "queue-|00000001|0000000000"};
    CHECK(timed.in_order({timed_ones[1], timed_ones[0]}, "/q") == timed_ones);
    CHECK(timed.due(timed_ones[0]) == at(0));
    CHECK(timed.prefix_of_dead("queue-0000000012.4d") == "queue-");
}

TEST_CASE("queue items: what a layout cannot express is refused", "[work_queue]") {
    for (const item_names* names : {&kazoo, &plain, &urgent, &timed, &simple}) {
        CHECK_FALSE(refusal(*names, put_options()));
        CHECK(refusal(*names, put_options().id("a")) == errc::invalid_argument);
    }
    for (const item_names* names : {&plain, &timed, &simple})
        CHECK(refusal(*names, priority(100)) == errc::invalid_argument);
    CHECK(refusal(kazoo, priority(-1)) == errc::invalid_argument);
    CHECK(refusal(kazoo, priority(1000)) == errc::invalid_argument);
    CHECK_FALSE(refusal(urgent, priority(1000)));
    CHECK(refusal(named, put_options()) == errc::invalid_argument);
    CHECK(refusal(named, put_options().id("")) == errc::invalid_argument);
    CHECK(refusal(named, put_options().id(std::string(513, 'x'))) == errc::invalid_argument);
    CHECK(refusal(named, put_options().id("a").priority(1)) == errc::invalid_argument);
    CHECK_FALSE(refusal(named, put_options().id(std::string(512, 'x'))));
}

TEST_CASE(
    "queue items: by priority, then as they were put, also where numbers "
    "wrap around",
    "[work_queue]") {
    const texts right = {
        "entry-005-0000000009",  "entry-100-2147483646", "entry-100-2147483647", "entry-100--2147483648",
        "entry-100--2147483647", "entry-100--000000001", "entry-100-0000000000", "entry-101-2147483645",
    };
    texts children = right;
    children.erase(children.begin());  // its number is too far away from the others
    children.erase(children.begin() + 4, children.begin() + 6);
    const texts expected = children;
    std::sort(children.begin(), children.end());
    do {
        CHECK(kazoo.in_order(children, "/q") == expected);
    } while (std::next_permutation(children.begin(), children.end()));
    CHECK(kazoo.in_order({"entry-100-0000000001", "entry-005-0000000002", "entry-100-0000000000"}, "/q") ==
          texts{"entry-005-0000000002", "entry-100-0000000000", "entry-100-0000000001"});
    CHECK(kazoo.in_order({}, "/q").empty());
}

TEST_CASE("queue items: the order of Curator's queues", "[work_queue]") {
    struct row {
        const item_names& names;
        texts expected;
    };
    for (const row& r :
         {row{plain, {"queue-2147483646", "queue-2147483647", "queue--2147483648", "queue--2147483647"}},
          row{simple, {"qn--000000002", "qn--000000001", "qn-0000000000", "qn-0000000001"}},
          row{urgent,
              {"queue-0800000000000000009", "queue-0FFFFFFFF0000000005", "queue-1000000002147483647",
               "queue-100000000-2147483648", "queue-10000000A-2147483647"}},
          row{timed,
              {"queue-|00000001|0000000009", "queue-|FFFFFFFF|0000000002", "queue-|100000000|0000000001",
               "queue-|18F0A1B2C3D|0000000000", "queue-|18F0A1B2C3D|0000000003"}},
          row{named, {"queue-|z|0000000000", "queue-|a|0000000001", "queue-|m|0000000002"}}}) {
        texts children = r.expected;
        std::sort(children.begin(), children.end());
        do {
            if (&r.names == &urgent && children.front().ends_with("7")) continue;  // the base of numbers
            CHECK(r.names.in_order(children, "/q") == r.expected);
        } while (std::next_permutation(children.begin(), children.end()));
    }
    CHECK(timed.due("queue-|18F0A1B2C3D|0000000003") == at(0x18f0a1b2c3d));
    CHECK(plain.due("queue-0000000003") == server_time());
    CHECK(timed.tell_times());
    CHECK_FALSE(plain.tell_times());
}

TEST_CASE("queue items: a child that is no item is named", "[work_queue]") {
    std::string said;
    try {
        kazoo.in_order({"entry-100-0000000001", "lock-0000000002"}, "/q/entries");
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
    const server_time due = at(0x18f0a1b2c3d);
    CHECK(kazoo.later_prefix(due, priority(7)) == "0018f0a1b2c3d-007-");
    const std::optional<later_item> item = kazoo.parse_later("0018f0a1b2c3d-007-0000000012");
    REQUIRE(item);
    CHECK(item->due == due);
    CHECK(item->name == "0018f0a1b2c3d-007-0000000012");
    CHECK(item->prefix == "entry-007-");
    const std::optional<later_item> wrapped = kazoo.parse_later("0018f0a1b2c3d-100--2147483648");
    REQUIRE(wrapped);
    CHECK(wrapped->prefix == "entry-100-");
    for (const char* name :
         {"", "0018f0a1b2c3d", "0018f0a1b2c3d-", "0018f0a1b2c3d-0000000012", "0018f0a1b2c3x-100-0000000012",
          "-018f0a1b2c3d-100-0000000012", "18f0a1b2c3d-100-0000000012", "notes"}) {
        INFO(name);
        CHECK_FALSE(kazoo.parse_later(name));
    }
    CHECK(dead_name("entry-100-0000000012", 0x1a2b) == "entry-100-0000000012.1a2b");
    CHECK(kazoo.prefix_of_dead("entry-100-0000000012.1a2b") == "entry-100-");
    CHECK(kazoo.prefix_of_dead("entry-100--2147483648.0") == "entry-100-");
    CHECK(kazoo.prefix_of_dead("notes").empty());
    CHECK(kazoo.prefix_of_dead("").empty());
    for (const char* name : {"entry-100-0000000012.1a2b/reason", "entry-100-0000000012", "entry-100-0000000012.",
                             "entry-100-0000000012.1g", "entry-100-0000000012.1A", "./entry-100-0000000012.1"}) {
        INFO(name);
        CHECK(kazoo.prefix_of_dead(name).empty());
    }
    // Other layouts: what a name tells survives the wait.
    for (const auto& [names, how] :
         {std::pair(&plain, put_options()), std::pair(&simple, put_options()), std::pair(&urgent, priority(-3)),
          std::pair(&named, put_options().id("0018.f0"))}) {
        const std::optional<later_item> later = names->parse_later(names->later_prefix(due, how) + "0000000012");
        REQUIRE(later);
        CHECK(later->due == due);
        CHECK(later->prefix == names->prefix(how));
        CHECK(names->prefix_of_dead(dead_name(later->prefix + "-000000001", 7)) == later->prefix);
    }
}

}  // namespace item_names_tests
