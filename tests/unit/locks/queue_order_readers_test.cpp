// The order of readers and writers, and who of them may be let in.

#include "support/catch.hpp"
#include "unit/locks/order_nodes.hpp"

#include <zkasio/locks/detail/queue/lock_queue.hpp>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::lock_detail;
using namespace zkasio::test;
using verdict = queue_order::verdict;

// Fails without G10.
TEST_CASE("queue order: what is doubted for a newcomer is what was listed before its create", "[queue]") {
    queue_order o(shared_names);
    o.grant(o.enter(reader(3), somebody()));
    const auto early = o.begin_listing();
    const auto asked = o.begin_create();
    const auto late = o.begin_listing();
    o.enter(reader(4), somebody(), asked);
    SECTION("not what comes later") {
        o.discard_listings_before(asked);
        o.listed({reader(3), reader(4)}, early);
        CHECK(o.next().what == verdict::unknown);
        o.listed({reader(3), reader(4)}, late);
        CHECK(o.next().what == verdict::granted);
    }
    SECTION("nor what has come already") {
        o.listed({reader(3), reader(4)}, late);
        o.discard_listings_before(asked);
        CHECK(o.next().what == verdict::granted);
    }
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

TEST_CASE("queue order: readers wait for the last writer ahead, writers for everybody", "[queue]") {
    queue_order o(shared_names);
    const queue_key r = o.enter(reader(9), somebody());
    list(o, {writer(1), reader(2), writer(4), reader(6), reader(9), writer(10)});
    auto s = o.next();
    REQUIRE(s.what == verdict::remote);
    CHECK(s.blockers == std::vector<std::string>{writer(4), writer(1)});
    list(o, {reader(2), reader(6), reader(9), writer(10)});
    CHECK(o.next().what == verdict::granted);
    o.grant(r);
    // A second reader of ours, behind somebody else's writer.
    const queue_key second = o.enter(reader(11), somebody());
    s = o.next();  // it came right behind what we know
    REQUIRE(s.what == verdict::remote);
    CHECK(s.blockers.front() == writer(10));
    o.leave(second);

    o.enter(writer(12), somebody());
    CHECK(o.next().what == verdict::local);  // our reader is in the way: no need to ask
    o.leave(r);
    CHECK(o.next().what == verdict::unknown);
    list(o, {reader(6), writer(12)});
    s = o.next();
    REQUIRE(s.what == verdict::remote);
    CHECK(s.blockers.front() == reader(6));
    CHECK(s.all);
}

// The writer's node may have been deleted while it waited, and readers of other clients let in. Fails without G11.
TEST_CASE("queue order: a writer behind readers of its own session needs a listing when they leave", "[queue]") {
    queue_order o(shared_names);
    const contender_ptr writing = somebody();
    const queue_key r = o.enter(reader(9), somebody());
    list(o, {reader(9)});
    o.grant(r);
    o.enter(writer(10), writing);
    list(o, {reader(9), writer(10)});
    CHECK(o.next().what == verdict::local);
    o.leave(r);
    CHECK(o.next().what == verdict::unknown);
    CHECK(o.listed({reader(11)}, o.begin_listing()).missing == std::vector<contender_ptr>{writing});
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

// Fails without G11.
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
