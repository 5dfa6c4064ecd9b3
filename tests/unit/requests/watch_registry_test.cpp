#include "unit/support/watch_requests.hpp"

using namespace zkasio::detail;
using namespace zkasio::test;

TEST_CASE("watch registry: a watch is live from its answer to its event", "[watch_registry]") {
    watch_registry r;
    CHECK_FALSE(r.live("/a", watch_kind::data));
    REQUIRE(r.begin("/a", watch_kind::data));
    CHECK_FALSE(r.live("/a", watch_kind::data));
    const auto w = waiter("/a");
    CHECK_FALSE(r.finish("/a", watch_kind::data, true, w));
    CHECK(r.live("/a", watch_kind::data));
    CHECK_FALSE(r.live("/a", watch_kind::children));
    CHECK_FALSE(r.live("/b", watch_kind::data));

    CHECK(same(r.fire(node_event::data_changed, "/a"), {w}));
    CHECK(w->event == node_event::data_changed);
    CHECK_FALSE(r.live("/a", watch_kind::data));
    CHECK(r.size() == 0);
    CHECK(r.fire(node_event::data_changed, "/a").empty());  // one shot
}

TEST_CASE("watch registry: many waiters share one watch, the last to leave removes it", "[watch_registry]") {
    watch_registry r;
    const auto first = set(r, "/a"), second = set(r, "/a"), third = set(r, "/a");
    CHECK(r.size() == 1);
    CHECK_FALSE(r.leave(*second));
    CHECK_FALSE(r.leave(*first));
    CHECK(r.live("/a", watch_kind::data));
    CHECK(r.leave(*third));
    CHECK(r.size() == 1);  // until the server has confirmed it
    CHECK_FALSE(r.removed("/a", watch_kind::data, true));
    CHECK(r.size() == 0);
}

TEST_CASE("watch registry: a request that fails sets nothing", "[watch_registry]") {
    watch_registry r;
    REQUIRE(r.begin("/a", watch_kind::data));
    CHECK(r.size() == 1);
    CHECK_FALSE(r.finish("/a", watch_kind::data, false, waiter("/a")));
    CHECK(r.size() == 0);
    CHECK_FALSE(r.live("/a", watch_kind::data));

    // It does not end what others have, either.
    const auto w = set(r, "/a");
    REQUIRE(r.begin("/a", watch_kind::data));
    CHECK_FALSE(r.finish("/a", watch_kind::data, false, waiter("/a")));
    CHECK(r.live("/a", watch_kind::data));
    CHECK(same(r.fire(node_event::created, "/a"), {w}));
}

TEST_CASE("watch registry: which events end which watches", "[watch_registry]") {
    // Fact 18: created, changed -> data and exists; child -> children; removed -> all.
    struct row {
        node_event event;
        bool data, children;
    };
    for (const row& expected : {row{node_event::created, true, false}, row{node_event::data_changed, true, false},
                                row{node_event::children_changed, false, true}, row{node_event::removed, true, true}}) {
        watch_registry r;
        const auto data = set(r, "/a"), children = set(r, "/a", watch_kind::children);
        const auto elsewhere = set(r, "/a/b"), above = set(r, "/", watch_kind::children);
        watches woken;
        if (expected.data) woken.push_back(data);
        if (expected.children) woken.push_back(children);
        INFO("event " << static_cast<int>(expected.event));
        CHECK(same(r.fire(expected.event, "/a"), woken));
        for (const watch_ptr& w : woken) CHECK(w->event == expected.event);
        CHECK(r.live("/a", watch_kind::data) == !expected.data);
        CHECK(r.live("/a", watch_kind::children) == !expected.children);
        CHECK(r.live("/a/b", watch_kind::data));
        CHECK(r.live("/", watch_kind::children));
        CHECK(r.size() == 4 - woken.size());
    }
}

TEST_CASE("watch registry: an event wakes all who share the watch, a pending registration stays", "[watch_registry]") {
    watch_registry r;
    const auto first = set(r, "/a"), second = set(r, "/a");
    REQUIRE(r.begin("/a", watch_kind::data));
    CHECK(same(r.fire(node_event::data_changed, "/a"), {first, second}));
    CHECK_FALSE(r.live("/a", watch_kind::data));
    const auto third = waiter("/a");
    CHECK_FALSE(r.finish("/a", watch_kind::data, true, third));
    CHECK(same(r.fire(node_event::data_changed, "/a"), {third}));
    CHECK(r.size() == 0);
}

