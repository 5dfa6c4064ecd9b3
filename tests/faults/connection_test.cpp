#include "support/bytes_before_session.hpp"
#include "support/fault_proxy.hpp"
#include "support/impostor.hpp"
#include "support/test_client.hpp"

#include <zkasio/locks/mutex.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/post.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <set>

using namespace zkasio;
using namespace zkasio::test;
using asio::ip::tcp;

TEST_CASE(
    "cut at every byte of request and reply: an operation completes once, and a create is never lost or doubled") {
    fault_proxy proxy(first_server());
    // A handshake is 49 bytes there and 41 back; the create that follows is about 110 there and 120 back. Each of these
    // is longer by some thirty when it is encrypted.
    struct where {
        bool requests;
        std::size_t after;
    };
    std::vector<where> cuts;
    for (const bool requests : {true, false}) {
        const std::size_t first = bytes_before_session(proxy, requests);
        const std::size_t end = first + (transport::current().is_secure() ? 270 : 190);
        for (std::size_t n = first; n < end; ++n) cuts.push_back({requests, n});
    }

    test_loop loop(300s);
    const test_client watcher(loop.executor(), options());
    auto body = [&]() -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(watcher, "every-byte");
        std::size_t unknown = 0;
        for (const where& cut : cuts) {
            const std::size_t base = proxy.connections();
            proxy.plan_connections([cut, base](std::size_t n) {
                fault_proxy::plan p;
                if (n == base) (cut.requests ? p.cut_requests_after : p.cut_replies_after) = cut.after;
                p.how = cut.after % 2 ? fault_proxy::end::rst : fault_proxy::end::fin;
                return p;
            });
            const test_client zk(co_await asio::this_coro::executor, options(proxy.address()));
            const std::string name = dir + (cut.requests ? "/q" : "/r") + std::to_string(cut.after);
            std::error_code failed;
            bool maybe = false;
            try {
                co_await zk.create(name);
            } catch (const error& e) {
                failed = e.code();
                maybe = e.outcome_unknown();
                ++unknown;
            }
            const auto there = co_await zk.exists(name);
            INFO("cut " << (cut.requests ? "requests" : "replies") << " after " << cut.after << ": "
                        << failed.message());
            if (!failed) CHECK(there);
            if (failed) CHECK(maybe);
            create_options sequential;
            sequential.mode(create_mode::persistent_sequential).protection();
            const created sure = co_await zk.create(dir + "/s", "", sequential);
            const node_children all = co_await zk.children(dir);
            std::set<std::string> once(all.names.begin(), all.names.end());
            CHECK(once.contains(sure.path.substr(dir.size() + 1)));
            co_await zk.remove(sure.path);
            co_await zk.close();
            CHECK(zk.inside().pending_operations() == 0);
        }
        CHECK(unknown > 50);
        co_await watcher.close();
    };
    loop.run(body());
}

TEST_CASE("cut at every byte: a protected create exists exactly once") {
    fault_proxy proxy(first_server());
    const std::size_t sent = bytes_before_session(proxy, true), got = bytes_before_session(proxy, false);
    test_loop loop(300s);
    auto body = [&]() -> asio::awaitable<void> {
        const test_client watcher(co_await asio::this_coro::executor, options());
        const std::string dir = co_await fresh_directory(watcher, "every-byte-protected");
        const test_client zk(co_await asio::this_coro::executor,
                             options(proxy.address()).retry(retry_policy::n_times(50, 1ms)));
        co_await zk.connected();
        // Of what is encrypted, all is lost that is not whole: there a cut is like the ones beside it.
        const bool encrypted = transport::current().is_secure();
        const std::size_t end = encrypted ? 300 : 240, step = encrypted ? 7 : 1;
        for (std::size_t n = 0; n < end; n += step) {
            // The connection that the client has now is cut after so many further bytes: make it a new one first.
            const bool requests = n % 2 == 0;
            const std::size_t base = proxy.connections();
            proxy.plan_connections([=](std::size_t c) {
                fault_proxy::plan p;
                if (c == base && requests) p.cut_requests_after = sent + 41 + n;
                if (c == base && !requests) p.cut_replies_after = got + 41 + n;
                return p;
            });
            proxy.cut_all();
            constexpr std::array kinds{create_mode::ephemeral_sequential, create_mode::container,
                                       create_mode::persistent_sequential_ttl};
            create_options o;
            o.mode(kinds[n / step / 2 % kinds.size()]).protection();
            if (has_ttl(o.mode())) o.ttl(60s);
            std::string path;
            for (int attempt = 0; path.empty() && attempt < 5; ++attempt) {
                try {
                    const created made = co_await zk.create(dir + "/n-", "", o);
                    path = made.path;
                } catch (const error& e) {
                    if (e.code() != condition::retryable) throw;
                }
            }
            const node_children all = co_await watcher.children(dir);
            INFO("cut after " << n);
            CHECK(all.names == std::vector<std::string>{path.substr(dir.size() + 1)});
            const pending_removal gone = toolbox(zk).ensure_removed(path);
            co_await gone.result();
        }
        co_await zk.close();
        co_await watcher.close();
    };
    loop.run(body());
}

