// docs/sessions.md: sessions, outages, and what a lease is.
#include "guide.hpp"

#include <zkasio/client.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/printable.hpp>
#include <zkasio/session_loop.hpp>

#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <iostream>
#include <optional>
#include <string>

using namespace std::chrono_literals;

namespace sessions_page {
namespace {

// [missing]
asio::awaitable<std::string> settings(zkasio::client zk) {
    for (;;) {
        const auto there = co_await zk.exists_and_watch("/guide/settings");
        if (there.value) break;
        co_await there.changes.changed();  // created
    }
    const zkasio::node_data read = co_await zk.get("/guide/settings");
    co_return read.data;
}
// [/missing]

// [missing_throws]
asio::awaitable<std::optional<std::string>> settings_if_any(zkasio::client zk) {
    try {
        const auto read = co_await zk.get_and_watch("/guide/no-settings");
        co_return read.value.data;
    } catch (const zkasio::error& e) {
        if (e.code() != zkasio::zk_errc::no_node) throw;
    }
    co_return std::nullopt;  // and no watch is left
}
// [/missing_throws]

// [outage]
asio::awaitable<zkasio::lock_guard> acquire_in_the_end(zkasio::mutex lock) {
    const auto how = zkasio::acquire_options().survive_expiry();  // queues again with each session
    for (;;) {
        try {
            co_return co_await lock.acquire(how);
        } catch (const zkasio::error& e) {
            if (e.code() != zkasio::errc::not_connected) throw;
        }
    }
}
// [/outage]

// [events]
asio::awaitable<void> log_outages(zkasio::client zk) {
    const zkasio::session_events events = zk.events();
    for (;;) {
        const zkasio::session_event e = co_await events.next();
        std::cout << to_string(e.state) << " " << e.reason << "\n";
        if (e.state == zkasio::session_state::closed) break;
    }
}
// [/events]

// [lost]
// with_lock() by hand: one step at a time, and none when another client may have the lock.
asio::awaitable<int> steps_while_held(zkasio::mutex lock) {
    const zkasio::lock_guard guard = co_await lock.acquire();
    asio::steady_timer step(co_await asio::this_coro::executor);
    int done = 0;
    while (done < 3 && guard.held()) {
        step.expires_after(1ms);
        co_await step.async_wait(asio::use_awaitable);
        ++done;
    }
    co_return done;
}
// [/lost]

// [body]
asio::awaitable<void> report_under_lock(zkasio::mutex lock) {
    auto body = [](zkasio::lock_guard& guard) -> asio::awaitable<void> {
        asio::steady_timer slow(co_await asio::this_coro::executor, 5ms);
        co_await slow.async_wait(asio::use_awaitable);  // throws when the lock is lost, and so does every other wait
        std::cout << "done, under token " << guard.token().value() << "\n";
    };
    try {
        co_await lock.with_lock(body);
    } catch (const zkasio::error& e) {
        if (e.code() != zkasio::errc::lock_lost) throw;
        std::cerr << e.what() << "\n";  // the body has really ended
    }
}
// [/body]

// [each_session]
// A node that shows, as long as this object lives, the session of this client.
zkasio::session_loop show_session(zkasio::client zk) {
    auto body = [zk](const zkasio::session& s) -> asio::awaitable<void> {
        zkasio::create_options how;
        how.mode(zkasio::create_mode::ephemeral).parents(zkasio::missing_parents::create_container);
        co_await s.create("/guide/session", zkasio::session_id_text(s.id()), how);
        co_await s.ended();  // then the body is cancelled, and begins again in the next session
    };
    return zkasio::run_in_each_session(zk, body);
}
// [/each_session]

// [careful]
zkasio::client_options careful(std::string servers) {
    return zkasio::client_options(servers)
        .session_timeout(30s)                         // the session survives outages of up to about this
        .suspension(zkasio::suspension_policy::lose)  // a lost connection is a lost lock, at once
        .connection_timeout(5s);                      // an operation that cannot be sent fails after this
}
// [/careful]

// [hand_over]
// The ephemeral nodes stay. The credentials may also go to another process, which has the session's timeout to resume.
asio::awaitable<zkasio::client> heir_of(zkasio::client zk) {
    const zkasio::session_credentials session = co_await zk.hand_over();  // closes zk
    zkasio::client_options how(zk.options().servers());
    how.resume(session);
    const zkasio::client heir(co_await asio::this_coro::executor, how);
    co_await heir.connected();
    co_return heir;
}
// [/hand_over]

asio::awaitable<void> in_coroutines(zkasio::client zk) {
    const auto none = co_await settings_if_any(zk);
    expect(!none, "there is nothing at /guide/no-settings");
    co_await zk.create_unless_exists("/guide/settings", "verbose", zkasio::with_parents());
    const std::string now = co_await settings(zk);
    expect(!now.empty(), "there are settings");
    const zkasio::mutex lock(zk, "/guide/lock");
    { const zkasio::lock_guard guard = co_await acquire_in_the_end(lock); }
    const int steps = co_await steps_while_held(lock);
    expect(steps == 3, "the lock stays held");
    co_await report_under_lock(lock);
    {
        const zkasio::session_loop shown = show_session(zk);
        for (;;) {
            const auto there = co_await zk.exists_and_watch("/guide/session");
            if (there.value) break;
            co_await there.changes.changed();
        }
        const zkasio::node_data who = co_await zk.get("/guide/session");
        expect(who.data == zkasio::session_id_text(zk.session_now().id()), "the node names the session");
    }
    const std::int64_t id = zk.session_now().id();
    const zkasio::client heir = co_await heir_of(zk);
    expect(heir.session_now().id() == id, "the heir has the session");
    co_await heir.close();
}

}  // namespace
}  // namespace sessions_page

void guide_sessions(std::string servers) {
    using namespace sessions_page;
    asio::io_context io;
    const zkasio::client zk(io.get_executor(), careful(servers));
    asio::co_spawn(io, log_outages(zk), rethrow);
    asio::co_spawn(io, in_coroutines(zk), rethrow);
    io.run();
}
