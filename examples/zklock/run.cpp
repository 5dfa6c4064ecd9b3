#include "commands.hpp"
#include "duration.hpp"
#include "lock_choice.hpp"
#include "terminal.hpp"
#include "under_lock.hpp"

#include <zkasio/clock.hpp>
#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/error.hpp>
#include <zkasio/locks/lock_guard.hpp>
#include <zkasio/locks/lockable.hpp>
#include <zkasio/printable.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace zklock {
namespace {

std::chrono::milliseconds in_ms_since(zkasio::boot_clock::time_point begin) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(zkasio::boot_clock::now() - begin);
}

// --wait covers the connection, too. But a wait of some milliseconds, which is too short to connect in, is one for the
// lock alone.
asio::awaitable<void> connect(session s, run_options o) {
    using namespace std::chrono_literals;
    if (!o.wait || o.wait->count() == 0) co_return co_await s.zk.connected();
    const std::chrono::milliseconds limit = std::max<std::chrono::milliseconds>(*o.wait, 2s);
    try {
        co_return co_await zkasio::timeout(limit, s.zk.connected());
    } catch (const zkasio::error& e) {
        if (e.code() != zkasio::errc::timed_out) throw;
    }
    throw zkasio::error(zkasio::errc::not_connected, "connect", {}, "no server has answered for " + to_text(limit));
}

asio::awaitable<std::optional<zkasio::lock_guard>> acquire(std::unique_ptr<zkasio::lockable> lock,
                                                           zkasio::acquire_options how, run_options o,
                                                           zkasio::boot_clock::time_point begin) {
    std::optional<zkasio::error> foreign;
    try {
        if (!o.wait) {
            zkasio::lock_guard guard = co_await lock->acquire(how);
            co_return std::optional<zkasio::lock_guard>(std::move(guard));
        }
        const std::chrono::milliseconds left = *o.wait - in_ms_since(begin);
        if (left.count() <= 0) co_return co_await lock->try_acquire(how);
        co_return co_await lock->try_acquire_for(left, how);
    } catch (const zkasio::error& e) {
        if (e.code() != zkasio::errc::foreign_child) throw;
        foreign = e;
    }
    throw zkasio::error(foreign->code(), foreign->operation(), foreign->path(),
                        foreign->hint() + "; " + kind_hint(o));
}

}  // namespace

asio::awaitable<int> run_command(session s, run_options o) {
    const auto begin = zkasio::boot_clock::now();
    co_await connect(s, o);
    const auto connected = zkasio::boot_clock::now();
    warn_if_open(s, o.path, o.acl);
    const std::optional<zkasio::lock_guard> guard = co_await acquire(choose_lock(s.zk, o), patiently(s), o, begin);
    if (!guard) {
        const std::string path = zkasio::printable(o.path);
        say(path + " is held by somebody else: `zklock locks " + path + "` shows by whom");
        co_return o.conflict_code;
    }
    if (s.verbose) say("got the lock after " + to_text(in_ms_since(connected)));
    const outcome end = co_await run_under(*guard, s, o);
    co_return end.exit_code;  // what follows, the end of the session, releases the lock
}

}  // namespace zklock
