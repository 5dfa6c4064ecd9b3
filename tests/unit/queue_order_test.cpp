#include "unit/error_of.hpp"

#include <zkasio/locks/detail/lock_queue.hpp>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::lock_detail;
using zkasio::test::error_of;
using verdict = queue_order::verdict;

namespace {

const queue_names mutex_names(name_scheme::curator(), "lock-", "", "/l");
const queue_names shared_names(name_scheme::curator(), "__WRIT__", "__READ__", "/l");

// Names outlive the test, as the order expects.
const std::string& with_sequence(const std::string& prefix, std::int32_t sequence) {
    static std::set<std::string> names;
    char number[16];
    std::snprintf(number, sizeof number, "%010d", sequence);
    return *names.insert(prefix + number).first;
}
const std::string& lock(std::int32_t sequence) { return with_sequence("_c_x-lock-", sequence); }
const std::string& reader(std::int32_t sequence) { return with_sequence("_c_x-__READ__", sequence); }
const std::string& writer(std::int32_t sequence) { return with_sequence("_c_x-__WRIT__", sequence); }

// The order does not look into it.
contender_ptr somebody() {
    static char nobody[sizeof(contender)];
    return contender_ptr(reinterpret_cast<contender*>(nobody), [](contender*) {});
}

void list(queue_order& o, const std::vector<std::string>& names) { o.listed(names, o.begin_listing()); }

}  // namespace

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

// Fails without G5 and G14.
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
    o.forget();
    CHECK(o.listed({lock(3)}, early).missing.empty());
    CHECK(o.next().what == verdict::unknown);
    list(o, {lock(3)});
    CHECK(o.next().what == verdict::granted);
}

// Fails without G7 and G8.
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

// Fails without G9.
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

