// A client's session through TLS, with a real server.

#include "support/test_client.hpp"
#include "tls/refusal.hpp"
#include "tls/tls_server.hpp"

#include <zkasio/tls/tls_options.hpp>

#include <string>

using namespace zkasio;
using namespace zkasio::test;

namespace {

asio::awaitable<void> until_session(session_events events, session_state wanted) {
    for (;;) {
        const session_event e = co_await events.next();
        if (e.state == wanted) co_return;
    }
}

}  // namespace

TEST_CASE("a client whose certificate is accepted reads, writes, watches and closes its session") {
    const tls_server server;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "tls");
        co_await zk.create(dir + "/a", "one");
        const node_data read = co_await zk.get(dir + "/a");
        CHECK(read.data == "one");
        create_options ephemeral;
        ephemeral.mode(create_mode::ephemeral);
        co_await zk.create(dir + "/e", "", ephemeral);
        const close_result how = co_await zk.close();
        CHECK(how == close_result::confirmed);
        CHECK(server.process().ask("dump").find(dir + "/e") == std::string::npos);  // the session is over now
    };
    with_client(options(server.address()).close_timeout(10s).tls(server.files()), body);
}

TEST_CASE("a session through TLS is expired by another client that connects as its own does") {
    const tls_server server;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session before = co_await zk.current_session();
        session_events events = zk.events();
        co_await expire_session(zk);
        co_await until_session(events, session_state::expired);
        const session after = co_await zk.current_session();
        CHECK(after.id() != before.id());
    };
    with_client(options(server.address()).tls(server.files()), body);
}

TEST_CASE("a client's certificate is who it is, in ACLs of the scheme x509") {
    const tls_server server;
    test_loop loop;
    const client_options everybody = options(server.address());
    const test_client alice(loop.executor(), client_options(everybody).tls(server.files("alice")));
    const test_client bob(loop.executor(), client_options(everybody).tls(server.files("bob")));
    auto body = [&]() -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(alice, "x509");
        create_options hers;
        hers.acl(acl{acl_entry(permission::all, acl_id("x509", "CN=alice"))});
        co_await alice.create(dir + "/hers", "secret", hers);
        const node_data read = co_await alice.get(dir + "/hers");
        CHECK(read.data == "secret");
        const std::error_code refused = co_await code_of(bob.get(dir + "/hers"));
        CHECK(refused == zk_errc::no_auth);
        co_await alice.remove(dir + "/hers");
        co_await alice.close();
        co_await bob.close();
    };
    loop.run(body());
}

TEST_CASE("a shared certificate: creator_all_acl() grants to it, with a warning, creator_digest_acl() does not") {
    const tls_server server;
    test_loop loop;
    int warnings = 0;
    const auto tenant = [&](const std::string& password) {
        const auto count = [&](const log_record& r) { warnings += has(r.text(), "creator_digest_acl(user, password)"); };
        return options(server.address()).tls(server.files("tenants")).auth("digest", password).log(count);
    };
    const test_client acme(loop.executor(), tenant("acme:secret").default_acl(open_acl()));
    const test_client mallory(loop.executor(), tenant("acme:wrong").default_acl(open_acl()));
    auto body = [&]() -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(acme, "tenants");
        create_options all, exact;
        all.acl(creator_all_acl());
        exact.acl(creator_digest_acl("acme", "secret"));
        co_await acme.create(dir + "/exact", "acme's", exact);
        co_await acme.set(dir + "/exact", "acme's, again");
        co_await acme.get(dir);  // what was logged is told by now
        CHECK(warnings == 0);
        const std::error_code refused = co_await code_of(mallory.set(dir + "/exact", "mallory's"));
        CHECK(refused == zk_errc::no_auth);

        co_await acme.create(dir + "/all", "acme's", all);
        co_await acme.set_acl(dir + "/all", creator_all_acl());
        co_await acme.get(dir);
        CHECK(warnings == 1);
        const std::error_code granted = co_await code_of(mallory.set(dir + "/all", "mallory's"));
        CHECK(granted == std::error_code());  // as the warning says
        co_await acme.remove_recursive(dir);
        co_await acme.close();
        co_await mallory.close();
    };
    loop.run(body());
}

