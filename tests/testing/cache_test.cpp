// Caches over an ensemble in memory.

#include "support/catch.hpp"
#include "support/test_client.hpp"

#include <zkasio/cache/children_cache.hpp>
#include <zkasio/cache/node_cache.hpp>
#include <zkasio/cache/tree_cache.hpp>
#include <zkasio/error.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <chrono>
#include <string>

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

TEST_CASE("caches: what was refused is shown as soon as a credential is accepted, or with the next connection",
          "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client();
    ensemble.create("/r/a", "1");
    ensemble.refuse("/r/a", zk_errc::no_auth);
    const tree_cache tree(zk, "/r");
    const node_cache node(zk, "/r/a");
    const children_cache children(zk, "/r");
    ensemble.run(tree.ready());
    ensemble.run(node.ready());
    ensemble.run(children.ready());
    CHECK_FALSE(tree.snapshot().find("/r/a").readable());
    CHECK_FALSE(node.get().readable());
    CHECK_FALSE(children.snapshot().find("a").readable());
    ensemble.accept("/r/a");
    if (GENERATE(true, false)) {
        ensemble.run(zk.add_auth("digest", "user:password"));
        ensemble.run_for(1s);
    } else {
        ensemble.cut(zk);
        ensemble.run_for(5s);
    }
    CHECK(tree.snapshot().find("/r/a").data() == "1");
    CHECK(node.get().data() == "1");
    CHECK(children.snapshot().find("a").data() == "1");
}

TEST_CASE("children_view: only the name of a child finds one", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client();
    const std::string parent = GENERATE("/r", "/");
    ensemble.create("/r/a/b", "1");
    ensemble.create("/a/b", "1");
    const children_cache cache(zk, parent);
    ensemble.run(cache.ready());
    const children_view view = cache.snapshot();
    CHECK(view.find("a"));
    for (const char* no_name : {"", "/", "a/", "/a", "a/b", "b", ".", ".."}) {
        INFO(no_name);
        CHECK_FALSE(view.find(no_name));
    }
}