TEST_CASE("100 000 operations at depth 64 through 200 cuts: each completes exactly once, nothing is left") {
    constexpr int total = 100'000, depth = 64, cuts = 200;
    fault_proxy proxy(first_server());
    test_loop loop(400s);
    const test_client zk(loop.executor(), options(proxy.address()).retry(retry_policy::forever()));
    int started = 0, succeeded = 0, unknown = 0, made_cuts = 0;
    auto worker = [&](int me, std::string dir) -> asio::awaitable<void> {
        std::minstd_rand random(static_cast<unsigned>(me));
        const std::string own = dir + "/w" + std::to_string(me);
        std::int64_t certain = 0, maybe = 0;  // successful writes to the node, and those that may have been
        {
            std::error_code c = zk_errc::connection_loss;
            while (c && c != zk_errc::node_exists) c = co_await code_of(zk.create(own, "0"));
        }
        while (started < total) {
            const int n = started++;
            if (n / (total / cuts) > made_cuts) {
                ++made_cuts;
                proxy.cut_all(made_cuts % 2 ? fault_proxy::end::rst : fault_proxy::end::fin);
            }
            std::error_code c;
            switch (random() % 5) {
                case 0: {
                    c = co_await code_of(zk.set(own, std::to_string(n)));
                    ++(c ? maybe : certain);
                    break;
                }
                case 1: {
                    transaction t;
                    t.check(dir).set(own, "m" + std::to_string(n));
                    c = co_await code_of(zk.multi(t));
                    ++(c ? maybe : certain);
                    break;
                }
                case 2: c = co_await code_of(zk.exists_and_watch(own)); break;
                case 3: c = co_await code_of(zk.children_and_watch(dir)); break;
                default: c = co_await code_of(zk.get(own)); break;
            }
            if (c) {
                if (c != condition::retryable) throw error(c, "operation", own);
                ++unknown;
            } else {
                ++succeeded;
            }
        }
        // The server's count of the changes is between the certain ones and all that were tried: nothing applied twice.
        const auto now = co_await zk.exists(own);
        CHECK(now->version >= certain);
        CHECK(now->version <= certain + maybe);
    };
    auto body = [&]() -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "hundred-thousand");
        const session s = co_await zk.current_session();
        std::vector<running> workers;
        for (int i = 0; i < depth; ++i) workers.emplace_back(co_await asio::this_coro::executor, worker(i, dir));
        for (const running& w : workers) {
            const std::exception_ptr e = co_await w.end();
            if (e) std::rethrow_exception(e);
        }
        CHECK_FALSE(s.over());  // the session has survived them all
        auto no_watch = [&]() -> asio::awaitable<bool> { co_return zk.inside().watches() == 0; };
        co_await eventually(no_watch);
        auto none_at_server = [&]() -> asio::awaitable<bool> {
            co_return ask_first_server("wchp").find("/test-hundred-thousand") == std::string::npos;
        };
        co_await eventually(none_at_server);
        co_await zk.remove_recursive(dir);
        co_await zk.close();
    };
    loop.run(body());
    CHECK(made_cuts >= cuts - 1);
    CHECK(succeeded + unknown >= total);
    CHECK(zk.inside().pending_operations() == 0);
    WARN(succeeded << " succeeded, " << unknown << " with unknown outcome, " << proxy.connections() << " connections");
}

