// Real servers that are killed, paused and started again.

#include "support/lock_checks.hpp"
#include "support/lock_directory.hpp"
#include "support/test_client.hpp"
#include "support/texts.hpp"

#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;

namespace {

asio::awaitable<void> until_state(session_events events, session_state wanted) {
    for (;;) {
        const session_event e = co_await events.next();
        if (e.state == wanted) co_return;
    }
}

// For the log: the last line that tells of a connection.
std::function<void(std::string_view)> connections_into(std::string& last) {
    return [&last](std::string_view line) {
        if (line.starts_with("connected: ")) last = line;
    };
}

// As the server tells; of those through TLS it does not, there it is as the client tells.
bool is_connected_to(const test_server& servers, int server, const std::string& last, const session& s) {
    if (transport::current().is_secure())
        return last.find(" on " + servers.endpoint(server) + ',') != std::string::npos;
    std::array<char, 24> id{};
    std::snprintf(id.data(), id.size(), "sid=0x%llx,", static_cast<unsigned long long>(s.id()));
    return servers.ask("cons", server).find(id.data()) != std::string::npos;
}

}  // namespace

TEST_CASE("killed and started again, while one holds a lock and another waits: both have it in the end") {
    test_server server;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "restart");
        const auto executor = co_await asio::this_coro::executor;
        const test_client other(executor, options(server.connect_string()).session_timeout(paced(40s)));
        const mutex lock(zk, dir), theirs(other, dir);
        lock_guard holder = co_await lock.acquire();
        taker second(executor, theirs.acquire());
        co_await until_queued(zk, dir, 2);
        taker third(executor, lock.acquire());
        co_await until_queued(zk, dir, 3);
        session_events events = zk.events(), their_events = other.events();
        server.kill();
        co_await until_state(events, session_state::suspended);
        co_await until_state(their_events, session_state::suspended);
        server.start();  // blocks this loop for a second or two
        co_await zk.connected();
        CHECK_FALSE(second.ended());
        CHECK(holder.reason() == loss_reason::none);
        co_await holder.release();
        co_await second.got();
        CHECK(second.guard().token() > holder.token());
        CHECK_FALSE(third.ended());
        const fencing_token last = second.guard().token();
        second.release();
        co_await third.got();
        CHECK(third.guard().token() > last);
        third.release();
        co_await until_queued(zk, dir, 0);
        co_await other.close();
    };
    with_client(options(server.connect_string()).session_timeout(paced(40s)), body);
}

TEST_CASE("a server that is paused: the lease ends before its session does, and held() knows") {
    test_server server;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "paused");
        const mutex lock(zk, dir);
        const lock_guard guard = co_await lock.acquire();
        const session s = co_await zk.current_session();
        const auto stopped_at = boot_clock::now();
        server.pause();
        const loss_reason why = co_await guard.lost();
        CHECK(why == loss_reason::lease_ended);
        CHECK_FALSE(guard.held());
        CHECK(boot_clock::now() - stopped_at < s.timeout() + 200ms);
        server.resume();
    };
    with_client(options(server.connect_string()).session_timeout(paced(3s)), body);
}

TEST_CASE("without any server for long enough, the session is presumed lost and nothing waits for ever") {
    test_server server;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "gone");
        const mutex lock(zk, dir);
        const lock_guard guard = co_await lock.acquire();
        auto wait = [&]() -> asio::awaitable<void> { (void)co_await lock.acquire(); };
        running waiting(co_await asio::this_coro::executor, wait());
        co_await until_queued(zk, dir, 2);
        server.kill();
        const std::error_code c = co_await waiting.code();
        CHECK(c == errc::session_expired);
        const close_result how = co_await zk.close();
        CHECK(how == close_result::session_left_to_expire);  // the servers will keep it for a while when they are back
    };
    with_client(options(server.connect_string()).session_timeout(paced(2s)), body);
}

