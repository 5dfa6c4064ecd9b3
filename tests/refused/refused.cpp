// Each line that is marked so has to be refused by the compiler, with words that say what to do: g++ 12 would destroy
// the closure twice.
#include <zkasio/coroutines/task_scope.hpp>
#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/unfair_mutex.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/session_loop.hpp>

#include <string>

using namespace zkasio;

using task = asio::awaitable<void>;
using claiming = asio::awaitable<std::shared_ptr<lock_claim>>;

task all(client zk, mutex m, shared_mutex rw, semaphore permits, unfair_mutex flag, multi_mutex several,
         lock_owner owner) {
    const std::string s;
    const session_hold hold = zk.session_now().hold("");
    const one_shot_event stop = toolbox(zk).make_one_shot_event();
    const auto soon = boot_clock::now() + std::chrono::seconds(1);
    const auto any = lock_kind::shared;

    co_await zk.with_session([s](session) -> task { co_return; });                                     // refused
    co_await run_in_each_session(zk, [s](session) -> task { co_return; }).stopped();                   // refused
    co_await hold.run([s]() -> task { co_return; });                                                   // refused
    co_await stop.run_until([s]() -> task { co_return; });                                             // refused
    co_await run_with_deadline(soon, [s]() -> task { co_return; });                                    // refused
    co_await with_task_scope([s](task_scope&) -> task { co_return; });                                 // refused
    co_await with_lock(m.acquire(), [s](lock_guard&) -> task { co_return; });                          // refused
    co_await m.with_lock([s](lock_guard&) -> task { co_return; });                                     // refused
    co_await rw.with_lock([s](lock_guard&) -> task { co_return; });                                    // refused
    co_await rw.with_lock(any, [s](lock_guard&) -> task { co_return; });                               // refused
    co_await rw.with_shared_lock([s](lock_guard&) -> task { co_return; });                             // refused
    co_await permits.with_permit([s](lock_guard&) -> task { co_return; });                             // refused
    co_await flag.with_lock([s](lock_guard&) -> task { co_return; });                                  // refused
    co_await several.with_lock([s](lock_guard&) -> task { co_return; });                               // refused
    co_await owner.acquire(zk, s, s, any, [s]() -> claiming { co_return nullptr; });                   // refused
    co_await owner.try_acquire(zk, s, s, any, [s]() -> claiming { co_return nullptr; });               // refused
    const auto at = acquire_options().on_position([s](const queue_position&) {});                      // refused
    const lock_guard guard = co_await m.acquire(at);
    co_await guard.run([s]() -> task { co_return; });                                                  // refused
}
