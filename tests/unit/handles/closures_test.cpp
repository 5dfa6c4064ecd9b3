#include "unit/locks/granted_lock.hpp"
#include "unit/support/error_of.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/locks/lock_options.hpp>
#include <zkasio/locks/with_lock.hpp>
#include <zkasio/recipe/toolbox.hpp>

using namespace zkasio;
using namespace zkasio::test;

namespace {

// What a closure has captured: how often it was made, copied and destroyed.
struct traced {
    static inline int copied, moved, destroyed;
    static void reset() { copied = moved = destroyed = 0; }

    traced() = default;
    traced(const traced&) noexcept { ++copied; }
    traced(traced&&) noexcept { ++moved; }
    ~traced() { ++destroyed; }
};

// Awaits `run(body)`, with the body's name, which is referred to, and moved from it: each closure that was made is
// destroyed, once.
template <class Run, class Body>
asio::awaitable<void> counted(const char* what, Run run, Body body) {
    traced::reset();
    {
        auto result = run(body);
        co_await std::move(result);
    }
    INFO(what);
    CHECK(traced::copied + traced::moved + traced::destroyed == 0);
    traced::reset();
    {
        auto result = run(moved(body));
        co_await std::move(result);
    }
    CHECK(traced::copied == 0);
    CHECK(traced::destroyed == traced::moved);
    traced::reset();
    co_await run(body);
    co_await run(moved(body));
    CHECK(traced::destroyed == traced::copied + traced::moved);
}

asio::awaitable<void> nothing_with(acquire_options) { co_return; }

}  // namespace

TEST_CASE("a named body is referred to and a moved one is destroyed once", "[closures]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const session_hold hold = s.hold("");
        co_await hold.confirmed();
        const one_shot_event stop = toolbox(zk).make_one_shot_event();
        const auto later = boot_clock::now() + 1h;
        lock_guard guard = guard_on(s);
        traced t;
        auto work = [t] { return nothing(); };
        auto locked = [t](lock_guard&) { return nothing(); };
        auto in_session = [t](session) { return nothing(); };

        co_await counted("hold.run", [&](auto&& f) { return hold.run(std::forward<decltype(f)>(f)); }, work);
        co_await counted("run_until", [&](auto&& f) { return stop.run_until(std::forward<decltype(f)>(f)); }, work);
        co_await counted(
            "run_with_deadline", [&](auto&& f) { return run_with_deadline(later, std::forward<decltype(f)>(f)); },
            work);
        co_await counted("guard.run", [&](auto&& f) { return guard.run(std::forward<decltype(f)>(f)); }, work);
        co_await counted(
            "with_session", [&](auto&& f) { return zk.with_session(std::forward<decltype(f)>(f)); }, in_session);
        co_await counted(
            "with_lock", [&](auto&& f) { return with_lock(acquired_on(s), std::forward<decltype(f)>(f)); }, locked);
    };
    r.run(body);
}

// As a user writes it: with the co_await, and with all the ways in which nothing is destroyed twice.
TEST_CASE("what is accepted in a co_await is destroyed once", "[closures]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const session_hold hold = s.hold("");
        int calls = 0;
        traced::reset();
        {
            traced t;
            auto work = [t, &calls]() -> asio::awaitable<void> {
                ++calls;
                co_return;
            };
            auto at = [t](const queue_position&) {};
            std::function<asio::awaitable<void>()> function = work;
            co_await hold.run(work);
            co_await hold.run(function);
            co_await hold.run(std::move(function));
            co_await hold.run([&]() -> asio::awaitable<void> {
                ++calls;
                co_return;
            });
            co_await hold.run(moved(work));
            co_await nothing_with(acquire_options().on_position(at));
            co_await nothing_with(acquire_options().on_position(moved(at)));
        }
        CHECK(calls == 5);
        CHECK(traced::destroyed == traced::copied + traced::moved + 1);
    };
    r.run(body);
}

TEST_CASE("an empty body is refused, through the awaitable", "[closures]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const session_hold hold = s.hold("/node");
        const one_shot_event stop = toolbox(zk).make_one_shot_event();
        const lock_guard guard = guard_on(s);
        const std::function<asio::awaitable<void>()> empty;
        const std::function<asio::awaitable<void>(session)> no_session;
        const lock_body no_lock;
        std::vector<std::string> said;
        said.push_back(co_await message_of(hold.run(empty)));
        said.push_back(co_await message_of(stop.run_until(empty)));
        said.push_back(co_await message_of(run_with_deadline(boot_clock::now() + 1h, empty)));
        said.push_back(co_await message_of(guard.run(empty)));
        said.push_back(co_await message_of(zk.with_session(no_session)));
        said.push_back(co_await message_of(with_lock(acquired_on(s), no_lock)));
        CHECK(said == std::vector<std::string>{"run /node: invalid argument (the body is empty)",
                                               "run_until: invalid argument (the body is empty)",
                                               "run_with_deadline: invalid argument (the body is empty)",
                                               "run /lock: invalid argument (the body is empty)",
                                               "with_session: invalid argument (the body is empty)",
                                               "with_lock: invalid argument (the body is empty)"});
    };
    r.run(body);
}
