// session_loop: stop(), close(), destruction, whatever it is doing; what waits for its end, and what does not.
#include "unit/handles/loop_bench.hpp"
#include "unit/support/error_of.hpp"

#include <zkasio/recipe/toolbox.hpp>

#include <asio/io_context.hpp>
#include <asio/redirect_error.hpp>

#include <optional>
#include <stdexcept>
#include <thread>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

// Needs a while to end when it is cancelled: until `may_end` is fired.
loop_bench::work ends_slowly(one_shot_event may_end) {
    return [may_end](session) -> asio::awaitable<void> {
        asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
        std::exception_ptr cancelled;
        try {
            co_await never.async_wait(asio::use_awaitable);
        } catch (...) {
            cancelled = std::current_exception();
        }
        co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
        co_await may_end.wait();
        std::rethrow_exception(cancelled);
    };
}

asio::awaitable<void> has_stopped(const session_loop& loop) { return loop.stopped(); }

}  // namespace

TEST_CASE("session loop: stops whatever it is doing", "[session_loop]") {
    loop_bench r(rig::quick().retry(retry_policy::n_times(0, 1h)));
    const std::string stage = GENERATE(as<std::string>(), "before it has begun", "without a connection", "in its body",
                                       "in a pause", "between sessions", "when it is over");
    const bool by_destruction = GENERATE(true, false);
    INFO(stage << (by_destruction ? ", by destruction" : ""));
    auto body = [&](client zk) -> asio::awaitable<void> {
        if (stage == "without a connection") r.server.reachable = false;
        auto pauses = r.noted([](session) -> asio::awaitable<void> {
            throw error(zk_errc::throttled, "work");
            co_return;
        });
        auto returns = r.noted([](session) { return nothing(); });
        std::optional<session_loop> loop;
        if (stage == "in a pause")
            loop.emplace(run_in_each_session(zk, pauses));
        else if (stage == "when it is over")
            loop.emplace(run_in_each_session(zk, returns));
        else
            loop.emplace(run_in_each_session(zk, r.waiting()));
        std::size_t lines = 0;
        if (stage == "without a connection") co_await r.server.until([&] { return r.server.opened.size() == 1; });
        if (stage == "in its body" || stage == "between sessions") co_await r.until_seen(lines = 1);
        if (stage == "in a pause" || stage == "when it is over") co_await r.until_seen(lines = 2);
        if (stage == "between sessions") {
            r.server.handshake = 1h;
            r.server.expire();
            co_await r.until_seen(lines = 2);
        }
        auto stopped = loop->stopped();
        if (by_destruction)
            loop.reset();
        else
            loop->stop();
        co_await std::move(stopped);
        co_await zk.idle();
        if (stage == "in its body") {
            ++lines;
            CHECK(r.seen.back() == "cancelled");
        }
        CHECK(r.seen.size() == lines);
        r.server.handshake = 0ms;
        r.server.reachable = true;
        if (loop) {
            loop->stop();
            co_await loop->stopped();
        }
    };
    r.run(body);
}

TEST_CASE("session loop: may be stopped after every turn of its body", "[session_loop]") {
    const bool lose = GENERATE(true, false);
    int cancelled = 0, ended = 0;
    for (int turns = 0; turns < 60 && ended < 3; ++turns) {
        loop_bench r;
        auto body = [&](client zk) -> asio::awaitable<void> {
            auto work = r.noted([&](session s) -> asio::awaitable<void> {
                const auto seen = co_await s.get_and_watch("/a");
                co_await s.set("/b", "x");
                if (lose && r.server.connections == 1) r.server.drop();
                co_await s.create("/c", "", create_options().mode(create_mode::ephemeral_sequential).protection());
            });
            session_loop loop = run_in_each_session(zk, work);
            for (int i = 0; i < turns; ++i) co_await asio::post(r.loop.executor(), asio::use_awaitable);
            loop.stop();
            co_await loop.stopped();
            co_await zk.idle();
            ++(!r.seen.empty() && r.seen.back() == "returns" ? ended : cancelled);
        };
        r.run(body);
    }
    CHECK(cancelled > 5);
    if (!lose) CHECK(ended == 3);
}

TEST_CASE("session loop: a body may stop it and destroy its handle", "[session_loop]") {
    loop_bench r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        std::optional<session_loop> loop;
        auto work = r.noted([&](session s) -> asio::awaitable<void> {
            loop->stop();
            loop.reset();
            co_await s.get("/a");
            co_await s.get("/b");
        });
        loop.emplace(run_in_each_session(zk, work));
        co_await loop->stopped();
        CHECK(r.seen == texts{"begins 4097", "cancelled"});
        CHECK(r.server.count("get /b") == 0);
    };
    r.run(body);
}

