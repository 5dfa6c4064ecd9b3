#include "unit/support/rig.hpp"

#include <zkasio/recipe/events.hpp>

#include <asio/post.hpp>
#include <asio/use_awaitable.hpp>

#include <exception>
#include <mutex>
#include <optional>
#include <string>

using namespace zkasio;
using namespace zkasio::test;

namespace {

asio::awaitable<void> wait_for(one_shot_event e) { co_await e.wait(); }

}  // namespace

TEST_CASE("change_event: each change ends the waits that were begun before it, and no others") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        std::mutex mutex;
        change_event changes(zk, mutex);
        changes.notify_all(std::unique_lock(mutex));  // nobody waits
        const one_shot_event first = changes.next();
        running one(r.loop.executor(), wait_for(first));
        running two(r.loop.executor(), wait_for(changes.next()));
        changes.notify_all(std::unique_lock(mutex));
        const one_shot_event second = changes.next();
        const std::exception_ptr failed_one = co_await one.end();
        CHECK_FALSE(failed_one);
        const std::exception_ptr failed_two = co_await two.end();
        CHECK_FALSE(failed_two);
        running late(r.loop.executor(), wait_for(second));
        co_await first.wait();  // has happened, and stays so
        CHECK_FALSE(late.ended());
        changes.notify_all(std::unique_lock(mutex));
        const std::exception_ptr failed_late = co_await late.end();
        CHECK_FALSE(failed_late);
        CHECK(mutex.try_lock());
        mutex.unlock();
    };
    r.run(body);
}

TEST_CASE("change_event: the client's close ends a wait for a change that does not come") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        std::mutex mutex;
        change_event changes(zk, mutex);
        running one(r.loop.executor(), wait_for(changes.next()));
        co_await zk.close();
        const std::error_code code = co_await one.code();
        CHECK(code == errc::client_closed);
    };
    r.run(body);
}

TEST_CASE("change_event: until() looks at once and after each change, and a change while it looks is not missed") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        std::mutex mutex;
        change_event changes(zk, mutex);
        int looks = 0, state = 0;
        const auto big = [&]() -> std::optional<int> {
            if (++looks == 1) {  // a change between the look and the wait
                state = 1;
                changes.notify_all(std::unique_lock(mutex));
            }
            return state >= 2 ? std::optional(state) : std::nullopt;
        };
        std::optional<int> seen;
        const auto wait = [&]() -> asio::awaitable<void> { seen = co_await changes.until(big, "grow", "/n"); };
        running one(r.loop.executor(), wait());
        co_await asio::post(r.loop.executor(), asio::use_awaitable);
        co_await asio::post(r.loop.executor(), asio::use_awaitable);
        CHECK(looks == 2);
        CHECK_FALSE(one.ended());
        state = 3;
        changes.notify_all(std::unique_lock(mutex));
        const std::exception_ptr failed = co_await one.end();
        CHECK_FALSE(failed);
        CHECK(seen == 3);
        const std::optional<int> again = co_await changes.until(big, "grow", "/n");
        CHECK(again == 3);
        CHECK(looks == 4);
    };
    r.run(body);
}

TEST_CASE("change_event: until() passes on what look() throws, and its own failures name operation and path") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        std::mutex mutex;
        change_event changes(zk, mutex);
        bool refuse = false;
        const auto look = [&] {
            if (refuse) throw error(zk_errc::no_auth, "look", "/n");
            return false;
        };
        const auto wait = [&]() -> asio::awaitable<void> { co_await changes.until(look, "grow", "/n"); };
        running one(r.loop.executor(), wait());
        refuse = true;
        changes.notify_all(std::unique_lock(mutex));
        const std::error_code refused = co_await one.code();
        CHECK(refused == zk_errc::no_auth);
        refuse = false;
        running two(r.loop.executor(), wait());
        co_await zk.close();
        std::string said;
        try {
            const std::exception_ptr failed = co_await two.end();
            if (failed) std::rethrow_exception(failed);
        } catch (const std::exception& e) {
            said = e.what();
        }
        CHECK(said == "grow /n: client closed");
    };
    r.run(body);
}
