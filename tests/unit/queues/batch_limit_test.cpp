#include "support/catch.hpp"

#include <zkasio/queues/detail/item_list.hpp>

namespace batch_limit_tests {

using zkasio::queue_detail::batch_limit;

constexpr std::size_t most_bytes = batch_limit::most_bytes;

TEST_CASE("batch limit: small items go together, up to the most", "[queue]") {
    batch_limit limit(32);
    limit.begin();
    for (int i = 0; i < 32; ++i) CHECK(limit.takes(100));
    limit.end();
    CHECK(limit.bytes() == 3200);
    CHECK(limit.at_once() == 32);
}

TEST_CASE("batch limit: the first item is taken however large it is, and another one is not", "[queue]") {
    batch_limit limit(32);
    limit.begin();
    CHECK(limit.takes(4 * most_bytes));
    CHECK_FALSE(limit.takes(1));
    limit.end();
    CHECK(limit.at_once() == 1);
}

TEST_CASE("batch limit: a full transaction tells how many fit, and small ones let it grow again", "[queue]") {
    batch_limit limit(32);
    limit.begin();
    CHECK(limit.takes(most_bytes / 2));
    CHECK(limit.takes(most_bytes / 2));
    CHECK_FALSE(limit.takes(1));
    limit.end();
    CHECK(limit.at_once() == 2);
    limit.begin();
    CHECK(limit.takes(most_bytes / 2 + 1));
    limit.end();
    CHECK(limit.at_once() == 2);  // more than half of the bytes: no more at once
    for (const std::size_t grown : {4u, 8u, 16u, 32u, 32u}) {
        limit.begin();
        CHECK(limit.takes(most_bytes / 2));
        limit.end();
        CHECK(limit.at_once() == grown);
    }
}

TEST_CASE("batch_limit: batches at which the servers hang up are halved") {
    batch_limit limit(32);
    for (std::size_t taken = 16; taken > 1; taken /= 2) {
        limit.begin();
        for (std::size_t i = 0; i < taken; ++i) CHECK(limit.takes(100));
        limit.end();
        limit.was_too_large();
        limit.begin();
        std::size_t n = 0;
        while (limit.takes(100)) ++n;
        limit.end();
        CHECK(n == taken / 2);
    }
    limit.begin();
    CHECK(limit.takes(1000));
    CHECK_FALSE(limit.takes(1000));
}

}  // namespace batch_limit_tests
