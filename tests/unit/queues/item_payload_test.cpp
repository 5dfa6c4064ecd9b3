#include "support/catch.hpp"

#include <zkasio/queues/detail/item_layout.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace item_payload_tests {

using namespace zkasio;
using namespace zkasio::queue_detail;
using texts = std::vector<std::string>;

namespace {

const item_payload framed(queue_kind::curator), bare(queue_kind::kazoo_locking);

std::string bytes_of(std::initializer_list<int> all) {
    std::string text;
    for (const int b : all) text += static_cast<char>(b);
    return text;
}

}  // namespace

TEST_CASE("queue items: the data are those of Curator's ItemSerializer", "[work_queue]") {
    CHECK(framed.pack("ab") == bytes_of({0, 1, 0, 1, 1, 0, 0, 0, 2, 'a', 'b', 2}));
    CHECK(framed.pack("") == bytes_of({0, 1, 0, 1, 1, 0, 0, 0, 0, 2}));
    CHECK(bare.pack("ab") == "ab");
    const std::string large(70'000, '\x02');
    for (const std::string& value : {std::string(), std::string("ab"), std::string(300, '\x01'), large}) {
        const std::string data = framed.pack(value);
        CHECK(data.size() == value.size() + 10);
        CHECK(framed.has_one_value(data));
        CHECK(framed.unpack(data) == texts{value});
        CHECK(framed.value_or_all(data) == value);
        CHECK(bare.has_one_value(data));
        CHECK(bare.unpack(data) == texts{data});
        CHECK(bare.value_or_all(data) == data);
    }
    for (const queue_kind k : {queue_kind::curator_priority, queue_kind::curator_delay, queue_kind::curator_id})
        CHECK(item_payload(k).pack("x") == framed.pack("x"));
    for (const queue_kind k : {queue_kind::kazoo, queue_kind::curator_simple}) CHECK(item_payload(k).pack("x") == "x");
}

TEST_CASE("queue items: Curator's items of several values, or of none", "[work_queue]") {
    const std::string none = bytes_of({0, 1, 0, 1, 2});
    CHECK(framed.unpack(none) == texts());
    CHECK_FALSE(framed.has_one_value(none));
    CHECK(framed.value_or_all(none) == none);
    const std::string two = bytes_of({0, 1, 0, 1, 1, 0, 0, 0, 1, 'a', 1, 0, 0, 0, 0, 2});
    CHECK(framed.unpack(two) == texts{"a", ""});
    CHECK_FALSE(framed.has_one_value(two));
    CHECK(framed.value_or_all(two) == two);
}

TEST_CASE("queue items: a broken frame is recognised", "[work_queue]") {
    const std::string whole = framed.pack("value") + std::string();
    for (std::size_t n = 0; n < whole.size(); ++n) {
        INFO(n << " bytes");
        CHECK_FALSE(framed.unpack(whole.substr(0, n)));
        CHECK_FALSE(framed.has_one_value(whole.substr(0, n)));
    }
    for (const std::string& data :
         {whole + "x", bytes_of({0, 1, 0, 2, 2}), bytes_of({0, 1, 0, 1, 3}), bytes_of({0, 1, 0, 1, 1, 0, 0, 0, 2}),
          bytes_of({0, 1, 0, 1, 1, 0xff, 0xff, 0xff, 0xff, 2}), bytes_of({0, 1, 0, 1, 1, 0x7f, 0xff, 0xff, 0xff, 2})}) {
        CHECK_FALSE(framed.unpack(data));
        CHECK(framed.value_or_all(data) == data);
    }
}

}  // namespace item_payload_tests
