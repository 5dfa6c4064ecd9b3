// Every way in which a connection fails is told for what it is: by the errors of operations, by the session's events,
// in the log.

#include "support/fault_proxy.hpp"
#include "support/impostor.hpp"
#include "support/test_client.hpp"

#include <algorithm>

using namespace zkasio;
using namespace zkasio::test;
using asio::ip::tcp;

namespace {

// A listening socket that nobody accepts from: the kernel does, for as many as `queue`.
class listener {
public:
    explicit listener(bool full) {
        hole_.open(tcp::v4());
        hole_.bind(tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0));
        hole_.listen(full ? 0 : 100);
        for (int i = 0; full && i < 4; ++i) {
            fill_.emplace_back(io_);
            fill_.back().open(tcp::v4());
            fill_.back().native_non_blocking(true);
            const tcp::endpoint to = hole_.local_endpoint();
            (void)!::connect(fill_.back().native_handle(), to.data(),
                             static_cast<socklen_t>(to.size()));  // never completes
        }
    }
    std::string address() const { return "127.0.0.1:" + std::to_string(hole_.local_endpoint().port()); }

private:
    asio::io_context io_;
    tcp::acceptor hole_{io_};
    std::vector<tcp::socket> fill_;
};

// What connected(), an operation and the log say about servers that cannot be connected to.
void check_reason(const std::string& servers, const std::string& why, std::chrono::milliseconds patience) {
    INFO(servers << ", " << patience.count() << " ms");
    std::vector<std::string> lines;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::string connecting = co_await message_of(zk.connected());
        CHECK(connecting == "connect " + servers + ": not connected (" + why + ")");
        const std::string asking = co_await message_of(zk.get("/"));
        CHECK(asking == "get /: not connected (" + why + ")");
    };
    client_options o = options(servers).session_timeout(2400ms).connection_timeout(patience);
    with_client(o.log([&](std::string_view line) { lines.emplace_back(line); }), body);
    const auto told = std::count(lines.begin(), lines.end(), "cannot connect: " + why);
    const bool attempt_ended = patience > 1s;  // T/3 is the limit of an attempt that is not answered
    if (attempt_ended) CHECK(told > 0);
    for (const std::string& line : lines) {  // nothing else
        if (line.find("Exceeded deadline") != std::string::npos) continue;  // the machine is busy
        CAPTURE(line);
        CHECK((line.starts_with("cannot connect: " + why) || line.starts_with("connecting: ") ||
               line.starts_with("closed: ") || line.starts_with("resolve ")));
    }
}

// The event that tells of the loss of a connection.
asio::awaitable<std::string> loss(session_events& events) {
    for (;;) {
        const session_event e = co_await events.next();
        if (e.state == session_state::suspended) co_return e.reason;
    }
}

}  // namespace

TEST_CASE("reasons: no connection is made", "[clear]") {
    const auto patience = GENERATE(400ms, 2000ms);  // shorter, and longer, than an attempt may take
    SECTION("nobody listens") {
        const std::string nobody = "127.0.0.1:" + std::to_string(free_port());
        check_reason(nobody, nobody + ": Connection refused", patience);
    }
    SECTION("no answer to SYN") {
        const listener hole(true);
        check_reason(hole.address(), hole.address() + ": no answer to the attempt to connect", patience);
    }
    SECTION("accepted, and never answered") {
        const listener silent(false);
        const std::string why =
            ": accepts the connection and does not answer (not a ZooKeeper server, or one that hangs)";
        check_reason(silent.address(), silent.address() + why, patience);
    }
    SECTION("no route") {
        check_reason("224.0.0.1:2181", "224.0.0.1:2181: Network is unreachable", patience);
    }
    SECTION("hung up") {
        const impostor peer("", impostor::then::hang_up);
        const std::string why = ": hung up instead of answering (not serving, too many connections, or it expects TLS)";
        check_reason(peer.address(), peer.address() + why, patience);
    }
    SECTION("reset") {
        const impostor peer("", impostor::then::reset);
        check_reason(peer.address(), peer.address() + ": Connection reset by peer", patience);
    }
    SECTION("TLS") {
        const impostor peer(std::string("\x15\x03\x01\0\x02\x02\x46", 7), impostor::then::hang_up);
        check_reason(peer.address(), peer.address() + ": expects TLS", patience);
    }
    SECTION("another protocol") {
        const impostor peer("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                            impostor::then::hang_up);
        check_reason(peer.address(), peer.address() + ": not a ZooKeeper server", patience);
    }
    SECTION("half of a handshake") {
        const impostor peer(std::string("\0\0\0\x25\0\0\0\0\0\0", 10), impostor::then::hang_up);
        check_reason(peer.address(), peer.address() + ": not a ZooKeeper server", patience);
    }
}

TEST_CASE("reasons: a server without a quorum") {
    test_server servers(3);
    servers.kill(1);
    servers.kill(2);
    const std::string alone = servers.endpoint(0);
    auto body = [&](client zk) -> asio::awaitable<void> {
        auto says_so = [&]() -> asio::awaitable<bool> {
            const std::string text = co_await message_of(zk.connected());
            co_return text.find(alone + ": hung up instead of answering (not serving") != std::string::npos;
        };
        co_await eventually(says_so);
    };
    with_client(options(alone).connection_timeout(300ms), body);
}

TEST_CASE("reasons: a connection is lost") {
    fault_proxy proxy(first_server());
    struct loss_case {
        std::string why;
        std::function<asio::awaitable<void>(client)> happens;
    };
    const std::string other = "localhost" + first_server().substr(first_server().rfind(':'));
    const std::vector<loss_case> cases{
        {"closed by the server",
         [&](client) -> asio::awaitable<void> {
             proxy.cut_all(fault_proxy::end::fin);
             co_return;
         }},
        {"Connection reset by peer",
         [&](client) -> asio::awaitable<void> {
             proxy.cut_all(fault_proxy::end::rst);
             co_return;
         }},
        {"no answer for two thirds of the session timeout",
         [&](client) -> asio::awaitable<void> {
             proxy.silence(true);
             co_return;
         }},
        {"left, for it is not in the new list of servers",
         [&](client zk) -> asio::awaitable<void> { co_await zk.set_servers(other); }},
    };
    for (const loss_case& c : cases) {
        auto body = [&](client zk) -> asio::awaitable<void> {
            co_await zk.connected();
            session_events events = zk.events();
            co_await c.happens(zk);
            const std::string why = co_await loss(events);
            CHECK(why == "connection lost: " + proxy.address() + ": " + c.why);
            proxy.silence(false);
            co_await zk.connected();
        };
        with_client(options(proxy.address()), body);
    }
}

TEST_CASE("reasons: a chroot that does not exist is named") {
    const std::string why = R"( (the chroot "/test-no-chroot" does not exist: see client_options::create_chroot()))";
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::string created = co_await message_of(zk.create("/a"));
        CHECK(created == "create /a: no such node" + why);
        const std::string listed = co_await message_of(zk.children("/"));
        CHECK(listed == "children /: no such node" + why);
        create_options deep;
        deep.parents(missing_parents::create_container);
        const std::string parents = co_await message_of(zk.create("/a/b/c", "", deep));
        CHECK(parents == "create parent /a: no such node" + why);
    };
    with_client(options(first_server() + "/test-no-chroot"), body);
}
