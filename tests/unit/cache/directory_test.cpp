#include "support/catch.hpp"
#include "support/texts.hpp"

#include <zkasio/cache/detail/tree_store.hpp>

#include <algorithm>
#include <cstdio>
#include <string>

namespace directory_tests {

using namespace zkasio;
using namespace zkasio::test;
using cache_detail::directory;
using cache_detail::tree_node;

namespace {

std::string name_of(int i) {
    char name[16];
    std::snprintf(name, sizeof name, "n%05d", i);
    return name;
}

texts names_in(const directory& d) {
    texts names;
    d.for_each([&](const tree_node& node) { names.push_back(node.name); });
    return names;
}

void check(const directory& d, std::size_t size) {
    const texts names = names_in(d);
    CHECK(names.size() == size);
    CHECK(d.size() == size);
    CHECK(std::is_sorted(names.begin(), names.end()));
    directory::cursor c(&d);
    std::size_t visited = 0;
    while (c.next()) ++visited;
    CHECK(visited == size);
}

}  // namespace

TEST_CASE("directory: names in any order are kept in theirs, and found", "[cache]") {
    for (const int step : {1, 7, 311}) {  // of a prime: every number comes once
        constexpr int prime = 1009;
        directory d;
        for (int i = 0; i < prime; ++i) d.insert(name_of(i * step % prime));
        check(d, prime);
        for (int i = 0; i < prime; i += 2) d.erase(name_of(i));
        check(d, prime / 2);
        CHECK(d.find(name_of(1)));
        CHECK(!d.find(name_of(2)));
    }
}

}  // namespace directory_tests
