#include "commands.hpp"
#include "exit_code.hpp"
#include "lock_choice.hpp"
#include "terminal.hpp"
#include "under_lock.hpp"

#include <zkasio/error.hpp>
#include <zkasio/locks/lock_guard.hpp>
#include <zkasio/locks/lockable.hpp>
#include <zkasio/printable.hpp>

#include <memory>
#include <optional>
#include <utility>

namespace zklock {
namespace {

asio::awaitable<std::optional<zkasio::lock_guard>> acquire(std::unique_ptr<zkasio::lockable> lock,
                                                           zkasio::acquire_options how, run_options o) {
    std::optional<zkasio::error> foreign;
    try {
        if (!o.wait) {
            zkasio::lock_guard guard = co_await lock->acquire(how);
            co_return std::optional<zkasio::lock_guard>(std::move(guard));
        }
        if (o.wait->count() == 0) co_return co_await lock->try_acquire(how);
        co_return co_await lock->try_acquire_for(*o.wait, how);
    } catch (const zkasio::error& e) {
        if (e.code() != zkasio::errc::foreign_child) throw;
        foreign = e;
    }
    throw zkasio::error(foreign->code(), foreign->operation(), foreign->path(),
                        foreign->hint() + "; " + kind_hint(o));
}

}  // namespace

asio::awaitable<int> run_command(session s, run_options o) {
    const std::optional<zkasio::lock_guard> guard = co_await acquire(choose_lock(s.zk, o), patiently(s), o);
    if (!guard) {
        say(zkasio::printable(o.path) + " is held by somebody else");
        co_return exit_code::not_acquired;
    }
    const outcome end = co_await run_under(*guard, s, o);
    co_return end.exit_code;  // what follows, the end of the session, releases the lock
}

}  // namespace zklock
