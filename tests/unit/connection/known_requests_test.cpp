#include "support/catch.hpp"

#include <zkasio/detail/seam/known_requests.hpp>

#include <chrono>
#include <cstdint>
#include <set>
#include <string>

namespace known_requests_test {

using namespace std::chrono_literals;
using zkasio::detail::known_requests;
using opcode = known_requests::opcode;

namespace {

constexpr std::int32_t add_watch = 106;
const known_requests::time_point begin{1000h};
const std::string one = "10.0.0.1:2181", two = "10.0.0.2:2181";

}  // namespace

TEST_CASE("known_requests: at first every server knows all of them") {
    known_requests k;
    CHECK_FALSE(k.lacks(one, opcode::create_with_stat, begin));
    CHECK(k.take_news().empty());
}

TEST_CASE("known_requests: K1: one that has refused is asked again after a day, and the others at once") {
    known_requests k;
    k.answered(one, add_watch, false, begin);
    CHECK(k.lacks(one, add_watch, begin + 24h - 1s));
    CHECK_FALSE(k.lacks(one, add_watch, begin + 24h));
    CHECK_FALSE(k.lacks(two, add_watch, begin));
    CHECK_FALSE(k.lacks(one, opcode::create_with_stat, begin));
    k.answered(one, add_watch, true, begin + 24h);
    CHECK_FALSE(k.lacks(one, add_watch, begin));
}

TEST_CASE("known_requests: K2: one that has refused the oldest of them knows none") {
    known_requests k;
    k.answered(one, opcode::create_with_stat, false, begin);
    CHECK(k.lacks(one, add_watch, begin));
    CHECK(k.lacks(one, opcode::remove_watches, begin + 24h - 1s));
    CHECK_FALSE(k.lacks(one, add_watch, begin + 24h));
    CHECK_FALSE(k.lacks(two, add_watch, begin));
    k.answered(one, opcode::create_with_stat, true, begin);
    CHECK_FALSE(k.lacks(one, add_watch, begin));
}

TEST_CASE("known_requests: K3: two connections that end with it say that no server knows it") {
    known_requests k;
    k.hung_up(one, {opcode::create_with_stat, add_watch}, begin);
    CHECK_FALSE(k.lacks(one, opcode::create_with_stat, begin));
    CHECK(k.take_news().empty());
    k.hung_up(two, {opcode::create_with_stat}, begin);
    CHECK(k.lacks(one, opcode::create_with_stat, begin));
    CHECK(k.lacks(two, opcode::create_with_stat, begin));
    CHECK_FALSE(k.lacks(one, add_watch, begin));
}

TEST_CASE("known_requests: K3: an answer of any server says that connections have ended by chance") {
    known_requests k;
    k.answered(two, add_watch, true, begin);
    for (int i = 0; i < 5; ++i) k.hung_up(one, {add_watch}, begin);
    CHECK_FALSE(k.lacks(one, add_watch, begin));
    known_requests late;
    for (int i = 0; i < 2; ++i) late.hung_up(one, {add_watch}, begin);
    late.answered(one, add_watch, true, begin);
    CHECK_FALSE(late.lacks(one, add_watch, begin));
}

TEST_CASE("known_requests: K4: what others stand for is not tried again, and the rest ever more seldom") {
    known_requests k;
    for (int i = 0; i < 2; ++i) k.hung_up(one, {opcode::remove_watches, add_watch}, begin);
    auto now = begin;
    for (const auto pause : {10min, 20min, 40min}) {
        CHECK(k.lacks(one, add_watch, now + pause - 1s));
        CHECK_FALSE(k.lacks(one, add_watch, now + pause));
        now += pause;
        k.hung_up(one, {add_watch}, now);
    }
    for (int i = 0; i < 50; ++i) k.hung_up(one, {add_watch}, now);
    CHECK(k.lacks(one, add_watch, now + 24h - 1s));
    CHECK_FALSE(k.lacks(one, add_watch, now + 24h));
    CHECK(k.lacks(one, opcode::remove_watches, begin + 24h * 1000));
}

TEST_CASE("known_requests: each request is told of once, with what takes its place") {
    known_requests k;
    k.answered(one, opcode::create_container, false, begin);
    CHECK(k.take_news() == "10.0.0.1:2181 does not know the request createContainer (19): directories are persistent "
                           "nodes, which nobody removes");
    k.answered(two, opcode::create_container, false, begin);
    for (int i = 0; i < 3; ++i) k.hung_up(one, {add_watch}, begin);
    CHECK(k.take_news() == "10.0.0.1:2181: connections end without an answer to the request addWatch (106)");
    CHECK(k.take_news().empty());
}

TEST_CASE("known_requests: K5: servers that are not ZooKeeper's are sent none of them, and that is told once") {
    known_requests k;
    k.greeted(one, false);
    CHECK(k.lacks(one, opcode::create_with_stat, begin));
    CHECK(k.lacks(one, add_watch, begin));
    CHECK(k.is_cautious(one));
    CHECK_FALSE(k.lacks(two, add_watch, begin));
    CHECK(k.take_news().find("10.0.0.1:2181 is not a server of ZooKeeper's own") == 0);
    k.greeted(two, false);
    CHECK(k.take_news().empty());
    k.greeted(one, true);  // another server at the same address
    CHECK_FALSE(k.lacks(one, add_watch, begin));
}

TEST_CASE("known_requests: K5: unless all are to be tried") {
    known_requests k;
    k.try_all(true);
    k.greeted(one, false);
    CHECK_FALSE(k.is_cautious(one));
    CHECK_FALSE(k.lacks(one, opcode::create_with_stat, begin));
    CHECK(k.take_news().empty());
    for (int i = 0; i < 2; ++i) k.hung_up(one, {opcode::create_with_stat}, begin);
    CHECK(k.lacks(one, opcode::create_with_stat, begin));
}

}  // namespace known_requests_test
