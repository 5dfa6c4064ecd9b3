#include "unit/locks/order_nodes.hpp"
#include "unit/support/error_of.hpp"

#include <zkasio/locks/detail/queue/lock_queue.hpp>

#include <limits>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::lock_detail;
using namespace zkasio::test;
using verdict = queue_order::verdict;

TEST_CASE("queue order: alone", "[queue]") {
    queue_order o(mutex_names);
    CHECK(o.head() == nullptr);
    const queue_key p = o.enter(lock(7), somebody());
    CHECK(o.next().what == verdict::unknown);
    list(o, {lock(7)});
    CHECK(o.next().what == verdict::granted);
    o.grant(p);
    CHECK(o.head() == nullptr);
    CHECK_FALSE(o.empty());
    o.leave(p);
    CHECK(o.empty());
}

// Fails without G5 and G11.
TEST_CASE("queue order: whoever comes right behind one of our own needs no listing", "[queue]") {
    queue_order o(mutex_names);
    const queue_key first = o.enter(lock(3), somebody());
    list(o, {lock(3)});
    o.grant(first);
    const queue_key second = o.enter(lock(4), somebody());
    CHECK(o.next().what == verdict::local);
    o.leave(first);
    CHECK(o.next().what == verdict::granted);
    o.grant(second);
    o.departed(first);
    SECTION("but when that one leaves before we know of the newcomer, it may have lost its node meanwhile") {
        const auto asked = o.begin_create();
        o.leave(second);
        o.enter(lock(5), somebody(), asked);
        CHECK(o.next().what == verdict::unknown);
    }
    SECTION("but not when nobody was there any more: the directory may be another one") {
        o.leave(second);
        const auto asked = o.begin_create();
        o.enter(lock(5), somebody(), asked);
        CHECK(o.next().what == verdict::unknown);
    }
}

// Fails without G10.
TEST_CASE("queue order: a listing from before a reason to doubt it tells nothing", "[queue]") {
    queue_order o(mutex_names);
    o.enter(lock(3), somebody());
    const auto early = o.begin_listing();
    o.discard_listings();
    CHECK(o.listed({lock(3)}, early).missing.empty());
    CHECK(o.next().what == verdict::unknown);
    list(o, {lock(3)});
    CHECK(o.next().what == verdict::granted);
}

// Fails without G5 and G8.
TEST_CASE("queue order: whoever is leaving an old directory fills no gap in the new one of that name", "[queue]") {
    queue_order o(mutex_names);
    const queue_key old = o.enter(lock(7), somebody(), o.begin_create());
    list(o, {lock(7)});
    o.grant(old);
    o.leave(old);  // which is not answered for long
    const queue_key first = o.enter(lock(5), somebody(), o.begin_create());
    list(o, {lock(5), lock(6)});
    o.grant(first);
    const queue_key second = o.enter(lock(8), somebody(), o.begin_create());
    CHECK_FALSE(o.knows(second));  // number 7 is somebody else
}

// Fails without G5.
TEST_CASE("queue order: whoever's node was deleted may have the next number in another directory", "[queue]") {
    queue_order o(mutex_names);
    o.grant(o.enter(lock(0), somebody(), o.begin_create()));
    const queue_key deleted = o.enter(lock(2), somebody(), o.begin_create());
    list(o, {lock(0), lock(1), lock(2)});
    o.node_deleted(deleted);
    const queue_key anew = o.enter(lock(3), somebody(), o.begin_create());
    CHECK_FALSE(o.knows(anew));
    list(o, {lock(0), lock(1), lock(3)});
    CHECK(o.knows(anew));
}

TEST_CASE("queue order: a listing from before an owner left does not tell whether the next one still has its node",
          "[queue]") {
    queue_order o(mutex_names);
    const queue_key first = o.enter(lock(3), somebody());
    list(o, {lock(3)});
    o.grant(first);
    o.enter(lock(5), somebody());
    const auto look = o.begin_listing();
    o.leave(first);
    o.listed({lock(3), lock(5)}, look);
    CHECK(o.next().what == verdict::unknown);
    list(o, {lock(5)});
    CHECK(o.next().what == verdict::granted);
}

TEST_CASE("queue order: whoever leaves at the end of the queue does not spoil a listing", "[queue]") {
    queue_order o(mutex_names);
    o.enter(lock(3), somebody());
    const queue_key last = o.enter(lock(4), somebody());
    const auto look = o.begin_listing();
    o.leave(last);
    o.listed({lock(3), lock(4)}, look);
    CHECK(o.next().what == verdict::granted);
}

// Fails without G4.
TEST_CASE("queue order: a listing that was sent after the create has to show the node", "[queue]") {
    queue_order o(mutex_names);
    const auto asked = o.begin_create();
    const auto look = o.begin_listing();
    const auto me = somebody();
    o.enter(lock(3), me, asked);
    CHECK(o.listed({lock(5)}, look).missing == std::vector<contender_ptr>{me});
}

