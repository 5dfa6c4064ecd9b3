// What has to compile: see coroutine_safety.hpp.
#include <zkasio/coroutines/task_scope.hpp>
#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/unfair_mutex.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/session_loop.hpp>

#include <memory>
#include <optional>
#include <string>

using namespace zkasio;

using task = asio::awaitable<void>;

task plain() { co_return; }
task under_lock(lock_guard&) { co_return; }

task all(client zk, mutex m, shared_mutex rw, semaphore permits, unfair_mutex flag, multi_mutex several,
         lock_owner owner, bool writing) {
    const std::string s;
    // What stats() returns needs no header of its own.
    if (zk.stats().watches > 0) co_return;
    // An ACL of one's own, in the expression.
    co_await zk.set_acl(s,
                        acl_of(acl_entry(permission::all, digest_user(s, s)), acl_entry{permission::read, anyone()}));
    co_await zk.create(s, "", create_options().acl(acl_of({permission::all, anyone()})));
    const session_hold hold = zk.session_now().hold("");
    const one_shot_event stop = toolbox(zk).make_one_shot_event();
    const auto soon = boot_clock::now() + std::chrono::seconds(1);

    // Nothing to destroy.
    co_await hold.run([&]() -> task { co_return; });
    co_await m.with_lock([&s](lock_guard&) -> task { co_return; });
    co_await m.with_lock(under_lock);
    co_await several.with_lock(&under_lock, revocation_policy::ignore());
    co_await stop.run_until([] { return plain(); });

    // Names, and what is moved from them.
    auto body = [s]() -> task { co_return; };
    auto locked = [s](lock_guard&) -> task { co_return; };
    auto in_session = [s](session) -> task { co_return; };
    auto at = [s](const queue_position&) {};
    auto claim = [s]() -> asio::awaitable<std::shared_ptr<lock_claim>> { co_return nullptr; };
    const std::function<task()> named = body;
    std::function<task()> function = body;
    co_await hold.run(body);
    co_await hold.run(moved(body));
    co_await hold.run(named);
    co_await hold.run(function);
    co_await hold.run(std::move(function));
    co_await stop.run_until(moved(body));
    co_await run_with_deadline(soon, moved(body));
    auto in_scope = [s](task_scope& tasks) -> task {
        tasks.spawn([s]() -> task { co_return; });
        co_return;
    };
    co_await with_task_scope([&](task_scope&) -> task { co_return; });
    co_await with_task_scope(in_scope);
    co_await with_task_scope(moved(in_scope));
    co_await zk.with_session(moved(in_session));
    auto on_end = [s](std::exception_ptr) {};
    const session_loop loop = run_in_each_session(zk, in_session, moved(on_end));
    co_await run_in_each_session(zk, moved(in_session)).stopped();
    co_await run_in_each_session(zk, [](session) { return plain(); }).stopped();
    auto move_only = [p = std::make_unique<int>(7)](auto&&...) -> asio::awaitable<int> { co_return *p; };
    const int under_mutex = co_await m.with_lock(move_only);
    const int under_shared = co_await rw.with_shared_lock(moved(move_only));
    const int under_permit = co_await permits.with_permit(move_only);
    const int under_flag = co_await flag.with_lock(move_only);
    const int under_several = co_await several.with_lock(move_only);
    const std::optional<int> in_time = co_await run_with_deadline(soon, moved(move_only));
    const bool ended = co_await stop.run_until(body);
    co_await with_lock(m.acquire(), locked);
    co_await m.with_lock(locked, revocation_policy::cancel_after(std::chrono::seconds(1)));
    co_await rw.with_lock(writing ? lock_kind::exclusive : lock_kind::shared, locked);
    co_await rw.with_shared_lock(moved(locked));
    co_await permits.with_permit(locked);
    co_await flag.with_lock(locked);
    (void)co_await owner.acquire(zk, s, s, lock_kind::shared, moved(claim));
    const lock_guard guard =
        co_await rw.acquire(writing ? lock_kind::exclusive : lock_kind::shared, acquire_options().on_position(at));
    co_await guard.run(moved(body));
    (void)co_await m.acquire(acquire_options().on_position({}));
}
