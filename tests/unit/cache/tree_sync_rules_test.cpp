// What may not be read (C7), and when what is known is current (C8).

#include "unit/cache/tree_following.hpp"

#include <random>
#include <string>
#include <vector>

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

TEST_CASE("tree_sync: a directory whose children may not be listed is no empty one (C7)") {
    tree_scope children_only;
    children_only.depth = 1;
    children_only.root_data = false;
    following f("/r", children_only);
    f.servers.create("/r");
    f.servers.create("/r/a", "1");
    f.servers.forbid("/r", true);
    f.servers.connect();
    f.servers.settle();
    tell(f.told, f.sync.take_deltas());
    REQUIRE(f.sync.tree().find("/r"));
    CHECK_FALSE(f.sync.tree().find("/r")->value->readable);
    CHECK(f.told.size() == 1);

    f.servers.forbid("/r", false);
    f.servers.disconnect();
    f.servers.connect();
    f.settle();
    CHECK(f.sync.tree().find("/r")->value->readable);
    CHECK(f.data("/r/a") == "1");
    f.servers.disconnect();
    f.servers.forbid("/r", true);
    f.servers.connect();
    f.servers.settle();
    tell(f.told, f.sync.take_deltas());
    CHECK_FALSE(f.sync.tree().find("/r")->value->readable);
    CHECK(f.told.size() == 1);
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

TEST_CASE("tree_sync: nor does news of a node that was refused on an earlier connection (C7, C8)") {
    following f;
    f.servers.create("/r", "0");
    f.servers.create("/r/a", "0");
    f.servers.forbid("/r/a", true);
    f.servers.connect();
    f.servers.settle();
    f.servers.disconnect();
    f.servers.forbid("/r/a", false);
    f.servers.connect();
    REQUIRE((f.servers.send() && f.servers.serve() && f.servers.hear()));
    REQUIRE(f.servers.send());  // the names of the children
    f.sync.changed(node_change::data_changed, "/r/a");
    while (!f.sync.current() && (f.servers.send() || f.servers.serve() || f.servers.hear())) {
    }
    CHECK(f.sync.tree().find("/r/a")->value->readable);
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

TEST_CASE("tree_sync: what has become readable without a change of the node is shown with the next connection (C7)") {
    following f;
    f.servers.stat_needs_permission = GENERATE(false, true);
    for (const char* path : {"/r", "/r/a", "/r/a/b", "/r/c"}) f.servers.create(path, path);
    const std::string secret = GENERATE("/r", "/r/a");
    f.servers.forbid(secret, true);
    f.servers.connect();
    f.servers.settle();
    tell(f.told, f.sync.take_deltas());
    CHECK(f.data(secret).empty());
    f.servers.disconnect();
    f.servers.authenticate();
    f.servers.connect();
    f.settle();
    for (const char* path : {"/r", "/r/a", "/r/a/b", "/r/c"}) CHECK(f.data(path) == path);
}

TEST_CASE("tree_sync: a credential is a reason to ask again for what was refused (C7)") {
    tree_scope scope;
    const bool with_data = GENERATE(true, false);
    scope.root_data = scope.data = with_data;
    if (GENERATE(true, false)) scope.depth = 2;
    following f("/r", scope);
    f.servers.stat_needs_permission = GENERATE(false, true);
    for (const char* path : {"/r", "/r/a", "/r/a/b", "/r/c"}) f.servers.create(path, path);
    const std::string secret = GENERATE("/r", "/r/a", "/r/a/b");
    f.servers.forbid(secret, true);
    f.servers.connect();
    f.servers.settle();
    tell(f.told, f.sync.take_deltas());
    f.servers.authenticate();
    f.sync.authenticated();
    f.settle();
    for (const char* path : {"/r", "/r/a", "/r/a/b", "/r/c"}) {
        REQUIRE(f.sync.tree().find(path));
        CHECK(f.sync.tree().find(path)->value->readable);
        CHECK(f.data(path) == (with_data ? path : ""));
    }
    f.servers.create("/r/a/later");
    f.settle();
    CHECK((f.told.contains("/r/a/later")));
}

TEST_CASE("tree_sync: a credential while the refused node is being read is not missed (C7)") {
    following f;
    f.servers.stat_needs_permission = GENERATE(false, true);
    const int steps = GENERATE(range(0, 12));
    for (const char* path : {"/r", "/r/a", "/r/a/b"}) f.servers.create(path, path);
    f.servers.forbid("/r/a", true);
    f.servers.connect();
    for (int i = 0; i < steps; ++i) (void)(f.servers.send(1) || f.servers.serve() || f.servers.hear());
    f.servers.authenticate();
    f.sync.authenticated();
    f.settle();
    CHECK(f.data("/r/a/b") == "/r/a/b");
}

TEST_CASE("tree_sync: a credential while the stat of a refused node is being read is not missed (C7)") {
    const std::string secret = GENERATE("/r", "/r/a");
    tree_scope without_children;  // no listing comes that would look again
    without_children.depth = secret == "/r" ? 0 : 1;
    following f("/r", without_children);
    f.servers.stat_needs_permission = true;
    const int steps = GENERATE(range(0, 16));
    for (const char* path : {"/r", "/r/a"}) f.servers.create(path, path);
    f.servers.forbid(secret, true);
    f.servers.connect();
    for (int i = 0; i < steps; ++i) (void)(f.servers.send(1) || f.servers.serve() || f.servers.hear());
    f.servers.authenticate();
    f.sync.authenticated();
    f.settle();
    CHECK(f.data(secret) == secret);
}

TEST_CASE("tree_sync: a root whose ACL is opened during a cut is shown (C7)") {
    following f;
    f.servers.stat_needs_permission = GENERATE(false, true);
    f.servers.create("/r", "open");
    f.servers.create("/r/a", "1");
    f.servers.forbid("/r", true);
    f.servers.connect();
    f.servers.settle();
    tell(f.told, f.sync.take_deltas());
    CHECK_FALSE(f.sync.tree().find("/r")->value->readable);
    f.servers.disconnect();
    f.servers.forbid("/r", false);
    f.servers.connect();
    f.settle();
    CHECK(f.data("/r") == "open");
    CHECK(f.data("/r/a") == "1");
}

TEST_CASE("tree_sync: a node of which only the stat is wanted becomes readable again (C7)") {
    tree_scope names_only;
    names_only.depth = 1;
    names_only.root_data = names_only.data = false;
    following f("/r", names_only);
    f.servers.stat_needs_permission = true;
    f.servers.create("/r");
    f.servers.create("/r/a", "1");
    if (GENERATE(false, true)) {  // it was read before
        f.servers.connect();
        f.settle();
        f.servers.disconnect();
    }
    f.servers.forbid("/r/a", true);
    f.servers.connect();
    f.servers.settle();
    tell(f.told, f.sync.take_deltas());
    CHECK_FALSE(f.sync.tree().find("/r/a")->value->readable);
    f.servers.disconnect();
    f.servers.forbid("/r/a", false);
    f.servers.connect();
    f.settle();
    CHECK(f.sync.tree().find("/r/a")->value->readable);
}

TEST_CASE("tree_sync: a node that becomes readable is no other node (C3, C7)") {
    following f;
    f.servers.stat_needs_permission = true;
    f.servers.create("/r");
    f.servers.create("/r/a", "1");
    f.servers.forbid("/r/a", true);
    f.servers.connect();
    f.servers.settle();
    tell(f.told, f.sync.take_deltas());
    f.servers.authenticate();
    f.sync.authenticated();
    f.servers.settle();
    const std::vector<tree_delta> deltas = f.sync.take_deltas();
    REQUIRE(deltas.size() == 1);
    CHECK(deltas[0].before);
    CHECK(deltas[0].after);
    tell(f.told, deltas);
    f.settle();
}

// Such servers remove the watch of a client that may not read the node, and tell it nothing.
TEST_CASE("tree_sync: children that have come while the node was not readable are shown when it is again (C7)") {
    following f;
    f.servers.stat_needs_permission = true;
    for (const char* path : {"/r", "/r/a", "/r/a/b"}) f.servers.create(path, path);
    f.servers.connect();
    f.settle();
    f.servers.set("/r/a", "2");
    f.servers.forbid("/r/a", true);
    f.servers.create("/r/a/c");
    f.servers.settle();
    tell(f.told, f.sync.take_deltas());
    CHECK_FALSE(f.sync.tree().find("/r/a")->value->readable);
    f.servers.forbid("/r/a", false);
    f.servers.create("/r/d");  // a reason to ask again
    f.settle();
    CHECK(f.data("/r/a") == "2");
    CHECK(f.told.contains("/r/a/b"));
    CHECK(f.told.contains("/r/a/c"));
}

TEST_CASE("tree_sync: whatever is forbidden and allowed in whichever order, all that may be read is shown (C7)") {
    const auto seed = GENERATE(range(1, 101));
    std::mt19937 random(static_cast<unsigned>(seed));
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    tree_scope scope;
    if (seed % 3 == 1) scope.depth = 2;
    if (seed % 4 == 1) scope.root_data = scope.data = false;
    const bool with_data = scope.data;
    following f("/r", scope);
    f.servers.stat_needs_permission = seed % 2 == 0;
    const auto some_path = [&] {
        std::string path = "/r";
        for (int levels = below(3); levels > 0; --levels) path += std::string("/") + static_cast<char>('a' + below(2));
        return path;
    };
    f.servers.connect(below(2) == 0);
    for (int step = 0; step < 400; ++step) {
        switch (below(16)) {
            case 0: case 1: f.servers.create(some_path(), std::to_string(step)); break;
            case 2: f.servers.set(some_path(), std::to_string(step)); break;
            case 3: if (below(3) == 0) f.servers.remove_all(some_path()); break;
            case 4: case 5: f.servers.forbid(some_path(), below(2) == 0); break;
            case 6:
                if (below(4) > 0) break;
                if (f.servers.up()) f.servers.disconnect();
                else f.servers.connect(below(2) == 0);
                break;
            case 7: case 8: case 9: f.servers.send(static_cast<std::size_t>(1 + below(3))); break;
            case 10: case 11: case 12: f.servers.serve(); break;
            default: f.servers.hear(); break;
        }
    }
    INFO("seed " << seed);
    f.servers.authenticate();
    if (f.servers.up() && seed % 5 > 0) {
        f.sync.authenticated();
    } else {
        if (f.servers.up()) f.servers.disconnect();
        f.servers.connect(below(2) == 0);
    }
    // An ACL may have been closed and opened again unseen, with a change in between that no watch has told of.
    f.servers.settle();
    if (f.servers.stat_needs_permission) {
        f.servers.disconnect();
        f.servers.connect(below(2) == 0);
    }
    f.settle();
    known_nodes truth;
    for (const auto& [path, node] : f.servers.nodes())
        if (path.starts_with("/r") && f.sync.tree().depth(path) <= scope.depth)
            truth[path] = {with_data ? node.data : "", node.stat.mzxid};
    CHECK(f.told == truth);
}
