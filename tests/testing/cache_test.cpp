// Caches over an ensemble in memory.

#include "support/catch.hpp"
#include "support/test_client.hpp"

#include <zkasio/cache/children_cache.hpp>
#include <zkasio/cache/node_cache.hpp>
#include <zkasio/cache/tree_cache.hpp>
#include <zkasio/error.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

// The children 0 to n - 1 of /r, which may not be read.
void create_refused(fake_ensemble& ensemble, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
        const std::string path = "/r/" + std::to_string(i);
        ensemble.create(path);
        ensemble.refuse(path, zk_errc::no_auth);
    }
}

}  // namespace

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

TEST_CASE("caches: what was refused is read again after a while, without a reason", "[testing]") {
    fake_ensemble ensemble;
    const bool by_one_watch = GENERATE(true, false);  // then nothing gives a reason to look at the parent
    ensemble.know_multi_read(by_one_watch);
    const client zk = ensemble.client();
    ensemble.create("/r/a", "1");
    const tree_cache tree(zk, "/r");
    const node_cache node(zk, "/r/a");
    const children_cache children(zk, "/r");
    ensemble.run(tree.ready());
    ensemble.run(node.ready());
    ensemble.run(children.ready());
    const std::string where = GENERATE("/r", "/r/a");
    ensemble.refuse(where, zk_errc::no_auth);
    ensemble.set("/r/a", "2");
    ensemble.create("/r/b", "3");
    ensemble.remove("/r/b");
    ensemble.run_for(9s);
    CHECK(children.snapshot().readable() == (where == "/r/a" || by_one_watch));
    CHECK_FALSE(node.get().readable());
    ensemble.accept(where);
    ensemble.run_for(20s);  // as long again, and half of that
    CHECK(tree.snapshot().find("/r/a").data() == "2");
    CHECK(node.get().data() == "2");
    CHECK(children.snapshot().find("a").data() == "2");
    ensemble.set("/r/a", "4");
    ensemble.run_for(1s);
    CHECK(tree.snapshot().find("/r/a").data() == "4");
    CHECK(node.get().data() == "4");
    CHECK(children.snapshot().find("a").data() == "4");
}

TEST_CASE("caches: nodes that stay refused are read some 12 times an hour each", "[testing]") {
    const std::size_t refused = GENERATE(as<std::size_t>(), 1, 50, 1000);
    fake_ensemble ensemble;
    const client zk = ensemble.client(client_options("zk1:2181").session_timeout(40s));
    create_refused(ensemble, refused);
    const tree_cache tree(zk, "/r");
    ensemble.run(tree.ready());
    ensemble.run_for(1min);
    const std::size_t before = ensemble.requests(zk);
    const std::uint64_t shown = tree.snapshot().version();
    ensemble.run_for(1h);
    const std::size_t own_reads = 3600 / 10;  // of an idle session, every quarter of its timeout
    CHECK(ensemble.requests(zk) - before < own_reads + 30 * 2 * refused);
    CHECK(tree.snapshot().version() == shown);  // readers are told nothing
    for (std::size_t n = 0; n < refused; ++n) ensemble.accept("/r/" + std::to_string(n));
    ensemble.run_for(10min);
    std::size_t readable = 0;
    for (std::size_t n = 0; n < refused; ++n) readable += tree.snapshot().find("/r/" + std::to_string(n)).readable();
    CHECK(readable == refused);
}

TEST_CASE("caches: one of many refused nodes is found about as long after it is permitted as it was refused",
          "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(client_options("zk1:2181").session_timeout(40s));
    create_refused(ensemble, 1000);
    const tree_cache tree(zk, "/r");
    ensemble.run(tree.ready());
    ensemble.run_for(1min);
    ensemble.accept("/r/500");
    ensemble.run_for(2min);
    CHECK(tree.snapshot().find("/r/500").readable());
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
