#include "support/catch.hpp"

#include <zkasio/detail/base/view_root.hpp>

#include <string>

using zkasio::detail::shown_path;
using zkasio::detail::size_of_root;
using zkasio::detail::whole_path;

TEST_CASE("view_root: paths become whole, and are shown without the root", "[rooted]") {
    const std::string app = "/app";
    CHECK(whole_path(&app, "/x/y") == "/app/x/y");
    CHECK(whole_path(&app, "/") == "/app");
    CHECK(whole_path(&app, "/app") == "/app/app");
    CHECK(whole_path(&app, "").empty());
    CHECK(whole_path(nullptr, "/x") == "/x");
    CHECK(shown_path(&app, "/app/x/y") == "/x/y");
    CHECK(shown_path(&app, "/app") == "/");
    CHECK(shown_path(&app, "/app/app") == "/app");
    CHECK(shown_path(&app, "/apple") == "/apple");
    CHECK(shown_path(&app, "/other") == "/other");
    CHECK(shown_path(&app, "").empty());
    CHECK(shown_path(nullptr, "/app/x") == "/app/x");
    CHECK(size_of_root(&app) == 4);
    CHECK(size_of_root(nullptr) == 0);
}
