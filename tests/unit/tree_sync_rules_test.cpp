// What may not be read (C7), and when what is known is current (C8).

#include "unit/tree_following.hpp"

#include <string>

using namespace zkasio;
using namespace zkasio::cache_detail;
using namespace zkasio::test;

TEST_CASE("tree_sync: what an ACL forbids to read is there, without data (C7)") {
    following f;
    for (const char* path : {"/r", "/r/a", "/r/a/b", "/r/c"}) f.servers.create(path, path);
    f.servers.forbid("/r/a", true);
    f.servers.connect();
    f.settle();
    CHECK(f.data("/r/a").empty());
    CHECK_FALSE(f.sync.tree().find("/r/a")->value->readable);
    CHECK_FALSE(f.told.contains("/r/a/b"));
    CHECK(f.data("/r/c") == "/r/c");

    f.servers.forbid("/r/a", false);
    f.servers.set("/r/a", "open");
    f.settle();
    CHECK(f.data("/r/a") == "open");
    CHECK(f.data("/r/a/b") == "/r/a/b");

    // The children of a node that becomes unreadable are not to be seen any more once we look.
    f.servers.forbid("/r/a", true);
    f.servers.create("/r/a/d");
    f.settle();
    CHECK_FALSE(f.told.contains("/r/a/b"));

    // A change of the ACL while there is no connection is noticed with the next.
    f.servers.disconnect();
    f.servers.forbid("/r/a", false);
    f.servers.connect();
    f.settle();
    CHECK(f.data("/r/a") == "open");
    CHECK(f.told.contains("/r/a/d"));
}

TEST_CASE("tree_sync: data that may not be read any more are not shown any more (C7)") {
    following f;
    f.servers.stat_needs_permission = GENERATE(false, true);
    f.servers.create("/r", "root");
    f.servers.create("/r/a", "secret");
    f.servers.connect();
    f.settle();
    CHECK(f.data("/r/a") == "secret");
    f.servers.disconnect();
    f.servers.forbid("/r/a", true);
    f.servers.connect();
    f.servers.settle();
    tell(f.told, f.sync.take_deltas());
    REQUIRE(f.sync.tree().find("/r/a"));
    CHECK_FALSE(f.sync.tree().find("/r/a")->value->readable);
    CHECK(f.sync.tree().find("/r/a")->value->data.empty());
    CHECK(f.data("/r/a").empty());

    f.servers.disconnect();
    f.servers.forbid("/r/a", false);
    f.servers.connect();
    f.settle();
    CHECK(f.data("/r/a") == "secret");
}

TEST_CASE("tree_sync: a tree that changes all the time becomes current (C8)") {
    following f;
    for (const char* path : {"/r", "/r/a", "/r/b", "/r/b/c"}) f.servers.create(path, "0");
    f.servers.connect();
    bool current = false;
    const int connections = GENERATE(1, 2);
    int steps = 0;
    for (int c = 0; c < connections; ++c) {
        if (c > 0) {
            f.servers.disconnect();
            f.servers.connect();
            CHECK_FALSE(f.sync.current());
        }
        // Between any two steps of ours everything changes, and a new node comes.
        for (current = false; !current && steps < 200; ++steps) {
            for (const char* path : {"/r", "/r/a", "/r/b", "/r/b/c"}) f.servers.set(path, std::to_string(steps));
            f.servers.create("/r/b/new-" + std::to_string(steps));
            while (f.servers.send()) {
            }
            f.servers.serve();
            f.servers.hear();
            current = f.sync.current();
        }
        CHECK(current);
        for (const char* path : {"/r", "/r/a", "/r/b", "/r/b/c"}) {
            REQUIRE(f.sync.tree().find(path));
            CHECK(f.sync.tree().find(path)->value);
        }
    }
    f.settle();
    CHECK(f.data("/r/b/c") == std::to_string(steps - 1));
    CHECK(f.told.size() == 4 + static_cast<std::size_t>(steps));
}

TEST_CASE("tree_sync: news of a node that others watch does not take its place in the first look (C8)") {
    following f;
    f.servers.create("/r", "0");
    f.servers.create("/r/a", "0");
    f.servers.connect();
    f.settle();
    f.servers.disconnect();
    f.servers.create("/r/b", "0");
    f.servers.connect();
    f.sync.changed(node_change::data_changed, "/r/a");
    while (!f.sync.current() && (f.servers.send(1) || f.servers.serve() || f.servers.hear())) {
    }
    REQUIRE(f.sync.tree().find("/r/b"));
    CHECK(f.sync.tree().find("/r/b")->value);
    CHECK(f.sync.watches(node_read::data, "/r/a"));
}

TEST_CASE("tree_sync: servers that tell nothing at all of a node that one may not read (C7)") {
    following f;
    f.servers.stat_needs_permission = true;
    for (const char* path : {"/r", "/r/a", "/r/a/b", "/r/c"}) f.servers.create(path, path);
    f.servers.forbid("/r/a", true);
    f.servers.connect();
    f.servers.settle();
    CHECK(f.sync.current());
    REQUIRE(f.sync.tree().find("/r/a"));
    REQUIRE(f.sync.tree().find("/r/a")->value);
    CHECK_FALSE(f.sync.tree().find("/r/a")->value->readable);
    CHECK_FALSE(f.sync.tree().find("/r/a/b"));

    // It is looked at again when its parent's children change,
    f.servers.forbid("/r/a", false);
    f.servers.create("/r/d");
    f.servers.settle();
    CHECK(f.sync.tree().find("/r/a")->value->data == "/r/a");
    CHECK(f.sync.tree().find("/r/a/b"));

    // and with the next connection. What was known below it is not to be seen.
    f.servers.forbid("/r/a", true);
    f.servers.disconnect();
    f.servers.connect();
    f.servers.settle();
    CHECK(f.sync.current());
    CHECK_FALSE(f.sync.tree().find("/r/a")->value->readable);
    CHECK_FALSE(f.sync.tree().find("/r/a/b"));
    f.servers.forbid("/r", true);
    f.servers.disconnect();
    f.servers.connect();
    f.servers.settle();
    CHECK(f.sync.current());
    CHECK_FALSE(f.sync.tree().find("/r")->value->readable);
    CHECK(f.sync.tree().size() == 1);
    CHECK(f.servers.not_named == 0);
}