TEST_CASE(
    "without any server for longer than its session lasts, a client ends that session before it has another one") {
    test_server server;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "back");
        const mutex lock(zk, dir);
        const lock_guard guard = co_await lock.acquire();
        const session first = co_await zk.current_session();
        server.kill();
        co_await first.ended();
        server.start();  // counts all sessions' timeouts from now on
        for (;;) {
            const std::error_code failed = co_await code_of(zk.connected());
            if (!failed) break;
            CHECK(failed == errc::not_connected);
        }
        const std::vector<std::string> left = (co_await zk.children(dir)).names;
        CHECK(left.empty());
        const lock_guard again = co_await lock.acquire();
        const close_result how = co_await zk.close();
        CHECK(how == close_result::confirmed);
    };
    with_client(options(server.connect_string()).session_timeout(paced(6s)), body);
}

TEST_CASE("closing a client whose server hangs takes no longer than it may, and blocks nobody") {
    test_server server;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.get("/");
        server.pause();
        auto read = [&]() -> asio::awaitable<void> { co_await zk.get("/"); };
        running reading(co_await asio::this_coro::executor, read());
        int ticks = 0;
        auto tick = [&]() -> asio::awaitable<void> {
            asio::steady_timer t(co_await asio::this_coro::executor);
            for (;;) {
                t.expires_after(5ms);
                co_await t.async_wait(asio::use_awaitable);
                ++ticks;
            }
        };
        running ticking(co_await asio::this_coro::executor, tick());
        const auto began = boot_clock::now();
        const close_result how = co_await zk.close();
        CHECK(how == close_result::session_left_to_expire);
        CHECK(boot_clock::now() - began < paced(5s));
        CHECK(ticks > 40);  // of 400: the loop ran all the time
        const std::error_code c = co_await reading.code();
        CHECK(c == errc::client_closed);
        ticking.cancel();
        server.resume();
    };
    with_client(options(server.connect_string()).close_timeout(2s), body);
}

TEST_CASE("suspension_policy::lose gives a lock up with the connection") {
    test_server server;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "suspension");
        const mutex lock(zk, dir);
        const lock_guard guard = co_await lock.acquire();
        server.kill();
        const loss_reason why = co_await guard.lost();
        CHECK(why == loss_reason::suspended);
        server.start();
    };
    with_client(options(server.connect_string()).suspension(suspension_policy::lose).session_timeout(paced(20s)), body);
}

TEST_CASE("an ensemble of three: locks survive the death of the server that one is connected to") {
    test_server servers(3);
    std::string last;
    auto body = [&](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "ensemble");
        const mutex lock(zk, dir);
        const session s = co_await zk.current_session();
        const lock_guard guard = co_await lock.acquire();
        int connected_to = -1;
        auto found = [&]() -> asio::awaitable<bool> {
            for (int i = 0; i < 3; ++i)
                if (is_connected_to(servers, i, last, s)) connected_to = i;
            co_return connected_to >= 0;
        };
        co_await eventually(found);
        session_events events = zk.events();
        servers.kill(connected_to);
        co_await until_state(events, session_state::suspended);
        co_await until_state(events, session_state::connected);
        CHECK_FALSE(s.over());
        // If that was the leader, the others elect one first; the lease may end meanwhile, the session does not.
        transaction t;
        t.create(dir + "-mark");
        std::error_code c = zk_errc::connection_loss;
        while (c == condition::retryable) c = co_await code_of(zk.multi(t));
        CHECK((!c || c == zk_errc::node_exists));
        const auto node = co_await s.exists(guard.path());
        CHECK(node);
        const node_data config = co_await zk.get_config();
        CHECK(config.data.find("server.3=127.0.0.3") != std::string::npos);
    };
    const client_options o = options(servers.connect_string()).session_timeout(paced(15s));
    with_client_for(120s, client_options(o).log(connections_into(last)), body);
}