TEST_CASE("watch registry: paths have a budget", "[watch_registry]") {
    // Fact 23: they all are in one request after a reconnect; a path costs its length and 4.
    watch_registry r;
    r.set_budget(1000);
    const std::string half(1000 / 2 - 4, 'x');
    REQUIRE(r.begin(half, watch_kind::data));
    REQUIRE(r.begin(half, watch_kind::children));  // the two kinds count separately
    CHECK_FALSE(r.begin("/", watch_kind::data));
    CHECK(r.size() == 2);
    CHECK(r.begin(half, watch_kind::data));  // another waiter costs nothing

    CHECK_FALSE(r.finish(half, watch_kind::children, false, nullptr));
    CHECK(r.begin("/", watch_kind::data));
    CHECK_FALSE(r.begin(half, watch_kind::children));
    CHECK_FALSE(r.finish("/", watch_kind::data, false, nullptr));
    CHECK(r.begin(half, watch_kind::children));
}

TEST_CASE("watch registry: the budget is given back in every way that a watch ends", "[watch_registry]") {
    watch_registry r;
    r.set_budget(1000);
    const std::string all(1000 - 4, 'x');
    REQUIRE(r.begin(all, watch_kind::data));
    CHECK_FALSE(r.begin("/", watch_kind::data));

    CHECK_FALSE(r.finish(all, watch_kind::data, false, nullptr));  // refused
    const auto fired = set(r, all);
    r.fire(node_event::removed, all);
    const auto left = set(r, all);
    CHECK(r.leave(*left));
    REQUIRE(r.begin("/", watch_kind::data));  // whatever becomes of the removal, the library does not set it again
    CHECK_FALSE(r.finish("/", watch_kind::data, false, nullptr));
    CHECK_FALSE(r.removed(all, watch_kind::data, true));
    const auto over = set(r, all);
    CHECK(same(r.clear(), {over}));
    CHECK(r.begin(all, watch_kind::data));
    CHECK_FALSE(r.begin("/", watch_kind::data));
}

TEST_CASE("watch registry: the budget is given back when a connection ends before an answer", "[watch_registry]") {
    watch_registry r;
    r.set_budget(10);
    for (int i = 0; i < 100; ++i) {
        REQUIRE(r.begin("/a", watch_kind::data));
        CHECK(r.end_connection().empty());
        CHECK_FALSE(r.finish("/a", watch_kind::data, false, nullptr));
        CHECK(r.size() == 0);
    }
}

