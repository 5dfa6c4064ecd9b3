#include "support/catch.hpp"

#include <zkasio/detail/client/view_roots.hpp>

#include <string>

using zkasio::detail::view_id;
using zkasio::detail::view_roots;

TEST_CASE("view_roots: a root has one number", "[rooted]") {
    view_roots views;
    const view_id a = views.add("/a"), b = views.add("/a/b");
    CHECK(a != 0);
    CHECK(a != b);
    CHECK(views.add("/a") == a);
    CHECK(views.root_of(a) == "/a");
    CHECK(views.root_of(b) == "/a/b");
    CHECK(views.root_of(0).empty());
    for (int i = 0; i < 100; ++i) {
        const std::string root = "/r" + std::to_string(i);
        CHECK(views.root_of(views.add(root)) == root);
    }
    CHECK(views.add("/r99") == 102);
    CHECK(views.root_of(a) == "/a");
}

TEST_CASE("view_roots: paths become whole, and are shown without the root", "[rooted]") {
    view_roots views;
    const view_id app = views.add("/app");
    CHECK(views.whole(app, "/x/y") == "/app/x/y");
    CHECK(views.whole(app, "/") == "/app");
    CHECK(views.whole(app, "/app") == "/app/app");
    CHECK(views.whole(app, "").empty());
    CHECK(views.whole(0, "/x") == "/x");
    CHECK(views.shown(app, "/app/x/y") == "/x/y");
    CHECK(views.shown(app, "/app") == "/");
    CHECK(views.shown(app, "/app/app") == "/app");
    CHECK(views.shown(app, "/apple") == "/apple");
    CHECK(views.shown(app, "/other") == "/other");
    CHECK(views.shown(app, "").empty());
    CHECK(views.shown(0, "/app/x") == "/app/x");
}