TEST_CASE("session loop: may be stopped from any thread", "[session_loop]") {
    loop_bench r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        session_loop loop = run_in_each_session(zk, r.waiting());
        co_await r.until_seen(1);
        std::thread other([&] { loop.stop(); });
        other.join();
        co_await loop.stopped();
        CHECK(r.seen.back() == "cancelled");
    };
    r.run(body);
}

TEST_CASE("session loop: stopped completes when the body has really ended", "[session_loop]") {
    loop_bench r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const one_shot_event may_end = toolbox(zk).make_one_shot_event();
        session_loop loop = run_in_each_session(zk, r.noted(ends_slowly(may_end)));
        co_await r.until_seen(1);
        co_await zk.idle();  // a loop that goes on does not count

        running stopped(zk.get_executor(), has_stopped(loop));
        running impatient(zk.get_executor(), has_stopped(loop));
        co_await next_turns(r.server);
        CHECK_FALSE(stopped.ended());
        loop.stop();
        const running idle(zk.get_executor(), zk.idle());
        co_await next_turns(r.server);
        CHECK_FALSE(stopped.ended());
        CHECK_FALSE(idle.ended());
        impatient.cancel();
        const std::error_code cancelled = co_await impatient.code();
        CHECK(cancelled == condition::cancelled);
        CHECK(r.seen.size() == 1);

        may_end.fire();
        const std::error_code ok = co_await stopped.code();
        CHECK_FALSE(ok);
        CHECK(r.seen.back() == "cancelled");
        const std::error_code at_rest = co_await idle.code();
        CHECK_FALSE(at_rest);
    };
    r.run(body);
}

TEST_CASE("session loop: the next session waits for a body that is slow to end", "[session_loop]") {
    loop_bench r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const one_shot_event may_end = toolbox(zk).make_one_shot_event();
        session_loop loop = run_in_each_session(zk, r.noted(ends_slowly(may_end)));
        co_await r.until_seen(1);
        r.server.expire();
        co_await r.server.until([&] { return r.server.connections == 2; });
        co_await next_turns(r.server);
        CHECK(r.seen.size() == 1);
        may_end.fire();
        co_await r.until_seen(3);
        CHECK(r.seen == texts{"begins 4097", "cancelled", "begins 4098"});
    };
    r.run(body);
}

TEST_CASE("session loop: what a body throws that was stopped is logged and ends nothing else", "[session_loop]") {
    auto lines = std::make_shared<texts>();
    loop_bench r(rig::quick().log([lines](std::string_view line) { lines->emplace_back(line); }));
    auto body = [&](client zk) -> asio::awaitable<void> {
        auto work = r.noted([](session s) -> asio::awaitable<void> {
            try {
                co_await s.ended();
            } catch (const std::system_error&) {
                throw std::runtime_error("not tidied up");
            }
        });
        session_loop loop = run_in_each_session(zk, work);
        co_await r.until_seen(1);
        loop.stop();
        co_await loop.stopped();
        CHECK(r.seen.back() == "not tidied up");
    };
    r.run(body);
    CHECK(std::count(lines->begin(), lines->end(), "in the background: not tidied up") == 1);
}

TEST_CASE("session loop: close ends it and waits for its body", "[session_loop]") {
    loop_bench r;
    bool tidied = false;
    auto body = [&](client zk) -> asio::awaitable<void> {
        auto work = r.noted([&](session s) -> asio::awaitable<void> {
            std::exception_ptr failed;
            try {
                co_await s.get_and_watch("/a");
                r.server.answer = [](const request&) { return std::nullopt; };
                co_await s.get("/b");
            } catch (...) {
                failed = std::current_exception();
            }
            co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
            asio::steady_timer a_moment(co_await asio::this_coro::executor, 20ms);
            co_await a_moment.async_wait(asio::use_awaitable);
            tidied = true;
            std::rethrow_exception(failed);
        });
        session_loop loop = run_in_each_session(zk, work);
        co_await r.server.until([&] { return r.server.count("get /b") == 1; });
        const running stopped(r.loop.executor(), has_stopped(loop));
        co_await next_turns(r.server);
        co_await zk.close();
        CHECK(tidied);
        const std::error_code code = co_await stopped.code();
        CHECK(code == errc::client_closed);
        const std::error_code late = co_await code_of(run_in_each_session(zk, r.waiting()).stopped());
        CHECK(late == errc::client_closed);
        CHECK(r.count("begins 4097") == 1);
    };
    r.run(body);
}

