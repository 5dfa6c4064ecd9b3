#include "unit/support/watch_requests.hpp"

#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

using namespace zkasio::detail;
using namespace zkasio::test;

TEST_CASE("watch registry: a watch is live from its answer to its event", "[watch_registry]") {
    watch_registry r;
    CHECK_FALSE(r.live("/a", watch_kind::data));
    r.begin("/a", watch_kind::data);
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
    r.begin("/a", watch_kind::data);
    CHECK(r.size() == 1);
    CHECK_FALSE(r.finish("/a", watch_kind::data, false, waiter("/a")));
    CHECK(r.size() == 0);
    CHECK_FALSE(r.live("/a", watch_kind::data));

    // It does not end what others have, either.
    const auto w = set(r, "/a");
    r.begin("/a", watch_kind::data);
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
    r.begin("/a", watch_kind::data);
    CHECK(same(r.fire(node_event::data_changed, "/a"), {first, second}));
    CHECK_FALSE(r.live("/a", watch_kind::data));
    const auto third = waiter("/a");
    CHECK_FALSE(r.finish("/a", watch_kind::data, true, third));
    CHECK(same(r.fire(node_event::data_changed, "/a"), {third}));
    CHECK(r.size() == 0);
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
    r.begin("/d", watch_kind::data);
    CHECK(same(r.clear(), {a, shared, b}));
    CHECK(r.size() == 0);
    // Answers of the old session change nothing.
    CHECK_FALSE(r.finish("/d", watch_kind::data, true, waiter("/d")));
    CHECK_FALSE(r.removed("/c", watch_kind::data, false));
    CHECK_FALSE(r.leave(*a));
    CHECK(r.clear().empty());
    CHECK(r.size() == 0);
}

TEST_CASE("watch registry: a watch that the server does not remove is there for the next, or until the connection ends",
          "[watch_registry]") {
    watch_registry r;
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
}

// ------------------------------------------------------------------------------------------------- over connections

namespace {

using gone_watches = std::vector<std::pair<std::string, watch_kind>>;

seen_state at(std::int64_t zxid, std::int64_t czxid = 1) {
    seen_state seen;
    seen.is = seen_state::how::there;
    seen.czxid = czxid;
    seen.zxid = zxid;
    return seen;
}

watch_ptr set_at(watch_registry& r, const seen_state& seen, watch_kind kind = watch_kind::data) {
    auto w = waiter("/a", kind);
    r.begin("/a", kind);
    CHECK_FALSE(r.finish("/a", kind, true, w, seen));
    return w;
}

// The question of the next connection is asked, and answered. True: the watch that it has set is not needed.
bool ask_again(watch_registry& r, bool live, const std::optional<seen_state>& seen,
               watch_kind kind = watch_kind::data) {
    r.begin("/a", kind);
    return r.finish("/a", kind, live, nullptr, seen);
}

std::vector<std::string> texts_of(const std::list<request>& all) {
    std::vector<std::string> texts;
    for (const request& r : all) texts.push_back(std::string(operation_name(r)) + ' ' + std::string(path_of(r)));
    return texts;
}

}  // namespace

TEST_CASE("watch registry: no watch outlives a connection, and the next one is asked for those with waiters",
          "[watch_registry]") {
    watch_registry r;
    const auto data = set(r, "/a"), shared = set(r, "/a"), children = set(r, "/a", watch_kind::children);
    const auto config = set(r, "/zookeeper/config", watch_kind::config), fired = set(r, "/f"), left = set(r, "/l");
    r.fire(node_event::removed, "/f");
    CHECK(r.leave(*left));
    CHECK(r.questions().empty());
    CHECK(data->is_set);
    CHECK(r.end_connection() == gone_watches{{"/a", watch_kind::data},
                                             {"/a", watch_kind::children},
                                             {"/l", watch_kind::data},
                                             {"/zookeeper/config", watch_kind::data}});
    for (const auto& w : {data, shared, children, config}) CHECK_FALSE(w->is_set);
    CHECK(r.size() == 3);
    CHECK(texts_of(r.questions()) == std::vector<std::string>{"exists /a", "children /a", "exists /zookeeper/config"});
    for (const request& q : r.questions()) CHECK(r.is_unset(watch_of(q)));
    CHECK(r.end_connection().empty());  // there was no connection in between
    // Who leaves now leaves no watch.
    CHECK_FALSE(r.leave(*data));
    CHECK_FALSE(r.leave(*shared));
    CHECK_FALSE(r.leave(*children));
    CHECK_FALSE(r.leave(*config));
    CHECK(r.size() == 0);
}

TEST_CASE("watch registry: below a chroot the configuration is asked for by its own request", "[watch_registry]") {
    watch_registry r(4);
    const auto config = set(r, "/zookeeper/config", watch_kind::config);
    r.end_connection();
    const auto asked = r.questions();
    REQUIRE(asked.size() == 1);
    CHECK(std::get<get_config_request>(asked.front()).watch);
    CHECK(r.is_unset(watch_of(asked.front())));
}

TEST_CASE("watch registry: a node that is as it was keeps its waiters, and has its watch again", "[watch_registry]") {
    watch_registry r;
    const auto kind = GENERATE(watch_kind::data, watch_kind::children);
    const auto w = set_at(r, at(5), kind);
    r.end_connection();
    CHECK_FALSE(ask_again(r, true, at(5), kind));
    CHECK(r.take_changed().empty());
    CHECK(w->is_set);
    CHECK(r.live("/a", kind));
    CHECK(r.questions().empty());
    CHECK(same(r.fire(node_event::removed, "/a"), {w}));
}