// Fails without G1 and G2.
TEST_CASE("queue order: a gap means that somebody else may be there", "[queue]") {
    queue_order o(mutex_names);
    const queue_key first = o.enter(lock(3), somebody());
    list(o, {lock(3)});
    o.grant(first);
    o.enter(lock(5), somebody());
    CHECK(o.next().what == verdict::unknown);  // asked early: it will be needed
    SECTION("somebody is") {
        list(o, {lock(5), lock(3), lock(4)});
        const auto s = o.next();
        REQUIRE(s.what == verdict::remote);
        CHECK(s.blockers.front() == lock(4));
        CHECK(s.all);
        o.leave(first);
        CHECK(o.next().what == verdict::remote);
        o.removed(lock(4));
        CHECK(o.next().what == verdict::granted);
    }
    SECTION("somebody was") {
        list(o, {lock(5), lock(3)});
        CHECK(o.next().what == verdict::local);
        o.leave(first);
        CHECK(o.next().what == verdict::granted);
    }
    SECTION("it is one of ours whose answer comes late") {
        o.enter(lock(4), somebody());
        CHECK(o.next().what == verdict::local);
        o.leave(first);
        CHECK(o.next().what == verdict::granted);
    }
}

TEST_CASE("queue order: the remote contenders in the way, the nearest first", "[queue]") {
    queue_order o(mutex_names);
    o.enter(lock(9), somebody());
    list(o, {lock(2), lock(9), lock(12), lock(5)});
    auto s = o.next();
    REQUIRE(s.what == verdict::remote);
    CHECK(s.blockers == std::vector<std::string>{lock(5), lock(2)});
    CHECK(s.all);
    o.removed(lock(5));
    s = o.next();
    REQUIRE(s.what == verdict::remote);
    CHECK(s.blockers == std::vector<std::string>{lock(2)});
    CHECK(s.all);
    o.removed(lock(2));
    CHECK(o.next().what == verdict::granted);
    o.discard_listings();
    CHECK(o.next().what == verdict::unknown);
}

TEST_CASE("queue order: of many remote contenders in the way only the nearest is to be followed", "[queue]") {
    constexpr auto many = static_cast<std::int32_t>(queue_order::most_followed) + 1;
    queue_order o(mutex_names);
    std::vector<std::string> names;
    for (std::int32_t n = 0; n <= many; ++n) names.push_back(lock(n));
    o.enter(lock(many), somebody());
    list(o, names);
    auto s = o.next();
    REQUIRE(s.what == verdict::remote);
    CHECK(s.blockers == std::vector<std::string>{lock(many - 1)});
    CHECK_FALSE(s.all);
    SECTION("until they are few") {
        o.removed(lock(0));
        s = o.next();
        CHECK(s.blockers.size() == queue_order::most_followed);
        CHECK(s.all);
    }
    SECTION("and the name of the farthest is not kept") {
        o.removed(lock(many - 1));
        s = o.next();
        CHECK(s.blockers == std::vector<std::string>{lock(many - 2)});
        CHECK_FALSE(s.all);
    }
}

TEST_CASE("queue order: a newcomer among listed contenders whose names were not kept needs a listing", "[queue]") {
    queue_order o(mutex_names);
    std::vector<std::string> names;
    for (std::int32_t n = 0; n < 10; ++n) names.push_back(lock(n));
    const auto asked = o.begin_create();
    list(o, names);
    o.enter(lock(4), somebody(), asked);
    CHECK(o.next().what == verdict::unknown);
    list(o, names);
    CHECK(o.next().blockers.size() == 4);
    o.enter(lock(10), somebody());  // right behind them all
    CHECK(o.next_blockers(9).empty());
    const queue_key last = o.enter(lock(11), somebody());
    CHECK(o.look_at(last).predecessor == lock(10));
}

TEST_CASE("queue order: the remote contenders that will be in the way of later heads", "[queue]") {
    using names = std::vector<std::string>;
    queue_order o(mutex_names);
    for (const std::int32_t ours : {2, 3, 6, 8, 14}) o.enter(lock(ours), somebody());
    names all;
    for (std::int32_t n = 0; n < 20; ++n) all.push_back(lock(n));
    list(o, all);
    CHECK(o.next().blockers == names{lock(1), lock(0)});
    CHECK(o.next_blockers(2) == names{lock(4), lock(5)});
    CHECK(o.next_blockers(9) == names{lock(4), lock(5), lock(7)});  // and of the last one too many
    o.discard_listings();
    CHECK(o.next_blockers(9).empty());
}

// Fails without G15.
TEST_CASE("queue order: a listing that still shows our own that have left proves nothing", "[queue]") {
    queue_order o(mutex_names);
    const queue_key first = o.enter(lock(1), somebody());
    list(o, {lock(1)});
    o.grant(first);
    const queue_key second = o.enter(lock(2), somebody());
    o.enter(lock(4), somebody());
    o.leave(second);  // gave up
    o.leave(first);
    const auto look = o.begin_listing();
    CHECK(o.listed({lock(1), lock(2), lock(4)}, look).missing.empty());
    CHECK(o.next().what == verdict::unknown);
    list(o, {lock(4)});
    CHECK(o.next().what == verdict::granted);
}

