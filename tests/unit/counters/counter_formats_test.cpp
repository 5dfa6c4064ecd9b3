#include "support/catch.hpp"

#include <zkasio/counters/atomic_counter.hpp>
#include <zkasio/counters/detail/adder.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>

using namespace zkasio;
using counter_detail::sum_of;

TEST_CASE("counter formats: the bytes that Curator and kazoo write") {
    using namespace std::string_literals;
    CHECK(curator_count().print()(258) == "\0\0\1\2"s);
    CHECK(curator_count().print()(-2) == "\xff\xff\xff\xfe"s);
    CHECK(curator_long().print()(std::numeric_limits<std::int64_t>::min()) == "\x80\0\0\0\0\0\0\0"s);
    CHECK(kazoo_counter().print()(-17) == "-17");
    for (const std::int64_t n : {std::int64_t(0), std::int64_t(-1), std::int64_t(1) << 40,
                                 std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()}) {
        CHECK(curator_long().parse()(curator_long().print()(n)) == n);
        CHECK(kazoo_counter().parse()(kazoo_counter().print()(n)) == n);
    }
    CHECK(curator_count().parse()(curator_count().print()(-123456)) == -123456);
    CHECK(curator_count().parse()("") == 0);
    CHECK(curator_long().parse()("") == 0);
    CHECK(kazoo_counter().parse()("") == 0);
}

TEST_CASE("counter formats: what is no number is refused") {
    CHECK_THROWS_AS(curator_count().parse()("12345"), std::invalid_argument);
    CHECK_THROWS_AS(curator_long().parse()("1234"), std::invalid_argument);
    for (const char* text : {"1.0", " 1", "1 ", "0x10", "one", "9223372036854775808", "-"})
        CHECK_THROWS_AS(kazoo_counter().parse()(text), std::invalid_argument);
}

TEST_CASE("counters: a sum that 64 bits do not hold is none") {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max(),
                           least = std::numeric_limits<std::int64_t>::min();
    CHECK(sum_of(most, 0) == most);
    CHECK(sum_of(most - 1, 1) == most);
    CHECK_FALSE(sum_of(most, 1));
    CHECK_FALSE(sum_of(least, -1));
    CHECK(sum_of(least, 0) == least);
    CHECK(sum_of(-1, least + 1) == least);
    CHECK_FALSE(sum_of(-1, least));
    CHECK(sum_of(most, least) == -1);
}

TEST_CASE("counters: the version after a write, as long as it is not negative") {
    using limits = std::numeric_limits<std::int32_t>;
    CHECK(counter_detail::version_after(0) == 1);
    CHECK(counter_detail::version_after(limits::max() - 1) == limits::max());
    CHECK(counter_detail::version_after(limits::max()) == std::nullopt);
}
