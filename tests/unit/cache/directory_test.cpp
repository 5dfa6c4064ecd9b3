#include "support/catch.hpp"
#include "support/texts.hpp"
#include "unit/support/with_memory_for.hpp"

#include <zkasio/cache/detail/directory.hpp>

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

#ifdef ZKASIO_TEST_COUNTS_NEW
TEST_CASE("directory: an insertion without memory leaves the children as they were", "[cache]") {
    for (const int size : {0, 1, 63, 64, 65, 200}) {
        for (const int added : {-1, 2 * 31, 2 * size}) {  // in front, in the first chunk, behind
            bool enough = false;
            for (long requests = 0; !enough; ++requests) {
                INFO(requests << " requests for memory, " << size << " children, then " << added);
                directory d;
                for (int i = 0; i < size; ++i) d.insert(name_of(2 * i + 1));
                const std::string name = added < 0 ? "a" : name_of(added);
                enough = with_memory_for(requests, [&] { d.insert(name); });
                check(d, static_cast<std::size_t>(size) + (enough ? 1 : 0));
                if (!enough) d.insert(name);
                check(d, static_cast<std::size_t>(size) + 1);
                CHECK(d.find(name));
            }
        }
    }
}
#endif

}  // namespace directory_tests
