#include "unit/cache/tree_following.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <utility>

using namespace zkasio;
using namespace zkasio::cache_detail;
using namespace zkasio::test;

TEST_CASE("tree_sync: reads a tree to its end, and follows it") {
    following f;
    f.servers.create("/r", "root");
    f.servers.create("/r/a", "1");
    f.servers.create("/r/a/b", "2");
    f.servers.connect();
    CHECK_FALSE(f.sync.current());
    f.settle();
    CHECK(f.told.size() == 3);
    CHECK(f.data("/r/a/b") == "2");

    f.servers.set("/r/a/b", "3");
    f.servers.create("/r/c", "4");
    f.settle();
    CHECK(f.data("/r/a/b") == "3");
    CHECK(f.data("/r/c") == "4");

    f.servers.remove_all("/r/a");
    f.settle();
    CHECK(f.told.size() == 2);
}

TEST_CASE("tree_sync: a root that is missing, is made, goes, and is made again (C6)") {
    following f;
    f.servers.connect();
    f.settle();
    CHECK(f.told.empty());
    f.servers.create("/r", "1");
    f.settle();
    CHECK(f.data("/r") == "1");
    f.servers.create("/r/a");
    f.settle();
    f.servers.remove_all("/r");
    f.settle();
    CHECK(f.told.empty());
    f.servers.create("/r", "2");
    f.servers.create("/r/a", "x");
    f.settle();
    CHECK(f.data("/r/a") == "x");
}

TEST_CASE("tree_sync: a change while the read is under way is read again (C2)") {
    following f;
    f.servers.create("/r", "1");
    f.servers.connect();
    f.settle();
    f.servers.set("/r", "2");
    CHECK(f.servers.hear());
    CHECK(f.servers.send());
    // Somebody else's watch of the same node tells of a change before the answer, which shows the older state.
    CHECK(f.servers.serve());
    f.sync.changed(node_change::data_changed, "/r");
    f.servers.set("/r", "3");
    f.settle();
    CHECK(f.data("/r") == "3");
}

TEST_CASE("tree_sync: removed and made anew while there was no connection (C3)") {
    following f;
    f.servers.create("/r");
    f.servers.create("/r/a", "same");
    f.servers.create("/r/a/b", "same");
    f.servers.connect();
    f.settle();
    f.servers.disconnect();
    CHECK_FALSE(f.sync.current());
    CHECK(f.told.size() == 3);  // what was known stays, and is not current
    f.servers.remove_all("/r/a");
    f.servers.create("/r/a", "same");
    f.servers.create("/r/a/b", "same");
    f.servers.connect();
    f.servers.settle();
    const auto deltas = f.sync.take_deltas();
    const auto count = [&](bool before, bool after) {
        return std::count_if(deltas.begin(), deltas.end(), [&](const tree_delta& d) {
            return static_cast<bool>(d.before) == before && static_cast<bool>(d.after) == after;
        });
    };
    CHECK(count(true, false) == 2);
    CHECK(count(false, true) == 2);
    CHECK(count(true, true) == 0);
    tell(f.told, deltas);
    f.settle();
}

TEST_CASE("tree_sync: after a reconnect, data that has not changed is not read again") {
    following f;
    f.servers.create("/r", "1");
    f.servers.create("/r/a", "2");
    f.servers.connect();
    f.settle();
    f.servers.disconnect();
    f.servers.connect();
    int data_reads = 0;
    for (;;) {
        auto next = f.sync.next_read();
        if (!next) break;
        data_reads += next->what == node_read::data;
        node_answer answer;
        answer.stat = f.servers.nodes().at(next->path).stat;
        if (next->what == node_read::children && next->path == "/r") answer.children = {"a"};
        f.sync.answered(next->what, next->path, {}, std::move(answer));
    }
    CHECK(data_reads == 0);
    CHECK(f.sync.current());
    CHECK(f.sync.take_deltas().empty());
    CHECK(f.sync.tree().size() == 2);
}

TEST_CASE("tree_sync: ephemeral nodes have no children, and nobody looks for them (C5)") {
    following f;
    f.servers.create("/r");
    f.servers.create("/r/e", "", 7);
    f.servers.connect();
    f.settle();
    CHECK(f.servers.watched(node_read::stat, "/r/e"));
    CHECK_FALSE(f.servers.watched(node_read::children, "/r/e"));
}

TEST_CASE("tree_sync: a depth limit, and a filter") {
    tree_scope scope;
    scope.depth = 1;
    scope.filter = [](const std::string& path) {
        if (path.ends_with("throws")) throw std::runtime_error("a user's");
        return !path.ends_with("hidden");
    };
    following f("/r", scope);
    for (const char* path : {"/r", "/r/a", "/r/a/b", "/r/hidden", "/r/throws"}) f.servers.create(path);
    f.servers.connect();
    f.settle();
    CHECK(f.told.size() == 2);
    CHECK(f.told.contains("/r/a"));
    CHECK_FALSE(f.servers.watched(node_read::children, "/r/a"));
}

