// Connections through TLS that break, stand still and change their names.

#include "support/fault_proxy.hpp"
#include "support/test_client.hpp"
#include "tls/certificates.hpp"
#include "tls/tls_terminator.hpp"

#include <zkasio/client_stats.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/tls/tls_options.hpp>

#include <asio/post.hpp>

#include <random>
#include <string>
#include <string_view>
#include <thread>

using namespace zkasio;
using namespace zkasio::test;

namespace {

struct proxied_site {
    certificate_authority authority{"connections"};
    tls_terminator terminator{authority.issue("server", "DNS:localhost,IP:127.0.0.1"), first_server()};
    fault_proxy proxy{terminator.address("127.0.0.1")};
    client_options through() const {
        return options(proxy.address()).tls(tls_files().ca(authority.file()));
    }
    std::string named(const std::string& host) const {
        return host + proxy.address().substr(proxy.address().rfind(':'));
    }
};

}  // namespace

TEST_CASE("cuts under load, through TLS: every create that is sure to have happened happened once") {
    proxied_site site;
    site.proxy.plan_connections([](std::size_t n) {
        std::minstd_rand random(static_cast<unsigned>(n));
        fault_proxy::plan p;
        if (n < 25) (n % 2 ? p.cut_requests_after : p.cut_replies_after) = 2500 + random() % 12'000;
        p.how = n % 3 ? fault_proxy::end::rst : fault_proxy::end::fin;
        return p;
    });
    auto body = [&](client zk) -> asio::awaitable<void> {
        const auto executor = co_await asio::this_coro::executor;
        const test_client uncut(executor, options());
        const std::string dir = co_await fresh_directory(uncut, "tls-cuts");
        co_await uncut.close();
        std::size_t made = 0;
        auto writer = [&](char name) -> asio::awaitable<void> {
            create_options how;
            how.mode(create_mode::persistent_sequential).protection();
            for (int i = 0; i < 60 || site.proxy.connections() < 26; ++i) {
                const std::string data(static_cast<std::size_t>(i) * 7 % 900, name);
                const created c = co_await zk.create(dir + "/" + name, data, how);
                const node_data read = co_await zk.get(c.path);
                CHECK(read.data == data);
                ++made;
            }
        };
        std::vector<std::unique_ptr<running>> all;
        for (char name = 'a'; name < 'i'; ++name) all.push_back(std::make_unique<running>(executor, writer(name)));
        for (const auto& one : all) {
            const std::error_code code = co_await one->code();
            CHECK_FALSE(code);
        }
        const node_children there = co_await zk.children(dir);
        CHECK(there.names.size() == made);
        CHECK(zk.stats().connections > 20);
    };
    with_client_for(200s, site.through().session_timeout(paced(20s)).retry(retry_policy::forever()), body);
}

TEST_CASE("through TLS, what has come while the loop stood still for too long counts") {
    const proxied_site site;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        auto read = [&]() -> asio::awaitable<void> { co_await zk.get("/"); };
        const std::uint64_t sent = zk.stats().bytes_sent;
        running reading(co_await asio::this_coro::executor, read());
        const auto executor = co_await asio::this_coro::executor;
        while (zk.stats().bytes_sent == sent) co_await asio::post(executor, asio::use_awaitable);
        std::this_thread::sleep_for(s.timeout() * 3 / 4);  // longer than the C library waits for an answer
        const std::error_code code = co_await reading.code();
        CHECK_FALSE(code);
        CHECK(zk.stats().connections == 1);
    };
    with_client(site.through().session_timeout(paced(4s)), body);
}

TEST_CASE("events that come together, to a client that asks for nothing, are all told, through TLS") {
    const proxied_site site;
    test_loop loop;
    const test_client zk(loop.executor(), site.through().session_timeout(paced(10s)));
    const test_client other(loop.executor(), options());
    auto body = [&]() -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(other, "tls-events");
        constexpr int nodes = 40;
        transaction all;
        for (int i = 0; i < nodes; ++i) {
            const std::string path = dir + "/" + std::to_string(i);
            co_await other.create(path);
            all.set(path, "new");
        }
        // An event that was left in the socket pair would wait for the next heartbeat. One may be due by chance.
        bool told_without_a_heartbeat = false;
        for (int attempt = 0; attempt < 10 && !told_without_a_heartbeat; ++attempt) {
            std::vector<watch> watches;
            for (int i = 0; i < nodes; ++i) {
                auto seen = co_await zk.exists_and_watch(dir + "/" + std::to_string(i));
                watches.push_back(std::move(seen.changes));
            }
            const std::uint64_t sent = zk.stats().bytes_sent;
            co_await other.multi(all);
            for (const watch& w : watches) co_await w.changed();
            told_without_a_heartbeat = zk.stats().bytes_sent == sent;
        }
        CHECK(told_without_a_heartbeat);
        co_await zk.close();
        co_await other.close();
    };
    loop.run(body());
}

TEST_CASE("another name for the same server: the connection stays, and the next one is to that name") {
    proxied_site site;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.get("/");
        co_await zk.set_servers(site.named("localhost"));
        auto resolved = [&]() -> asio::awaitable<bool> {
            co_await zk.get("/");
            site.proxy.cut_all();
            co_await zk.get("/");
            co_return site.terminator.names().back() == "localhost";
        };
        co_await zk.get("/");
        CHECK(zk.stats().connections == 1);
        co_await eventually(resolved);
    };
    with_client(site.through(), body);
    CHECK(site.terminator.names().front() == "");
}

// The client looks at the nearer server through TLS as well before it moves.
TEST_CASE("through TLS, a client moves to a nearer server when that is up, and keeps its session and its locks") {
    proxied_site site;
    fault_proxy far(site.terminator.address("127.0.0.1"));
    site.proxy.refuse(true);
    const std::string far_name = "localhost" + far.address().substr(far.address().rfind(':'));
    const auto rank = [](std::string_view name, std::string_view) { return name == "127.0.0.1" ? 0 : 1; };
    const client_options both = options(site.proxy.address() + ',' + far_name)
                                    .tls(tls_files().ca(site.authority.file()))
                                    .prefer(rank, 200ms);
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "tls-move");
        const session before = co_await zk.current_session();
        const mutex lock(zk, dir);
        const lock_guard guard = co_await lock.acquire();
        CHECK(site.terminator.names().back() == "localhost");
        site.proxy.refuse(false);
        auto moved = [&]() -> asio::awaitable<bool> {
            co_await zk.create_or_set(dir + "-written", "x");
            co_return zk.stats().connections == 2;
        };
        co_await eventually(moved);
        far.refuse(true);
        far.cut_all();
        co_await zk.sync("/");
        CHECK(zk.stats().connections == 2);  // it is not there that the client is connected
        CHECK_FALSE(before.over());
        CHECK(guard.held());
        co_await zk.remove(dir + "-written");
    };
    with_client(both, body);
}
