#include "support/texts.hpp"
#include "unit/membership/parts_bench.hpp"
#include "unit/support/error_of.hpp"
#include "unit/support/fake_server.hpp"

#include <chrono>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

constexpr auto never = boot_clock::time_point::max();

}  // namespace

TEST_CASE("link: the backend is opened as soon as the servers' addresses are known", "[link]") {
    parts_bench b(client_options("10.0.0.2,10.0.0.1:2182,[::1]/app").session_timeout(std::chrono::seconds(7)));
    CHECK_FALSE(b.link.is_open());
    CHECK(b.link.server_names() == "10.0.0.2,10.0.0.1:2182,[::1]/app");
    CHECK(b.link.chroot() == "/app");
    b.link.resolve();
    REQUIRE(b.link.is_open());
    CHECK(b.drives == 1);
    CHECK(endpoints(b.backend.opened.servers) == texts{"10.0.0.1:2182", "10.0.0.2:2181", "[::1]:2181"});
    CHECK(b.backend.opened.chroot == "/app");
    CHECK(b.backend.opened.session_timeout == std::chrono::seconds(7));
    b.link.retire();
    CHECK_FALSE(b.backend.alive);
    CHECK(b.link.due() == never);
}

TEST_CASE("link: nothing is opened that is not wanted any more", "[link]") {
    parts_bench b;
    b.wants = false;
    b.link.resolve();
    CHECK_FALSE(b.link.is_open());
    CHECK(b.drives == 0);
}

TEST_CASE("link: what cannot be opened is tried again after a pause, and the reason is kept", "[link]") {
    parts_bench b;
    b.backend.open_fails = true;
    b.link.resolve();
    CHECK_FALSE(b.link.is_open());
    CHECK_FALSE(b.backend.alive);
    CHECK(has(b.link.why_not_connected(), "open"));
    const auto due = b.link.due();
    REQUIRE(due < never);
    b.backend.open_fails = false;
    b.link.on_time(due - std::chrono::milliseconds(1));
    CHECK_FALSE(b.link.is_open());
    b.link.on_time(due);
    CHECK(b.link.is_open());
}

TEST_CASE("link: an attempt that takes too long is given up", "[link]") {
    parts_bench b;
    b.link.resolve();
    b.backend.next.connection = 1;
    b.backend.next.timeout = std::chrono::hours(1);
    const auto began = boot_clock::now();
    b.link.pump(began);
    CHECK(b.link.attempt_began() == began);
    const auto due = b.link.due();
    CHECK(due == began + std::chrono::seconds(2));  // a third of the session timeout
    b.link.give_up_attempt(due - std::chrono::milliseconds(1));
    CHECK(b.backend.calls == texts{"open"});
    b.link.give_up_attempt(due);
    CHECK(b.backend.calls == texts{"open", "abort"});
    CHECK(has(b.link.why_not_connected(), "no answer"));
    SECTION("but a connection that stands is not") {
        b.link.changed(link_state::connected);
        CHECK(b.link.due() > due);
        b.link.give_up_attempt(due + std::chrono::hours(1));
        CHECK(b.backend.calls == texts{"open", "abort"});
    }
}

TEST_CASE("link: a pause follows each attempt that has failed", "[link]") {
    parts_bench b;
    b.link.resolve();
    b.backend.next.connection = 1;
    b.backend.next.timeout = std::chrono::seconds(1);
    const auto now = boot_clock::now();
    b.link.pump(now);
    b.backend.has_socket = false;
    b.link.pump(now);
    CHECK(b.link.last_failure() == "refused");
    const auto next = b.link.due();
    CHECK(next > now);
    CHECK(next < now + std::chrono::milliseconds(100));
    b.backend.next.connection = 2;
    b.link.pump(next - std::chrono::microseconds(1));
    CHECK(b.link.attempt_began() == now);  // not yet
    b.backend.has_socket = true;
    b.link.pump(next);
    CHECK(b.link.attempt_began() == next);
    b.loop.run();
    CHECK(b.lines == texts{"cannot connect: refused"});
}

TEST_CASE("link: what has arrived is read before the backend is asked what has timed out", "[link]") {
    parts_bench b;
    b.link.resolve();
    b.backend.next.timeout = std::chrono::seconds(1);
    const auto now = boot_clock::now();
    b.link.pump(now);
    b.link.read_if_late(now);
    CHECK(b.backend.calls == texts{"open"});
    b.link.read_if_late(now + std::chrono::seconds(1));
    CHECK(b.backend.calls == texts{"open", "process"});
}