TEST_CASE("tree_sync: names and stats without data") {
    tree_scope scope;
    scope.root_data = scope.data = false;
    following f("/r", scope);
    f.servers.create("/r", "secret");
    f.servers.create("/r/a", "secret");
    f.servers.connect();
    f.servers.settle();
    CHECK(f.sync.tree().find("/r/a")->value->data.empty());
    f.servers.set("/r/a", "changed");
    f.servers.create("/r/b");
    f.servers.remove("/r/b");
    f.settle();
    CHECK(f.sync.tree().find("/r/a")->value->stat.version == 1);
}

TEST_CASE("tree_sync: a server that puts off is asked again") {
    following f;
    f.servers.create("/r", "1");
    f.servers.put_off_next();
    f.servers.connect();
    CHECK(f.servers.send());
    CHECK(f.servers.serve());
    CHECK(f.servers.hear());
    CHECK(f.sync.put_off());
    CHECK_FALSE(f.servers.send());
    CHECK_FALSE(f.sync.current());
    f.sync.resume();
    f.settle();
    CHECK(f.data("/r") == "1");
}

TEST_CASE("tree_sync: snapshots do not change") {
    following f;
    f.servers.create("/r", "0");
    for (int i = 0; i < 300; ++i) f.servers.create("/r/" + std::to_string(i), "0");
    f.servers.connect();
    f.settle();
    const ref_ptr<tree_node> before = f.sync.tree().root();
    for (int i = 0; i < 300; i += 2) f.servers.remove("/r/" + std::to_string(i));
    for (int i = 1; i < 300; i += 2) f.servers.set("/r/" + std::to_string(i), "1");
    f.settle();
    CHECK(before->children->size() == 300);
    before->children->for_each([](const tree_node& n) { CHECK(n.value->data == "0"); });
    CHECK(f.told.size() == 151);
}

TEST_CASE("tree_sync: whatever happens in whichever order, in the end it knows what the servers know") {
    const auto seed = GENERATE(range(1, 201));
    std::mt19937 random(static_cast<unsigned>(seed));
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    tree_scope scope;
    if (seed % 5 == 1) scope.depth = 2;
    if (seed % 7 == 1) scope.root_data = scope.data = false;
    const bool no_data = !scope.data;
    const std::size_t depth = scope.depth;
    following f(seed % 3 ? "/r" : "/", scope);
    const auto some_path = [&] {
        std::string path = "/r";
        for (int levels = below(4); levels > 0; --levels) path += std::string("/") + static_cast<char>('a' + below(3));
        return path;
    };
    tree_servers::tree at_connect;
    bool was_current = false;
    const auto connect = [&] {
        at_connect = f.servers.nodes();
        f.servers.connect(below(2) == 0);
    };
    connect();
    for (int step = 0; step < 1500; ++step) {
        switch (below(24)) {
            case 0: case 1: case 2: f.servers.create(some_path(), std::to_string(step), below(4) == 0 ? 5 : 0); break;
            case 3: case 4: f.servers.set(some_path(), std::to_string(step)); break;
            case 5: f.servers.remove(some_path()); break;
            case 6: if (below(3) == 0) f.servers.remove_all(some_path()); break;
            case 7: if (below(3) == 0) f.servers.put_off_next(); break;
            case 8:
                if (below(8) == 0) {
                    if (f.servers.up()) f.servers.disconnect();
                    else connect();
                }
                break;
            case 9: case 10: case 11: case 12: f.servers.send(static_cast<std::size_t>(1 + below(5))); break;
            case 13: case 14: case 15: case 16: f.servers.serve(); break;
            case 17: f.sync.resume(); break;
            default: f.servers.hear(); break;
        }
        if (step % 50 == 0) tell(f.told, f.sync.take_deltas());
        // C8: what was there when the connection began, and still is, has been seen when all is said to be current.
        if (f.sync.current() && !std::exchange(was_current, f.sync.current())) {
            for (const auto& [path, node] : f.servers.nodes()) {
                const auto then = at_connect.find(path);
                const bool in_scope = f.sync.tree().root_path() == "/" || path.starts_with("/r");
                if (!in_scope || f.sync.tree().depth(path) > depth) continue;
                if (then == at_connect.end() || then->second.stat.czxid != node.stat.czxid) continue;
                const tree_node* const seen = f.sync.tree().find(path);
                CHECK((seen && seen->value && seen->value->stat.mzxid >= then->second.stat.mzxid));
            }
        }
        was_current = f.sync.current();
    }
    if (!f.servers.up()) connect();
    INFO("seed " << seed);
    f.settle();
    known_nodes truth;
    for (const auto& [path, node] : f.servers.nodes()) {
        if (f.sync.tree().root_path() != "/" && !path.starts_with("/r")) continue;
        if (f.sync.tree().depth(path) > depth) continue;
        truth[path] = {no_data ? "" : node.data, node.stat.mzxid};
    }
    CHECK(f.told == truth);
}
