// What a cache keeps for readers that are behind.

#include "support/test_client.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/cache/detail/cache_board.hpp>
#include <zkasio/error.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace zkasio::cache_detail;
using namespace zkasio::test;

namespace {

/// A board of a cache of one node, "/r", and what happens to that.
struct board_rig : rig {
    explicit board_rig(std::size_t changes = 1024, std::size_t bytes = 1'000'000)
        : board(std::make_shared<cache_board>(client_over(core), "/r", board_limits{changes, bytes})) {
        change(std::string());
    }

    std::shared_ptr<cache_board> board;
    value_ptr now;

    void change(std::string data) {
        value_ptr next = make_ref<node_value>();
        next->data = std::move(data);
        next->stat.mzxid = ++zxid_;
        snapshot s;
        s.ready = true;
        std::vector<tree_delta> deltas;
        deltas.push_back({"/r", std::exchange(now, next), next});
        board->publish(std::move(s), std::move(deltas));
    }
    void change_often(int times, std::size_t size = 10) {
        for (int i = 0; i < times; ++i) change(std::string(size, 'x'));
    }

private:
    std::int64_t zxid_ = 0;
};

// The changes that are new; nothing: it has to look again.
std::optional<std::size_t> read(cache_board& board, cache_board::position& reader) {
    const std::optional<cache_update> update = board.news(reader);
    REQUIRE(update);
    if (update->look_again) return std::nullopt;
    return update->changes.size();
}

}  // namespace

TEST_CASE("cache board: without a reader no change is kept") {
    board_rig r;
    r.change_often(10);
    CHECK(r.board->kept() == 0);
    CHECK(r.now->unique());
    {
        cache_reader unread(r.board);
        r.change_often(10);
        CHECK(r.board->kept() == 0);
    }
    cache_board::position reader;
    CHECK_FALSE(read(*r.board, reader));
    r.change_often(3);
    CHECK(r.board->kept() == 3);
    r.board->forget(reader);
    CHECK(r.board->kept() == 0);
    r.change_often(3);
    CHECK(r.board->kept() == 0);
}

TEST_CASE("cache board: what all readers have read is not kept") {
    board_rig r;
    cache_board::position first, second;
    read(*r.board, first);
    read(*r.board, second);
    r.change_often(3);
    CHECK(read(*r.board, first) == 3);
    r.change_often(2);
    CHECK(r.board->kept() == 5);
    CHECK(read(*r.board, second) == 5);
    CHECK(r.board->kept() == 2);
    r.board->forget(first);
    CHECK(r.board->kept() == 0);
    r.change_often(1);
    CHECK(read(*r.board, second) == 1);
    CHECK(r.board->kept() == 0);
}

TEST_CASE("cache board: for a reader that is too far behind nothing is kept, by number and by bytes") {
    const bool by_bytes = GENERATE(false, true);
    board_rig r(by_bytes ? 1024 : 10, by_bytes ? 40'000 : 1'000'000);
    const std::size_t size = by_bytes ? 1500 : 10;
    cache_board::position slow, quick;
    read(*r.board, slow);
    read(*r.board, quick);
    r.change_often(10, size);
    CHECK(r.board->kept() == 10);
    CHECK(read(*r.board, quick) == 10);
    r.change_often(5, size);
    CHECK(r.board->kept() == 5);
    CHECK(read(*r.board, quick) == 5);
    CHECK(r.board->kept() == 0);
    CHECK_FALSE(read(*r.board, slow));
    r.change_often(2, size);
    CHECK(read(*r.board, slow) == 2);
    CHECK(r.board->kept() == 2);
    r.board->forget(quick);
    CHECK(r.board->kept() == 0);
    r.change_often(100, size);
    CHECK(r.board->kept() == 0);
}

TEST_CASE("cache board: a reader to whom the oldest change that is kept is news misses nothing") {
    board_rig r(10);
    cache_board::position slow, quick;
    read(*r.board, slow);
    read(*r.board, quick);
    r.change("1");
    CHECK(read(*r.board, quick) == 1);
    r.change_often(10);
    CHECK(read(*r.board, quick) == 10);
    CHECK_FALSE(read(*r.board, slow));
    CHECK(r.board->kept() == 0);
}

TEST_CASE("cache board: a change that is larger than the limit is told to nobody, who then looks again") {
    board_rig r(1024, 5000);
    cache_board::position reader;
    read(*r.board, reader);
    r.change(std::string(10'000, 'x'));
    CHECK(r.board->kept() == 0);
    CHECK_FALSE(read(*r.board, reader));
    r.change("small");  // the large one is what was before
    CHECK(r.board->kept() == 0);
    CHECK_FALSE(read(*r.board, reader));
    r.change("small");
    CHECK(read(*r.board, reader) == 1);
}

TEST_CASE("cache board: when it is closed it keeps what it shows only") {
    board_rig r;
    cache_board::position reader;
    read(*r.board, reader);
    r.change_often(10);
    r.board->close(errc::client_closed);
    CHECK(r.board->kept() == 0);
    CHECK_THROWS_AS(r.board->news(reader), error);
    r.board->forget(reader);
}