// Fails without G10.
TEST_CASE("queue order: what is doubted for a newcomer is what was listed before its create", "[queue]") {
    queue_order o(shared_names);
    o.grant(o.enter(reader(3), somebody()));
    const auto early = o.begin_listing();
    const auto asked = o.begin_create();
    const auto late = o.begin_listing();
    o.enter(reader(4), somebody(), asked);
    SECTION("not what comes later") {
        o.forget_before(asked);
        o.listed({reader(3), reader(4)}, early);
        CHECK(o.next().what == verdict::unknown);
        o.listed({reader(3), reader(4)}, late);
        CHECK(o.next().what == verdict::granted);
    }
    SECTION("nor what has come already") {
        o.listed({reader(3), reader(4)}, late);
        o.forget_before(asked);
        CHECK(o.next().what == verdict::granted);
    }
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

// Fails without G27.
TEST_CASE("queue order: a doubted owner does not own what somebody ahead of it excludes it from", "[queue]") {
    queue_order o(shared_names);
    const auto exclusive = somebody(), sharing = somebody();
    const auto overtaken = [&](const std::vector<std::string>& names) {
        o.doubt_owners();
        return o.listed(names, o.begin_listing()).overtaken;
    };
    SECTION("a writer: whoever is ahead") {
        o.grant(o.enter(writer(4), exclusive));
        CHECK(overtaken({writer(4), reader(5)}).empty());
        CHECK(overtaken({reader(3), writer(4)}) == std::vector<contender_ptr>{exclusive});
    }
    SECTION("a reader: a writer ahead") {
        o.grant(o.enter(reader(4), sharing));
        CHECK(overtaken({reader(3), reader(4), writer(5)}).empty());
        CHECK(overtaken({reader(2), writer(3), reader(4)}) == std::vector<contender_ptr>{sharing});
    }
    SECTION("by a listing that was sent before the doubt, or before the grant, nothing is told") {
        o.grant(o.enter(reader(1), sharing));
        const auto early = o.begin_listing();
        o.doubt_owners();
        const auto look = o.begin_listing();
        o.grant(o.enter(writer(4), exclusive));
        CHECK(o.listed({reader(1), writer(3), writer(4)}, early).overtaken.empty());
        CHECK(o.owners_doubted());
        CHECK(o.listed({reader(1), writer(3), writer(4)}, look).overtaken.empty());
        CHECK_FALSE(o.owners_doubted());
    }
    SECTION("without owners there is nothing to doubt, and no listing is needed") {
        o.doubt_owners();
        CHECK_FALSE(o.owners_doubted());
    }
    SECTION("without a doubt it may be a node of ours whose removal was refused") {
        o.grant(o.enter(writer(4), exclusive));
        CHECK(o.listed({writer(3), writer(4)}, o.begin_listing()).overtaken.empty());
    }
    SECTION("when no listing can be had, all have to go") {
        o.grant(o.enter(reader(4), exclusive));
        o.grant(o.enter(reader(5), sharing));
        o.enter(writer(6), somebody());
        o.doubt_owners();
        CHECK(o.take_doubted_owners() == std::vector<contender_ptr>{exclusive, sharing});
        CHECK_FALSE(o.owners_doubted());
    }
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
        CHECK(*s.blocker == lock(4));
        CHECK(s.last);
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

TEST_CASE("queue order: the nearest of several remote ones, and whether it is the last", "[queue]") {
    queue_order o(mutex_names);
    o.enter(lock(9), somebody());
    list(o, {lock(2), lock(9), lock(12), lock(5)});
    auto s = o.next();
    REQUIRE(s.what == verdict::remote);
    CHECK(*s.blocker == lock(5));
    CHECK_FALSE(s.last);
    o.removed(lock(5));
    s = o.next();
    REQUIRE(s.what == verdict::remote);
    CHECK(*s.blocker == lock(2));
    CHECK(s.last);
    o.forget();
    CHECK(o.next().what == verdict::unknown);
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

// Fails without G7.
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
        CHECK(*s.blocker == lock(0));
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
    CHECK(*s.blocker == lock(lowest + 1));
}

TEST_CASE("queue order: readers wait for the last writer ahead, writers for everybody", "[queue]") {
    queue_order o(shared_names);
    const queue_key r = o.enter(reader(9), somebody());
    list(o, {writer(1), reader(2), writer(4), reader(6), reader(9), writer(10)});
    auto s = o.next();
    REQUIRE(s.what == verdict::remote);
    CHECK(*s.blocker == writer(4));
    CHECK_FALSE(s.last);
    list(o, {reader(2), reader(6), reader(9), writer(10)});
    CHECK(o.next().what == verdict::granted);
    o.grant(r);
    // A second reader of ours, behind somebody else's writer.
    const queue_key second = o.enter(reader(11), somebody());
    s = o.next();  // it came right behind what we know
    REQUIRE(s.what == verdict::remote);
    CHECK(*s.blocker == writer(10));
    o.leave(second);

    o.enter(writer(12), somebody());
    CHECK(o.next().what == verdict::local);  // our reader is in the way: no need to ask
    o.leave(r);
    CHECK(o.next().what == verdict::unknown);  // others may have joined it
    list(o, {reader(6), writer(12)});
    s = o.next();
    REQUIRE(s.what == verdict::remote);
    CHECK(*s.blocker == reader(6));
    CHECK(s.last);
}

TEST_CASE("queue order: a writer lets in all the readers behind it, up to the next writer", "[queue]") {
    queue_order o(shared_names);
    const queue_key w = o.enter(writer(1), somebody());
    list(o, {writer(1)});
    o.grant(w);
    const queue_key a = o.enter(reader(2), somebody()), b = o.enter(reader(3), somebody());
    const queue_key next = o.enter(writer(4), somebody());
    const queue_key behind = o.enter(reader(5), somebody());
    CHECK(o.next().what == verdict::local);
    o.leave(w);
    for (const queue_key& p : {a, b}) {
        REQUIRE(o.next().what == verdict::granted);
        o.grant(p);
    }
    CHECK(o.next().what == verdict::local);
    CHECK(o.excludes(lock_kind::shared));
    o.leave(next);
    list(o, {reader(2), reader(3), reader(5)});
    CHECK(o.next().what == verdict::granted);
    o.grant(behind);
    CHECK_FALSE(o.excludes(lock_kind::shared));
    CHECK(o.excludes(lock_kind::exclusive));
}

// Fails without G12.
TEST_CASE("queue order: whether readers behind a writer that gives up still have their nodes, a listing has to tell",
          "[queue]") {
    queue_order o(shared_names);
    o.grant(o.enter(reader(1), somebody()));
    list(o, {reader(1)});
    const queue_key gives_up = o.enter(writer(2), somebody());
    o.enter(reader(3), somebody());
    CHECK(o.next().what == verdict::local);
    o.leave(gives_up);
    CHECK(o.next().what == verdict::unknown);
    o.departed(gives_up);
    list(o, {reader(1), reader(3)});
    CHECK(o.next().what == verdict::granted);
}

TEST_CASE("queue order: a downgrade keeps the place", "[queue]") {
    queue_order o(shared_names);
    const queue_key w = o.enter(writer(1), somebody());
    list(o, {writer(1)});
    o.grant(w);
    const queue_key waiting_reader = o.enter(reader(2), somebody());
    const queue_key waiting_writer = o.enter(writer(3), somebody());
    const queue_key r = o.downgrade(w, reader(1), somebody());
    CHECK(r.number == w.number);
    REQUIRE(o.next().what == verdict::granted);
    o.grant(waiting_reader);
    CHECK(o.next().what == verdict::local);
    o.leave(r);
    o.leave(waiting_reader);
    list(o, {writer(3)});
    REQUIRE(o.next().what == verdict::granted);
    o.grant(waiting_writer);
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

// Against a model that sees everything: several sessions, whatever order of events.
// Fails without G1.
TEST_CASE("queue order: nobody is let in whom the whole queue would keep out", "[queue]") {
    struct node {
        std::int32_t sequence;
        lock_kind kind;
        std::size_t session;
        queue_key at;
        bool owner = false;
        const std::string& name() const { return kind == lock_kind::exclusive ? writer(sequence) : reader(sequence); }
    };
    int total = 0;
    for (unsigned seed = 0; seed < 400; ++seed) {
        std::minstd_rand random(seed + 1);
        const auto chance = [&](int percent) { return static_cast<int>(random() % 100) < percent; };
        std::vector<queue_order> sessions;
        for (int i = 0; i < 3; ++i) sessions.emplace_back(shared_names);
        std::vector<node> queue;  // as the servers have it
        std::int32_t next = std::numeric_limits<std::int32_t>::max() - 20;
        int granted = 0;
        for (int step = 0; step < 300; ++step) {
            const std::size_t s = random() % sessions.size();
            queue_order& o = sessions[s];
            if (chance(35) && queue.size() < 12) {
                node n{next, chance(60) ? lock_kind::shared : lock_kind::exclusive, s, {}};
                next = static_cast<std::int32_t>(static_cast<std::uint32_t>(next) + 1);
                n.at = o.enter(n.name(), somebody());
                queue.push_back(n);
            } else if (chance(40) && !queue.empty()) {  // an owner leaves, or somebody gives up
                const std::size_t i = random() % queue.size();
                if (queue[i].owner || chance(30)) {
                    const node gone = queue[i];
                    queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(i));
                    sessions[gone.session].leave(gone.at);
                    sessions[gone.session].departed(gone.at);
                    for (std::size_t other = 0; other < sessions.size(); ++other)
                        if (other != gone.session && chance(50)) sessions[other].removed(gone.name());
                }
            } else {
                std::vector<std::string> names;
                for (const node& n : queue) names.push_back(n.name());
                std::shuffle(names.begin(), names.end(), random);
                CHECK(o.listed(names, o.begin_listing()).missing.empty());
            }
            for (std::size_t i = 0; i < sessions.size(); ++i) {
                while (sessions[i].head()) {
                    const auto step_now = sessions[i].next();
                    const auto me = std::find_if(queue.begin(), queue.end(),
                                                 [&](const node& n) { return n.session == i && !n.owner; });
                    REQUIRE(me != queue.end());  // the head is the first of the session that waits
                    const bool free = std::none_of(queue.begin(), me, [&](const node& n) {
                        return n.kind == lock_kind::exclusive || me->kind == lock_kind::exclusive;
                    });
                    if (step_now.what != queue_order::verdict::granted) {
                        // After a fresh look everybody who is free is let in.
                        std::vector<std::string> names;
                        for (const node& n : queue) names.push_back(n.name());
                        queue_order fresh = sessions[i];
                        fresh.listed(names, fresh.begin_listing());
                        CHECK((fresh.next().what == queue_order::verdict::granted) == free);
                        break;
                    }
                    INFO("seed " << seed << ", step " << step);
                    REQUIRE(free);
                    sessions[i].grant(me->at);
                    me->owner = true;
                    ++granted;
                }
            }
        }
        total += granted;
    }
    CHECK(total > 4000);
}
