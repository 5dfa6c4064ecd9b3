// Watches of the C library: which event ends which of them, and what the next connection is told of the others.

#include "support/jute_writer.hpp"
#include "support/scripted_connection.hpp"

#include <zkasio/error.hpp>

#include <string>
#include <vector>

namespace c_backend_watches_tests {

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

constexpr std::int64_t last_zxid = 0x42;
constexpr std::int32_t set_watches_xid = -8, set_watches_type = 101, remove_watches_type = 18;

enum event_type : std::int32_t { node_created = 1, deleted = 2, changed = 3, children_changed = 4 };

struct watch_rig {
    explicit watch_rig(std::string chroot = {}) : c([&] {
        open_params p;
        p.chroot = std::move(chroot);
        return p;
    }()) {
        c.connect();
    }

    // Sends the request, and gives it this answer.
    std::error_code ask(const request& r, std::int32_t failure, const jute_writer& body) {
        const std::error_code refused = c.b->submit(++id, r);
        if (refused) return refused;
        c.b->end_batch();
        asked = c.server.read_packet();
        c.server.send(scripted_server::reply_frame(asked.xid, failure, body.bytes(), last_zxid));
        c.until_answered(1);
        const std::error_code code = c.seen.replies[id].at(0).code;
        c.seen.replies.clear();
        return code;
    }
    void get(const std::string& path, std::int32_t failure = 0) {
        ask(get_request{path, true}, failure, jute_writer().text("").stat({}));
    }
    void exists(const std::string& path, std::int32_t failure) {
        ask(exists_request{path, true}, failure, jute_writer().stat({}));
    }
    void children(const std::string& path, std::int32_t failure = 0) {
        ask(children_request{path, true}, failure, jute_writer().texts({}).stat({}));
    }
    void get_config() { ask(get_config_request{true}, 0, jute_writer().text("").stat({})); }

    // What the backend tells of this event.
    std::vector<recorder::node_news> told_of(event_type type, const std::string& path) {
        c.server.tell(type, path);
        ask(exists_request{"/marker"}, -101, {});  // answered behind the event
        return std::exchange(c.seen.events, {});
    }

    // The watches that the next connection is told of.
    struct lists {
        std::vector<std::string> data, exist, children;
        bool operator==(const lists&) const = default;
        bool empty() const { return data.empty() && exist.empty() && children.empty(); }
    };
    void check_kept(const lists& expected) {
        c.server.hang_up();
        drive(*c.b, [&] { return !c.connected(); });
        c.connect();
        CHECK(c.seen.events.empty());
        if (expected.empty()) {
            c.until_read();
            CHECK(c.server.bytes_received() == 0);
            return;
        }
        const auto told = c.server.read_packet();
        CHECK(told.xid == set_watches_xid);
        CHECK(told.type == set_watches_type);
        jute_writer body;
        body.long_number(last_zxid).texts(expected.data).texts(expected.exist).texts(expected.children);
        CHECK(told.body == body.bytes());
        c.server.answer(told, "");
        c.until_read();
    }

    connection c;
    op_id id = 0;
    scripted_server::packet asked{};
};

using news = std::vector<recorder::node_news>;

}  // namespace

TEST_CASE("c_backend: an event of each type ends the watches that it is about, and is told once") {
    watch_rig rig;
    const std::string kind = GENERATE("get", "exists", "missing", "children", "all");
    if (kind == "get" || kind == "all") rig.get("/a");
    if (kind == "exists" || kind == "all") rig.exists("/a", 0);
    if (kind == "missing") rig.exists("/a", -101);
    if (kind == "children" || kind == "all") rig.children("/a");
    const bool data = kind == "get" || kind == "exists" || kind == "all";
    const bool children = kind == "children" || kind == "all";
    watch_rig::lists kept;
    if (data) kept.data = {"/a"};
    if (kind == "missing") kept.exist = {"/a"};
    if (children) kept.children = {"/a"};
    news expected;
    event_type type = node_created;
    INFO(kind);
    SECTION("created") {
        if (data || kind == "missing") expected = {{node_event::created, "/a"}};
        kept.data = kept.exist = {};
    }
    SECTION("deleted") {
        type = deleted;
        expected = {{node_event::removed, "/a"}};
        kept = {};
    }
    SECTION("changed") {
        type = changed;
        if (data || kind == "missing") expected = {{node_event::data_changed, "/a"}};
        kept.data = kept.exist = {};
    }
    SECTION("children") {
        type = children_changed;
        if (children) expected = {{node_event::children_changed, "/a"}};
        kept.children = {};
    }
    CHECK(rig.told_of(type, "/b").empty());
    CHECK(rig.told_of(type, "/a/b").empty());
    CHECK(rig.told_of(type, "/a") == expected);
    CHECK(rig.told_of(type, "/a").empty());
    rig.check_kept(kept);
}

TEST_CASE("c_backend: a read that fails sets no watch, except that exists() waits for the node") {
    watch_rig rig;
    const std::int32_t failure = GENERATE(-101, -102, -4);
    rig.get("/g", failure);
    rig.children("/c", failure);
    rig.exists("/e", failure);
    watch_rig::lists kept;
    if (failure == -101) kept.exist = {"/e"};
    for (const event_type type : {node_created, deleted, changed, children_changed}) {
        CHECK(rig.told_of(type, "/g").empty());
        CHECK(rig.told_of(type, "/c").empty());
    }
    rig.check_kept(kept);
}

