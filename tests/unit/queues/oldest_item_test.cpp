#include "support/catch.hpp"

#include <zkasio/queues/detail/queue_state.hpp>

#include <string>
#include <vector>

using zkasio::queue_detail::oldest_first;
using names = std::vector<std::string>;

namespace {

const zkasio::queue_detail::item_names layout{zkasio::queue_kind::kazoo_locking};

}  // namespace

TEST_CASE("oldest_first: by number, whatever the priority, without claimed items and foreign nodes") {
    const names items{"entry-001-0000000009", "entry-900-0000000002", "entry-100-0000000005", "foreign",
                      "entry-100-0000000003"};
    const names taken{"entry-100-0000000003"};
    CHECK(oldest_first(layout, items, taken) ==
          names{"entry-900-0000000002", "entry-100-0000000005", "entry-001-0000000009"});
    CHECK(oldest_first(layout, {}, taken).empty());
}

TEST_CASE("oldest_first: numbers that wrap around") {
    const names items{"entry-100--2147483647", "entry-100-2147483646", "entry-100--2147483648", "entry-100-2147483647"};
    CHECK(oldest_first(layout, items, {}) ==
          names{"entry-100-2147483646", "entry-100-2147483647", "entry-100--2147483648", "entry-100--2147483647"});
}