TEST_CASE("watch registry: the chroot is in every path that a reconnect carries", "[watch_registry]") {
    watch_registry r(100'000);
    r.set_budget(900'000);
    for (int i = 0; i < 8; ++i) REQUIRE(r.begin("/" + std::to_string(i), watch_kind::data));
    CHECK_FALSE(r.begin("/8", watch_kind::data));
    CHECK_FALSE(r.finish("/0", watch_kind::data, false, nullptr));
    CHECK(r.begin("/8", watch_kind::data));
}

TEST_CASE("watch registry: the watch on the configuration", "[watch_registry]") {
    const std::string path = "/zookeeper/config";
    SECTION("is the one on the data of its node") {
        watch_registry r;
        const auto config = set(r, path, watch_kind::config), data = set(r, path);
        CHECK(r.size() == 1);
        CHECK(r.server_kind(watch_kind::config) == watch_kind::data);
        CHECK(same(r.fire(node_event::data_changed, path), {config, data}));
        const auto again = set(r, path, watch_kind::config), other = set(r, path);
        CHECK_FALSE(r.leave(*again));
        CHECK(r.leave(*other));
        CHECK_FALSE(r.removed(path, watch_kind::config, true));
        CHECK(r.size() == 0);
    }
    SECTION("cannot be removed below a chroot, and stays for the next one") {
        watch_registry r(4);
        CHECK(r.server_kind(watch_kind::config) == watch_kind::config);
        const auto first = set(r, path, watch_kind::config);
        CHECK_FALSE(r.leave(*first));
        CHECK(r.live(path, watch_kind::config));
        const auto second = set(r, path, watch_kind::config);
        CHECK(same(r.fire(node_event::data_changed, path), {second}));
        CHECK(r.size() == 0);
    }
}

TEST_CASE("watch registry: the end of a session", "[watch_registry]") {
    watch_registry r;
    const auto a = set(r, "/a"), shared = set(r, "/a"), b = set(r, "/b", watch_kind::children);
    const auto leaving = set(r, "/c");
    CHECK(r.leave(*leaving));
    REQUIRE(r.begin("/d", watch_kind::data));
    CHECK(same(r.clear(), {a, shared, b}));
    CHECK(r.size() == 0);
    // Answers of the old session change nothing.
    CHECK_FALSE(r.finish("/d", watch_kind::data, true, waiter("/d")));
    CHECK_FALSE(r.removed("/c", watch_kind::data, false));
    CHECK_FALSE(r.leave(*a));
    CHECK(r.clear().empty());
    CHECK(r.size() == 0);
}

TEST_CASE("watch registry: a spare watch leaves half of the budget to others", "[watch_registry]") {
    using lasting = watch_registry::lasting;
    watch_registry r;
    r.set_budget(24);  // four of such paths
    REQUIRE(r.begin("/a", watch_kind::data, lasting::spare));
    REQUIRE(r.begin("/b", watch_kind::data, lasting::spare));
    CHECK_FALSE(r.begin("/c", watch_kind::data, lasting::spare));
    CHECK(r.begin("/c", watch_kind::data));
    CHECK(r.begin("/d", watch_kind::data));
    CHECK_FALSE(r.begin("/e", watch_kind::data));
    CHECK_FALSE(r.finish("/a", watch_kind::data, false, nullptr, lasting::spare));
    CHECK(r.begin("/e", watch_kind::data));
}

TEST_CASE("watch registry: a watch of the connection is in no budget and ends with the connection",
          "[watch_registry]") {
    using lasting = watch_registry::lasting;
    watch_registry r;
    r.set_budget(6);
    const std::string path = "/long";
    const auto of_connection = waiter(path);
    of_connection->of_connection = true;
    const auto watch_it = [&] {
        REQUIRE(r.begin(path, watch_kind::data, lasting::no));
        CHECK_FALSE(r.finish(path, watch_kind::data, true, of_connection, lasting::no));
    };
    watch_it();
    CHECK_FALSE(r.begin(path, watch_kind::data));  // the same path would count for who outlives the connection
    SECTION("nobody else has it") {
        CHECK(r.end_connection() == std::vector<std::pair<std::string, watch_kind>>{{path, watch_kind::data}});
        CHECK(r.size() == 0);
        CHECK(r.fire(node_event::removed, path).empty());
        CHECK_FALSE(r.leave(*of_connection));
    }
    SECTION("somebody else has it, too") {
        r.set_budget(10);
        const auto users = set(r, path);
        CHECK_FALSE(r.begin("/a", watch_kind::data));
        CHECK(r.end_connection().empty());
        CHECK(same(r.fire(node_event::removed, path), {users}));
        CHECK(r.begin("/a", watch_kind::data));
    }
    SECTION("somebody else has had it, too") {
        r.set_budget(10);
        const auto users = set(r, path);
        CHECK_FALSE(r.leave(*users));
        CHECK(r.begin("/a", watch_kind::data));
        CHECK(same(r.fire(node_event::removed, path), {of_connection}));
    }
    SECTION("it is left") {
        CHECK(r.leave(*of_connection));
        CHECK_FALSE(r.removed(path, watch_kind::data, true));
        CHECK(r.size() == 0);
    }
}

TEST_CASE("watch registry: a watch that the server does not remove is there for the next, or until the connection ends",
          "[watch_registry]") {
    watch_registry r;
    r.set_budget(10);
    const auto left = set(r, "/a");
    CHECK(r.leave(*left));
    r.left_standing("/a", watch_kind::data);
    CHECK(r.live("/a", watch_kind::data));
    SECTION("somebody has it again") {
        const auto next = set(r, "/a");
        CHECK(same(r.fire(node_event::removed, "/a"), {next}));
        CHECK(r.size() == 0);
    }
    SECTION("somebody has it again, and leaves it: then its removal is tried again") {
        const auto next = set(r, "/a");
        CHECK(r.leave(*next));
    }
    SECTION("the connection ends") {
        CHECK(r.end_connection() == std::vector<std::pair<std::string, watch_kind>>{{"/a", watch_kind::data}});
        CHECK(r.size() == 0);
    }
    SECTION("it is in no budget: the library does not set it again") { CHECK(r.begin("/bcdef", watch_kind::data)); }
}