TEST_CASE("watch registry: what the waiters are told of a change during a cut", "[watch_registry]") {
    seen_state missing, refused;
    refused.is = seen_state::how::refused;
    seen_state fewer = at(5);
    fewer.num_children = 1;
    seen_state renamed = at(5);
    renamed.cversion = 2;
    struct row {
        const char* name;
        watch_kind kind;
        seen_state before, now;
        bool live;
        node_event event;
    };
    using enum watch_kind;
    const auto told = GENERATE_REF(from_range(std::vector<row>{
        {"written", data, at(5), at(6), true, node_event::data_changed},
        {"re-created by a transaction of the same number", data, at(5, 1), at(5, 5), true, node_event::data_changed},
        {"removed", data, at(5), missing, true, node_event::removed},
        {"created", data, missing, at(6), true, node_event::created},
        {"closed to this client", data, at(5), refused, false, node_event::data_changed},
        {"closed to this client, and was missing", data, missing, refused, false, node_event::data_changed},
        {"a child more", children, at(5), at(6), true, node_event::children_changed},
        {"a child less, with the same pzxid", children, at(5), fewer, true, node_event::children_changed},
        {"one child for another, with the same pzxid", children, at(5), renamed, true, node_event::children_changed},
        {"removed with its children", children, at(5), missing, false, node_event::removed},
        {"children closed to this client", children, at(5), refused, false, node_event::children_changed},
    }));
    INFO(told.name);
    watch_registry r;
    const auto w = set_at(r, told.before, told.kind), left = set_at(r, told.before, told.kind);
    r.end_connection();
    CHECK_FALSE(r.leave(*left));
    CHECK(ask_again(r, told.live, told.now, told.kind) == told.live);  // a watch that nobody needs any more
    CHECK(same(r.take_changed(), {w}));
    CHECK(w->event == told.event);
    CHECK(r.take_changed().empty());
    CHECK_FALSE(r.removed("/a", told.kind, true));
    CHECK(r.size() == 0);
}

TEST_CASE("watch registry: waiters of two states, and a cut: only one of them is told", "[watch_registry]") {
    watch_registry r;
    const auto old = set_at(r, at(5));
    SECTION("another one has read a change of which servers have not told, since it may not be read") {
        const auto later = set_at(r, at(6));
        CHECK(r.take_changed().empty());
        r.end_connection();
        CHECK_FALSE(ask_again(r, true, at(6)));
        CHECK(same(r.take_changed(), {old}));
        CHECK(later->is_set);
    }
    r.end_connection();
    SECTION("another one reads before the question is answered") {
        r.begin("/a", watch_kind::data);  // the question
        const auto later = set_at(r, at(6));
        CHECK(same(r.take_changed(), {old}));
        CHECK_FALSE(r.finish("/a", watch_kind::data, true, nullptr, at(6)));
        CHECK(r.take_changed().empty());
        CHECK(later->is_set);
        CHECK(same(r.fire(node_event::data_changed, "/a"), {later}));
    }
    SECTION("another one reads the same, and leaves") {
        const auto later = set_at(r, at(5));
        CHECK(r.take_changed().empty());
        CHECK(old->is_set);
        CHECK_FALSE(r.is_unset({&old->path, watch_kind::data, false}));
        CHECK_FALSE(r.leave(*later));
        CHECK(r.live("/a", watch_kind::data));
    }
    SECTION("the read of another one fails, which says nothing") {
        r.begin("/a", watch_kind::data);
        CHECK_FALSE(r.finish("/a", watch_kind::data, false, nullptr, std::nullopt));
        CHECK(r.take_changed().empty());
        CHECK(r.questions().size() == 1);
    }
    SECTION("an event comes first") {
        r.begin("/a", watch_kind::data);
        CHECK(same(r.fire(node_event::data_changed, "/a"), {old}));
        CHECK(r.finish("/a", watch_kind::data, true, nullptr, at(7)));
        CHECK(r.take_changed().empty());
    }
    SECTION("it leaves while the question is under way") {
        r.begin("/a", watch_kind::data);
        CHECK_FALSE(r.leave(*old));
        CHECK(r.finish("/a", watch_kind::data, true, nullptr, at(6)));
        CHECK(r.take_changed().empty());
    }
    SECTION("there is another cut before the answer") {
        r.begin("/a", watch_kind::data);
        CHECK_FALSE(r.finish("/a", watch_kind::data, false, nullptr, std::nullopt));
        CHECK(r.end_connection().empty());
        CHECK(r.questions().size() == 1);
        CHECK(ask_again(r, true, at(6)));
        CHECK(same(r.take_changed(), {old}));
    }
}

TEST_CASE("watch registry: what an answer says of a node", "[watch_registry]") {
    reply r;
    r.stat.czxid = 1, r.stat.mzxid = 2, r.stat.pzxid = 3, r.stat.cversion = 4, r.stat.num_children = 5;
    const seen_state data = seen_in(r, watch_kind::data), children = seen_in(r, watch_kind::children);
    CHECK(data == at(2));
    CHECK(children.zxid == 3);
    CHECK(children.cversion == 4);
    CHECK(children.num_children == 5);
    CHECK(seen_in(r, watch_kind::config) == data);
    r.code = zkasio::zk_errc::no_node;
    CHECK(seen_in(r, watch_kind::data) == seen_state());
    r.code = zkasio::zk_errc::no_auth;
    CHECK(seen_in(r, watch_kind::data).is == seen_state::how::refused);
}