TEST_CASE("link: another list is told to the open backend, if it is another", "[link]") {
    parts_bench b;
    b.link.resolve();
    b.link.set_servers(parse_server_list("10.0.0.1:2181", "set_servers"));
    b.link.resolve();
    CHECK(b.backend.lists.empty());
    b.link.set_servers(parse_server_list("10.0.0.2:2181,10.0.0.1", "set_servers"));
    b.link.resolve();
    REQUIRE(b.backend.lists.size() == 1);
    CHECK(endpoints(b.backend.lists[0]) == texts{"10.0.0.1:2181", "10.0.0.2:2181"});
    CHECK(b.link.server_names() == "10.0.0.2:2181,10.0.0.1");
}

TEST_CASE("link: a handshake that was sent may have opened a session, until there is a connection", "[link]") {
    parts_bench b;
    b.link.resolve();
    b.backend.handshake_sent = true;
    CHECK_FALSE(b.link.session_asked_for());
    b.link.pump(boot_clock::now());
    CHECK(b.link.session_asked_for());
    b.link.changed(link_state::connected);
    CHECK_FALSE(b.link.session_asked_for());
}

TEST_CASE("link: a connection that ends at once was of no use, however long its attempt took", "[link]") {
    parts_bench b;
    b.link.resolve();
    const auto now = boot_clock::now();
    for (std::uint64_t attempt = 1; attempt <= 8; ++attempt) {
        b.backend.has_socket = true;
        b.backend.next.connection = attempt;
        b.backend.next.timeout = std::chrono::seconds(1);
        b.link.pump(now - std::chrono::minutes(1));
        b.link.changed(link_state::connected);
        b.backend.has_socket = false;
        b.link.changed(link_state::disconnected);
        b.link.pump(now);
    }
    CHECK(b.link.due() > now + std::chrono::seconds(1));
}

TEST_CASE("link: one warning for each round through the servers, with all reasons", "[link]") {
    parts_bench b(client_options("10.0.0.1,10.0.0.2,10.0.0.3"));
    b.link.resolve();
    auto now = boot_clock::now();
    for (std::uint64_t attempt = 1; attempt <= 6; ++attempt) {
        b.backend.has_socket = true;
        b.backend.next.connection = attempt;
        b.backend.next.timeout = std::chrono::seconds(1);
        b.link.pump(now);
        b.backend.has_socket = false;
        b.backend.failure = "attempt " + std::to_string(attempt);
        b.link.pump(now);
        now = b.link.due();
    }
    b.loop.run();
    CHECK(b.lines == texts{"cannot connect: attempt 1", "cannot connect: attempt 2",
                           "cannot connect: attempt 1; attempt 2; attempt 3", "cannot connect: attempt 4",
                           "cannot connect: attempt 5", "cannot connect: attempt 4; attempt 5; attempt 6"});
    CHECK(b.warnings() == 2);
}

TEST_CASE("link: the same failures are a warning every ten seconds, others at once", "[link]") {
    parts_bench b(client_options("10.0.0.1,10.0.0.2"));
    b.link.resolve();
    const auto began = boot_clock::now();
    std::uint64_t attempt = 0;
    const auto fail = [&](boot_clock::duration at, std::string why) {
        b.backend.has_socket = true;
        b.backend.next.connection = ++attempt;
        b.backend.next.timeout = std::chrono::seconds(1);
        b.link.pump(began + at);
        b.backend.has_socket = false;
        b.backend.failure = std::move(why);
        b.link.pump(began + at);
        b.loop.run();
        return b.warnings();
    };
    const auto round = [&](boot_clock::duration at, const std::string& why) {
        fail(at, why + " one");
        return fail(at + std::chrono::seconds(2), why + " two");
    };
    CHECK(round(std::chrono::seconds(0), "refused:") == 1);
    CHECK(round(std::chrono::seconds(4), "refused:") == 1);
    CHECK(round(std::chrono::seconds(8), "refused:") == 1);
    CHECK(round(std::chrono::seconds(10), "refused:") == 2);  // ten seconds after the first
    CHECK(round(std::chrono::seconds(14), "no route:") == 3);
    CHECK(round(std::chrono::seconds(18), "no route:") == 3);
    b.link.changed(link_state::connected);
    b.link.changed(link_state::disconnected);
    CHECK(round(std::chrono::seconds(22), "no route:") == 4);
}

