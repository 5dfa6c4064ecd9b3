#include "support/catch.hpp"

#include <zkasio/detail/connection/connection_pacing.hpp>

#include <chrono>

using namespace zkasio;
using namespace zkasio::detail;
using namespace std::chrono_literals;

namespace {

constexpr double middle = 0.5;  // of the random factor, which is then 1

void fail(connection_pacing& p, int times) {
    for (int i = 0; i < times; ++i) p.attempt_failed();
}

}  // namespace

TEST_CASE("pacing: once through the list quickly, then ever more slowly, up to a second", "[pacing]") {
    connection_pacing p;
    p.set_servers(3);
    fail(p, 1);
    CHECK(p.pause(middle) == 5ms);
    CHECK_FALSE(p.round_over());
    fail(p, 1);
    CHECK(p.pause(middle) == 5ms);
    fail(p, 1);
    CHECK(p.round_over());
    CHECK(p.pause(middle) == 25ms);
    fail(p, 3);
    CHECK(p.pause(middle) == 50ms);
    fail(p, 3 * 4);
    CHECK(p.pause(middle) == 800ms);
    fail(p, 3);
    CHECK(p.pause(middle) == 1s);
    fail(p, 30'000);
    CHECK(p.pause(middle) == 1s);
    CHECK(p.pause(0) == 500ms);
    p.reset();
    fail(p, 1);
    CHECK(p.pause(middle) == 5ms);
}

TEST_CASE("pacing: a look-up that failed concerns all servers", "[pacing]") {
    connection_pacing p;
    p.set_servers(3);
    fail(p, 1);
    CHECK(p.look_up_pause(middle) == 25ms);
    fail(p, 1);
    CHECK(p.look_up_pause(middle) == 50ms);
}

TEST_CASE("pacing: an attempt has its share of a third of the session timeout, and more when no server answers",
          "[pacing]") {
    connection_pacing p;
    p.set_servers(2);
    CHECK(p.attempt_limit(12s) == 2s);
    p.handshake_unanswered();
    CHECK(p.attempt_limit(12s) == 2s);  // the round is not over
    p.handshake_unanswered();
    CHECK(p.attempt_limit(12s) == 4s);
    for (int i = 0; i < 1000; ++i) p.handshake_unanswered();
    CHECK(p.attempt_limit(12s) == 8s);  // the C library gives up then
    p.reset();
    CHECK(p.attempt_limit(12s) == 2s);
    CHECK(p.attempt_limit(600ms) == 200ms);  // a short one still has to be possible
}

TEST_CASE("pacing: a list without servers counts as one", "[pacing]") {
    connection_pacing p;
    p.set_servers(0);
    CHECK(p.attempt_limit(3s) == 1s);
    fail(p, 1);
    CHECK(p.round_over());
}

TEST_CASE("pacing: connections that were useless are followed by pauses that double, for each server", "[pacing]") {
    const int servers = GENERATE(1, 3);
    connection_pacing p;
    p.set_servers(static_cast<std::size_t>(servers));
    const auto of_one_server = [&](double random) { return p.pause(random) * servers; };
    for (int i = 0; i < 10; ++i) {
        p.connected();
        p.was_useless();
    }
    CHECK(of_one_server(0) >= 999ms);
    CHECK(of_one_server(0.999) < 15s);
    for (int i = 0; i < 1000; ++i) {
        p.connected();  // a handshake resets nothing
        p.was_useless();
    }
    CHECK(of_one_server(0) >= 9999ms);
    CHECK(of_one_server(0.999) < 15001ms);
    CHECK(p.pause_of_next_session(0) == p.pause(0));
    p.reset();
    CHECK(p.pause(0.999) < 10ms);
    CHECK(p.pause_of_next_session(0) == 0ms);
    p.was_useless();
    CHECK(p.pause_of_next_session(0) == 0ms);  // an expired session is followed by another one at once
}

TEST_CASE("pacing: a login has a third of the session timeout, and more when none succeeds", "[pacing]") {
    connection_pacing p;
    p.set_servers(3);
    CHECK(p.login_limit(12s) == 4s);
    CHECK(p.login_limit(300ms) == 200ms);
    for (int i = 0; i < 3; ++i) p.handshake_unanswered();
    CHECK(p.login_limit(12s) == 8s);
    CHECK(p.attempt_limit(12s) == 2666666666ns);
}

TEST_CASE("pacing: logins that fail are followed by pauses that double, until one succeeds", "[pacing]") {
    connection_pacing p;
    p.set_servers(2);
    for (int i = 0; i < 6; ++i) {
        p.attempt_failed();
        p.login_failed();
    }
    CHECK(p.pause_after_login(0) == 400ms);
    CHECK(p.pause(0) < 100ms);  // another server's failure
    CHECK(p.useless() == 0);
    p.connected();
    CHECK(p.pause_after_login(0) < 10ms);
    CHECK(p.pause_of_next_session(0) == 0ms);
    p.was_useless();
    CHECK(p.pause_after_login(0) == p.pause(0));
}
