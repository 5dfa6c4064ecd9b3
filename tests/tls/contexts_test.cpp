// The contexts that connections are made with: of files that change, and of functions that do as they like.

#include "support/temporary_directory.hpp"
#include "support/test_client.hpp"
#include "tls/certificates.hpp"
#include "tls/refusal.hpp"
#include "tls/tls_terminator.hpp"

#include <zkasio/detail/base/owned_descriptor.hpp>
#include <zkasio/tls/detail/tls_channel.hpp>
#include <zkasio/tls/tls_options.hpp>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;

namespace {

struct context_site {
    certificate_authority authority{"contexts"};
    certificate_authority other{"other"};
    tls_terminator server{authority.issue("server", "DNS:localhost,IP:127.0.0.1"), first_server()};
    tls_files trusting() const { return tls_files().ca(authority.file()); }
};

void copy_file(const std::string& from, const std::string& to) {
    std::ofstream(to) << std::ifstream(from).rdbuf();
}

// A file that may be read instead of the terminal, and how much of it was.
class typed_input {
public:
    explicit typed_input(const std::string& file) : before_(::dup(STDIN_FILENO)) {
        std::ofstream(file) << "password\n";
        const detail::owned_descriptor input(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
        ::dup2(input.get(), STDIN_FILENO);
    }
    ~typed_input() { ::dup2(before_.get(), STDIN_FILENO); }
    typed_input(const typed_input&) = delete;
    typed_input& operator=(const typed_input&) = delete;
    bool untouched() const { return ::lseek(STDIN_FILENO, 0, SEEK_CUR) == 0; }

private:
    detail::owned_descriptor before_;
};

}  // namespace

TEST_CASE("each connection is made with the certificates of that moment") {
    const context_site site;
    const tls_terminator& server = site.server;
    SECTION("of files") {
        const temporary_directory files;
        const auto put = [&](const certificate_authority& from) {
            copy_file(from.file(), files / "new.pem");
            ::rename((files / "new.pem").c_str(), (files / "ca.pem").c_str());
        };
        put(site.other);
        auto body = [&](client zk) -> asio::awaitable<void> {
            const std::string before = co_await refusal_of(zk);
            CHECK(before.find("certificate verify failed") != std::string::npos);
            put(site.authority);
            auto connected = [&]() -> asio::awaitable<bool> {  // the pause before an attempt may be longer
                const std::error_code code = co_await code_of(zk.connected());
                co_return !code;
            };
            co_await eventually(connected);
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
                case 3: return make_tls_context(tls_files().ca(site.other.file()));
                default: return make_tls_context(site.trusting());
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

TEST_CASE("files are read again when they may have changed, and only then") {
    const context_site site;
    const temporary_directory files;
    const std::string ca = files / "ca.pem";
    copy_file(site.authority.file(), ca);
    SECTION("one that is written over, by as many bytes, and with the time that it had") {
        detail::context_of_files contexts(tls_files().ca(ca));
        const auto first = contexts.get();
        CHECK(contexts.get() == first);
        struct ::stat before {};
        REQUIRE(::stat(ca.c_str(), &before) == 0);
        auto changed = [&] {  // the file system's clock goes in steps
            copy_file(site.authority.file(), ca);
            const std::array<timespec, 2> times{before.st_atim, before.st_mtim};
            REQUIRE(::utimensat(AT_FDCWD, ca.c_str(), times.data(), 0) == 0);
            struct ::stat now {};
            REQUIRE(::stat(ca.c_str(), &now) == 0);
            return now.st_ctim.tv_sec != before.st_ctim.tv_sec || now.st_ctim.tv_nsec != before.st_ctim.tv_nsec;
        };
        while (!changed()) {
        }
        CHECK(contexts.get() != first);
    }
    SECTION("the system's, which SSL_CERT_FILE names") {
        ::setenv("SSL_CERT_FILE", ca.c_str(), 1);
        detail::context_of_files contexts(tls_files{});
        const auto first = contexts.get();
        CHECK(contexts.get() == first);
        copy_file(site.other.file(), files / "new.pem");
        std::filesystem::rename(files / "new.pem", ca);
        CHECK(contexts.get() != first);
        ::unsetenv("SSL_CERT_FILE");
    }
}

TEST_CASE("whatever a function throws that makes a context is why there is no connection, at once") {
    const context_site site;
    const auto why = [&](const tls_options::context_source& source) {
        std::string text;
        auto body = [&](client zk) -> asio::awaitable<void> { text = co_await refusal_of(zk); };
        with_client(options(site.server.address()).session_timeout(60s).connection_timeout(700ms).tls(source), body);
        CHECK(text.find("not connected (127.0.0.1:") != std::string::npos);
        return text;
    };
    CHECK(why([]() -> tls_options::context_ptr { throw 42; }).find("no std::exception") != std::string::npos);
    CHECK(why([]() -> tls_options::context_ptr { throw std::runtime_error(""); }).find("TLS: ") != std::string::npos);
}

TEST_CASE("a function that makes a context may do with its client whatever it likes") {
    const context_site site;
    const certificate_authority::issued key = site.authority.issue("second", "IP:127.0.0.1");
    const tls_terminator second(key, first_server());
    test_loop loop;
    std::optional<test_client> zk;
    std::function<asio::awaitable<void>()> act;
    int calls = 0;
    const auto source = [&] {
        if (++calls == 1) asio::co_spawn(loop.context(), act(), asio::detached);
        return make_tls_context(site.trusting());
    };
    zk.emplace(loop.executor(), options(site.server.address()).tls(tls_options(source)));
    std::string outcome;
    auto body = [&]() -> asio::awaitable<void> { outcome = co_await message_of(zk->get("/")); };
    SECTION("send it to other servers") {
        // With two of them, the next attempt begins at once.
        const std::string servers = second.address("127.0.0.1") + ",127.0.0.1:" + std::to_string(free_port());
        act = [&]() -> asio::awaitable<void> { co_await zk->set_servers(servers); };
        auto and_close = [&]() -> asio::awaitable<void> {
            co_await body();
            co_await zk->close();
        };
        loop.run(and_close());
        CHECK(outcome == "");
        CHECK(second.names().size() == 1);
        CHECK(site.server.received() == 0);
    }
    SECTION("close it") {
        act = [&]() -> asio::awaitable<void> { co_await zk->close(); };
        loop.run(body());
        CHECK(outcome.find("client closed") != std::string::npos);
        CHECK(calls == 1);
    }
    SECTION("destroy it") {
        act = [&]() -> asio::awaitable<void> {
            zk.reset();
            co_return;
        };
        auto ask = [&](client copy) -> asio::awaitable<void> {
            outcome = co_await message_of(copy.get("/"));
            co_await copy.close();
        };
        loop.run(ask(*zk));
        CHECK(outcome == "");
    }
}

TEST_CASE("files that cannot be used are told at once, by name") {
    const context_site site;
    const certificate_authority::issued key = site.authority.issue("client", "");
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
    CHECK(message(site.trusting().certificate("/nowhere/c.pem", key.key)).find("c.pem") != std::string::npos);
    CHECK(message(site.trusting().certificate(key.both, key.both)) == "");
    CHECK(message(site.trusting().certificate("", key.key)).find(key.key) != std::string::npos);
    CHECK(message(site.trusting().certificate(key.chain, "")).find("no key for") != std::string::npos);
    const std::string another = site.authority.issue("another", "").key;
    CHECK(message(site.trusting().certificate(key.chain, another)).find(another) != std::string::npos);
    CHECK_THROWS_AS(tls_options(tls_options::context_ptr()), error);
    CHECK_THROWS_AS(tls_options(tls_options::context_source()), error);
}

TEST_CASE("a key with a password is refused, and nobody is asked for it") {
    const context_site site;
    const temporary_directory files;
    const certificate_authority::issued key = site.authority.issue("client", "");
    certificate_authority::lock(key.key, "password");
    const typed_input terminal(files / "input");
    const tls_files locked = site.trusting().certificate(key.chain, key.key);
    CHECK_THROWS_AS(make_tls_context(locked), error);
    CHECK(terminal.untouched());
}

TEST_CASE("tls files: a key that is not the certificate's is refused at once, and named", "[tls]") {
    const context_site site;
    const auto mine = site.authority.issue("me", ""), others = site.authority.issue("other", "");
    temporary_directory files;
    const std::string curve = files / "curve.key", chain = files / "chain.pem";
    const auto refusal_of_files = [](const std::string& certificates, const std::string& key) {
        std::string what;
        try {
            (void)make_tls_context(tls_files().certificate(certificates, key));
        } catch (const error& e) {
            CHECK(e.code() == errc::invalid_argument);
            what = e.what();
        }
        return what;
    };
    CHECK(refusal_of_files(mine.chain, mine.key).empty());
    SECTION("of another kind") {
        const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key(EVP_EC_gen("P-256"), &EVP_PKEY_free);
        const std::unique_ptr<BIO, void (*)(BIO*)> to(BIO_new_file(curve.c_str(), "w"), &BIO_free_all);
        REQUIRE(PEM_write_bio_PrivateKey(to.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1);
        BIO_flush(to.get());
        CHECK(refusal_of_files(mine.chain, curve) == "tls: invalid argument (" + curve +
                                                         ": this key (id-ecPublicKey) is not that of the certificate "
                                                         "(rsaEncryption) in " + mine.chain + ")");
    }
    SECTION("of the same kind") {
        const std::string what = refusal_of_files(mine.chain, others.key);
        CHECK(what.find(others.key + ": this key (rsaEncryption) is not that of") != std::string::npos);
    }
    SECTION("of a later one of the chain") {
        std::ofstream(chain) << std::ifstream(site.authority.file()).rdbuf() << std::ifstream(mine.chain).rdbuf();
        const std::string what = refusal_of_files(chain, mine.key);
        CHECK(what == "tls: invalid argument (" + chain + ": the certificate of the key " + mine.key +
                          " is number 2 of the chain, and has to be the first)");
    }
}
