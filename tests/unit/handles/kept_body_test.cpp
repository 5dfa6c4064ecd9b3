// What becomes of a body: moved in or referred to, never copied, and what it returns is returned.
#include "unit/handles/task_scope_steps.hpp"
#include "unit/locks/granted_lock.hpp"
#include "unit/support/error_of.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/locks/with_lock.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <memory>
#include <string>

using namespace zkasio;
using namespace zkasio::test;

namespace {

// A body that can be called with whatever a function gives it, and that counts its copies.
class counting_body {
public:
    explicit counting_body(int& copies, int& calls) : copies_(copies), calls_(calls) {}
    counting_body(const counting_body& other) : copies_(other.copies_), calls_(other.calls_) { ++copies_; }
    counting_body(counting_body&&) noexcept = default;
    template <class... Given>
    asio::awaitable<void> operator()(Given&&...) {
        return count();
    }

private:
    asio::awaitable<void> count() {
        ++calls_;
        co_return;
    }
    int& copies_;
    int& calls_;
};

struct immovable_body {
    immovable_body() = default;
    immovable_body(const immovable_body&) = delete;
    template <class... Given>
    asio::awaitable<int> operator()(Given&&...) {
        return next();
    }
    asio::awaitable<int> next() { co_return ++calls; }
    int calls = 0;
};

// Not only move-only: it cannot be made without a value either.
class precious_result {
public:
    explicit precious_result(std::string text) : text_(std::make_unique<std::string>(std::move(text))) {}
    const std::string& text() const { return *text_; }

private:
    std::unique_ptr<std::string> text_;
};

template <class T>
const T& value_in(const T& returned) {
    return returned;
}
template <class T>
const T& value_in(const std::optional<T>& returned) {
    return returned.value();
}

// `run(body)` is one of the functions that run a body.
template <class Run>
asio::awaitable<void> keeps_bodies(const char* what, Run run) {
    INFO(what);
    int copies = 0, calls = 0;
    counting_body named(copies, calls);
    co_await run(named);
    co_await run(moved(named));
    CHECK(copies == 0);
    CHECK(calls == 2);

    auto move_only = [text = std::make_unique<std::string>("mine")](auto&&...) -> asio::awaitable<precious_result> {
        co_await settle();
        co_return precious_result(*text);
    };
    const auto by_name = co_await run(move_only);
    const auto by_move = co_await run(moved(move_only));
    CHECK(value_in(by_name).text() == "mine");
    CHECK(value_in(by_move).text() == "mine");

    immovable_body there;
    const auto first = co_await run(there);
    const auto second = co_await run(there);
    CHECK(value_in(first) == 1);
    CHECK(value_in(second) == 2);
    CHECK(there.calls == 2);

    auto fails = [](auto&&...) -> asio::awaitable<int> {
        co_await settle();
        throw std::runtime_error("mine");
    };
    co_await expect_message(run(fails), "mine");
}

asio::awaitable<int> seven_unless_cancelled() {
    co_await forever();
    co_return 7;
}
asio::awaitable<int> seven_although_cancelled() {
    std::error_code code;
    asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
    co_await never.async_wait(asio::redirect_error(asio::use_awaitable, code));
    co_return 7;
}

}  // namespace

