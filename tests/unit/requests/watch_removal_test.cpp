#include "unit/support/watch_requests.hpp"

using namespace zkasio::detail;
using namespace zkasio::test;

TEST_CASE("watch registry: leaving twice, or what never was there", "[watch_registry]") {
    watch_registry r;
    const auto w = set(r, "/a"), other = set(r, "/a");
    CHECK_FALSE(r.leave(*w));
    CHECK_FALSE(r.leave(*w));
    CHECK(r.leave(*other));
    CHECK_FALSE(r.leave(*other));  // the removal is under way
    CHECK_FALSE(r.leave(*waiter("/b")));
    CHECK_FALSE(r.leave(*waiter("/a", watch_kind::children)));
    CHECK_FALSE(r.finish("/b", watch_kind::data, true, nullptr));
    CHECK_FALSE(r.removed("/b", watch_kind::data, true));
    CHECK_FALSE(r.removed("/a", watch_kind::data, true));
    CHECK(r.size() == 0);
}

TEST_CASE("watch registry: a fired waiter has nothing to leave", "[watch_registry]") {
    watch_registry r;
    const auto w = set(r, "/a");
    r.fire(node_event::data_changed, "/a");
    CHECK_FALSE(r.leave(*w));
    // Not even when somebody else watches again.
    const auto next = set(r, "/a");
    CHECK_FALSE(r.leave(*w));
    CHECK(r.live("/a", watch_kind::data));
    CHECK(r.leave(*next));
}

TEST_CASE("watch registry: the watch of a caller who has left is removed", "[watch_registry]") {
    watch_registry r;
    r.begin("/a", watch_kind::data);
    CHECK(r.finish("/a", watch_kind::data, true, nullptr));
    CHECK_FALSE(r.removed("/a", watch_kind::data, true));
    CHECK(r.size() == 0);

    // Unless others are interested.
    const auto w = set(r, "/a");
    r.begin("/a", watch_kind::data);
    CHECK_FALSE(r.finish("/a", watch_kind::data, true, nullptr));
    CHECK(r.leave(*w));
}

TEST_CASE("watch registry: no removal while a registration is under way", "[watch_registry]") {
    watch_registry r;
    const auto w = set(r, "/a");
    r.begin("/a", watch_kind::data);
    CHECK_FALSE(r.leave(*w));  // the other request is about to want it
    SECTION("which succeeds") {
        const auto next = waiter("/a");
        CHECK_FALSE(r.finish("/a", watch_kind::data, true, next));
        CHECK(r.leave(*next));
    }
    SECTION("which fails, so that nobody wants it any more") {
        CHECK(r.finish("/a", watch_kind::data, false, nullptr));
    }
    CHECK_FALSE(r.removed("/a", watch_kind::data, true));
    CHECK(r.size() == 0);
}

TEST_CASE("watch registry: a new registration behind a removal", "[watch_registry]") {
    watch_registry r;
    const auto old = set(r, "/a");
    CHECK(r.leave(*old));
    r.begin("/a", watch_kind::data);  // sent after the removal, so set after it

    SECTION("the removal has worked") {
        CHECK_FALSE(r.removed("/a", watch_kind::data, true));
        CHECK_FALSE(r.live("/a", watch_kind::data));
        const auto w = waiter("/a");
        CHECK_FALSE(r.finish("/a", watch_kind::data, true, w));
        CHECK(r.live("/a", watch_kind::data));
        CHECK(same(r.fire(node_event::removed, "/a"), {w}));
    }
    SECTION("the removal has worked, and the caller of the registration has left") {
        CHECK_FALSE(r.removed("/a", watch_kind::data, true));
        CHECK(r.finish("/a", watch_kind::data, true, nullptr));  // removed once more
        CHECK_FALSE(r.removed("/a", watch_kind::data, true));
    }
    SECTION("the removal has worked, the registration has not") {
        CHECK_FALSE(r.removed("/a", watch_kind::data, true));
        CHECK_FALSE(r.finish("/a", watch_kind::data, false, nullptr));
    }
    SECTION("the removal has not worked, and the old watch serves the new waiter") {
        CHECK_FALSE(r.removed("/a", watch_kind::data, false));
        const auto w = waiter("/a");
        CHECK_FALSE(r.finish("/a", watch_kind::data, true, w));
        CHECK(r.leave(*w));
        CHECK_FALSE(r.removed("/a", watch_kind::data, true));
    }
    CHECK(r.size() == 0);
}