TEST_CASE("a silent connection is given up, and the session goes on over another one") {
    fault_proxy proxy(first_server());
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        session_events events = zk.events();
        proxy.silence(true);
        for (;;) {
            const session_event e = co_await events.next();
            if (e.state == session_state::suspended) break;
        }
        proxy.silence(false);
        co_await zk.connected();
        co_await zk.get("/");
        CHECK_FALSE(s.over());
    };
    with_client(options(proxy.address()), body);
}

TEST_CASE("a black-holed first address costs a fraction of the session timeout") {
    // A listening socket with a full queue: the kernel drops further connection attempts.
    asio::io_context io;
    tcp::acceptor hole(io);
    hole.open(tcp::v4());
    hole.bind(tcp::endpoint(asio::ip::make_address("127.0.0.9"), 0));
    hole.listen(0);
    std::vector<tcp::socket> fill;
    for (int i = 0; i < 4; ++i) {
        fill.emplace_back(io);
        fill.back().open(tcp::v4());
        fill.back().native_non_blocking(true);
        const tcp::endpoint to = hole.local_endpoint();
        (void)!::connect(fill.back().native_handle(), to.data(), static_cast<socklen_t>(to.size()));  // never completes
    }
    const std::string servers = "127.0.0.9:" + std::to_string(hole.local_endpoint().port()) + "," + first_server();
    auto body = [](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        co_await zk.get("/");
    };
    with_client(options(first_server()), body);  // of TLS, a server's first handshake takes long
    for (int i = 0; i < 4; ++i) {  // the list is shuffled
        // Two thirds of 9 s would be 6 s.
        with_client(options(servers).session_timeout(paced(9s)).connection_timeout(paced(5500ms)), body);
    }
}

TEST_CASE("servers that cannot be reached are tried in turn, however many there are") {
    const std::size_t count = GENERATE(2u, 3u, 4u);
    const bool changes = GENERATE(false, true);
    INFO(count << " servers, " << (changes ? "one more on the way" : "always the same"));
    std::vector<std::unique_ptr<fault_proxy>> proxies;
    std::string servers;
    for (std::size_t i = 0; i < count; ++i) {
        proxies.push_back(std::make_unique<fault_proxy>(first_server()));
        proxies.back()->refuse(true);
        servers += (i ? "," : "") + proxies.back()->address();
    }
    const auto least_tried = [&] {
        std::size_t least = fault_proxy::never;
        for (const auto& p : proxies) least = std::min(least, p->connections());
        return least;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        std::size_t enough = 1;
        const auto all_tried = [&]() -> asio::awaitable<bool> { co_return least_tried() >= enough; };
        if (changes) {
            co_await eventually(all_tried);
            proxies.push_back(std::make_unique<fault_proxy>(first_server()));
            proxies.back()->refuse(true);
            co_await zk.set_servers(servers + "," + proxies.back()->address());
        }
        enough = 3;
        co_await eventually(all_tried);
        std::size_t most = 0;
        for (const auto& p : proxies) most = std::max(most, p->connections());
        CHECK(most <= least_tried() + 3);
        proxies.back()->refuse(false);
        co_await zk.get("/");
    };
    with_client(options(servers).connection_timeout(20s), body);
}

TEST_CASE("a peer that is no ZooKeeper is passed over, and named when there is no other") {
    const impostor web("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n");
    const impostor echo(std::nullopt);
    const impostor zeros(std::string(64, '\0'));
    const impostor ones(std::string(64, '\xff'));
    for (const impostor* peer : {&web, &echo, &zeros, &ones}) {
        auto alone = [&](client zk) -> asio::awaitable<void> {
            const std::string text = co_await message_of(zk.connected());
            const bool secure = transport::current().is_secure();
            const std::string no_zookeeper = peer->address() + (secure ? ": TLS: " : ": not a ZooKeeper server)");
            CHECK(text.starts_with("connect " + peer->address() + ": not connected (" + no_zookeeper));
            CHECK(zk.state() == session_state::connecting);
        };
        with_client(options(peer->address()).connection_timeout(1s), alone);
        auto with_another = [](client zk) -> asio::awaitable<void> {
            co_await zk.get("/");
        };
        with_client(options(peer->address() + "," + first_server()), with_another);
    }
}

