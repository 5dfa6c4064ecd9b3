// Trees that are deeper than a stack would have room for, if anything went through them by recursion.

#include "unit/cache/tree_following.hpp"

#include <zkasio/cache/detail/cache_board.hpp>

#include <pthread.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

using namespace zkasio;
using namespace zkasio::cache_detail;
using namespace zkasio::test;

namespace {

constexpr std::size_t depth = 600;

// Runs `f` in a thread that has a stack of 128 kB: 220 bytes for each level of the tree.
void with_small_stack(std::function<void()> f) {
    pthread_attr_t small;
    REQUIRE(pthread_attr_init(&small) == 0);
    REQUIRE(pthread_attr_setstacksize(&small, 128 * 1024) == 0);
    pthread_t thread;
    const auto run = [](void* what) -> void* {
        (*static_cast<std::function<void()>*>(what))();
        return nullptr;
    };
    const int failed = pthread_create(&thread, &small, run, &f);
    if (failed == 0) pthread_join(thread, nullptr);
    pthread_attr_destroy(&small);
    REQUIRE(failed == 0);  // behind the join: the thread makes assertions, too
}

std::string path_at(std::size_t level) {
    std::string path = "/r";
    for (; level > 0; --level) path += "/a";
    return path;
}

}  // namespace

TEST_CASE("tree cache: a tree may be deeper than a stack has room for") {
    std::size_t in_store = 0, in_view = 0, removed = 0;
    std::string deepest;
    auto steps = [&] {
        tree_store store("/r");
        std::string path = "/r";
        for (std::size_t level = 0; level <= depth; ++level, path += "/a") {
            store.add(path);
            store.set_value(path, make_ref<node_value>());
        }
        store.for_each("/r", [&](const std::string&, tree_node&) { ++in_store; });
        auto taken = std::make_shared<snapshot>();
        taken->root_path = std::make_shared<const std::string>("/r");
        taken->root = store.root();
        make_view::tree(taken).for_each([&](const std::string& where, const cached_node&) {
            ++in_view;
            deepest = where;
        });
        store.remove("/r", [&](const std::string&, const value_ptr&) { ++removed; });
        taken.reset();  // the last who has it
    };
    with_small_stack(steps);
    CHECK(in_store == depth + 1);
    CHECK(in_view == depth + 1);
    CHECK(removed == depth + 1);
    CHECK(deepest == path_at(depth));
}

TEST_CASE("tree_sync: a tree may be deeper than a stack has room for, also when it is made anew") {
    auto steps = [] {
        following f;
        std::string path = "/r";
        for (std::size_t level = 0; level <= depth; ++level, path += "/a") f.servers.create(path);
        f.servers.connect();
        f.settle();
        f.servers.disconnect();
        f.servers.remove_all("/r");
        f.servers.create("/r");
        f.servers.create("/r/a");
        f.servers.connect();
        f.settle();
        CHECK(f.sync.tree().size() == 2);
    };
    with_small_stack(steps);
}

TEST_CASE("tree view: the nodes come with their parents in front, and a path is a node's or none's") {
    tree_store store("/");
    for (const char* path : {"/", "/b", "/b/c", "/a", "/a/x", "/a/x/y", "/d"}) {
        store.add(path);
        if (path != std::string("/a/x")) store.set_value(path, make_ref<node_value>());
    }
    auto taken = std::make_shared<snapshot>();
    taken->root_path = std::make_shared<const std::string>("/");
    taken->root = store.root();
    const tree_view view = make_view::tree(taken);
    std::string all;
    view.for_each([&](const std::string& path, const cached_node&) { all += path + " "; });
    CHECK(all == "/ /a /b /b/c /d ");  // what is below a node that is not read yet is not shown either
    CHECK(view.contains("/"));
    CHECK(view.contains("/b/c"));
    for (const char* path : {"", "/b/", "/b//c", "//", "//b", "b", "/a/x"}) CHECK_FALSE(view.contains(path));
}
