// barrier, counter: what processes share beside locks.
#include "acl_text.hpp"
#include "commands.hpp"
#include "exit_code.hpp"
#include "terminal.hpp"

#include <zkasio/barriers/barrier.hpp>
#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/counters/atomic_counter.hpp>
#include <zkasio/error.hpp>
#include <zkasio/printable.hpp>

#include <string>

namespace zklock {
namespace {

asio::awaitable<bool> passed(zkasio::barrier gate, std::optional<std::chrono::milliseconds> limit) {
    if (!limit) {
        co_await gate.wait();
        co_return true;
    }
    const bool closed = co_await gate.is_set();
    if (!closed || limit->count() == 0) co_return !closed;
    try {
        co_await zkasio::timeout(*limit, gate.wait());
    } catch (const zkasio::error& e) {
        if (e.code() != zkasio::errc::timed_out) throw;
        co_return false;
    }
    co_return true;
}

}  // namespace

asio::awaitable<int> use_barrier(session s, barrier_options o) {
    zkasio::barrier_options how;
    if (!o.acl.empty()) how.acl(parse_acl(o.acl));
    const zkasio::barrier gate(s.zk, o.path, how);
    switch (o.action) {
        case barrier_action::set: {
            const bool closed = co_await gate.set();
            if (closed)
                warn_if_open(s, o.path, o.acl);
            else
                say(zkasio::printable(o.path) + " was closed already");
            break;
        }
        case barrier_action::remove: {
            const bool opened = co_await gate.remove();
            if (!opened) say(zkasio::printable(o.path) + " was open");
            break;
        }
        case barrier_action::wait: {
            const bool open = co_await passed(gate, o.wait);
            if (open) break;
            say(zkasio::printable(o.path) + " is closed");
            co_return exit_code::not_acquired;
        }
    }
    co_return exit_code::ok;
}

asio::awaitable<int> use_counter(session s, counter_options o) {
    zkasio::counter_options how;
    if (o.kazoo) how.format(zkasio::kazoo_counter());
    if (!o.acl.empty()) how.acl(parse_acl(o.acl));
    const zkasio::atomic_counter counter(s.zk, o.path, how);
    std::int64_t number = 0;
    if (o.delta) {
        number = co_await counter.add(*o.delta);
        warn_if_open(s, o.path, o.acl);
    } else {
        number = co_await counter.get();
    }
    print(std::to_string(number) + "\n");
    co_return exit_code::ok;
}

}  // namespace zklock
