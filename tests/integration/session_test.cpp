#include "support/fault_proxy.hpp"
#include "support/test_client.hpp"

#include <zkasio/locks/mutex.hpp>

#include <algorithm>
#include <array>
#include <optional>

using namespace zkasio;
using namespace zkasio::test;

TEST_CASE("what a session knows of itself") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        CHECK(s.id() != 0);
        CHECK(s.timeout() >= 4s);
        CHECK(s.timeout() <= zk.options().session_timeout());
        CHECK_FALSE(s.over());
        CHECK(zk.state() == session_state::connected);
        const session_credentials c = co_await zk.credentials();
        CHECK(c.id() == s.id());
        CHECK(c.password().size() == 16);
    };
    with_client(body);
}

TEST_CASE("options that make no sense are refused at once", "[real-loop]") {
    asio::io_context io;
    const auto refused = [&](client_options o) {
        try {
            client zk(io.get_executor(), std::move(o));
        } catch (const error& e) {
            CHECK(e.operation() == "client options");
            return std::string(e.what());
        }
        return std::string();
    };
    CHECK(refused("") == "client options: invalid argument (server \"\": the host is empty)");
    CHECK(refused("host:99999").find("a port is a number from 1 to 65535") != std::string::npos);
    CHECK(refused("host,").find("the host is empty") != std::string::npos);
    CHECK(refused("host/a//b").find("chroot: empty node name") != std::string::npos);
    CHECK(refused(client_options("host").session_timeout(-1s)).find("session_timeout must be positive") !=
          std::string::npos);
    CHECK(refused(client_options("host").connection_timeout(0s)).find("connection_timeout") != std::string::npos);
    CHECK(refused(client_options("host").resume({0, ""})).find("resume()") != std::string::npos);
    io.run();
}

// As a rolling restart of the servers, and of the clients, has it.
TEST_CASE("a client that is closed right after its connection was cut ends its session, and its locks are free") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "closed_after_cut");
        for (int turns = 0; turns < 10; ++turns) {
            fault_proxy proxy(first_server());
            const test_client stopping(co_await asio::this_coro::executor,
                                       options(proxy.address()).close_timeout(10s));
            const lock_guard held = co_await mutex(stopping, dir + "/lock").acquire();
            proxy.cut_all(turns % 2 ? fault_proxy::end::rst : fault_proxy::end::fin);
            for (int i = 0; i < turns; ++i) co_await asio::post(stopping.get_executor(), asio::use_awaitable);
            const close_result how = co_await stopping.close();
            CHECK(how == close_result::confirmed);
            CHECK_FALSE(held.held());
            const std::optional<lock_guard> next = co_await mutex(zk, dir + "/lock").try_acquire();
            CHECK(next.has_value());
        }
    };
    with_client(body);
}

TEST_CASE("events tell the life of a client") {
    test_loop loop;
    std::vector<session_state> seen;
    auto watch = [&](session_events events) -> asio::awaitable<void> {
        for (;;) {
            const session_event e = co_await events.next();
            seen.push_back(e.state);
            CHECK_FALSE(e.reason.empty());
            if (e.state == session_state::closed) break;
        }
        const std::error_code after = co_await code_of(events.next());
        CHECK(after == errc::client_closed);
    };
    const test_client zk(loop.executor(), options());
    loop.spawn(watch(zk.events()));
    auto live = [&]() -> asio::awaitable<void> {
        const session first = co_await zk.current_session();
        co_await expire_session(zk);
        co_await first.ended();
        co_await zk.connected();
        co_await zk.close();
    };
    loop.run(live());
    using s = session_state;
    // Who ends a session at the servers takes it over first, and its client may be quicker in taking it back.
    const std::array<s, 2> taken_back{s::suspended, s::connected};
    const auto where = [&] { return std::search(seen.begin(), seen.end(), taken_back.begin(), taken_back.end()); };
    for (auto at = where(); at != seen.end(); at = where()) seen.erase(at, at + 2);
    CHECK(seen == std::vector<s>{s::connecting, s::connected, s::suspended, s::expired, s::connecting, s::connected,
                                 s::closed});
}