TEST_CASE("link: nearer servers come first, also when only their ranks have changed", "[link]") {
    bool is_moved = false;
    const auto rank = [&](std::string_view name, std::string_view address) {
        CHECK(name == address);
        return (address == "10.0.0.1") == is_moved ? 7 : -7;
    };
    parts_bench b(client_options("10.0.0.2,10.0.0.1,10.0.0.3").prefer(rank));
    const auto resolve = [&] {
        b.link.resolve();
        b.loop.context().restart();
        b.loop.context().poll();
    };
    resolve();
    const auto& opened = b.backend.opened.servers;
    REQUIRE(opened.size() == 3);
    CHECK(opened[0].address == "10.0.0.1");
    CHECK(opened[0].rank == -7);
    CHECK(opened[2].rank == 7);
    resolve();
    CHECK(b.backend.lists.empty());
    is_moved = true;
    resolve();
    REQUIRE(b.backend.lists.size() == 1);
    CHECK(b.backend.lists[0][0].rank == -7);
    CHECK(b.backend.lists[0][2].address == "10.0.0.1");
}

TEST_CASE("link: of a server with several names the lowest rank counts, and ranks that throw are the last", "[link]") {
    const auto rank = [&](std::string_view name, std::string_view) {
        if (name == "10.0.0.9") throw std::runtime_error("no rank");
        return name == "localhost" ? 5 : 1;
    };
    const bool last = GENERATE(false, true);
    const std::string servers = last ? "localhost:1,127.0.0.1:1" : "127.0.0.1:1,localhost:1";
    parts_bench b(client_options("10.0.0.9:2," + servers).prefer(rank));
    auto body = [&]() -> asio::awaitable<void> {
        b.link.resolve();
        co_await eventually([&]() -> asio::awaitable<bool> { co_return b.backend.alive; });
    };
    b.loop.run(body());
    const auto& opened = b.backend.opened.servers;
    CHECK(opened.front().address == "127.0.0.1");
    CHECK(opened.front().rank == 1);
    CHECK(opened.back().address == "10.0.0.9");
    CHECK(opened.back().rank == std::numeric_limits<int>::max());
    CHECK(b.lines.size() == 1);
}

TEST_CASE("link: a rank may give the client other servers, which then count", "[link]") {
    parts_bench* self = nullptr;
    bool is_first = true;
    const auto rank = [&](std::string_view, std::string_view) {
        if (std::exchange(is_first, false)) {
            self->link.set_servers(parse_server_list("10.0.0.3", "test"));
            self->link.resolve();
        }
        return 0;
    };
    parts_bench b(client_options("10.0.0.1,10.0.0.2").prefer(rank));
    self = &b;
    b.link.resolve();
    CHECK_FALSE(b.link.is_open());  // never in the middle of a turn
    b.loop.context().poll();
    REQUIRE(b.backend.opened.servers.size() == 1);
    CHECK(b.backend.opened.servers[0].address == "10.0.0.3");
    CHECK(b.backend.lists.empty());
    is_first = true;
    const auto stop = [&](std::string_view, std::string_view) {
        b.wants = false;
        return 0;
    };
    b.options.prefer(stop);
    b.link.resolve();
    b.loop.context().restart();
    b.loop.context().poll();
    CHECK(b.backend.lists.empty());
}

TEST_CASE("link: what is tried last is ranked last, unless it is one of the others", "[link]") {
    parts_bench b(client_options("10.0.0.1,10.0.0.2"));
    server_list list = parse_server_list("10.0.0.2,10.0.0.3", "test");
    list.last = parse_server_list("10.0.0.1,10.0.0.2", "test").hosts;
    b.link.set_servers(list);
    b.link.resolve();
    const auto& opened = b.backend.opened.servers;
    REQUIRE(opened.size() == 3);
    CHECK(opened[0].rank == 0);
    CHECK(opened[1].rank == 0);
    CHECK(opened[2].address == "10.0.0.1");
    CHECK(opened[2].rank == server_address::last_rank);
}
