// What it costs to hear of one node among very many.

#include "unit/cache/tree_following.hpp"
#include "unit/support/counting_new.hpp"

#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace zkasio::cache_detail;
using namespace zkasio::test;

#ifdef ZKASIO_TEST_COUNTS_NEW

TEST_CASE("tree_sync: a listing of very many children asks for no memory for those that are known") {
    tree_scope scope;
    scope.depth = 1;
    following f("/r", scope);
    f.servers.create("/r");
    std::vector<std::string> names;
    for (int i = 0; i < 2000; ++i) names.push_back("child-with-a-long-name-" + std::to_string(10'000 + i));
    for (const std::string& name : names) f.servers.create("/r/" + name);
    f.servers.connect();
    f.settle();

    std::mt19937 random(1);
    f.servers.create("/r/child-with-a-long-name-10999a");
    f.servers.remove("/r/" + names[500]);
    names.erase(names.begin() + 500);
    names.emplace_back("child-with-a-long-name-10999a");
    std::shuffle(names.begin(), names.end(), random);
    f.sync.changed(node_change::children_changed, "/r");
    REQUIRE(f.sync.next_read());
    node_answer answer;
    answer.stat = f.servers.nodes().at("/r").stat;
    answer.children = names;
    const long before = news;
    f.sync.answered(node_read::children, "/r", {}, std::move(answer));
    CHECK(news - before < 100);
    CHECK(f.sync.tree().size() == 2000);
    const auto next = f.sync.next_read();
    REQUIRE(next);
    CHECK(next->path == "/r/child-with-a-long-name-10999a");
    CHECK_FALSE(f.sync.next_read());
}

#endif