TEST_CASE("expiry ends what belongs to the session, and a new one takes its place") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "expiry");
        const auto executor = co_await asio::this_coro::executor;
        const session old = co_await zk.current_session();
        create_options ephemeral;
        ephemeral.mode(create_mode::ephemeral);
        co_await zk.create(dir + "/e", "", ephemeral);
        const auto seen = co_await zk.get_and_watch(dir);
        auto wait = [&]() -> asio::awaitable<void> { co_await seen.changes.changed(); };
        running waiting(executor, wait());

        co_await expire_session(zk);
        const std::error_code why = co_await old.ended();
        CHECK(why == errc::session_expired);
        CHECK(old.over());
        const std::error_code watch_end = co_await waiting.code();
        CHECK(watch_end == errc::session_expired);
        const std::error_code pinned = co_await code_of(old.get(dir));
        CHECK(pinned == errc::session_expired);

        const session now = co_await zk.current_session();
        CHECK(now.id() != old.id());
        const auto e = co_await zk.exists(dir + "/e");
        CHECK_FALSE(e);
    };
    with_client(body);
}

TEST_CASE("without renewal a client stays expired") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const session old = co_await zk.current_session();
        co_await expire_session(zk);
        co_await old.ended();
        CHECK(zk.state() == session_state::expired);
        const std::error_code c = co_await code_of(zk.get("/"));
        CHECK(c == errc::session_expired);
        const std::error_code d = co_await code_of(zk.connected());
        CHECK(d == errc::session_expired);
    };
    with_client(options().renewal(session_renewal::none), body);
}

TEST_CASE("credentials are presented to the next session too") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "auth-replay");
        co_await zk.add_auth("digest", "bob:pw");
        create_options mine;
        mine.acl(creator_all_acl());
        co_await zk.create(dir + "/mine", "x", mine);
        const session old = co_await zk.current_session();
        co_await expire_session(zk);
        co_await old.ended();
        const node_data read = co_await zk.get(dir + "/mine");
        CHECK(read.data == "x");
    };
    with_client(body);
}

// [leaves]: servers let such a session expire.
TEST_CASE("a refused credential ends the session, not the client", "[leaves]") {
    auto body = [](client zk) -> asio::awaitable<void> {
        co_await zk.add_auth("digest", "bob:pw");
        const session old = co_await zk.current_session();
        const std::error_code c = co_await code_of(zk.add_auth("no-such-scheme", "x"));
        CHECK(c == zk_errc::auth_failed);
        const std::error_code e = co_await code_of(zk.add_auth("", "x"));
        CHECK(e == errc::invalid_argument);
        co_await zk.connected();
        const session now = co_await zk.current_session();
        CHECK(now.id() != old.id());
        CHECK(old.over());
    };
    with_client(body);
}

TEST_CASE("a refused credential among the options: connected() tells, though there was a session", "[leaves]") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string text = co_await message_of(zk.connected());
        CHECK(text.starts_with("connect " + zk.options().servers() + ": authentication failed"));
    };
    with_client(options().auth("no-such-scheme", "x"), body);
}

TEST_CASE("a refused credential among the options is final", "[leaves]") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::error_code c = co_await code_of(zk.get("/"));
        CHECK(c == condition::session_ended);
        CHECK(zk.state() == session_state::auth_failed);
        const std::error_code d = co_await code_of(zk.get("/"));
        CHECK(d == zk_errc::auth_failed);
    };
    with_client(options().auth("no-such-scheme", "x"), body);
}

TEST_CASE("a session can be handed over") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const session_credentials c = co_await zk.credentials();
        const test_client heir(co_await asio::this_coro::executor, options().resume(c));
        const session same = co_await heir.current_session();
        CHECK(same.id() == s.id());
        co_await heir.close();
    };
    with_client(body);
}

