// C10: on a connection with one recursive watch, reads set no watches.

#include "unit/cache/tree_following.hpp"

#include <cstddef>
#include <string>

using namespace zkasio;
using namespace zkasio::cache_detail;
using namespace zkasio::test;

namespace {

/// All reads, when nothing is left to do.
std::size_t all_reads(following& f) {
    f.settle();
    return f.servers.reads();
}

/// Of "/r" with "/r/a" and "/r/a/b", all of them read.
struct watching : following {
    explicit watching(tree_scope scope = {}) : following("/r", std::move(scope)) {
        for (const char* path : {"/r", "/r/a", "/r/a/b"}) servers.create(path, "1");
        servers.connect(true);
        before = all_reads(*this);
    }
    /// The reads since the last call.
    std::size_t cost() {
        const std::size_t n = all_reads(*this) - before;
        before += n;
        return n;
    }
    std::size_t before = 0;
};

}  // namespace

TEST_CASE("tree_sync: by one watch, a tree is read to its end with no watch of its own, and followed (C10)") {
    watching f;
    CHECK(f.before == 5);  // the data of three nodes, and the children of those that have some
    CHECK(f.servers.watches() == 0);
    f.servers.set("/r/a/b", "2");
    CHECK(f.cost() == 1);
    CHECK(f.data("/r/a/b") == "2");
    f.servers.create("/r/e", "3", 7);
    CHECK(f.cost() == 1);
    CHECK(f.data("/r/e") == "3");
    f.servers.create("/r/c", "4");
    CHECK(f.cost() == 1);
    f.servers.remove_all("/r/a");
    CHECK(f.cost() == 0);
    CHECK(f.told.size() == 3);
    f.servers.create("/r/a", "5");
    f.servers.create("/r/a/b", "5");
    CHECK(f.cost() <= 4);
    CHECK(f.data("/r/a/b") == "5");
}

TEST_CASE("tree_sync: by one watch, a change of another client costs the same among any number of siblings (C10)") {
    const std::size_t n = GENERATE(10U, 100U, 1000U);
    following f;
    f.servers.create("/r");
    for (std::size_t i = 0; i < n; ++i) f.servers.create("/r/" + std::to_string(i), "", 7);
    f.servers.connect(true);
    const std::size_t before = all_reads(f);
    CHECK(before == n + 2);
    f.servers.create("/r/more", "", 7);
    f.servers.remove("/r/0");
    CHECK(all_reads(f) == before + 1);
    CHECK(f.told.size() == n + 1);
}

TEST_CASE("tree_sync: by one watch, a root that is missing, is made, goes, and is made again (C6, C10)") {
    following f;
    f.servers.connect(true);
    f.settle();
    CHECK(f.told.empty());
    for (const char* data : {"1", "2"}) {
        f.servers.create("/r", data);
        f.servers.create("/r/a", data);
        f.settle();
        CHECK(f.data("/r/a") == data);
        f.servers.remove_all("/r");
        f.settle();
        CHECK(f.told.empty());
    }
}

TEST_CASE("tree_sync: by one watch, nodes outside of the scope are not read (C10)") {
    tree_scope scope;
    scope.depth = 1;
    scope.filter = [](const std::string& path) { return !path.ends_with("hidden"); };
    watching f(scope);
    CHECK(f.before == 3);
    f.servers.create("/r/hidden");
    f.servers.set("/r/hidden", "2");
    f.servers.create("/r/a/c");
    f.servers.set("/r/a/b", "2");
    f.servers.remove("/r/a/b");
    CHECK(f.cost() == 0);
    CHECK(f.told.size() == 2);
}

// The listing that is under way when a node is made tells of it, too; or the node is made behind it.
TEST_CASE("tree_sync: by one watch, a node that is made during the first look is read once (C10)") {
    const int steps = GENERATE(range(0, 14));
    following f;
    for (const char* path : {"/r", "/r/a"}) f.servers.create(path, "1");
    f.servers.connect(true);
    for (int i = 0; i < steps; ++i) {
        if (i % 3 == 0) f.servers.send(1);
        if (i % 3 == 1) f.servers.serve();
        if (i % 3 == 2) f.servers.hear();
    }
    INFO("after " << steps << " steps");
    f.servers.create("/r/n", "2", 7);
    const std::size_t n = all_reads(f);
    CHECK(f.data("/r/n") == "2");
    CHECK(n <= 6);  // its event may come while its first read is under way (C2)
}

// Servers from 3.8.4 on tell nobody of a node that he may not read.
TEST_CASE("tree_sync: by one watch, a node of which nothing could be told is found by its next change (C7, C10)") {
    watching f;
    f.servers.stat_needs_permission = true;
    f.servers.create("/r/s", "1", 0, true);
    f.servers.settle();
    tell(f.told, f.sync.take_deltas());
    CHECK_FALSE(f.told.contains("/r/s"));
    f.servers.forbid("/r/s", false);
    f.servers.set("/r/s", "2");
    f.settle();
    CHECK(f.data("/r/s") == "2");
}

TEST_CASE("tree_sync: by one watch, a node that went unseen, and is made anew, is read (C7, C10)") {
    watching f;
    f.servers.stat_needs_permission = true;
    f.servers.forbid("/r/a/b", true);
    f.servers.set("/r/a/b", "2");  // nobody is told
    f.sync.authenticated();        // of another credential
    f.sync.changed(node_change::data_changed, "/r/a/b");
    f.servers.settle();
    tell(f.told, f.sync.take_deltas());
    CHECK_FALSE(f.sync.tree().find("/r/a/b")->value->readable);
    f.servers.remove("/r/a/b");
    f.servers.create("/r/a/b", "3");
    f.settle();
    CHECK(f.data("/r/a/b") == "3");
}

TEST_CASE("tree_sync: by one watch, the watches of others are none of the cache's (C10)") {
    watching f;
    f.sync.changed(node_change::children_changed, "/r");
    CHECK(f.cost() == 0);
    CHECK_FALSE(f.sync.watches(node_read::stat, "/r"));
    CHECK_FALSE(f.sync.watches(node_read::children, "/r"));
}

TEST_CASE("tree_sync: a connection with one watch follows one without, and the other way round (C4, C10)") {
    watching f;
    f.servers.disconnect();
    f.servers.set("/r/a", "2");
    f.servers.connect(false);
    f.settle();
    CHECK(f.servers.watches() == 6);
    CHECK(f.data("/r/a") == "2");
    f.servers.disconnect();
    f.servers.remove("/r/a/b");
    f.servers.connect(true);
    f.settle();
    CHECK(f.servers.watches() == 0);
    CHECK(f.told.size() == 2);
}
