#include "support/test_client.hpp"

#include <zkasio/detail/requests/background_work.hpp>

#include <optional>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

struct work_bench {
    test_loop loop;
    logger log{strand_type(loop.executor()), {}};
    fork_mark here;
    wait_table waits{log, here};
    background_work work{waits};
};

}  // namespace

TEST_CASE("background work: without any, it is over at once", "[background_work]") {
    work_bench b;
    CHECK(b.work.over()->done);
    { const background_work::piece p = b.work.begin(); }
    CHECK(b.work.over()->done);
}

TEST_CASE("background work: it is over with the last piece that has begun before", "[background_work]") {
    work_bench b;
    std::optional<background_work::piece> first = b.work.begin(), second = b.work.begin();
    const one_shot_ptr over = b.work.over();
    const background_work::piece later = b.work.begin();
    CHECK_FALSE(over->done);
    const bool in_order = GENERATE(true, false);
    (in_order ? first : second).reset();
    CHECK_FALSE(over->done);
    (in_order ? second : first).reset();
    CHECK(over->done);
    CHECK_FALSE(b.work.over()->done);  // the later one
}

TEST_CASE("background work: who asks later waits for those before, too", "[background_work]") {
    work_bench b;
    std::optional<background_work::piece> first = b.work.begin();
    const one_shot_ptr one = b.work.over();
    std::optional<background_work::piece> second = b.work.begin();
    const one_shot_ptr two = b.work.over();
    CHECK(two == b.work.over());  // nothing has begun since
    second.reset();
    CHECK_FALSE(one->done);
    CHECK_FALSE(two->done);
    first.reset();
    CHECK(one->done);
    CHECK(two->done);
    CHECK(b.work.over()->done);
}

TEST_CASE("background work: a piece that is moved is one piece", "[background_work]") {
    work_bench b;
    background_work::piece p = b.work.begin();
    const one_shot_ptr over = b.work.over();
    background_work::piece q = std::move(p);
    { const background_work::piece gone = std::move(p); }
    CHECK_FALSE(over->done);
    q = background_work::piece();
    CHECK(over->done);
}
