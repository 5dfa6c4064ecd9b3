// DIGEST-MD5 with real servers, whose JAAS configuration names alice and bob.

#include "support/fault_proxy.hpp"
#include "support/test_client.hpp"
#include "support/texts.hpp"
#include "tls/recorded_tokens.hpp"
#include "tls/sasl_server.hpp"
#include "tls/tls_server.hpp"

#include <zkasio/client_stats.hpp>
#include <zkasio/locks/lock_guard.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/sasl/digest_md5.hpp>
#include <zkasio/session.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;

namespace {

client_options as(const std::string& user, const std::string& password, const std::string& server) {
    return options(server).sasl(digest_md5(user, password)).default_acl(open_acl());
}
client_options as_alice(const std::string& server) { return as("alice", "wonder", server); }

acl only_for(const std::string& user) { return acl_of(acl_entry(permission::all, sasl_user(user))); }

}  // namespace

TEST_CASE("sasl: a user logs in where that is demanded, and is who the servers say") {
    const zookeeper_with_sasl server(GENERATE(sasl_demand::of_sessions, sasl_demand::enforced));
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "sasl");
        co_await zk.create(dir + "/a", "one");
        const std::vector<acl_id> me = co_await zk.who_am_i();
        CHECK(std::find(me.begin(), me.end(), sasl_user("alice")) != me.end());
        const close_result how = co_await zk.close();
        CHECK(how == close_result::confirmed);
    };
    with_client(as_alice(server.address()).close_timeout(10s), body);
    auto refused = [&](client zk) -> asio::awaitable<void> {
        const std::error_code code = co_await code_of(zk.create("/without", ""));
        CHECK(code);
    };
    with_client(options(server.address()).connection_timeout(2s).session_timeout(2s), refused);
}

TEST_CASE("sasl: a wrong password, and a user that does not exist, are final, and no secret is told") {
    const zookeeper_with_sasl server(sasl_demand::both);
    for (const char* user : {"alice", "nobody"}) {
        CAPTURE(user);
        std::string logged, text;
        client_options o = as(user, "c0ffee", server.address());
        o.log([&](const log_record& r) { logged += std::string(r.text()) + '\n'; }, log_level::debug);
        auto body = [&](client zk) -> asio::awaitable<void> {
            std::error_code code;
            try {
                co_await zk.get("/");
            } catch (const error& e) {
                code = e.code();
                text = e.what();
            }
            CHECK(code == zk_errc::auth_failed);
            CHECK(zk.state() == session_state::auth_failed);
        };
        with_client(std::move(o), body);
        CHECK(has(logged, "all servers have refused the login: "));
        for (const char* secret : {"c0ffee", "nonce", "rspauth", "response="}) CHECK_FALSE(has(text + logged, secret));
    }
}

TEST_CASE("sasl: of a login that succeeds, no token is logged, at any level") {
    const zookeeper_with_sasl server(sasl_demand::both);
    std::string logged;
    const auto recorded = std::make_shared<const recorded_tokens>(digest_md5("alice", "wonder"));
    client_options o = options(server.address()).sasl(recorded);
    o.log([&](const log_record& r) { logged += std::string(r.text()) + '\n'; }, log_level::debug);
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.get("/");
        co_await zk.close();
    };
    with_client(std::move(o), body);
    CHECK_FALSE(logged.empty());
    CHECK(recorded->all().size() >= 3);  // a challenge, the answer to it, and the server's proof
    CHECK(recorded->found_in(logged) == "");
    CHECK_FALSE(has(logged, "wonder"));
    CHECK(recorded->found_in("x" + recorded->all().front() + "y") != "");
}

TEST_CASE("sasl: a node whose ACL names a user is that user's only") {
    const zookeeper_with_sasl server(sasl_demand::both);
    test_loop loop;
    const test_client alice(loop.executor(), as_alice(server.address()).default_acl(only_for("alice")));
    const test_client bob(loop.executor(), as("bob", "builder", server.address()));
    auto body = [&]() -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(bob, "sasl-acl");
        co_await alice.create(dir + "/hers", "secret");
        const node_data read = co_await alice.get(dir + "/hers");
        CHECK(read.data == "secret");
        const std::error_code refused = co_await code_of(bob.get(dir + "/hers"));
        CHECK(refused == zk_errc::no_auth);
        // The nodes of a lock, too.
        const mutex hers(alice, dir + "/lock");
        lock_guard g = co_await hers.acquire();
        CHECK(g.held());
        const std::error_code kept_out = co_await code_of(mutex(bob, dir + "/lock").acquire());
        CHECK(kept_out == zk_errc::no_auth);
        co_await g.release();
        co_await alice.remove_recursive(dir + "/lock");
        co_await alice.remove(dir + "/hers");
        co_await alice.close();
        co_await bob.close();
    };
    loop.run(body());
}

