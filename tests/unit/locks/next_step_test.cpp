#include "support/catch.hpp"

#include <zkasio/locks/detail/queue/next_step.hpp>
#include <zkasio/locks/detail/queue/node_creation.hpp>

#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::lock_detail;
using verdict = queue_order::verdict;
using what = next_step::what;

namespace {

using names = std::vector<std::string>;

const names nearest{"_c_x-lock-0000000002"}, both{nearest.front(), "_c_x-lock-0000000001"};

queue_situation behind_remote(const names& blockers, bool all) {
    queue_situation s;
    s.head = queue_order::step{verdict::remote, blockers, all};
    return s;
}

queue_situation with_head(verdict v) {
    queue_situation s;
    s.head = queue_order::step{v};
    return s;
}

error failure(std::error_code code, bool outcome_unknown = false) {
    return error(code, "create", "/l", {}, outcome_unknown);
}

}  // namespace

// Fails without G19.
TEST_CASE("queue: what follows for the head", "[queue]") {
    CHECK(decide_next_step({}).action == what::nothing);
    CHECK(decide_next_step(with_head(verdict::granted)).action == what::grant);
    CHECK(decide_next_step(with_head(verdict::unknown)).action == what::ask_for_listing);
    SECTION("behind one of ours it has its lease ready, and watches nobody") {
        const next_step step = decide_next_step(with_head(verdict::local));
        CHECK(step.action == what::wait);
        CHECK(step.start_lease);
        CHECK_FALSE(step.watch_own_node);
        CHECK(step.follow.empty());
    }
    SECTION("G40: behind nobody but bodies under lost locks it gives its place up") {
        queue_situation s = with_head(verdict::local);
        s.only_bodies_in_the_way = true;
        CHECK(decide_next_step(s).action == what::give_place_up);
        s.try_acquires_wait = true;
        CHECK(decide_next_step(s).action == what::refuse_try_acquires);
    }
    SECTION("far behind it watches the nearest that is in the way, and nothing else") {
        const next_step step = decide_next_step(behind_remote(nearest, false));
        CHECK(step.action == what::wait);
        CHECK_FALSE(step.start_lease);
        CHECK_FALSE(step.watch_own_node);
        CHECK(step.follow == nearest);
    }
    SECTION("G19: behind few it watches all, and its own node, too") {
        queue_situation s = behind_remote(both, true);
        CHECK(decide_next_step(s).start_lease);
        CHECK(decide_next_step(s).watch_own_node);
        CHECK(decide_next_step(s).follow == both);
        s.has_readers = true;  // G21: the end of the nodes in the way is not the grant
        CHECK_FALSE(decide_next_step(s).watch_own_node);
        CHECK(decide_next_step(s).follow == nearest);
    }
    SECTION("the nodes in the way of later heads are watched early") {
        queue_situation s = behind_remote(nearest, true);
        s.later = {"_c_x-lock-0000000004"};
        CHECK(decide_next_step(s).follow == names{nearest.front(), s.later.front()});
        s.head->what = verdict::local;
        s.head->blockers.clear();
        CHECK(decide_next_step(s).follow == s.later);
        CHECK_FALSE(decide_next_step(s).watch_own_node);
        CHECK_FALSE(decide_next_step(s).waits_for_remote);
        s.has_readers = true;
        CHECK(decide_next_step(s).follow.empty());
        queue_situation far = behind_remote(nearest, false);
        far.later = s.later;
        CHECK(decide_next_step(far).follow == nearest);
    }
    SECTION("G17: nobody follows what may turn out to be ours") {
        queue_situation s = behind_remote(both, true);
        s.blocker_may_be_ours = true;
        CHECK(decide_next_step(s).action == what::wait);
        CHECK(decide_next_step(s).follow.empty());
        CHECK_FALSE(decide_next_step(s).watch_own_node);
        CHECK(decide_next_step(s).start_lease);
    }
}

// Fails without G36.
TEST_CASE("queue: who was not to wait is refused when the head has to wait, and not before that is known (G36)",
          "[queue]") {
    for (const verdict v : {verdict::granted, verdict::unknown, verdict::local}) {
        queue_situation s = with_head(v);
        s.try_acquires_wait = true;
        CHECK((decide_next_step(s).action == what::refuse_try_acquires) == (v == verdict::local));
    }
    queue_situation s = behind_remote(nearest, false);
    s.try_acquires_wait = true;
    CHECK(decide_next_step(s).action == what::refuse_try_acquires);
}

// Fails without G20.
TEST_CASE("queue: what the end of a followed node proves (G20, G21, G22)", "[queue]") {
    CHECK_FALSE(needs_listing(verdict::granted, false, true, true));
    CHECK(needs_listing(verdict::granted, false, true, false));  // G20
    CHECK(needs_listing(verdict::granted, true, true, true));    // G21
    CHECK(needs_listing(verdict::remote, false, false, true));   // G22
    CHECK_FALSE(needs_listing(verdict::remote, false, true, false));
    CHECK_FALSE(needs_listing(verdict::local, false, true, false));
    CHECK(needs_listing(verdict::local, true, true, false));
}

TEST_CASE("queue: what the answer to a create means", "[queue]") {
    CHECK(answer_of_create(failure(zk_errc::connection_loss, true)) == create_answer::lost);
    CHECK(answer_of_create(failure(zk_errc::no_node)) == create_answer::no_directory);
    CHECK(answer_of_create(failure(zk_errc::throttled)) == create_answer::refused_for_now);
    CHECK(answer_of_create(failure(zk_errc::session_moved)) == create_answer::refused_for_now);
    CHECK(answer_of_create(failure(zk_errc::no_auth)) == create_answer::failed);
    CHECK(answer_of_create(failure(errc::session_expired, true)) == create_answer::failed);
}

TEST_CASE("queue: what the failure of a removal means", "[queue]") {
    CHECK(answer_of_removal(failure(zk_errc::no_node), false) == removal_answer::successor_missing);
    CHECK(answer_of_removal(failure(zk_errc::no_node), true) == removal_answer::failed);
    CHECK(answer_of_removal(failure(errc::session_expired), true) == removal_answer::session_over);
    CHECK(answer_of_removal(failure(zk_errc::no_auth), false) == removal_answer::failed);
}