TEST_CASE("a peer that is no ZooKeeper cannot end a session") {
    // In front of the real server, and suddenly somebody else answers at its address.
    const impostor web("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n");
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        session_events events = zk.events();
        co_await zk.set_servers(web.address());
        for (;;) {
            const session_event e = co_await events.next();
            if (e.state == session_state::suspended) break;
        }
        asio::steady_timer a_while(co_await asio::this_coro::executor, 300ms);
        co_await a_while.async_wait(asio::use_awaitable);
        CHECK_FALSE(s.over());
        co_await zk.set_servers(first_server());
        co_await zk.connected();
        CHECK_FALSE(s.over());
        co_await s.get("/");
    };
    with_client(body);
}

TEST_CASE("refused and unresolvable hosts: an error with the reason, in time") {
    const std::string nobody = "127.0.0.1:" + std::to_string(free_port());
    auto refused = [&](client zk) -> asio::awaitable<void> {
        const std::string text = co_await message_of(zk.get("/"));
        CHECK(text == "get /: not connected (" + nobody + ": Connection refused)");
        const std::error_code c = co_await code_of(zk.create("/x"));
        CHECK(c == errc::not_connected);
    };
    with_client(options(nobody).connection_timeout(150ms), refused);

    auto unknown_host = [](client zk) -> asio::awaitable<void> {
        const std::string text = co_await message_of(zk.connected());
        CHECK(text.starts_with("connect no-such-host.invalid: not connected (no-such-host.invalid: "));
    };
    with_client(options("no-such-host.invalid").connection_timeout(150ms), unknown_host);
    // One name without an address does no harm.
    auto other = [](client zk) -> asio::awaitable<void> { co_await zk.get("/"); };
    with_client(options("no-such-host.invalid," + first_server()), other);
    const std::string port = first_server().substr(first_server().rfind(':'));
    with_client(options("localhost" + port), other);
}

TEST_CASE("locks under cuts: one holder at a time, tokens rise, nobody waits for ever, nothing is left") {
    fault_proxy proxy(first_server());
    test_loop loop(200s);
    const test_client a(loop.executor(), options(proxy.address()).retry(retry_policy::forever()));
    const test_client b(loop.executor(), options(proxy.address()).retry(retry_policy::forever()));
    const test_client observer(loop.executor(), options());
    int holders = 0, acquired = 0;
    fencing_token last(0);
    auto task = [&](const mutex& lock, unsigned seed) -> asio::awaitable<void> {
        std::minstd_rand random(seed);
        for (int i = 0; i < 25; ++i) {
            lock_guard guard = co_await lock.acquire();
            CHECK(++holders == 1);
            CHECK(guard.token() > last);
            last = guard.token();
            if (++acquired % 5 == 0) proxy.cut_all(acquired % 2 ? fault_proxy::end::rst : fault_proxy::end::fin);
            asio::steady_timer turn(co_await asio::this_coro::executor, std::chrono::microseconds(random() % 2000));
            co_await turn.async_wait(asio::use_awaitable);
            --holders;
            if (random() % 2) co_await guard.release();
        }
    };
    auto body = [&]() -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(observer, "mutex-cuts");
        const mutex on_a(a, dir), on_b(b, dir);
        std::vector<running> tasks;
        for (unsigned i = 0; i < 10; ++i)
            tasks.emplace_back(co_await asio::this_coro::executor, task(i % 2 ? on_a : on_b, i));
        for (const running& t : tasks) {
            const std::exception_ptr e = co_await t.end();
            if (e) std::rethrow_exception(e);
        }
        CHECK(acquired == 250);
        auto empty = [&]() -> asio::awaitable<bool> {
            const node_children left = co_await observer.children(dir);
            co_return left.names.empty() && a.inside().watches() == 0 && b.inside().watches() == 0;
        };
        co_await eventually(empty);
        co_await a.close();
        co_await b.close();
        co_await observer.close();
    };
    loop.run(body());
}