TEST_CASE("sasl: a lock is kept when connections are cut, and when the server is started again") {
    zookeeper_with_sasl server(sasl_demand::both);
    fault_proxy proxy(server.address());
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "sasl-lock");
        const session before = co_await zk.current_session();
        const mutex m(zk, dir + "/lock");
        lock_guard g = co_await m.acquire();
        for (int i = 0; i < 3; ++i) {
            proxy.cut_all();
            co_await zk.exists(dir);
        }
        co_await server.process().async_restart();
        co_await zk.exists(dir);
        CHECK(g.held());
        CHECK(zk.stats().connections >= 5);
        const session after = co_await zk.current_session();
        CHECK(after.id() == before.id());
        co_await g.release();
    };
    client_options o = as_alice(proxy.address()).session_timeout(paced(20s)).connection_timeout(paced(30s));
    with_client_for(100s, o.retry(retry_policy::forever()), body);
}

TEST_CASE("sasl: a session is handed over, and resumed, with a login each time") {
    const zookeeper_with_sasl server(sasl_demand::both);
    test_loop loop;
    auto body = [&]() -> asio::awaitable<void> {
        const test_client former(loop.executor(), as_alice(server.address()));
        const session before = co_await former.current_session();
        const session_credentials left = co_await former.hand_over();
        const test_client heir(loop.executor(), as_alice(server.address()).resume(left));
        const session after = co_await heir.current_session();
        CHECK(after.id() == before.id());
        const std::vector<acl_id> me = co_await heir.who_am_i();
        CHECK(std::find(me.begin(), me.end(), sasl_user("alice")) != me.end());
        co_await heir.close();
    };
    loop.run(body());
}

TEST_CASE("sasl: a server without it, and servers of which one does not know the user") {
    const zookeeper_with_sasl server(sasl_demand::both);
    const std::string without = first_server();
    const std::string none = "SASL: the server does not offer it (its JAAS configuration has no section Server)";
    auto refused = [&](client zk) -> asio::awaitable<void> {
        const std::string text = co_await message_of(zk.get("/"));
        CHECK(has(text, none));
        CHECK(zk.state() == session_state::auth_failed);
    };
    with_client(as_alice(without).log(nullptr), refused);
    auto goes_on = [&](client zk) -> asio::awaitable<void> {
        co_await zk.get("/");
        CHECK(zk.state() == session_state::connected);
    };
    with_client(as_alice(without + "," + server.address()), goes_on);
}

TEST_CASE("sasl: a login that is cut, in either direction, costs a connection and nothing else") {
    const zookeeper_with_sasl server(sasl_demand::both);
    fault_proxy proxy(server.address());
    proxy.plan_connections([](std::size_t n) {
        fault_proxy::plan p;
        // The request for a session has 49 bytes, its answer 41; then the login.
        if (n < 6) (n % 2 ? p.cut_requests_after : p.cut_replies_after) = 43 + n * 30;
        p.how = n % 3 ? fault_proxy::end::rst : fault_proxy::end::fin;
        return p;
    });
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::error_code code = co_await code_of(zk.exists("/"));
        CHECK_FALSE(code);
        CHECK(proxy.connections() > 6);
        CHECK(zk.state() == session_state::connected);
    };
    with_client(as_alice(proxy.address()).log(nullptr), body);
}

TEST_CASE("sasl: through TLS") {
    const certificate_authority authority("sasl");
    const certificate_authority::issued key = authority.issue("zookeeper", "DNS:localhost,IP:127.0.0.1");
    const sasl_setup setup(sasl_setup::digest(R"(user_alice="wonder")"));
    testing::server_options o = setup.options(testing::server_options().tls(key.both, authority.file()));
    test_server server(1, o.line("sessionRequireClientSASLAuth=true").line("ssl.clientAuth=none"));
    const std::string secure = server.secure_endpoint();
    const tls_files files = tls_files().ca(authority.file());
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "sasl-tls");
        const std::vector<acl_id> me = co_await zk.who_am_i();
        CHECK(std::find(me.begin(), me.end(), sasl_user("alice")) != me.end());
    };
    with_client(as_alice(secure).tls(files), body);
    auto wrong = [&](client zk) -> asio::awaitable<void> {
        const std::error_code code = co_await code_of(zk.get("/"));
        CHECK(code == zk_errc::auth_failed);
    };
    with_client(as("alice", "wrong", secure).tls(files).log(nullptr), wrong);
}
