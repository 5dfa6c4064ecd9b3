#include "support/catch.hpp"
#include "unit/tree_servers.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>

using namespace zkasio;
using namespace zkasio::cache_detail;
using namespace zkasio::test;

namespace {

using known_nodes = std::map<std::string, std::pair<std::string, std::int64_t>>;  // path to data and mzxid

known_nodes known(const tree_sync& of) {
    known_nodes all;
    of.tree().for_each(of.tree().root_path(), [&](const std::string& path, const tree_node& node) {
        if (node.value) all[path] = {node.value->data, node.value->stat.mzxid};
    });
    return all;
}

// What a reader knows who hears of nothing but the changes.
void tell(known_nodes& to, const std::vector<tree_delta>& changes) {
    for (const tree_delta& d : changes) {
        CHECK((d.before ? to.contains(d.path) && to.at(d.path).second == d.before->stat.mzxid : !to.contains(d.path)));
        if (d.after)
            to[d.path] = {d.after->data, d.after->stat.mzxid};
        else
            to.erase(d.path);
    }
}

struct following {
    explicit following(std::string root = "/r", tree_scope scope = {}) : sync(std::move(root), std::move(scope)) {}
    tree_sync sync;
    tree_servers servers{sync};
    known_nodes told;

    void settle() {
        servers.settle();
        tell(told, sync.take_deltas());
        CHECK(sync.current());
        CHECK(told == known(sync));
        CHECK(sync.tree().size() == told.size());
        std::size_t watches = 0;
        sync.for_each_watch([&](node_read what, const std::string& path) {
            ++watches;
            CHECK(servers.watched(what, path));
            CHECK(sync.watches(what, path));
        });
        CHECK(servers.watches() == watches);
        CHECK(servers.not_named == 0);
    }
    std::string data(const std::string& path) const {
        const auto n = told.find(path);
        return n == told.end() ? "nothing" : n->second.first;
    }
};

}  // namespace

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
        f.servers.connect();
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
    if (!f.servers.up()) f.servers.connect();
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
