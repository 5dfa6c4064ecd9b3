#include "support/catch.hpp"

#include <zkasio/membership/detail/division.hpp>

#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::membership_detail;
using namespace std::chrono_literals;

namespace {

using ids = std::vector<std::string>;

boot_clock::time_point at(std::chrono::seconds t) { return boot_clock::time_point(1000h + t); }

// Of nodes "<node>": the first letter is the id.
group_view view_of(const ids& nodes) {
    group_view view;
    for (const std::string& node : nodes) view.members.push_back({node.substr(0, 1), {}, "/party/" + node});
    return view;
}

}  // namespace

TEST_CASE("member history: members that have been the same for long enough", "[partitioner]") {
    member_history h(10s, 100s);
    h.see(view_of({"a1"}), at(0s));
    CHECK(h.due() == at(10s));
    h.see(view_of({"a1", "b1"}), at(6s));
    CHECK(h.due() == at(16s));
    CHECK(h.settled_at(h.due()));
    CHECK(h.members_at(h.due()) == ids{"a", "b"});
    h.tried(h.due());
    h.see(view_of({"b1"}), at(500s));  // the first change since: the limit begins with it
    CHECK(h.due() == at(510s));
    CHECK(h.members_at(h.due()) == ids{"b"});
}

TEST_CASE("member history: members that come and go are divided at the limit by those that have stayed",
          "[partitioner]") {
    member_history h(10s, 25s);
    h.see(view_of({"a1", "b1"}), at(0s));
    h.see(view_of({"a1", "b1", "c1"}), at(9s));
    h.see(view_of({"a1", "b1", "c2"}), at(18s));  // has gone and come again
    CHECK(h.due() == at(25s));
    CHECK_FALSE(h.settled_at(h.due()));
    CHECK(h.members_at(h.due()) == ids{"a", "b"});
    h.tried(h.due());
    CHECK(h.due() == at(28s));  // if nothing else happens
    CHECK(h.settled_at(h.due()));
    CHECK(h.members_at(h.due()) == ids{"a", "b", "c"});
    h.see(view_of({"a1", "c2"}), at(27s));
    h.see(view_of({"a1", "c2", "d1"}), at(36s));
    h.see(view_of({"a1", "c2"}), at(45s));
    CHECK(h.due() == at(50s));
    CHECK_FALSE(h.settled_at(h.due()));
    CHECK(h.members_at(h.due()) == ids{"a", "c"});
}

TEST_CASE("member history: times that are never or at once", "[partitioner]") {
    constexpr auto never = boot_clock::duration::max();
    member_history for_ever(never, never);
    for_ever.see(view_of({"a1"}), at(0s));
    CHECK(for_ever.due() == boot_clock::time_point::max());
    member_history at_once(0s, 0s), shorter(10s, 1s);
    at_once.see(view_of({"a1"}), at(0s));
    CHECK(at_once.due() == at(0s));
    CHECK(at_once.settled_at(at(0s)));
    shorter.see(view_of({"a1"}), at(0s));
    CHECK(shorter.due() == at(10s));
    CHECK(shorter.settled_at(at(10s)));
}

TEST_CASE("member history: without a time to settle, members that come at the same time are divided at once",
          "[partitioner]") {
    member_history h(0s, 0s);
    h.see(view_of({"a1"}), at(0s));
    h.see(view_of({"a1", "b1"}), at(1s));  // before there was a time to divide
    CHECK(h.settled_at(at(1s)));
    CHECK(h.members_at(at(1s)) == ids{"a", "b"});
    h.tried(at(1s));
    CHECK(h.due() == at(1s));
}

TEST_CASE("member history: whoever was suspended for hours divides once, and then waits", "[partitioner]") {
    member_history h(1s, 10s);
    h.see(view_of({"a1"}), at(0s));
    h.see(view_of({"a1", "b1"}), at(30'000s));
    CHECK(h.due() == at(10s));
    CHECK_FALSE(h.settled_at(at(30'000s)));
    CHECK(h.members_at(at(30'000s)) == ids{"a"});
    h.tried(at(30'000s));
    CHECK(h.due() == at(30'001s));
    CHECK(h.settled_at(at(30'001s)));
}

TEST_CASE("member history: views that show the same members begin nothing anew", "[partitioner]") {
    member_history h(10s, 100s);
    group_view view = view_of({"a1", "b1"});
    h.see(view, at(0s));
    view.current = !view.current;
    h.see(view, at(7s));
    CHECK(h.due() == at(10s));
    h.tried(h.due());
    view.current = !view.current;
    h.see(view, at(60s));
    CHECK(h.due() == at(10s));
    CHECK(h.settled_at(at(60s)));
    h.tried(at(60s));
    view.members.back().data = "another plan";
    h.see(view, at(70s));
    CHECK(h.due() == at(80s));
    CHECK(h.members_at(at(80s)) == ids{"a", "b"});
}
