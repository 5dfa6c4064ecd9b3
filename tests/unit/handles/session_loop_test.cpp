// run_in_each_session(): when a body is begun, and what makes it begin again. How it is stopped:
// session_loop_end_test.cpp
#include "support/lock_checks.hpp"
#include "unit/handles/loop_bench.hpp"
#include "unit/support/error_of.hpp"

#include <stdexcept>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

// Expires its session, waits until it has heard of that, and throws.
loop_bench::work expires_and_throws(loop_bench& b, std::function<void()> thrower) {
    return [&b, thrower = std::move(thrower)](session s) -> asio::awaitable<void> {
        if (b.server.opened.size() > 1) co_return;
        b.server.expire();
        asio::steady_timer cancelled(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
        try {
            co_await cancelled.async_wait(asio::use_awaitable);
        } catch (const std::system_error&) {
            CHECK(s.over());
        }
        thrower();
    };
}

asio::awaitable<void> fails_with(std::error_code code) {
    throw error(code, "work");
    co_return;
}

}  // namespace

TEST_CASE("session loop: a body begins when there is a connection and on the client's strand", "[session_loop]") {
    loop_bench r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        bool on_strand = false;
        auto work = r.noted([&](session s) -> asio::awaitable<void> {
            on_strand = co_await asio::this_coro::executor == zk.get_executor();
            CHECK(s.id() == zk.session_now().id());
            co_await s.get("/a");
        });
        const session_loop loop = run_in_each_session(zk, work);
        CHECK(r.seen.empty());
        co_await loop.stopped();
        CHECK(r.seen == texts{"begins 4097", "returns"});
        CHECK(on_strand);
        co_await next_turns(r.server);
        r.server.expire();
        co_await r.server.until([&] { return r.server.connections == 2; });
        co_await next_turns(r.server);
        CHECK(r.seen.size() == 2);  // it is over for good
        co_await loop.stopped();
    };
    r.run(body);
}

TEST_CASE("session loop: a body does not begin within the call on the client's strand", "[session_loop]") {
    loop_bench r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        auto on_the_strand = [&]() -> asio::awaitable<void> {
            session_loop loop = run_in_each_session(zk, r.waiting());
            CHECK(r.seen.empty());
            loop.stop();
            co_await loop.stopped();
        };
        co_await asio::co_spawn(zk.get_executor(), on_the_strand(), asio::use_awaitable);
        CHECK(r.seen.empty());
    };
    r.run(body);
}

TEST_CASE("session loop: a body is cancelled with its session and begun anew with the next", "[session_loop]") {
    loop_bench r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        session_loop loop = run_in_each_session(zk, r.waiting());
        co_await r.until_seen(1);
        r.server.expire();
        co_await r.until_seen(3);
        r.server.expire();
        co_await r.until_seen(5);
        CHECK(r.seen == texts{"begins 4097", "cancelled", "begins 4098", "cancelled", "begins 4099"});
        loop.stop();
        co_await loop.stopped();
        CHECK(r.seen.back() == "cancelled");
        CHECK(r.seen.size() == 6);
    };
    r.run(body);
}

TEST_CASE("session loop: a cut takes no body away", "[session_loop]") {
    loop_bench r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        session_loop loop = run_in_each_session(zk, r.waiting());
        co_await r.until_seen(1);
        r.server.drop();
        co_await r.server.until([&] { return r.server.connections == 2; });
        co_await next_turns(r.server);
        CHECK(r.seen == texts{"begins 4097"});
    };
    r.run(body);
}

TEST_CASE("session loop: a body does not begin when the connection is lost again before its turn", "[session_loop]") {
    loop_bench r;
    r.server.handshake = 50ms;
    auto body = [&](client zk) -> asio::awaitable<void> {
        auto work = r.noted([&](session) -> asio::awaitable<void> {
            CHECK(zk.state() == session_state::connected);
            co_return;
        });
        const session_loop loop = run_in_each_session(zk, work);
        co_await r.server.until([&] { return r.server.opened.size() == 1; });
        co_await turns(5);
        r.server.drop();  // arrives together with the answer to the handshake
        co_await loop.stopped();
        CHECK(r.server.connections == 2);
        CHECK(r.seen == texts{"begins 4097", "returns"});
    };
    r.run(body);
}

TEST_CASE("session loop: what is retryable is begun again in the same session", "[session_loop]") {
    loop_bench r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::vector<std::error_code> codes{zk_errc::connection_loss, zk_errc::throttled,
                                                 zk_errc::operation_timeout, errc::not_connected};
        std::size_t next = 0;
        auto work = r.noted([&](session) -> asio::awaitable<void> {
            if (next < codes.size()) co_await fails_with(codes[next++]);
        });
        const session_loop loop = run_in_each_session(zk, work);
        co_await loop.stopped();
        CHECK(r.count("begins 4097") == codes.size() + 1);
        CHECK(r.seen.back() == "returns");
    };
    r.run(body);
}

