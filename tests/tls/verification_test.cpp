// Whom a client takes for its server, and what it says when it does not.

#include "support/test_client.hpp"
#include "tls/certificates.hpp"
#include "tls/refusal.hpp"
#include "tls/tls_terminator.hpp"

#include <zkasio/tls/tls_options.hpp>

#include <openssl/ssl.h>

using namespace zkasio;
using namespace zkasio::test;

namespace {

const certificate_authority& trusted() {
    static const certificate_authority one("trusted");
    return one;
}

const certificate_authority::issued& for_localhost() {
    static const certificate_authority::issued one = trusted().issue("server", "DNS:localhost,IP:127.0.0.1");
    return one;
}

tls_files trusting() { return tls_files().ca(trusted().file()); }

client_options impatient(const std::string& servers) {
    return options(servers).connection_timeout(700ms);
}

// Why an operation fails; empty when it does not.
std::string refusal(const client_options& o) {
    std::string text;
    auto body = [&](client zk) -> asio::awaitable<void> { text = co_await refusal_of(zk); };
    with_client(o, body);
    return text;
}

std::string not_connected(const std::string& why) { return "get /: not connected (" + why + ")"; }

}  // namespace

TEST_CASE("a server whose certificate is for its name, or for its address") {
    const tls_terminator server(for_localhost(), first_server());
    CHECK(refusal(impatient(server.address()).tls(trusting())) == "");
    CHECK(refusal(impatient(server.address("127.0.0.1")).tls(trusting())) == "");
    CHECK(server.names() == std::vector<std::string>{"localhost", ""});
}

TEST_CASE("a server whose certificate is for another name") {
    const std::string here = "127.0.0.1:", mismatch = "TLS: certificate verify failed: hostname mismatch";
    SECTION("another name") {
        const tls_terminator server(trusted().issue("localhost", "DNS:elsewhere.example"), first_server());
        const std::string at = server.address("127.0.0.1");
        CHECK(refusal(impatient(server.address()).tls(trusting())) ==
              not_connected(at + " (localhost): " + mismatch + " (it is not for localhost)"));
        CHECK(server.received() == 0);
    }
    SECTION("no name but the subject's") {
        const tls_terminator server(trusted().issue("localhost", ""), first_server());
        CHECK(refusal(impatient(server.address()).tls(trusting())).find(mismatch) != std::string::npos);
    }
    SECTION("the address is not among its addresses") {
        const tls_terminator server(trusted().issue("127.0.0.1", "DNS:localhost,DNS:127.0.0.1"), first_server());
        const std::string at = server.address("127.0.0.1");
        CHECK(refusal(impatient(at).tls(trusting())) ==
              not_connected(at + ": TLS: certificate verify failed: IP address mismatch (it is not for 127.0.0.1)"));
        CHECK(server.received() == 0);
    }
    SECTION("of which the user says that it is meant") {
        const tls_terminator server(trusted().issue("x", "DNS:zk.example"), first_server());
        const tls_options o = tls_options(trusting()).server_name("zk.example.");
        CHECK(refusal(impatient(server.address("127.0.0.1")).tls(o)) == "");
        CHECK(server.names() == std::vector<std::string>{"zk.example"});
        // To OpenSSL that would be any name that ends so.
        const tls_options any = tls_options(trusting()).server_name(".example");
        CHECK(refusal(impatient(server.address("127.0.0.1")).tls(any)).find("TLS: not a name") != std::string::npos);
    }
}

TEST_CASE("a server whose certificate is signed by somebody else, or is no longer valid") {
    const std::string failed = "TLS: certificate verify failed: ";
    SECTION("somebody else") {
        const certificate_authority other("other");
        const tls_terminator server(other.issue("server", "DNS:localhost"), first_server());
        const std::string at = server.address("127.0.0.1");
        CHECK(refusal(impatient(server.address()).tls(trusting())) ==
              not_connected(at + " (localhost): " + failed + "unable to get local issuer certificate"));
        CHECK(server.received() == 0);
        const std::string of_the_systems = refusal(impatient(server.address()).tls(tls_files()));
        CAPTURE(of_the_systems);
        CHECK(of_the_systems.find(failed) != std::string::npos);
        const tls_options nobody = tls_options(trusting()).verification(tls_verification::none);
        CHECK(refusal(impatient(server.address()).tls(nobody)) == "");
    }
    SECTION("expired") {
        const tls_terminator server(trusted().issue("server", "DNS:localhost", -60s), first_server());
        const std::string at = server.address("127.0.0.1");
        CHECK(refusal(impatient(server.address()).tls(trusting())) ==
              not_connected(at + " (localhost): " + failed + "certificate has expired"));
        CHECK(server.received() == 0);
    }
    const auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_client);
    SECTION("a context that does not say that anything is to be verified") {
        const certificate_authority other("other");
        const tls_terminator server(other.issue("server", "DNS:localhost"), first_server());
        CHECK(refusal(impatient(server.address()).tls(context)).find(failed) != std::string::npos);
    }
    SECTION("a context whose callback finds everything good") {
        context->load_verify_file(trusted().file());
        context->set_verify_callback([](bool, asio::ssl::verify_context&) { return true; });
        const tls_terminator server(trusted().issue("server", "DNS:elsewhere.example"), first_server());
        const std::string at = server.address("127.0.0.1");
        CHECK(refusal(impatient(server.address()).tls(context)) ==
              not_connected(at + " (localhost): " + failed + "hostname mismatch (it is not for localhost)"));
        CHECK(server.received() == 0);
        const tls_options nobody = tls_options(context).verification(tls_verification::none);
        CHECK(refusal(impatient(server.address()).tls(nobody)) == "");
    }
    SECTION("a context with ciphers for which a server needs no certificate") {
        const auto anonymous = [](asio::ssl::context& c) {
            ::SSL_CTX_set_max_proto_version(c.native_handle(), TLS1_2_VERSION);
            ::SSL_CTX_set_cipher_list(c.native_handle(), "aNULL:@SECLEVEL=0");
        };
        anonymous(*context);
        const tls_terminator server(for_localhost(), first_server(), anonymous);
        const std::string why = refusal(impatient(server.address()).tls(context));
        CAPTURE(why);
        CHECK(why.find("TLS: the server has shown no certificate") != std::string::npos);
        CHECK(server.received() == 0);
    }
}

