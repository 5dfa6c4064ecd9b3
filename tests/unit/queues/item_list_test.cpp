#include "support/catch.hpp"

#include <zkasio/queues/detail/item_list.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace item_list_tests {

using namespace zkasio;
using namespace zkasio::queue_detail;
using namespace std::chrono_literals;
using texts = std::vector<std::string>;

namespace {

const boot_clock::time_point start{};

texts names(int n) {
    texts all;
    for (int i = 0; i < n; ++i) all.push_back("i" + std::to_string(1000 + i));
    return all;
}

}  // namespace

TEST_CASE(
    "item list: the free items in order, and the listing serves until "
    "they are used up",
    "[work_queue]") {
    item_list l;
    CHECK(l.must_list(start));
    CHECK(l.empty());
    l.list({"a", "b", "c", "d"}, {"b", "x"}, start);
    CHECK(l.first(2) == texts{"a", "c"});
    CHECK(l.first(9) == texts{"a", "c", "d"});
    CHECK_FALSE(l.must_list(start + 1h));
    for (const char* name : {"a", "c", "d"}) l.remove(name);
    CHECK(l.empty());
    CHECK_FALSE(l.must_list(start + 1h));  // the watches tell of the next item
    l.changed();
    CHECK(l.must_list(start));
    l.list({"e"}, {}, start);
    CHECK_FALSE(l.must_list(start));
    l.forget();
    CHECK(l.empty());
    CHECK(l.must_list(start));
}

TEST_CASE("item list: items that are stepped over come back with the next listing, which is no sooner",
          "[work_queue]") {
    item_list l;
    l.list(names(160), {}, start);
    l.step_over(100);
    CHECK(l.first(1) == texts{"i1100"});
    CHECK_FALSE(l.must_list(start));
    CHECK(l.must_list(start + 1s));
    l.step_over(100);
    CHECK(l.empty());
    CHECK(l.must_list(start));
}

TEST_CASE(
    "item list: a change is looked at soon, in a long list after a share "
    "of it, or a second",
    "[work_queue]") {
    item_list l;
    l.list(names(160), {}, start);
    l.changed();
    const texts all = names(160);
    for (std::size_t i = 0; i < 9; ++i) {
        l.remove(all[i]);
        CHECK_FALSE(l.must_list(start + 999ms));
    }
    CHECK(l.must_list(start + 1s));
    l.remove("unknown");
    CHECK_FALSE(l.must_list(start));
    l.remove(all[9]);
    CHECK(l.must_list(start));
    l.list(names(3), {}, start);
    l.changed();
    CHECK_FALSE(l.must_list(start));
    l.remove("i1000");
    CHECK(l.must_list(start));
}

TEST_CASE("item list: behind a refused item, the rest of its transaction is left out", "[work_queue]") {
    item_list l;
    l.list({"a", "b", "c", "d", "e"}, {}, start);
    l.leave_out("b", 3);
    CHECK(l.first(9) == texts{"a", "d", "e"});
    CHECK(l.must_list(start));  // a short list costs little
    for (const char* name : {"a", "d", "e"}) l.remove(name);
    CHECK(l.must_list(start));  // the list is not complete
    l.list({"a", "b", "c"}, {}, start);
    l.leave_out("c", 2);  // not one of them
    CHECK(l.first(9) == texts{"a", "b", "c"});
    CHECK_FALSE(l.must_list(start));
    l.list(names(1000), {}, start);
    l.leave_out("i1000", 32);
    CHECK_FALSE(l.must_list(start));
    CHECK(l.first(1) == texts{"i1032"});
}

TEST_CASE("item list: behind items that are gone, the next ones are left out", "[work_queue]") {
    item_list l;
    l.list({"a", "b", "c", "d", "e"}, {}, start);
    l.remove("a");
    l.leave_out_next(1, 2);
    CHECK(l.first(9) == texts{"b", "e"});
    CHECK(l.must_list(start));
    l.leave_out_next(1, 5);
    CHECK(l.first(9) == texts{"b"});
    l.leave_out_next(3, 1);
    CHECK(l.first(9) == texts{"b"});
    l.list(names(1000), {}, start);
    l.leave_out_next(0, 62);
    CHECK_FALSE(l.must_list(start));  // they are listed again after a sixteenth of the list
    l.leave_out_next(0, 1);
    CHECK(l.must_list(start));
}

TEST_CASE("item list: an item that is left out until a time is in no listing before, and then listed again",
          "[work_queue]") {
    item_list l;
    l.list({"a", "b", "c"}, {}, start);
    CHECK(l.refuse_until("a", start + 10s));
    CHECK(l.refuse_until("b", boot_clock::time_point::max()));
    CHECK(l.first(9) == texts{"c"});
    CHECK(l.next_return() == start + 10s);
    CHECK_FALSE(l.must_list(start + 9s));
    CHECK(l.must_list(start + 10s));  // a second after the last listing
    l.list({"a", "b", "c"}, {}, start + 9s);
    CHECK(l.first(9) == texts{"c"});
    CHECK(l.next_return() == start + 10s);
    l.remove("c");
    CHECK_FALSE(l.must_list(start + 9s));
    CHECK(l.must_list(start + 10s));
    l.forget();
    l.begin_listing();
    CHECK_FALSE(l.must_list(start + 10s));
    l.changed();
    CHECK(l.must_list(start + 10s));
    l.list({"a", "b", "d"}, {"d"}, start + 10s);
    CHECK(l.first(9) == texts{"a"});
    CHECK(l.next_return() == boot_clock::time_point::max());
    CHECK_FALSE(l.must_list(start + 1h));
    CHECK_FALSE(l.refuse_until("a", start + 20s));  // refused again
    l.list({"a", "b"}, {}, start + 20s);
    CHECK(l.first(9) == texts{"a"});
    l.remove("a");  // claimed
    CHECK(l.refuse_until("a", start + 30s));
    l.list({"b"}, {}, start + 21s);
    CHECK(l.empty());
    l.list({"a", "b"}, {}, start + 22s);  // another item of the same name
    CHECK(l.first(9) == texts{"a"});
}

}  // namespace item_list_tests