TEST_CASE("session loop: a body that a cut has ended is begun again when there is a connection", "[session_loop]") {
    loop_bench r(loop_bench::quick_retries().connection_timeout(20ms));
    auto body = [&](client zk) -> asio::awaitable<void> {
        r.server.answer = [](const request&) { return std::nullopt; };
        const session_loop loop =
            run_in_each_session(zk, r.noted([](session s) -> asio::awaitable<void> { co_await s.set("/a", "x"); }));
        co_await r.server.until([&] { return r.server.count("set /a") == 1; });
        r.server.reachable = false;
        r.server.drop();
        co_await r.until_seen(2);
        const std::error_code code = co_await code_of(zk.get("/b"));
        CHECK(code == errc::not_connected);
        CHECK(r.seen.size() == 2);
        r.server.answer = [](const request&) { return reply{}; };
        r.server.reachable = true;
        co_await loop.stopped();
        CHECK(r.seen.size() == 4);
        CHECK(r.seen.at(2) == "begins 4097");
        CHECK(r.seen.back() == "returns");
    };
    r.run(body);
}

TEST_CASE("session loop: pauses grow and begin anew with the next session", "[session_loop]") {
    loop_bench r(rig::quick().retry(retry_policy::exponential(1ms, std::chrono::hours(1))));
    constexpr std::size_t many = 11;  // the next pause would be half a second at least, and each twice as long
    auto body = [&](client zk) -> asio::awaitable<void> {
        const auto began = boot_clock::now();
        boot_clock::time_point expired{};
        auto work = r.noted([&](session) -> asio::awaitable<void> {
            if (r.seen.size() / 2 == many) {
                expired = boot_clock::now();
                r.server.expire();
            }
            co_await fails_with(zk_errc::throttled);
        });
        session_loop loop = run_in_each_session(zk, work);
        co_await r.until_seen(2 * many + 2);
        CHECK(boot_clock::now() - began > 500ms);  // 1 + 2 + 4 + ... + 1024, each half of that at least
        co_await r.until_seen(2 * many + 2 + 10);
        CHECK(boot_clock::now() - expired < 4s);  // without: half of 2 + 4 + 8 + 16 s at least
        CHECK(r.count("begins 4098") > 3);
    };
    r.run(body);
}

TEST_CASE("session loop: a body that throws the end of its session is begun anew with the next", "[session_loop]") {
    loop_bench r;
    const auto code = GENERATE(as<std::error_code>(), errc::session_expired, errc::lock_lost, zk_errc::connection_loss,
                               errc::not_connected, asio::error::operation_aborted);
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session_loop loop =
            run_in_each_session(zk, r.noted(expires_and_throws(r, [&] { throw error(code, "work"); })));
        co_await loop.stopped();
        REQUIRE(r.seen.size() == 4);
        CHECK(r.seen[0] == "begins 4097");
        CHECK(r.seen[2] == "begins 4098");
        CHECK(r.seen[3] == "returns");
    };
    r.run(body);
}

TEST_CASE("session loop: whatever else a body throws ends the loop also when its session is over", "[session_loop]") {
    loop_bench r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const auto thrower = [] { throw std::runtime_error("mine"); };
        const session_loop loop = run_in_each_session(zk, r.noted(expires_and_throws(r, thrower)));
        const std::string said = co_await message_of(loop.stopped());
        CHECK(said == "mine");
        CHECK(r.seen == texts{"begins 4097", "mine"});
    };
    r.run(body);
}

TEST_CASE("session loop: what is not retryable ends the loop while its session lives", "[session_loop]") {
    loop_bench r;
    const auto code = GENERATE(as<std::error_code>(), zk_errc::no_auth, errc::lock_lost, errc::session_expired,
                               errc::invalid_path, asio::error::operation_aborted);
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session_loop loop = run_in_each_session(zk, r.noted([&](session) { return fails_with(code); }));
        const std::error_code ended = co_await code_of(loop.stopped());
        CHECK(ended == code);
        const std::error_code again = co_await code_of(loop.stopped());
        CHECK(again == code);
        CHECK(r.seen.size() == 2);
        CHECK(r.core->state() == session_state::connected);
    };
    r.run(body);
}