TEST_CASE("c_backend: a read without a watch sets none") {
    watch_rig rig;
    rig.ask(get_request{"/a"}, 0, jute_writer().text("").stat({}));
    rig.ask(exists_request{"/a"}, 0, jute_writer().stat({}));
    rig.ask(children_request{"/a"}, 0, jute_writer().texts({}).stat({}));
    rig.ask(get_config_request{}, 0, jute_writer().text("").stat({}));
    for (const event_type type : {node_created, deleted, changed, children_changed})
        CHECK(rig.told_of(type, "/a").empty());
    rig.check_kept({});
}

TEST_CASE("c_backend: an event that comes before the answer that sets its watch is not told") {
    watch_rig rig;
    REQUIRE_FALSE(rig.c.b->submit(1, get_request{"/a", true}));
    rig.c.b->end_batch();
    const auto asked = rig.c.server.read_packet();
    rig.c.server.tell(changed, "/a");
    rig.c.server.answer(asked, jute_writer().text("").stat({}).bytes(), last_zxid);
    rig.c.until_answered(1);
    CHECK(rig.c.seen.events.empty());
    rig.c.seen.replies.clear();
    CHECK(rig.told_of(changed, "/a") == news{{node_event::data_changed, "/a"}});
}

TEST_CASE("c_backend: types of events that no server sends are not told") {
    watch_rig rig;
    rig.get("/a");
    for (const std::int32_t type : {0, 5, 99, -2}) CHECK(rig.told_of(static_cast<event_type>(type), "/a").empty());
    CHECK(rig.c.connected());
    CHECK(rig.told_of(changed, "/a") == news{{node_event::data_changed, "/a"}});
}

TEST_CASE("c_backend: paths of events are below the chroot, but for the configuration's") {
    watch_rig rig("/app");
    rig.get("/a");
    CHECK(rig.asked.body == jute_writer().text("/app/a").boolean(true).bytes());
    rig.children("/");
    CHECK(rig.asked.body == jute_writer().text("/app").boolean(true).bytes());
    rig.get_config();
    CHECK(rig.asked.body == jute_writer().text("/zookeeper/config").boolean(true).bytes());
    CHECK(rig.told_of(changed, "/app/a") == news{{node_event::data_changed, "/a"}});
    CHECK(rig.told_of(children_changed, "/app") == news{{node_event::children_changed, "/"}});
    CHECK(rig.told_of(changed, "/zookeeper/config") == news{{node_event::data_changed, "/zookeeper/config"}});
    rig.check_kept({});
}

TEST_CASE("c_backend: a watch that is removed is told of nothing, and is gone from the next connection") {
    watch_rig rig;
    rig.get("/a");
    rig.children("/a");
    const watch_kind kind = GENERATE(watch_kind::data, watch_kind::children);
    const bool data = kind == watch_kind::data;
    INFO((data ? "data" : "children"));
    CHECK_FALSE(rig.ask(remove_watch_request{"/a", kind}, 0, {}));
    CHECK(rig.asked.type == remove_watches_type);
    CHECK(rig.asked.body == jute_writer().text("/a").number(data ? 2 : 1).bytes());
    CHECK(rig.told_of(data ? changed : children_changed, "/a").empty());
    watch_rig::lists kept;
    (data ? kept.children : kept.data) = {"/a"};
    rig.check_kept(kept);
}

TEST_CASE("c_backend: a watch whose removal a server refuses stays") {
    watch_rig rig;
    rig.get("/a");
    const int code = GENERATE(-121, -102);  // one that does not know the request hangs up
    CHECK(rig.ask(remove_watch_request{"/a", watch_kind::data}, code, {}) == static_cast<zk_errc>(code));
    CHECK(rig.told_of(changed, "/a") == news{{node_event::data_changed, "/a"}});
}

TEST_CASE("c_backend: a watch that is forgotten without a connection is gone from the next one") {
    watch_rig rig;
    rig.get("/a");
    rig.get("/b");
    rig.children("/a");
    rig.exists("/c", -101);
    rig.c.server.hang_up();
    drive(*rig.c.b, [&] { return !rig.c.connected(); });
    rig.c.b->forget_watch("/a", watch_kind::data);
    rig.c.b->forget_watch("/c", watch_kind::data);
    rig.c.b->forget_watch("/none", watch_kind::data);
    rig.c.b->forget_watch("/none", watch_kind::children);
    rig.check_kept({{"/b"}, {}, {"/a"}});
    rig.c.server.hang_up();
    drive(*rig.c.b, [&] { return !rig.c.connected(); });
    rig.c.b->forget_watch("/a", watch_kind::children);
    rig.check_kept({{"/b"}, {}, {}});
}

TEST_CASE("c_backend: the events that make up for the time without a connection are told") {
    watch_rig rig;
    rig.get("/a");
    rig.children("/b");
    rig.c.server.hang_up();
    drive(*rig.c.b, [&] { return !rig.c.connected(); });
    rig.c.connect();
    const auto told = rig.c.server.read_packet();
    rig.c.server.tell(deleted, "/a");
    rig.c.server.tell(children_changed, "/b");
    rig.c.server.answer(told, "");
    drive(*rig.c.b, [&] { return rig.c.seen.events.size() == 2; });
    CHECK(rig.c.seen.events == news{{node_event::removed, "/a"}, {node_event::children_changed, "/b"}});
}

}  // namespace c_backend_watches_tests
