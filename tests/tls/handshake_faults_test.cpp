// Handshakes that are cut, that never end, and clients that do not wait for them.

#include "support/fault_proxy.hpp"
#include "support/test_client.hpp"
#include "tls/certificates.hpp"
#include "tls/tls_terminator.hpp"

#include <zkasio/detail/base/owned_descriptor.hpp>
#include <zkasio/tls/detail/tls_channel.hpp>
#include <zkasio/tls/tls_options.hpp>

#include <asio/ip/tcp.hpp>
#include <asio/local/connect_pair.hpp>
#include <asio/local/stream_protocol.hpp>
#include <asio/read.hpp>
#include <asio/ssl/context.hpp>

#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>

#include <unistd.h>

using namespace zkasio;
using namespace zkasio::test;
using asio::ip::tcp;

namespace {

struct tls_site {
    certificate_authority authority{"faults"};
    tls_terminator terminator{authority.issue("server", "IP:127.0.0.1"), first_server()};
    tls_options how() const { return tls_files().ca(authority.file()); }
};

std::size_t open_descriptors() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

// The kernel accepts connections, and nobody answers.
class silent_listener {
public:
    explicit silent_listener() : acceptor_(io_, tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0)) {}
    std::string address() const { return "127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port()); }
    /// Waits until a client has sent something; keeps the connection open.
    asio::awaitable<void> until_asked() {
        tcp::acceptor waiting(co_await asio::this_coro::executor, tcp::v4(), ::dup(acceptor_.native_handle()));
        tcp::socket asked = co_await waiting.async_accept(asio::use_awaitable);
        co_await asked.async_wait(tcp::socket::wait_read, asio::use_awaitable);
        asked_ = detail::owned_descriptor(asked.release());  // the loop may go before this object
    }

private:
    asio::io_context io_;
    tcp::acceptor acceptor_;
    detail::owned_descriptor asked_;
};

}  // namespace

TEST_CASE("cut in each flight of the handshake, and of what follows: the next connection stands") {
    const tls_site site;
    fault_proxy proxy(site.terminator.address("127.0.0.1"));
    std::vector<std::pair<bool, std::size_t>> cuts;
    for (std::size_t n = 0; n < 900; n += 30) cuts.emplace_back(true, n);
    for (std::size_t n = 0; n < 2200; n += 60) cuts.emplace_back(false, n);
    test_loop loop(300s);
    std::size_t failures = 0;
    auto body = [&]() -> asio::awaitable<void> {
        const asio::steady_timer reactor(co_await asio::this_coro::executor);  // whose descriptors do not count
        const std::size_t before = open_descriptors();
        for (const auto& cut : cuts) {
            const bool requests = cut.first;
            const std::size_t after = cut.second;
            INFO("cut " << (requests ? "requests" : "replies") << " after " << after);
            const std::size_t base = proxy.connections();
            proxy.plan_connections([requests, after, base](std::size_t n) {
                fault_proxy::plan p;
                if (n == base) (requests ? p.cut_requests_after : p.cut_replies_after) = after;
                p.how = after % 4 ? fault_proxy::end::rst : fault_proxy::end::fin;
                return p;
            });
            std::vector<std::string> warnings;
            const auto sink = [&](std::string_view l) { warnings.emplace_back(l); };
            const client_options o =
                options(proxy.address()).close_timeout(10s).tls(site.how()).log(sink, log_level::warning);
            const test_client zk(co_await asio::this_coro::executor, o);
            const auto stat = co_await zk.exists("/");
            CHECK(stat);
            const close_result how = co_await zk.close();
            const bool cut_before = proxy.connections() > base + 1;  // or in the goodbye
            if (cut_before) CHECK(how == close_result::confirmed);
            failures += warnings.empty() ? 0 : 1;
            for (const std::string& w : warnings) {
                CAPTURE(w);
                CHECK((w.find("hung up") != w.npos || w.find("reset by peer") != w.npos ||
                       w.find("closed by the server") != w.npos));
            }
        }
        auto nothing_left = [&]() -> asio::awaitable<bool> { co_return open_descriptors() <= before; };
        co_await eventually(nothing_left);  // also of those who stand in between
    };
    loop.run(body());
    CHECK(failures > 40);  // most of the cuts were early enough
}