TEST_CASE("watch registry: a removal that is about to be sent, and what was asked for since it was decided",
          "[watch_registry]") {
    watch_registry r;
    const auto old = set(r, "/a");
    CHECK(r.leave(*old));
    SECTION("nothing") {
        CHECK(r.confirm_removal("/a", watch_kind::data, false));
        CHECK_FALSE(r.removed("/a", watch_kind::data, true));
    }
    SECTION("a new registration is in front of it, and would be removed by it") {
        r.begin("/a", watch_kind::data);
        CHECK_FALSE(r.confirm_removal("/a", watch_kind::data, false));
        const auto w = waiter("/a");
        CHECK_FALSE(r.finish("/a", watch_kind::data, true, w));
        CHECK(r.live("/a", watch_kind::data));
        CHECK(r.leave(*w));  // this one is decided anew
        CHECK(r.confirm_removal("/a", watch_kind::data, false));
        CHECK_FALSE(r.removed("/a", watch_kind::data, true));
    }
    SECTION("a new registration, which fails: then the old watch still has to go") {
        r.begin("/a", watch_kind::data);
        CHECK_FALSE(r.confirm_removal("/a", watch_kind::data, false));
        CHECK(r.finish("/a", watch_kind::data, false, nullptr));
        CHECK(r.confirm_removal("/a", watch_kind::data, false));
        CHECK_FALSE(r.removed("/a", watch_kind::data, true));
    }
    SECTION("a new waiter has already got it") {
        r.begin("/a", watch_kind::data);
        const auto w = waiter("/a");
        CHECK_FALSE(r.finish("/a", watch_kind::data, true, w));
        CHECK_FALSE(r.confirm_removal("/a", watch_kind::data, false));
        CHECK(same(r.fire(node_event::data_changed, "/a"), {w}));
    }
    SECTION("the end of the session") {
        r.clear();
        CHECK_FALSE(r.confirm_removal("/a", watch_kind::data, false));
    }
    CHECK(r.size() == 0);
}

TEST_CASE("watch registry: a removal that has not worked is repeated", "[watch_registry]") {
    watch_registry r;
    const auto w = set(r, "/a");
    CHECK(r.leave(*w));
    CHECK(r.removed("/a", watch_kind::data, false));
    CHECK(r.live("/a", watch_kind::data));
    CHECK(r.removed("/a", watch_kind::data, false));
    CHECK_FALSE(r.removed("/a", watch_kind::data, true));
    CHECK(r.size() == 0);
}

TEST_CASE("watch registry: one removal at a time", "[watch_registry]") {
    watch_registry r;
    const auto old = set(r, "/a");
    CHECK(r.leave(*old));
    // The backend refuses a new request at once, while the removal is under way.
    r.begin("/a", watch_kind::data);
    CHECK_FALSE(r.finish("/a", watch_kind::data, false, nullptr));
    CHECK_FALSE(r.removed("/a", watch_kind::data, true));
    CHECK(r.size() == 0);
}

TEST_CASE("watch registry: an event overtakes a removal", "[watch_registry]") {
    watch_registry r;
    const auto w = set(r, "/a");
    CHECK(r.leave(*w));
    CHECK(r.fire(node_event::data_changed, "/a").empty());
    CHECK_FALSE(r.removed("/a", watch_kind::data, false));  // there is nothing left to remove
    CHECK(r.size() == 0);
}

TEST_CASE("watch registry: a watch that is kept while a feed reads", "[watch_registry]") {
    watch_registry r;
    const auto user = set(r, "/a");
    r.feed_reads();
    CHECK(r.leave(*user));
    CHECK_FALSE(r.confirm_removal("/a", watch_kind::data, true));
    CHECK(r.size() == 0);
    SECTION("is looked at again with the answer, once") {
        r.feed_reads();
        CHECK_FALSE(r.feed_answered("/b", watch_kind::data));
        CHECK(r.feed_answered("/a", watch_kind::data));
        CHECK_FALSE(r.feed_answered("/a", watch_kind::data));
    }
    SECTION("is a standing one when no feed reads any more") {
        CHECK_FALSE(r.feed_answered("/b", watch_kind::data));
        CHECK_FALSE(r.feed_answered("/a", watch_kind::data));
    }
    SECTION("is not set again on the next connection, on which that read is not answered") {
        CHECK(r.end_connection() == std::vector<std::pair<std::string, watch_kind>>{{"/a", watch_kind::data}});
        CHECK_FALSE(r.left_by_feed("/a", watch_kind::data, true));
        CHECK_FALSE(r.feed_answered("/a", watch_kind::data));
    }
    SECTION("is asked for on the next connection if a user has asked for it since") {
        const auto again = set(r, "/a");
        CHECK(r.end_connection().size() == 2);  // forgetting it twice does no harm
        CHECK(r.questions().size() == 1);
        CHECK_FALSE(r.leave(*again));
    }
    SECTION("ends with the session") {
        CHECK(r.clear().empty());
        CHECK(r.end_connection().empty());
    }
}

TEST_CASE("watch registry: a watch that a feed has left", "[watch_registry]") {
    watch_registry r;
    SECTION("is removed") {
        CHECK(r.left_by_feed("/a", watch_kind::data, false));
        CHECK(r.confirm_removal("/a", watch_kind::data, false));
        CHECK_FALSE(r.removed("/a", watch_kind::data, true));
    }
    SECTION("is kept for another feed") { CHECK_FALSE(r.left_by_feed("/a", watch_kind::data, true)); }
    SECTION("is kept for a user") {
        const auto user = set(r, "/a");
        CHECK_FALSE(r.left_by_feed("/a", watch_kind::data, false));
        r.fire(node_event::removed, "/a");
    }
    CHECK(r.size() == 0);
}
