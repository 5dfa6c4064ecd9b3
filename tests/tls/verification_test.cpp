// Whom a client takes for its server, and what it says when it does not.

#include "support/fault_proxy.hpp"
#include "support/test_client.hpp"
#include "tls/certificates.hpp"
#include "tls/tls_terminator.hpp"

#include <zkasio/tls/tls_options.hpp>

#include <openssl/ssl.h>

#include <fstream>
#include <stdexcept>

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
    return options(servers).session_timeout(3s).connection_timeout(700ms);
}

// Why an operation fails; empty when it does not.
std::string refusal(const client_options& o) {
    std::string text;
    auto body = [&](client zk) -> asio::awaitable<void> { text = co_await message_of(zk.get("/")); };
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
    SECTION("a context that does not say that anything is to be verified") {
        const certificate_authority other("other");
        const tls_terminator server(other.issue("server", "DNS:localhost"), first_server());
        const auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_client);
        CHECK(refusal(impatient(server.address()).tls(context)).find(failed) != std::string::npos);
    }
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

TEST_CASE("each connection is made with the certificates of that moment") {
    const certificate_authority other("other");
    const tls_terminator server(for_localhost(), first_server());
    SECTION("of files") {
        const temporary_directory files;
        const auto put = [&](const certificate_authority& from) {
            std::ofstream(files / "new.pem") << std::ifstream(from.file()).rdbuf();
            ::rename((files / "new.pem").c_str(), (files / "ca.pem").c_str());
        };
        put(other);
        auto body = [&](client zk) -> asio::awaitable<void> {
            const std::string before = co_await message_of(zk.get("/"));
            CHECK(before.find("certificate verify failed") != std::string::npos);
            put(trusted());
            co_await zk.connected();
        };
        const tls_options o = tls_files().ca(files / "ca.pem");
        with_client(options(server.address()).session_timeout(3s).connection_timeout(700ms).tls(o), body);
    }
    SECTION("of a function") {
        int calls = 0;
        const auto source = [&]() -> tls_options::context_ptr {
            switch (++calls) {
                case 1: throw std::runtime_error("no certificates today");
                case 2: return nullptr;
                case 3: return make_tls_context(tls_files().ca(other.file()));
                default: return make_tls_context(trusting());
            }
        };
        std::vector<std::string> lines;
        auto body = [&](client zk) -> asio::awaitable<void> { co_await zk.connected(); };
        const client_options o = options(server.address()).tls(tls_options(source));
        const auto log = [&](std::string_view l) { lines.emplace_back(l); };
        with_client(client_options(o).log(log, log_level::warning), body);
        CHECK(calls == 4);
        REQUIRE(lines.size() == 3);
        CHECK(lines[0].ends_with("no certificates today"));
        CHECK(lines[1].ends_with("TLS: the function that makes a context has made none"));
        CHECK(lines[2].ends_with("unable to get local issuer certificate"));
    }
}

TEST_CASE("files that cannot be used are told at once, by name") {
    const auto message = [](const tls_files& files) {
        try {
            const tls_options o(files);
        } catch (const error& e) {
            CHECK(e.code() == errc::invalid_argument);
            return std::string(e.what());
        }
        return std::string();
    };
    CHECK(message(tls_files().ca("/nowhere/ca.pem")).find("/nowhere/ca.pem") != std::string::npos);
    CHECK(message(trusting().certificate("/nowhere/c.pem", for_localhost().key)).find("c.pem") != std::string::npos);
    const std::string another = trusted().issue("another", "").key;
    CHECK(message(trusting().certificate(for_localhost().chain, another)).find(another) != std::string::npos);
    CHECK_THROWS_AS(tls_options(tls_options::context_ptr()), error);
    CHECK_THROWS_AS(tls_options(tls_options::context_source()), error);
}
