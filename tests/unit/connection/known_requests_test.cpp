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

// Of two servers that are not ZooKeeper's.
struct trying_all : known_requests {
    trying_all() {
        try_all(true);
        known_requests::greeted(one, false);
        known_requests::greeted(two, false);
    }
};

}  // namespace

TEST_CASE("known_requests: at first every server knows all of them") {
    known_requests k;
    CHECK_FALSE(k.lacks(one, opcode::create_with_stat, begin));
    CHECK(k.take_news().empty());
}

TEST_CASE("known_requests: K1: one that has refused is asked again after an hour, and the others at once") {
    known_requests k;
    k.answered(one, add_watch, false, begin);
    CHECK(k.lacks(one, add_watch, begin + 1h - 1s));
    CHECK_FALSE(k.lacks(one, add_watch, begin + 1h));
    CHECK_FALSE(k.lacks(two, add_watch, begin));
    CHECK_FALSE(k.lacks(one, opcode::create_with_stat, begin));
    k.answered(one, add_watch, true, begin + 1h);
    CHECK_FALSE(k.lacks(one, add_watch, begin));
    k.answered(one, add_watch, false, begin);
    k.answered(two, add_watch, false, begin + 2h);  // forgets what is over
    CHECK_FALSE(k.lacks(one, add_watch, begin));
}

TEST_CASE("known_requests: K1: where one has refused a create with a stat, the others are sent none for an hour") {
    known_requests k;
    k.answered(one, opcode::create_with_stat, false, begin);
    CHECK(k.lacks(two, opcode::create_with_stat, begin + 1h - 1s));
    CHECK_FALSE(k.lacks(two, opcode::create_with_stat, begin + 1h));
    CHECK_FALSE(k.lacks(two, opcode::create_container, begin));
    k.answered(one, opcode::create_with_stat, true, begin);
    CHECK_FALSE(k.lacks(two, opcode::create_with_stat, begin));
}

TEST_CASE("known_requests: K2: one that has refused the oldest of them knows none") {
    known_requests k;
    k.answered(one, opcode::create_with_stat, false, begin);
    CHECK(k.lacks(one, add_watch, begin));
    CHECK(k.lacks(one, opcode::remove_watches, begin + 1h - 1s));
    CHECK_FALSE(k.lacks(one, add_watch, begin + 1h));
    CHECK_FALSE(k.lacks(two, add_watch, begin));
    k.answered(one, opcode::create_with_stat, true, begin);
    CHECK_FALSE(k.lacks(one, add_watch, begin));
}

TEST_CASE("known_requests: K3: servers that are not ZooKeeper's are sent none of them, and that is told once") {
    known_requests k;
    CHECK(k.is_zookeeper(one));
    k.greeted(one, false);
    CHECK_FALSE(k.is_zookeeper(one));
    CHECK(k.lacks(one, opcode::create_with_stat, begin));
    CHECK(k.lacks(one, add_watch, begin));
    CHECK_FALSE(k.lacks(two, add_watch, begin));
    CHECK(k.has_news());
    CHECK(k.take_news().find("10.0.0.1:2181 is not a server of ZooKeeper's own") == 0);
    k.greeted(two, false);
    CHECK_FALSE(k.has_news());
    k.greeted(one, true);  // another server at the same address
    CHECK_FALSE(k.lacks(one, add_watch, begin));
}

TEST_CASE("known_requests: K4: two connections that end with it say that no such server knows it, for an hour") {
    trying_all k;
    CHECK(k.take_news().empty());
    k.hung_up(one, {opcode::create_with_stat, add_watch}, begin);
    CHECK_FALSE(k.lacks(one, opcode::create_with_stat, begin));
    k.hung_up(two, {opcode::create_with_stat}, begin + 9min);
    CHECK(k.lacks(one, opcode::create_with_stat, begin + 10min));
    CHECK(k.lacks(two, opcode::create_with_stat, begin + 1h));
    CHECK_FALSE(k.lacks(two, opcode::create_with_stat, begin + 1h + 9min));
    CHECK_FALSE(k.lacks(one, add_watch, begin + 10min));
    k.greeted(one, true);
    CHECK_FALSE(k.lacks(one, opcode::create_with_stat, begin + 10min));
}

TEST_CASE("known_requests: K4: a doubt ages") {
    trying_all k;
    for (int i = 0; i < 5; ++i) k.hung_up(one, {add_watch}, begin + i * 10min);
    CHECK_FALSE(k.lacks(one, add_watch, begin + 40min));
    k.hung_up(one, {add_watch}, begin + 41min);
    CHECK(k.lacks(one, add_watch, begin + 41min));
}

TEST_CASE("known_requests: K4: an answer of such a server says that connections have ended by chance") {
    trying_all k;
    k.answered(two, add_watch, true, begin);
    for (int i = 0; i < 5; ++i) k.hung_up(one, {add_watch}, begin);
    CHECK_FALSE(k.lacks(one, add_watch, begin));
    trying_all late;
    for (int i = 0; i < 2; ++i) late.hung_up(one, {add_watch}, begin);
    late.answered(two, add_watch, true, begin);
    CHECK_FALSE(late.lacks(one, add_watch, begin));
}

TEST_CASE("known_requests: K4: the end of a connection to a server of ZooKeeper says nothing") {
    trying_all k;
    k.greeted(one, true);
    for (int i = 0; i < 5; ++i) k.hung_up(one, {add_watch}, begin);
    CHECK_FALSE(k.lacks(one, add_watch, begin));
    CHECK_FALSE(k.lacks(two, add_watch, begin));
    CHECK(k.take_news().empty());
}

TEST_CASE("known_requests: each request is told of once, with what takes its place") {
    known_requests k;
    k.answered(one, opcode::create_container, false, begin);
    CHECK(k.take_news() == "10.0.0.1:2181 does not know the request createContainer (19): directories are persistent "
                           "nodes, which nobody removes");
    k.answered(two, opcode::create_container, false, begin);
    k.try_all(true);
    k.greeted(one, false);
    for (int i = 0; i < 4; ++i) k.hung_up(one, {add_watch}, begin);
    CHECK(k.take_news() == "10.0.0.1:2181: connections end without an answer to the request addWatch (106)");
    CHECK(k.take_news().empty());
}

}  // namespace known_requests_test
