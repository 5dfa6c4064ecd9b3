#include "unit/rig.hpp"

#include <zkasio/recipe/change_event.hpp>

#include <memory>
#include <mutex>

using namespace zkasio;
using namespace zkasio::test;

namespace {

asio::awaitable<void> wait_for(one_shot_event e) { co_await e.wait(); }

}  // namespace

TEST_CASE("change_event: each change ends the waits that were begun before it, and no others") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        std::mutex mutex;
        change_event changes(zk);
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
        change_event changes(zk);
        running one(r.loop.executor(), wait_for(changes.next()));
        co_await zk.close();
        const std::error_code code = co_await one.code();
        CHECK(code == errc::client_closed);
    };
    r.run(body);
}