// Fails without G4.
TEST_CASE("queue order: a node of ours that is not listed is missed, unless it came later than the question",
          "[queue]") {
    queue_order o(mutex_names);
    const contender_ptr old = somebody();
    o.enter(lock(1), old);
    const auto look = o.begin_listing();
    o.enter(lock(2), somebody());
    const auto missing = o.listed({}, look).missing;
    REQUIRE(missing.size() == 1);
    CHECK(missing.front() == old);
    CHECK(o.listed({lock(1), lock(2)}, o.begin_listing()).missing.empty());
    CHECK(o.listed({lock(1)}, o.begin_listing()).missing.size() == 1);
}

// An operator has deleted the nodes of both our own, and another client has come. Fails without G18.
TEST_CASE("queue order: a listing from before we heard of a node does not tell whether it is still there", "[queue]") {
    queue_order o(mutex_names);
    const queue_key gives_up = o.enter(lock(3), somebody(), o.begin_create());
    const auto early = o.begin_listing();
    o.leave(gives_up);
    const auto asked = o.hear_of_create();
    o.enter(lock(4), somebody(), asked);
    o.listed({lock(5)}, early);
    CHECK(o.next().what == verdict::unknown);
    CHECK(o.listed({lock(5)}, o.begin_listing()).missing.size() == 1);
}

// Fails without G3.
TEST_CASE("queue order: what is listed before we know that it is ours", "[queue]") {
    queue_order o(mutex_names);
    o.enter(lock(6), somebody());
    list(o, {lock(5), lock(6)});
    CHECK(o.next().what == verdict::remote);
    const queue_key late = o.enter(lock(5), somebody());
    CHECK(o.next().what == verdict::granted);
    o.grant(late);
    CHECK(o.next().what == verdict::local);
}

// Fails without G5.
TEST_CASE("queue order: a newcomer with a smaller number than ours had before is in another directory", "[queue]") {
    queue_order o(mutex_names);
    const queue_key old = o.enter(lock(4), somebody(), o.begin_create());
    list(o, {lock(4)});
    o.grant(old);
    SECTION("so others may stand before it") {
        o.enter(lock(3), somebody(), o.begin_create());
        o.leave(old);
        CHECK(o.next().what == verdict::unknown);
        list(o, {lock(0), lock(3)});
        const auto s = o.next();
        REQUIRE(s.what == verdict::remote);
        CHECK(s.blockers.front() == lock(0));
    }
    SECTION("unless it was asked for earlier, and only the answer comes late") {
        const auto early = o.begin_create(), late = o.begin_create();
        o.enter(lock(6), somebody(), late);
        o.enter(lock(5), somebody(), early);
        o.leave(old);
        CHECK(o.next().what == verdict::granted);
    }
}

TEST_CASE("queue order: sequence numbers wrap around", "[queue]") {
    constexpr auto highest = std::numeric_limits<std::int32_t>::max();
    constexpr auto lowest = std::numeric_limits<std::int32_t>::min();
    queue_order o(mutex_names);
    const queue_key a = o.enter(lock(highest), somebody());
    list(o, {lock(highest)});
    o.grant(a);
    const queue_key b = o.enter(lock(lowest), somebody());
    CHECK(o.next().what == verdict::local);
    o.enter(lock(lowest + 2), somebody());
    list(o, {lock(lowest + 1), lock(highest), lock(lowest + 2), lock(lowest)});
    o.leave(a);
    CHECK(o.next().what == verdict::granted);
    o.grant(b);
    const auto s = o.next();
    REQUIRE(s.what == verdict::remote);
    CHECK(s.blockers.front() == lock(lowest + 1));
}

TEST_CASE("queue order: a remote contender from before the numbers wrapped around stands ahead", "[queue]") {
    constexpr auto highest = std::numeric_limits<std::int32_t>::max();
    constexpr auto lowest = std::numeric_limits<std::int32_t>::min();
    queue_order o(mutex_names);
    o.enter(lock(lowest), somebody());
    list(o, {lock(lowest), lock(highest)});
    const auto s = o.next();
    REQUIRE(s.what == verdict::remote);
    CHECK(s.blockers.front() == lock(highest));
}

TEST_CASE("queue order: where somebody stands", "[queue]") {
    queue_order o(mutex_names);
    const queue_key first = o.enter(lock(1), somebody());
    list(o, {lock(1)});
    o.grant(first);
    const queue_key mine = o.enter(lock(4), somebody());
    CHECK_FALSE(o.look_at(mine).known);
    list(o, {lock(1), lock(2), lock(3), lock(4), lock(5)});
    auto i = o.look_at(mine);
    CHECK(i.known);
    CHECK(i.position == 3);
    CHECK(i.predecessor == lock(3));
    o.removed(lock(3));
    o.leave(first);
    i = o.look_at(mine);
    CHECK(i.position == 1);
    CHECK(i.predecessor == lock(2));
}

TEST_CASE("queue order: a foreign child is refused", "[queue]") {
    queue_order o(mutex_names);
    o.enter(lock(1), somebody());
    const auto e = error_of([&] { list(o, {lock(1), "config"}); });
    REQUIRE(e);
    CHECK(e->code() == errc::foreign_child);
}