TEST_CASE("session loop: close does not wait for ever for a body that goes on", "[session_loop]") {
    loop_bench r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        asio::steady_timer may_end(zk.get_executor(), asio::steady_timer::time_point::max());
        auto work = r.noted([&](session) -> asio::awaitable<void> {
            co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
            std::error_code woken;
            co_await may_end.async_wait(asio::redirect_error(asio::use_awaitable, woken));
        });
        session_loop loop = run_in_each_session(zk, work);
        co_await r.until_seen(1);
        const running stopped(r.loop.executor(), has_stopped(loop));
        co_await zk.close();
        const std::error_code code = co_await stopped.code();
        CHECK(code == errc::client_closed);
        CHECK(r.seen.size() == 1);
        may_end.cancel();
        co_await r.until_seen(2);
    };
    r.run(body);
}

namespace {

session_loop loop_of_a_factory(core_ptr inside, loop_bench& r) {
    const client zk = client_over(std::move(inside));
    return run_in_each_session(zk, r.waiting());
}

asio::awaitable<void> kept_by_a_coroutine(core_ptr inside, loop_bench::work work) {
    const session_loop loop = run_in_each_session(client_over(std::move(inside)), work);
    co_await loop.stopped();
}

}  // namespace

TEST_CASE("session loop: keeps its client open until it has ended", "[session_loop]") {
    const bool assigned = GENERATE(true, false);
    loop_bench r;
    auto steps = [&]() -> asio::awaitable<void> {
        session_loop made = loop_of_a_factory(r.core, r);
        session_loop loop = std::move(made);
        co_await r.until_seen(1);
        r.server.expire();
        co_await r.until_seen(3);
        co_await next_turns(r.server);
        CHECK_FALSE(r.goodbye_said());
        CHECK(r.core->state() == session_state::connected);
        made.stop();  // moved from: does nothing
        co_await made.stopped();
        co_await next_turns(r.server);
        CHECK(r.seen.size() == 3);
        if (assigned)
            loop = session_loop();
        else
            loop.stop();
        co_await r.server.until([&] { return r.goodbye_said(); });
        CHECK(r.seen.back() == "cancelled");
    };
    r.loop.run(steps());
    CHECK(r.core->state() == session_state::closed);
    r.nothing_left();
}

TEST_CASE("session loop: one that has returned lets its client close", "[session_loop]") {
    loop_bench r;
    auto steps = [&]() -> asio::awaitable<void> {
        session_loop loop;
        co_await loop.stopped();
        {
            const client zk = client_over(r.core);
            loop = run_in_each_session(zk, r.noted([](session s) -> asio::awaitable<void> { co_await s.get("/a"); }));
        }
        co_await r.server.until([&] { return r.goodbye_said(); });
        CHECK(r.seen == texts{"begins 4097", "returns"});
        co_await loop.stopped();
    };
    r.loop.run(steps());
    r.nothing_left();
}

TEST_CASE("session loop: may be destroyed with the event loop whatever it is doing", "[session_loop]") {
    const std::string stage = GENERATE(as<std::string>(), "at once", "without a connection", "in its body", "stopping",
                                       "in a pause");
    const bool in_a_coroutine = GENERATE(true, false);
    INFO(stage);
    loop_bench r(rig::quick().retry(retry_policy::n_times(0, 1h)));
    r.core.reset();
    fake_server& server = r.server;
    server.reachable = stage != "without a connection";
    auto io = std::make_unique<asio::io_context>();
    std::weak_ptr<core> inside;
    {
        auto c = std::make_shared<core>(io->get_executor(), rig::quick().retry(retry_policy::n_times(0, 1h)),
                                        server.factory());
        inside = c;
        loop_bench::work work = r.noted([&](session s) -> asio::awaitable<void> {
            if (stage == "in a pause") throw error(zk_errc::throttled, "work");
            if (stage == "stopping") co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
            co_await s.ended();
        });
        std::optional<session_loop> kept;
        if (in_a_coroutine)
            asio::co_spawn(*io, kept_by_a_coroutine(std::move(c), work), [](std::exception_ptr) {});
        else
            kept.emplace(run_in_each_session(client_over(std::move(c)), work));
        const std::size_t lines = stage == "in a pause" ? 2 : 1;
        if (stage == "without a connection")
            while (server.opened.empty()) REQUIRE(io->run_one() == 1);
        else if (stage != "at once")
            while (r.seen.size() < lines) REQUIRE(io->run_one() == 1);
        if (stage == "stopping" && kept) kept->stop();
        if (stage != "at once") io->poll();
    }
    io.reset();
    CHECK(inside.expired());
    CHECK(server.backends_alive == 0);
}