TEST_CASE("a client without a certificate, where servers want one, is told so") {
    const std::string tls13 =
        "ssl.protocol=TLSv1.3\nssl.enabledProtocols=TLSv1.3,TLSv1.2\n"
        "ssl.ciphersuites=TLS_AES_256_GCM_SHA384,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256";
    const bool newer = GENERATE(false, true);
    const tls_server server(newer ? tls13 : "");
    CAPTURE(newer);
    auto without = [&](client zk) -> asio::awaitable<void> {
        const std::string why = co_await refusal_of(zk);
        CAPTURE(why);
        CHECK(has(why, "this client has shown no certificate: if the server wants one, give it with "
                       "tls_files::certificate()"));
    };
    const tls_files nobody = tls_files().ca(server.authority().file());
    with_client(options(server.address()).connection_timeout(1500ms).tls(nobody), without);
    auto with_one = [&](client zk) -> asio::awaitable<void> { co_await zk.get("/"); };
    with_client(options(server.address()).tls(server.files()), with_one);
}

TEST_CASE("through TLS to a port without, and without to a port with TLS: what is wrong is told") {
    const tls_server server;
    const std::string clear = server.address_in_the_clear();
    auto not_tls = [&](client zk) -> asio::awaitable<void> {
        const std::string why = co_await refusal_of(zk);
        CHECK(why == "get /: not connected (" + clear +
                         ": hung up during the TLS handshake (not serving, or it does not speak TLS here))");
    };
    with_client(options(clear).connection_timeout(1s).tls(server.files()), not_tls);
    auto is_tls = [&](client zk) -> asio::awaitable<void> {
        const std::string why = co_await refusal_of(zk);
        CAPTURE(why);
        CHECK(why.find("expects TLS") != std::string::npos);
    };
    with_client(options(server.endpoint()).connection_timeout(1s), is_tls);
}

TEST_CASE("a server that speaks TLS is killed and started again: the session goes on") {
    tls_server server(long_sessions);
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "restart");
        create_options ephemeral;
        ephemeral.mode(create_mode::ephemeral);
        co_await zk.create(dir + "/e", "", ephemeral);
        const session before = co_await zk.current_session();
        session_events events = zk.events();
        server.process().kill();
        co_await until_session(events, session_state::suspended);
        server.process().start();  // blocks this loop for as long as that takes
        co_await zk.connected();
        const session after = co_await zk.current_session();
        CHECK(after.id() == before.id());
        const auto there = co_await zk.exists(dir + "/e");
        CHECK(there);
    };
    with_client(options(server.address()).session_timeout(60s).tls(server.files()), body);
}

TEST_CASE("the largest nodes pass in both directions, many at a time, in order") {
    const tls_server server;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "large");
        const std::size_t largest = (1 << 20) - 2048;
        for (int i = 0; i < 4; ++i) {
            const std::string name = dir + "/" + std::to_string(i);
            std::string data(largest, static_cast<char>('a' + i));
            co_await zk.create(name, std::move(data));
        }
        int wrong = 0, done = 0;
        auto read = [&](int i) -> asio::awaitable<void> {
            const node_data d = co_await zk.get(dir + "/" + std::to_string(i));
            if (d.data != std::string(largest, static_cast<char>('a' + i))) ++wrong;
            co_await zk.set(dir + "/" + std::to_string(i), d.data);
            ++done;
        };
        std::vector<std::unique_ptr<running>> all;
        const auto executor = co_await asio::this_coro::executor;
        for (int i = 0; i < 16; ++i) all.push_back(std::make_unique<running>(executor, read(i % 4)));
        for (const auto& one : all) {
            const std::error_code code = co_await one->code();
            CHECK_FALSE(code);
        }
        CHECK(wrong == 0);
        CHECK(done == 16);
    };
    with_client(options(server.address()).tls(server.files()), body);
}

TEST_CASE("many gets and watches at a time, each is answered with what it asked for") {
    const tls_server server;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "many");
        for (int i = 0; i < 50; ++i) {
            const std::string n = std::to_string(i);
            co_await zk.create(dir + "/" + n, n);
        }
        int right = 0;
        auto reader = [&](int first) -> asio::awaitable<void> {
            for (int i = first; i < first + 250; ++i) {
                const std::string n = std::to_string(i % 50);
                const node_data d = co_await zk.get(dir + "/" + n);
                if (d.data == n) ++right;
            }
        };
        std::vector<std::unique_ptr<running>> all;
        const auto executor = co_await asio::this_coro::executor;
        for (int i = 0; i < 64; ++i) all.push_back(std::make_unique<running>(executor, reader(i)));
        for (const auto& one : all) {
            const std::error_code code = co_await one->code();
            CHECK_FALSE(code);
        }
        CHECK(right == 64 * 250);
    };
    with_client(options(server.address()).tls(server.files()), body);
}
