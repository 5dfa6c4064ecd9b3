// Nodes that go, and are made anew, while a tree_sync is reading them.

#include "unit/cache/tree_following.hpp"

#include <algorithm>

using namespace zkasio;
using namespace zkasio::cache_detail;
using namespace zkasio::test;

namespace {

/// Of "/r" with "/r/a" with "/r/a/b", known from an earlier connection.
struct looking_again : following {
    looking_again() {
        servers.create("/r");
        servers.create("/r/a", "1");
        servers.create("/r/a/b", "1");
        servers.connect();
        settle();
        servers.disconnect();
        tell(told, sync.take_deltas());
        servers.connect();
    }
    /// So many reads, one after another; then one more that is on its way.
    void look(std::size_t reads) {
        for (; reads > 0; --reads) {
            REQUIRE(servers.send(1));
            REQUIRE(servers.serve());
            while (servers.hear()) {
            }
        }
        REQUIRE(servers.send(1));
    }
};

}  // namespace

TEST_CASE("tree_sync: what is below a node that was made anew and was read before it is not taken back (C3)") {
    looking_again f;
    f.look(4);  // of "/r", its children, "/r/a", its children: now "/r/a/b"
    f.servers.set("/r/a", "2");
    f.servers.remove_all("/r/a");
    f.servers.create("/r/a", "3");
    f.servers.create("/r/a/b", "3");
    f.servers.settle();
    const auto deltas = f.sync.take_deltas();
    const auto gone =
        std::count_if(deltas.begin(), deltas.end(), [](const tree_delta& d) { return d.path == "/r/a/b" && !d.after; });
    CHECK(gone == 1);
    tell(f.told, deltas);
    f.settle();
    CHECK(f.data("/r/a") == "3");
    CHECK(f.data("/r/a/b") == "3");
}

TEST_CASE("tree_sync: what is below a child of a node that was made anew is not taken back either (C3)") {
    looking_again f;
    f.look(4);
    f.servers.set("/r/a", "2");
    f.servers.set("/r", "2");
    f.servers.remove_all("/r");
    f.servers.create("/r");
    f.servers.create("/r/a", "3");
    f.servers.create("/r/a/b", "3");
    f.servers.settle();
    const auto deltas = f.sync.take_deltas();
    for (const char* path : {"/r", "/r/a", "/r/a/b"}) {
        const auto gone = std::count_if(deltas.begin(), deltas.end(),
                                        [&](const tree_delta& d) { return d.path == path && !d.after; });
        CHECK(gone == 1);
    }
    tell(f.told, deltas);
    f.settle();
}

// Of its data nobody has told, as that watch has fired before.
TEST_CASE("tree_sync: a node that has gone before its children were listed does not count as looked at (C8)") {
    looking_again f;
    f.look(1);
    f.servers.set("/r", "2");
    f.servers.remove_all("/r");
    REQUIRE(f.servers.serve());
    while (f.servers.hear()) {
    }
    CHECK_FALSE(f.sync.next_read() == std::nullopt);
    CHECK_FALSE(f.sync.current());
    CHECK(f.sync.tree().size() == 0);
}

// Between the two, somebody may have had the watch of the older one removed.
TEST_CASE("tree_sync: of two reads of one node the older one does not count") {
    following f;
    f.servers.create("/r", "1");
    f.servers.connect();
    f.settle();
    f.servers.set("/r", "2");
    REQUIRE(f.servers.hear());
    REQUIRE(f.servers.send());
    f.servers.remove("/r");
    f.servers.create("/r", "3");
    REQUIRE(f.servers.hear());
    REQUIRE(f.servers.send());
    REQUIRE(f.servers.serve());
    REQUIRE(f.servers.hear());
    CHECK(f.sync.tree().size() == 0);
    f.settle();
    CHECK(f.data("/r") == "3");
}

// Its watch may be that of somebody else, who was told that it is looked after here: see node_feed_listener.
TEST_CASE("tree_sync: when the connection is lost, a read under way is named, also of a node that has gone") {
    following f;
    f.servers.create("/r");
    f.servers.create("/r/a", "1");
    f.servers.connect();
    f.settle();
    f.servers.set("/r/a", "2");
    REQUIRE(f.servers.hear());
    REQUIRE(f.servers.send());
    CHECK(f.sync.watches(node_read::stat, "/r/a"));
    f.servers.remove("/r/a");
    f.sync.changed(node_change::removed, "/r/a");
    CHECK_FALSE(f.sync.watches(node_read::stat, "/r/a"));
    std::vector<std::string> named;
    f.sync.for_each_watch([&](node_read what, const std::string& path) {
        if (what == node_read::stat) named.push_back(path);
    });
    CHECK(std::count(named.begin(), named.end(), "/r/a") == 1);
}