TEST_CASE("whoever hangs up during the handshake is said to have done so, whatever the network makes of it") {
    using progress = detail::secure_channel::progress;
    asio::io_context io;
    const auto begun = [](auto& socket) {
        socket.non_blocking(true);
        const auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_client);
        return detail::tls_channel(socket.native_handle(), context, "localhost", tls_verification::server);
    };
    const auto why = [](detail::tls_channel& channel) {
        const progress how = channel.handshake();
        CHECK(how == progress::failed);
        return channel.failure();
    };
    const std::string hung_up = "hung up during the TLS handshake (not serving, or it does not speak TLS here)";
    SECTION("before it was asked") {
        asio::local::stream_protocol::socket ours(io), theirs(io);
        asio::local::connect_pair(ours, theirs);
        detail::tls_channel channel = begun(ours);
        theirs.close();
        CHECK(why(channel) == hung_up);  // EPIPE
    }
    SECTION("when it was asked") {
        tcp::acceptor acceptor(io, tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0));
        tcp::socket ours(io);
        ours.connect(acceptor.local_endpoint());
        tcp::socket theirs = acceptor.accept();
        detail::tls_channel channel = begun(ours);
        REQUIRE(channel.handshake() == progress::needs_input);
        theirs.wait(tcp::socket::wait_read);
        SECTION("having read it: the end of the stream") {
            std::string hello(theirs.available(), '\0');
            asio::read(theirs, asio::buffer(hello));
        }
        SECTION("having read nothing: a reset") {}
        theirs.close();
        ours.wait(tcp::socket::wait_read);
        CHECK(why(channel) == hung_up);
    }
}

TEST_CASE("a server that accepts and says nothing: attempts end in time, and the reason is told") {
    const silent_listener silent;
    const tls_site site;
    const std::string why =
        silent.address() + ": accepts the connection and does not go on with the TLS handshake";
    const auto patience = GENERATE(500ms, 3000ms);  // shorter, and longer, than an attempt may take
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::string text = co_await message_of(zk.get("/"));
        CHECK(text == "get /: not connected (" + why + ")");
    };
    with_client(options(silent.address()).session_timeout(3s).connection_timeout(patience).tls(site.how()), body);
}

TEST_CASE("a silent server does not keep a client from the others") {
    const silent_listener silent;
    const tls_site site;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const auto stat = co_await zk.exists("/");
        CHECK(stat);
    };
    for (int i = 0; i < 4; ++i) {  // whichever is tried first
        const std::string both = silent.address() + ',' + site.terminator.address("127.0.0.1");
        with_client(options(both).session_timeout(3s).tls(site.how()), body);
    }
}

TEST_CASE("a client that is closed, cancelled or destroyed during the handshake leaves nothing, at once") {
    silent_listener silent;
    const tls_site site;
    const client_options o = options(silent.address()).session_timeout(20s).tls(site.how());
    const std::size_t before = open_descriptors();
    {
        test_loop loop;
        std::optional<test_client> zk(std::in_place, loop.executor(), o);
        auto body = [&]() -> asio::awaitable<void> {
            auto read = [&]() -> asio::awaitable<void> { co_await zk->get("/"); };
            running reading(co_await asio::this_coro::executor, read());
            co_await silent.until_asked();
            const auto began = boot_clock::now();
            SECTION("closed") {
                const close_result how = co_await zk->close();
                CHECK(how == close_result::confirmed);  // no session was asked for
                const std::error_code code = co_await reading.code();
                CHECK(code == errc::client_closed);
            }
            SECTION("cancelled") {
                reading.cancel();
                const std::error_code code = co_await reading.code();
                CHECK(code == condition::cancelled);
                co_await zk->close();
            }
            SECTION("destroyed") {
                reading.cancel();
                co_await reading.code();
                zk.reset();
            }
            CHECK(boot_clock::now() - began < 5s);  // an attempt may take longer
        };
        loop.run(body());
    }
    {  // its loop as well, with all of it pending
        asio::io_context io;
        const client zk(io, o);
        asio::co_spawn(io, silent.until_asked(), [&](std::exception_ptr) { io.stop(); });
        io.run();
    }
    CHECK(open_descriptors() <= before + 1);  // the listener keeps its last connection
}