TEST_CASE("bodies: none is copied and what it returns is returned", "[bodies]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const session_hold hold = s.hold("");
        co_await hold.confirmed();
        const one_shot_event stop = toolbox(zk).make_one_shot_event();
        const auto later = boot_clock::now() + 1h;
        const lock_guard guard = guard_on(s);
        co_await keeps_bodies("hold.run", [&](auto&& f) { return hold.run(std::forward<decltype(f)>(f)); });
        co_await keeps_bodies("run_until", [&](auto&& f) { return stop.run_until(std::forward<decltype(f)>(f)); });
        co_await keeps_bodies("deadline",
                              [&](auto&& f) { return run_with_deadline(later, std::forward<decltype(f)>(f)); });
        co_await keeps_bodies("guard.run", [&](auto&& f) { return guard.run(std::forward<decltype(f)>(f)); });
        co_await keeps_bodies("with_session", [&](auto&& f) { return zk.with_session(std::forward<decltype(f)>(f)); });
        co_await keeps_bodies("with_lock",
                              [&](auto&& f) { return with_lock(acquired_on(s), std::forward<decltype(f)>(f)); });
        const auto revocable = revocation_policy::cancel_after(1h);
        co_await keeps_bodies(
            "revocable", [&](auto&& f) { return with_lock(acquired_on(s), std::forward<decltype(f)>(f), revocable); });
    };
    r.run(body);
}

TEST_CASE("bodies: one that was moved in lives until it has ended and no longer", "[bodies]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const auto witness = std::make_shared<int>(0);
        asio::awaitable<int> running_it;
        {
            auto counted = [witness](lock_guard&) -> asio::awaitable<int> {
                co_await settle();
                co_return static_cast<int>(witness.use_count());
            };
            running_it = with_lock(acquired_on(s), moved(counted));
        }
        CHECK(witness.use_count() == 2);
        const int alive = co_await std::move(running_it);
        CHECK(alive == 2);
        CHECK(witness.use_count() == 1);
    };
    r.run(body);
}

TEST_CASE("bodies: one that is stopped has no value and one that ends all the same has one", "[bodies]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const one_shot_event stop = toolbox(zk).make_one_shot_event();
        stop.fire();
        const std::optional<int> stopped = co_await stop.run_until(seven_unless_cancelled);
        CHECK_FALSE(stopped);
        const std::optional<int> in_spite = co_await stop.run_until(seven_although_cancelled);
        CHECK(in_spite == 7);
        const auto soon = boot_clock::now() + 1ms;
        const std::optional<int> late = co_await run_with_deadline(soon, seven_unless_cancelled);
        CHECK_FALSE(late);
        const std::optional<int> late_but_there = co_await run_with_deadline(soon, seven_although_cancelled);
        CHECK(late_but_there == 7);
        const bool finished = co_await stop.run_until(nothing);
        CHECK(finished);
        const bool in_time = co_await run_with_deadline(soon, forever);
        CHECK_FALSE(in_time);
    };
    r.run(body);
}

TEST_CASE("bodies: one that returns a value and is empty is refused with words", "[bodies]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const one_shot_event stop = toolbox(zk).make_one_shot_event();
        const std::function<asio::awaitable<int>(lock_guard&)> no_lock;
        const std::function<asio::awaitable<int>()> no_body;
        asio::awaitable<int> (*no_function)() = nullptr;
        co_await expect_message(with_lock(acquired_on(s), no_lock), "with_lock: invalid argument (the body is empty)");
        co_await expect_message(stop.run_until(no_body), "run_until: invalid argument (the body is empty)");
        co_await expect_message(stop.run_until(no_function), "run_until: invalid argument (the body is empty)");
        co_await expect_message(s.hold("").run(no_body), "run: invalid argument (the body is empty)");
    };
    r.run(body);
}

TEST_CASE("bodies: with_session gives them a session that lives as long as they do", "[bodies]") {
    rig r;
    auto steps = [&](client zk) -> asio::awaitable<void> {
        auto by_reference = [&](const session& s) -> asio::awaitable<void> {
            co_await s.get("/a");  // suspended once: whatever the reference is bound to has to be there still
            CHECK(s.id() != 0);
            co_await s.get("/b");
        };
        co_await zk.with_session(by_reference);
        auto by_value = [&](session s) -> asio::awaitable<std::int64_t> {
            co_await s.get("/c");
            co_return s.id();
        };
        const std::int64_t id = co_await zk.with_session(by_value);
        CHECK(id != 0);
    };
    r.run(steps);
}