TEST_CASE("a client that hands its session over leaves the session and its nodes") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string node = co_await fresh_directory(zk, "hand-over") + "/node";
        const auto executor = co_await asio::this_coro::executor;
        const test_client first(executor, options());
        const session s = co_await first.current_session();
        co_await first.create(node, "", create_options().mode(create_mode::ephemeral));
        const asio::awaitable<session_credentials> unused = first.hand_over();  // starts when it is awaited
        const session_hold hold = s.hold(node);
        co_await hold.confirmed();

        const session_credentials left = co_await first.hand_over();
        CHECK(left.id() == s.id());
        CHECK(first.state() == session_state::closed);
        CHECK(s.over());
        CHECK(hold.reason() == loss_reason::closed);
        const session_credentials again = co_await first.hand_over();
        CHECK(again.id() == s.id());
        const std::error_code used = co_await code_of(first.sync());
        CHECK(used == errc::client_closed);

        const test_client heir(executor, options().resume(left));
        const session same = co_await heir.current_session();
        CHECK(same.id() == s.id());
        const std::optional<node_stat> stat = co_await heir.exists(node);
        REQUIRE(stat);
        CHECK(stat->ephemeral_owner == s.id());
        co_await heir.close();
        const bool gone = !co_await zk.exists(node);
        CHECK(gone);
    };
    with_client(body);
}

TEST_CASE("a session is handed over when the requests under way are answered, and not if the client was closed") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "hand-over-late");
        const auto executor = co_await asio::this_coro::executor;
        const test_client first(executor, options()), closed(executor, options());
        co_await first.connected();
        const mutex lock(first, dir + "/lock");
        { const lock_guard guard = co_await lock.acquire(); }
        running created(executor, [](client on, std::string path) -> asio::awaitable<void> {
            co_await on.create(path, "", create_options().mode(create_mode::ephemeral));
        }(first, dir + "/late"));
        co_await asio::post(asio::use_awaitable);
        const session_credentials left = co_await first.hand_over();
        const std::error_code code = co_await created.code();
        const std::optional<node_stat> stat = co_await zk.exists(dir + "/late");
        if (!code) CHECK((stat && stat->ephemeral_owner == left.id()));

        const close_result end = co_await closed.close();
        CHECK(end == close_result::confirmed);
        const std::error_code none = co_await code_of(closed.hand_over());
        CHECK(none == errc::client_closed);

        const test_client heir(executor, options().resume(left));
        std::optional<lock_guard> free = co_await mutex(heir, dir + "/lock").try_acquire();
        CHECK(free);
        free.reset();
        co_await heir.close();
    };
    with_client(body);
}

TEST_CASE("with_session runs to its end, or is cancelled with the session") {
    auto body = [](client zk) -> asio::awaitable<void> {
        int calls = 0;
        auto quick = [&](session s) -> asio::awaitable<void> {
            ++calls;
            CHECK_FALSE(s.over());
            co_return;
        };
        co_await zk.with_session(quick);
        CHECK(calls == 1);

        auto throwing = [](session) -> asio::awaitable<void> {
            throw std::runtime_error("mine");
            co_return;
        };
        const std::string text = co_await message_of(zk.with_session(throwing));
        CHECK(text == "mine");

        bool cancelled = false, cleaned_up = false;
        auto endless = [&](session) -> asio::awaitable<void> {
            asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
            try {
                co_await never.async_wait(asio::use_awaitable);
            } catch (const std::system_error& e) {
                cancelled = e.code() == condition::cancelled;
            }
            co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
            never.expires_after(10ms);
            co_await never.async_wait(asio::use_awaitable);
            cleaned_up = true;
        };
        running bounded(co_await asio::this_coro::executor, zk.with_session(endless));
        co_await expire_session(zk);
        const std::error_code c = co_await bounded.code();
        CHECK(c == errc::session_expired);
        CHECK(cancelled);
        CHECK(cleaned_up);
    };
    with_client(body);
}

