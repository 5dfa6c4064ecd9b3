// Kerberos, with a KDC of the test's own, and a real ZooKeeper.

#include "support/test_client.hpp"
#include "support/texts.hpp"
#include "tls/kerberos_realm.hpp"
#include "tls/recorded_tokens.hpp"
#include "tls/sasl_server.hpp"

#include <zkasio/client_stats.hpp>
#include <zkasio/error.hpp>
#include <zkasio/kerberos/detail/gss_context.hpp>
#include <zkasio/kerberos/kerberos.hpp>
#include <zkasio/locks/lock_guard.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/session.hpp>

#include <asio/thread_pool.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;

namespace {

struct kerberos_site {
    kerberos_realm realm;
    sasl_setup setup{"com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab=\"" + realm.keytab() +
                         "\" storeKey=true useTicketCache=false principal=\"zookeeper/localhost@ZKASIO.TEST\";",
                     "-Djava.security.krb5.conf=" + realm.config()};
    test_server server{1, setup.options().line("sessionRequireClientSASLAuth=true")};
    asio::thread_pool threads{2};

    client_options options(kerberos_options how = {}) {
        const std::string port = server.connect_string().substr(server.connect_string().rfind(':'));
        return test::options("localhost" + port).sasl(kerberos(threads.get_executor(), std::move(how)));
    }
};

// With pauses between the attempts, which have become longer.
asio::awaitable<void> until_connected(client zk) {
    auto reads = [&]() -> asio::awaitable<bool> {
        const std::error_code code = co_await code_of(zk.get("/"));
        co_return !code;
    };
    co_await eventually(reads);
}

bool has_no_kerberos() {
    const std::string why = kerberos_realm::impossible();
    if (!why.empty()) WARN("SKIPPED: " << why);
    return !why.empty();
}

}  // namespace

TEST_CASE("kerberos: a user with a ticket logs in, keeps a lock over reconnects, and is who the servers say") {
    if (has_no_kerberos()) return;
    kerberos_site s;
    s.realm.log_in();
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "kerberos");
        const std::vector<acl_id> me = co_await zk.who_am_i();
        CHECK(std::find(me.begin(), me.end(), sasl_user("alice@ZKASIO.TEST")) != me.end());
        const session before = co_await zk.current_session();
        lock_guard g = co_await mutex(zk, dir + "/lock").acquire();
        co_await s.server.async_restart();
        co_await zk.exists(dir);
        CHECK(g.held());
        const session after = co_await zk.current_session();
        CHECK(after.id() == before.id());
        co_await g.release();
    };
    client_options o = s.options().default_acl(acl_of(acl_entry(permission::all, sasl_user("alice@ZKASIO.TEST"))));
    with_client_for(100s, o.session_timeout(paced(20s)).retry(retry_policy::forever()), body);
}

TEST_CASE("kerberos: of a login that succeeds, no token is logged, at any level") {
    if (has_no_kerberos()) return;
    kerberos_site s;
    s.realm.log_in();
    std::string logged;
    client_options o = s.options();
    const auto recorded = std::make_shared<const recorded_tokens>(o.sasl());
    o.sasl(recorded).log([&](const log_record& r) { logged += std::string(r.text()) + '\n'; }, log_level::debug);
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.get("/");
        co_await zk.close();
    };
    with_client(std::move(o), body);
    CHECK_FALSE(logged.empty());
    CHECK(recorded->all().size() >= 3);
    CHECK(recorded->found_in(logged) == "");
    CHECK(recorded->found_in("x" + recorded->all().front() + "y") != "");
}

TEST_CASE("kerberos: the servers' principal is what the options say") {
    if (has_no_kerberos()) return;
    kerberos_site s;
    s.realm.log_in();
    auto works = [&](client zk) -> asio::awaitable<void> { co_await zk.get("/"); };
    const std::string port = s.server.connect_string().substr(s.server.connect_string().rfind(':'));
    with_client(s.options(kerberos_options().host("localhost")).servers("127.0.0.1" + port), works);
    std::string asked;
    const auto host = [&](const sasl_server& of) {
        asked = of.host();
        return std::string("localhost@ZKASIO.TEST");
    };
    with_client(s.options(kerberos_options().host(host)).servers("127.0.0.1" + port), works);
    CHECK(asked == "127.0.0.1");
    auto unknown = [&](client zk) -> asio::awaitable<void> {
        const std::string why = co_await message_of(zk.get("/"));
        CAPTURE(why);
        CHECK(has(why, "SASL: Kerberos: "));
        CHECK(has(why, "hdfs/localhost@ZKASIO.TEST"));
        CHECK(zk.state() == session_state::connecting);
    };
    with_client(s.options(kerberos_options().service("hdfs")).connection_timeout(1s).log(nullptr), unknown);
}

TEST_CASE("kerberos: without a ticket, and with one that has expired, the reason is told, and a new ticket is enough") {
    if (has_no_kerberos()) return;
    kerberos_site s;
    for (const bool had_one : {false, true}) {
        CAPTURE(had_one);
        s.realm.log_out();
        if (had_one) {
            s.realm.log_in("-l 1s");
            std::this_thread::sleep_for(2s);
        }
        auto body = [&](client zk) -> asio::awaitable<void> {
            const std::string why = co_await message_of(zk.get("/"));
            CAPTURE(why);
            CHECK(has(why, "SASL: Kerberos: "));
            CHECK(has(why, had_one ? "expired" : "No Kerberos credentials available"));
            s.realm.log_in();
            co_await until_connected(zk);
        };
        with_client(s.options().connection_timeout(1s).log(nullptr), body);
    }
}

TEST_CASE("kerberos: a KDC that does not answer costs no session, and stops no client from closing") {
    if (has_no_kerberos()) return;
    kerberos_site s;
    s.realm.log_in();
    s.realm.pause_kdc();
    auto body = [&](client zk) -> asio::awaitable<void> {
        const auto begin = std::chrono::steady_clock::now();
        const std::string why = co_await message_of(zk.get("/"));
        CAPTURE(why);
        CHECK(has(why, "SASL: the mechanism "));
        CHECK(std::chrono::steady_clock::now() - begin < paced(5s));
        s.realm.resume_kdc();
        co_await until_connected(zk);
    };
    with_client(s.options().connection_timeout(1s).log(nullptr), body);
}

TEST_CASE("kerberos: what makes no sense is refused") {
    asio::thread_pool threads(1);
    CHECK_THROWS_AS(kerberos(asio::any_io_executor()), error);
    CHECK_THROWS_AS(kerberos(threads.get_executor(), kerberos_options().service("")), error);
    CHECK(detail::chosen_layer(std::string("\x01\0\0\0", 4)) == std::string("\x01\0\0\0", 4));
    CHECK(detail::chosen_layer(std::string("\x07\0\xff\xff", 4)) == std::string("\x01\0\0\0", 4));
    CHECK_THROWS_WITH(detail::chosen_layer(std::string("\x06\0\xff\xff", 4)),
                      "Kerberos: the server demands more than authentication (qop)");
    for (const char* offer : {"", "\x01", "\x01\x01\x01", "\x01\x01\x01\x01\x01"})
        CHECK_THROWS_WITH(detail::chosen_layer(offer), "Kerberos: the server's offer of layers is malformed");
}