TEST_CASE(
    "an ensemble of three whose servers die in turn: never more permits of a semaphore than there are, and nobody "
    "waits for ever") {
    test_server servers(3);
    const auto patient = options(servers.connect_string())
                             .session_timeout(paced(20s))
                             .connection_timeout(paced(60s))
                             .retry(retry_policy::forever());
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "semaphore-ensemble");
        const auto executor = co_await asio::this_coro::executor;
        const test_client other(executor, patient);
        int out = 0, granted = 0;
        bool over = false;
        auto task = [&](client on, int n) -> asio::awaitable<void> {
            const semaphore sem(on, dir, permits::fixed(3));
            while (!over) {
                std::optional<lock_guard> guard;
                try {
                    guard.emplace(co_await sem.acquire(n));
                } catch (const error& e) {
                    if (e.code() != errc::lock_lost) throw;  // there was no leader for longer than a lease
                }
                if (!guard) continue;
                out += n;
                ++granted;
                CHECK(out <= 3);
                co_await turns(20);
                out -= n;
                co_await guard->release();
            }
        };
        std::vector<running> tasks;
        for (int i = 0; i < 8; ++i) tasks.emplace_back(executor, task(i % 2 ? zk : client(other), 1 + i % 3));
        for (int i = 0; i < 3; ++i) {
            int wanted = granted + 20;
            auto enough = [&]() -> asio::awaitable<bool> { co_return granted >= wanted; };
            co_await eventually(enough, 60s);
            servers.kill(i);
            wanted = granted + 20;
            co_await eventually(enough, 60s);
            co_await servers.async_start(i);  // heartbeats go on meanwhile
        }
        over = true;
        for (const running& t : tasks) {
            const std::exception_ptr e = co_await t.end();
            if (e) std::rethrow_exception(e);
        }
        co_await until_queued(zk, dir + "/leases", 0);
        co_await until_queued(zk, dir + "/locks", 0);
        co_await other.close();
    };
    with_client_for(300s, patient, body);
}

TEST_CASE("the server list can be changed while connected - the session moves") {
    test_server servers(3);
    const std::string all = servers.connect_string();
    const std::string first = all.substr(0, all.find(','));
    std::string last;
    auto body = [&](const test_client& zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        co_await zk.set_servers(all.substr(all.find(',') + 1));
        auto moved = [&]() -> asio::awaitable<bool> {
            const std::error_code c = co_await code_of(zk.get("/"));
            co_return !c && !is_connected_to(servers, 0, last, s);
        };
        co_await eventually(moved);
        CHECK_FALSE(s.over());
        const std::string text = co_await message_of(zk.set_servers("a:b"));
        CHECK(text.find("set_servers: invalid argument (server \"a:b\"") == 0);
        const std::string chroot = co_await message_of(zk.set_servers("a/b"));
        CHECK(chroot.find("the chroot of a client cannot be changed") != std::string::npos);
    };
    with_client_for(120s, client_options(options(first).session_timeout(paced(15s))).log(connections_into(last)), body);
}

TEST_CASE("a client that follows the ensemble goes where its servers go", "[clear]") {
    test_server servers(3, testing::server_options().line("skipACL=yes"));
    const std::string only = servers.endpoint(0);
    auto body = [&](const test_client& zk) -> asio::awaitable<void> {
        const auto knows = [&zk](std::size_t count) -> asio::awaitable<void> {
            co_await eventually([&]() -> asio::awaitable<bool> {
                const std::string names = zk.inside().server_names();
                co_return std::count(names.begin(), names.end(), ':') == static_cast<std::ptrdiff_t>(count);
            });
        };
        const session s = co_await zk.current_session();
        co_await knows(3);
        CHECK(has(zk.inside().server_names(), only));
        session_events events = zk.events();
        servers.kill(0);
        co_await until_state(events, session_state::suspended);
        co_await until_state(events, session_state::connected);
        CHECK_FALSE(s.over());
        // Servers that leave, leave the list.
        std::error_code refused = zk_errc::connection_loss;
        while (refused == condition::retryable || refused == zk_errc::reconfig_in_progress)
            refused = co_await code_of(zk.reconfigure("", "1"));
        CHECK_FALSE(refused);
        co_await knows(2);
        CHECK_FALSE(has(zk.inside().server_names(), only));
        co_await zk.sync();
        CHECK_FALSE(s.over());
    };
    with_client_for(120s, options(only).session_timeout(paced(15s)).follow_ensemble(), body);
}
