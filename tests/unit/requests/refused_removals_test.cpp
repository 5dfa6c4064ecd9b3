#include "support/catch.hpp"

#include <zkasio/detail/requests/refused_removals.hpp>
#include <zkasio/error.hpp>

#include <asio/error.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace refused_removals_tests {

using namespace zkasio;
using namespace zkasio::detail;
using namespace std::chrono_literals;
using removal = refused_removals::removal;

namespace {

constexpr double middle = 0.5;  // the pauses are 1, 2, 4 ... s
const boot_clock::time_point begin{1h};

// Those that may be asked for now.
std::vector<removal> take_all(refused_removals& all, boot_clock::time_point now) {
    std::vector<removal> taken;
    while (std::optional<removal> next = all.next(now)) taken.push_back(std::move(*next));
    return taken;
}

}  // namespace

TEST_CASE("refused removals: each is asked for again at intervals that double up to 30 s", "[refused]") {
    refused_removals all;
    CHECK(all.due() == boot_clock::time_point::max());
    all.add("/d/a", nullptr, begin, middle);
    boot_clock::time_point now = begin;
    for (const auto pause : {1s, 2s, 4s, 8s, 16s, 30s, 30s}) {
        CHECK(all.due() == now + pause);
        CHECK_FALSE(all.next(now + pause - 1ms));
        now += pause;
        std::vector<removal> asked = take_all(all, now);
        REQUIRE(asked.size() == 1);
        CHECK(asked[0].path == "/d/a");
        CHECK(all.due() == boot_clock::time_point::max());
        all.ended(std::move(asked[0]), zk_errc::no_auth, now, middle);
    }
    SECTION("a lost connection lengthens no pause") {
        now = all.due();
        all.ended(*all.next(now), zk_errc::connection_loss, now, 0);
        CHECK(all.due() == now + 15s);
    }
    SECTION("a credential may be the reason to ask at once, and the pauses begin anew") {
        all.hurry(now);
        CHECK(all.due() == now + refused_removals::least_gap);
        now += 1s;
        all.ended(*all.next(now), zk_errc::no_auth, now, middle);
        CHECK(all.due() == now + 2s);
    }
    SECTION("until the node is gone") {
        const std::error_code how = GENERATE(std::error_code(), std::error_code(zk_errc::no_node),
                                             std::error_code(zk_errc::not_empty),
                                             std::error_code(errc::session_expired));
        now = all.due();
        all.ended(*all.next(now), how, now, middle);
        CHECK(all.due() == boot_clock::time_point::max());
    }
    SECTION("with its session") {
        now = all.due();
        removal under_way = *all.next(now);
        all.clear();
        all.add("/d/b", nullptr, now, middle);
        all.ended(std::move(under_way), zk_errc::no_auth, now, middle);
        std::vector<removal> asked = take_all(all, now + 1s);
        REQUIRE(asked.size() == 1);
        CHECK(asked[0].path == "/d/b");
        CHECK(take_all(all, now + 1h).empty());
    }
}

TEST_CASE("refused removals: of a directory one at a time is asked for, until one is not refused", "[refused]") {
    refused_removals all;
    for (int i = 0; i < 200; ++i) all.add("/d/" + std::to_string(i), nullptr, begin, middle);
    boot_clock::time_point now = begin + 1s;
    std::vector<removal> asked = take_all(all, now);
    REQUIRE(asked.size() == 1);
    CHECK(all.due() == boot_clock::time_point::max());  // however long the answer takes
    all.ended(std::move(asked[0]), zk_errc::no_auth, now, middle);
    CHECK(all.due() == now + 2s);
    now += 2s;
    asked = take_all(all, now);
    REQUIRE(asked.size() == 1);
    CHECK(asked[0].path == "/d/0");
    all.ended(std::move(asked[0]), {}, now, middle);
    asked = take_all(all, now);
    CHECK(asked.size() == refused_removals::most_at_once);
    CHECK(all.due() == boot_clock::time_point::max());

    // The ACL is closed again: a row of refusals begins.
    for (removal& r : asked) all.ended(std::move(r), zk_errc::no_auth, now, middle);
    CHECK(all.due() >= now + 1s);
    CHECK(all.due() <= now + 2s);
    now = all.due();
    asked = take_all(all, now);
    REQUIRE(asked.size() == 1);
    all.ended(std::move(asked[0]), {}, now, middle);
    std::size_t rest = 0;
    for (asked = take_all(all, now); !asked.empty(); asked = take_all(all, now))
        for (removal& r : asked) {
            ++rest;
            all.ended(std::move(r), {}, now, middle);
        }
    CHECK(rest == 198);
    CHECK(all.due() == boot_clock::time_point::max());
}

TEST_CASE("refused removals: of many directories ten are asked for in a second, in turn", "[refused]") {
    refused_removals all;
    for (int i = 0; i < 1000; ++i) all.add("/d" + std::to_string(i) + "/a", nullptr, begin, middle);
    std::vector<std::string> order;
    boot_clock::time_point now = begin;
    while (order.size() < 2000) {
        now = all.due();
        std::vector<removal> asked = take_all(all, now);
        REQUIRE(asked.size() == 1);
        order.push_back(asked[0].path);
        all.ended(std::move(asked[0]), zk_errc::no_auth, now, middle);
    }
    CHECK(now - begin >= 199s);
    CHECK(now - begin <= 202s);
    for (std::size_t i = 0; i < 1000; ++i) REQUIRE(order[i] == order[i + 1000]);
}

}  // namespace refused_removals_tests