TEST_CASE("session loop: tells on the strand that it is over before anybody who waits", "[session_loop]") {
    loop_bench r;
    const bool fails = GENERATE(true, false);
    auto body = [&](client zk) -> asio::awaitable<void> {
        texts told;
        auto work = [&](session) { return fails ? fails_with(zk_errc::no_auth) : nothing(); };
        auto on_end = [&](const std::exception_ptr& failed) {
            told.emplace_back(failed ? "failed" : "over");
            throw std::runtime_error("is logged");
        };
        const session_loop loop = run_in_each_session(zk, work, on_end);
        const std::error_code ended = co_await code_of(loop.stopped());
        told.emplace_back(ended ? "waited, failed" : "waited");
        CHECK(told == (fails ? texts{"failed", "waited, failed"} : texts{"over", "waited"}));
    };
    r.run(body);
}

TEST_CASE("session loop: what has ended a loop is logged", "[session_loop]") {
    auto lines = std::make_shared<texts>();
    loop_bench r(rig::quick().log([lines](std::string_view line) { lines->emplace_back(line); }));
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session_loop loop =
            run_in_each_session(zk, [](session) { return fails_with(zk_errc::no_auth); });
        co_await code_of(loop.stopped());
    };
    r.run(body);
    CHECK(std::any_of(lines->begin(), lines->end(), [](const std::string& line) {
        return has(line, "in the background: work: ");
    }));
}

TEST_CASE("session loop: goes on waiting for a connection however long that takes", "[session_loop]") {
    loop_bench r(loop_bench::quick_retries().connection_timeout(10ms));
    r.server.reachable = false;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session_loop loop = run_in_each_session(zk, r.noted([](session) { return nothing(); }));
        for (int i = 0; i < 3; ++i) {
            const std::error_code code = co_await code_of(zk.get("/a"));
            CHECK(code == errc::not_connected);
        }
        CHECK(r.seen.empty());
        r.server.reachable = true;
        co_await loop.stopped();
        CHECK(r.seen == texts{"begins 4097", "returns"});
    };
    r.run(body);
}

TEST_CASE("session loop: ends with a refused credential of the options and without renewal", "[session_loop]") {
    const bool refused = GENERATE(true, false);
    loop_bench r(refused ? loop_bench::quick_retries().auth("digest", "a:b")
                         : loop_bench::quick_retries().renewal(session_renewal::none));
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session_loop loop = run_in_each_session(zk, r.waiting());
        co_await r.until_seen(1);
        if (refused)
            r.server.refuse_auth();
        else
            r.server.expire();
        const std::error_code ended = co_await code_of(loop.stopped());
        CHECK(ended == (refused ? make_error_code(zk_errc::auth_failed) : make_error_code(errc::session_expired)));
        CHECK(r.seen == texts{"begins 4097", "cancelled"});
        const session_loop late = run_in_each_session(zk, r.waiting());
        const std::error_code at_once = co_await code_of(late.stopped());
        CHECK(at_once == ended);
        CHECK(r.seen.size() == 2);
    };
    r.run(body);
}

TEST_CASE("session loop: outlives a session that a refused credential has ended", "[session_loop]") {
    loop_bench r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session_loop loop = run_in_each_session(zk, r.waiting());
        co_await r.until_seen(1);
        r.server.answer = [&](const request& q) -> std::optional<reply> {
            if (!std::holds_alternative<add_auth_request>(q)) return reply{};
            r.server.refuse_auth();
            return std::nullopt;
        };
        const std::error_code code = co_await code_of(zk.add_auth("digest", "a:b"));
        CHECK(code == zk_errc::auth_failed);
        co_await r.until_seen(3);
        CHECK(r.seen == texts{"begins 4097", "cancelled", "begins 4098"});
    };
    r.run(body);
}

TEST_CASE("session loop: a body is kept until the loop is over and not any longer", "[session_loop]") {
    loop_bench r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        auto token = std::make_shared<int>(7);
        const std::weak_ptr<int> alive = token;
        auto work = [token, zk](const session& s) -> asio::awaitable<void> {
            co_await s.get("/a");
            CHECK(*token == 7);
            co_await s.get("/b");
        };
        session_loop loop = run_in_each_session(zk, moved(work));
        token.reset();
        CHECK_FALSE(alive.expired());
        co_await loop.stopped();
        CHECK(alive.expired());
        CHECK(r.server.count("get /b") == 1);
    };
    r.run(body);
}

TEST_CASE("session loop: refuses an empty body and a client that was moved from", "[session_loop]") {
    loop_bench r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::function<asio::awaitable<void>(session)> none;
        CHECK(code_thrown_by([&] { (void)run_in_each_session(zk, none); }) == errc::invalid_argument);
        client from = zk;
        const client to = std::move(from);
        CHECK(code_thrown_by([&] { (void)run_in_each_session(from, r.waiting()); }) == errc::invalid_argument);
        co_return;
    };
    r.run(body);
}