TEST_CASE("close: everything that waits fails, the server drops the session at once") {
    test_loop loop;
    auto body = [&]() -> asio::awaitable<void> {
        const auto executor = co_await asio::this_coro::executor;
        const test_client observer(executor, options());
        const std::string dir = co_await fresh_directory(observer, "close");
        const test_client zk(executor, options().close_timeout(10s));
        create_options ephemeral;
        ephemeral.mode(create_mode::ephemeral);
        co_await zk.create(dir + "/e", "", ephemeral);
        const auto gone = co_await observer.exists_and_watch(dir + "/e");
        const session s = co_await zk.current_session();
        const auto seen = co_await zk.get_and_watch(dir);
        auto wait = [&]() -> asio::awaitable<void> { co_await seen.changes.changed(); };
        running waiting(executor, wait());

        const close_result how = co_await zk.close();
        CHECK(how == close_result::confirmed);
        const close_result again = co_await zk.close();
        CHECK(again == close_result::confirmed);
        const std::error_code c = co_await waiting.code();
        CHECK(c == errc::client_closed);
        const std::error_code d = co_await code_of(zk.get("/"));
        CHECK(d == errc::client_closed);
        const std::error_code e = co_await s.ended();
        CHECK(e == errc::client_closed);
        const watch_event event = co_await gone.changes.changed();
        CHECK(event.what == node_change::removed);
        co_await observer.close();
    };
    loop.run(body());
}

TEST_CASE("a client that is destroyed closes in the background") {
    test_loop loop;
    auto body = [&]() -> asio::awaitable<void> {
        const auto executor = co_await asio::this_coro::executor;
        const test_client observer(executor, options());
        const std::string dir = co_await fresh_directory(observer, "destroyed");
        std::optional<watched<std::optional<node_stat>>> gone;
        {
            const test_client zk(executor, options());
            create_options ephemeral;
            ephemeral.mode(create_mode::ephemeral);
            co_await zk.create(dir + "/e", "", ephemeral);
            gone.emplace(co_await observer.exists_and_watch(dir + "/e"));
        }
        const watch_event event = co_await gone->changes.changed();
        CHECK(event.what == node_change::removed);
        gone.reset();
        co_await observer.close();
    };
    loop.run(body());
}

TEST_CASE("the loop may be destroyed with everything pending", "[real-loop]") {
    for (const int turns : {0, 1, 5, 50}) {
        auto io = std::make_unique<asio::io_context>();
        auto zk = std::make_unique<client>(io->get_executor(), options());
        auto work = [](client on) -> asio::awaitable<void> {
            co_await on.connected();
            const auto seen = co_await on.exists_and_watch("/test-never");
            co_await seen.changes.changed();
        };
        auto reading = [](client on) -> asio::awaitable<void> {
            for (;;) co_await on.get("/");
        };
        asio::co_spawn(*io, work(*zk), [](std::exception_ptr) {});
        asio::co_spawn(*io, reading(*zk), [](std::exception_ptr) {});
        for (int i = 0; i < turns; ++i) io->run_one_for(100ms);
        zk.reset();  // a handle must not outlive the context
        io.reset();
    }
}

TEST_CASE("operations are cancelled at once, wherever they are") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const auto executor = co_await asio::this_coro::executor;
        // Not connected to anything: waits for the connection.
        const test_client nowhere(executor, options("127.0.0.1:" + std::to_string(free_port())));
        auto read = [](client on) -> asio::awaitable<void> { co_await on.get("/"); };
        running waiting(executor, read(nowhere));
        asio::steady_timer turn(executor, 1ms);
        co_await turn.async_wait(asio::use_awaitable);
        waiting.cancel();
        std::error_code c = co_await waiting.code();
        CHECK(c == condition::cancelled);
        co_await nowhere.close();

        // Under way.
        co_await zk.connected();
        running under_way(executor, read(zk));
        under_way.cancel();
        c = co_await under_way.code();
        CHECK((!c || c == condition::cancelled));
        co_await zk.get("/");
    };
    with_client(body);
}