TEST_CASE("a server that wants another client's certificate, or any, is understood whichever alert it sends") {
    const int version = GENERATE(TLS1_2_VERSION, TLS1_3_VERSION);
    CAPTURE(version);
    const certificate_authority clients("clients");
    const tls_terminator server(for_localhost(), first_server(), [&](asio::ssl::context& c) {
        ::SSL_CTX_set_min_proto_version(c.native_handle(), version);
        ::SSL_CTX_set_max_proto_version(c.native_handle(), version);
        c.set_verify_mode(asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert);
        c.load_verify_file(clients.file());
    });
    const auto refusal_with = [&](const tls_files& files) {
        return refusal(impatient(server.address()).tls(files));
    };
    const auto with = [&](const certificate_authority::issued& key) {
        return trusting().certificate(key.chain, key.key);
    };
    const std::string advice = "(this client has shown no certificate: if the server wants one, give it with "
                               "tls_files::certificate())";
    const std::string refused = "(the server refuses this client's certificate)";
    SECTION("no certificate") {
        const std::string why = refusal_with(trusting());
        CAPTURE(why);
        CHECK(has(why, advice));
    }
    SECTION("a certificate of another authority") {
        const std::string why = refusal_with(with(trusted().issue("client", "")));
        CAPTURE(why);
        CHECK(has(why, refused));
    }
    SECTION("a certificate that is no longer valid") {
        const std::string why = refusal_with(with(clients.issue("client", "", -1h)));
        CAPTURE(why);
        CHECK(has(why, refused));
    }
    SECTION("a certificate that the server accepts") { CHECK(refusal_with(with(clients.issue("client", ""))) == ""); }
}

TEST_CASE("a handshake that fails for want of a common cipher has nothing to do with the client's certificate") {
    const tls_terminator server(for_localhost(), first_server(), [](asio::ssl::context& c) {
        ::SSL_CTX_set_max_proto_version(c.native_handle(), TLS1_2_VERSION);
        ::SSL_CTX_set_cipher_list(c.native_handle(), "ECDHE-RSA-AES128-GCM-SHA256");
    });
    const auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_client);
    context->load_verify_file(trusted().file());
    ::SSL_CTX_set_max_proto_version(context->native_handle(), TLS1_2_VERSION);
    ::SSL_CTX_set_cipher_list(context->native_handle(), "ECDHE-RSA-AES256-GCM-SHA384");
    const std::string why = refusal(impatient(server.address()).tls(context));
    CAPTURE(why);
    CHECK(has(why, "handshake failure"));
    CHECK_FALSE(has(why, "certificate"));
}

TEST_CASE("a server that speaks another version of TLS, or none") {
    SECTION("too old") {
        const tls_terminator server(for_localhost(), first_server(), [](asio::ssl::context& c) {
            ::SSL_CTX_set_min_proto_version(c.native_handle(), TLS1_1_VERSION);
            ::SSL_CTX_set_max_proto_version(c.native_handle(), TLS1_1_VERSION);
            ::SSL_CTX_set_cipher_list(c.native_handle(), "ALL:@SECLEVEL=0");
        });
        const std::string why = refusal(impatient(server.address()).tls(trusting()));
        CAPTURE(why);
        CHECK(why.find(" (localhost): TLS: ") != std::string::npos);
        CHECK(why.find("protocol version") != std::string::npos);
    }
    SECTION("none") {
        const std::string at = first_server();
        const std::string why = refusal(impatient(at).tls(trusting()));
        CHECK(why == not_connected(at + ": hung up during the TLS handshake (not serving, or it does not speak TLS "
                                        "here)"));
    }
    SECTION("the client speaks none") {
        const tls_terminator server(for_localhost(), first_server());
        const std::string why = refusal(impatient(server.address("127.0.0.1")));
        CAPTURE(why);
        CHECK(why.find("expects TLS") != std::string::npos);
    }
}
