// A tunnel between a library and a network that are both sockets of the test's, with a channel that changes nothing.

#include "support/catch.hpp"

#include <zkasio/detail/base/owned_descriptor.hpp>
#include <zkasio/detail/connection/tunnel.hpp>
#include <zkasio/detail/seam/secure_channel.hpp>

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <netinet/in.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

using namespace zkasio::detail;

namespace {

// What the test tells the channel to do, and sees of it.
struct channel_script {
    secure_channel::progress handshake = secure_channel::progress::done;
    secure_channel::progress reads = secure_channel::progress::done, writes = secure_channel::progress::done;
    std::optional<std::string> refused;
    int made = 0;
    std::string host;
};

class clear_channel final : public secure_channel {
public:
    clear_channel(int descriptor, channel_script& script) : descriptor_(descriptor), script_(script) {}
    progress handshake() override { return script_.handshake; }
    transfer read(std::span<char> to) override {
        if (script_.reads != progress::done) return {script_.reads};
        const ssize_t n = ::recv(descriptor_, to.data(), to.size(), MSG_DONTWAIT);
        if (n > 0) return {progress::done, static_cast<std::size_t>(n)};
        return {n == 0 ? progress::ended : progress::needs_input};
    }
    transfer write(std::span<const char> from) override {
        if (script_.writes != progress::done) return {script_.writes};
        const ssize_t n = ::send(descriptor_, from.data(), from.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n >= 0) return {progress::done, static_cast<std::size_t>(n)};
        return {errno == EAGAIN ? progress::needs_output : progress::failed};
    }
    std::string failure() const override { return "as the script says"; }

private:
    int descriptor_;
    channel_script& script_;
};

channel_maker in_the_clear(channel_script& script) {
    return [&script](int descriptor, const server_address& server) {
        ++script.made;
        script.host = server.host;
        if (script.refused) throw std::runtime_error(*script.refused);
        return std::make_unique<clear_channel>(descriptor, script);
    };
}

// The head of a frame of ZooKeeper's.
std::string length_of(std::uint32_t bytes) {
    std::string head;
    for (int shift = 24; shift >= 0; shift -= 8) head.push_back(static_cast<char>(bytes >> shift & 0xff));
    return head;
}

// The answer to a request for a session.
std::string granted() { return length_of(37) + std::string(37, 'x'); }

// A request or an answer of that number, of 16 bytes.
std::string numbered(std::uint32_t number) { return length_of(16) + length_of(number) + std::string(12, '\0'); }

struct tunnel_rig {
    tunnel_rig() {
        std::array<int, 2> pair{-1, -1};
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) throw std::runtime_error("pair");
        library = owned_descriptor(pair[0]);
        network = owned_descriptor(pair[1]);
        under_test = tunnel::behind(library.get(), server_address{"zk1", "10.0.0.1"});
        under_test->secure(in_the_clear(script));
    }

    static bool put(const owned_descriptor& to, const std::string& text) {
        return ::send(to.get(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL) ==
               static_cast<ssize_t>(text.size());
    }
    // "-": nothing now; "": the end.
    static std::string take(const owned_descriptor& from) {
        std::array<char, 100> text{};
        const ssize_t n = ::recv(from.get(), text.data(), text.size(), MSG_DONTWAIT);
        return n < 0 ? "-" : std::string(text.data(), static_cast<std::size_t>(n));
    }
    // How much is read until there is nothing.
    static std::size_t drain(const owned_descriptor& from) {
        std::string buffer(1 << 16, ' ');
        std::size_t sum = 0;
        for (ssize_t n = 0; (n = ::recv(from.get(), buffer.data(), buffer.size(), MSG_DONTWAIT)) > 0;)
            sum += static_cast<std::size_t>(n);
        return sum;
    }

    channel_script script;
    owned_descriptor library, network;
    std::unique_ptr<tunnel> under_test;
};

}  // namespace

TEST_CASE("a tunnel lets nothing of the library's out before the handshake is over, and then everything") {
    tunnel_rig rig;
    tunnel& t = *rig.under_test;
    rig.script.handshake = secure_channel::progress::needs_input;
    REQUIRE(rig.put(rig.library, "secret"));
    CHECK(t.at() == tunnel::stage::connecting);
    CHECK(t.wants_write());
    t.send();
    t.receive();
    t.send();
    CHECK(t.at() == tunnel::stage::handshake);
    CHECK(rig.script.host == "zk1");
    CHECK_FALSE(t.wants_write());
    CHECK(rig.take(rig.network) == "-");
    rig.script.handshake = secure_channel::progress::needs_output;
    t.receive();
    CHECK(t.wants_write());
    rig.script.handshake = secure_channel::progress::done;
    t.receive();
    CHECK(t.at() == tunnel::stage::open);
    CHECK_FALSE(t.wants_write());
    t.send();
    CHECK(rig.take(rig.network) == "secret");
    REQUIRE(rig.put(rig.network, granted()));
    t.receive();
    CHECK(rig.take(rig.library) == granted());
    CHECK(rig.script.made == 1);
}

TEST_CASE("a tunnel that stands goes on when it is told how to be secured, and not before") {
    tunnel_rig rig;
    rig.under_test->secure(nullptr);
    tunnel& t = *rig.under_test;
    CHECK(t.is_to_be_secured());
    t.receive();
    CHECK(t.at() == tunnel::stage::connecting);
    CHECK(t.failure() == "");
    t.secure(in_the_clear(rig.script));
    CHECK_FALSE(t.is_to_be_secured());
    t.receive();
    CHECK(t.at() == tunnel::stage::open);
    CHECK_FALSE(t.is_to_be_secured());
}

TEST_CASE("a tunnel whose connection has failed is not to be secured, and says why") {
    channel_script script;
    const owned_descriptor library(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_in nobody{};
    nobody.sin_family = AF_INET;
    nobody.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    nobody.sin_port = htons(1);
    REQUIRE(::connect(library.get(), reinterpret_cast<const sockaddr*>(&nobody), sizeof nobody) != 0);
    REQUIRE(errno == EINPROGRESS);
    const std::unique_ptr<tunnel> t = tunnel::behind(library.get(), server_address{"zk1", "10.0.0.1"});
    pollfd refused{t->descriptor(), POLLOUT, 0};
    REQUIRE(::poll(&refused, 1, 10'000) == 1);
    CHECK_FALSE(t->is_to_be_secured());
    t->receive();
    CHECK(t->failure() == "Connection refused");
    CHECK_FALSE(t->wants_write());
}

TEST_CASE("a tunnel whose handshake fails sends nothing, and the library reads the end") {
    tunnel_rig rig;
    tunnel& t = *rig.under_test;
    REQUIRE(rig.put(rig.library, "secret"));
    SECTION("it fails") {
        rig.script.handshake = secure_channel::progress::failed;
        t.receive();
        CHECK(t.failure() == "as the script says");
    }
    SECTION("there is no channel") {
        rig.script.refused = "refused";
        t.receive();
        CHECK(t.failure() == "refused");
    }
    SECTION("there is no channel, and nobody says why") {
        rig.script.refused = "";
        t.receive();
        CHECK_FALSE(t.failure().empty());
    }
    CHECK_FALSE(t.wants_write());
    t.send();
    t.receive();
    CHECK(rig.script.made == 1);
    CHECK(t.at() != tunnel::stage::open);
    CHECK(rig.take(rig.network) == "-");
    CHECK(rig.take(rig.library) == "");
    rig.under_test.reset();
    CHECK(rig.take(rig.network) == "");
}

TEST_CASE("a tunnel holds back what the library has no room for, and the end comes behind all of it") {
    tunnel_rig rig;
    tunnel& t = *rig.under_test;
    t.receive();
    std::size_t sent = 0, got = 0;
    const std::string block(100'000, 'x');
    REQUIRE(rig.put(rig.network, granted() + length_of(100'000'000) + length_of(0xffffffff)));  // a notification
    for (int i = 0; i < 40; ++i) {
        while (rig.put(rig.network, block)) sent += block.size();
        t.receive();
        if (t.holds_back()) break;
    }
    REQUIRE(t.holds_back());
    sent += rig.put(rig.network, "z") ? 1 : 0;
    ::shutdown(rig.network.get(), SHUT_WR);
    while (t.holds_back()) {
        got += rig.drain(rig.library);
        t.receive();
    }
    got += rig.drain(rig.library);
    // put() may have sent a part of a block.
    CHECK(got >= sent);
    CHECK(rig.take(rig.library) == "");
    CHECK(t.failure() == "");
}

TEST_CASE("a tunnel that the network has no room for waits to write, keeps the order, and loses nothing") {
    tunnel_rig rig;
    tunnel& t = *rig.under_test;
    t.receive();
    REQUIRE(rig.put(rig.library, "one"));
    rig.script.writes = secure_channel::progress::needs_output;
    t.send();
    CHECK(t.wants_write());
    REQUIRE(rig.put(rig.library, " two"));
    t.send();
    CHECK(rig.take(rig.network) == "-");
    rig.script.writes = secure_channel::progress::done;
    t.send();
    CHECK_FALSE(t.wants_write());
    const std::string first = rig.take(rig.network);
    t.send();
    const std::string second = rig.take(rig.network);
    CHECK(first + (second == "-" ? "" : second) == "one two");
}

TEST_CASE("a tunnel that cannot write tells what the peer has said before it hung up") {
    tunnel_rig rig;
    tunnel& t = *rig.under_test;
    t.receive();
    REQUIRE(rig.put(rig.library, "request"));
    REQUIRE(rig.put(rig.network, granted()));
    rig.script.writes = secure_channel::progress::failed;
    t.send();
    CHECK_FALSE(t.wants_write());
    CHECK(t.failure() == "");
    t.receive();
    CHECK(t.failure() == "as the script says");
    CHECK(rig.take(rig.library) == granted());
    CHECK(rig.take(rig.library) == "");
    CHECK_FALSE(rig.put(rig.library, "more"));
}

// TLS 1.2 renegotiates, TLS 1.3 updates its keys: then a read may have to write first.
TEST_CASE("a tunnel whose channel has to write before it can read waits until it can, and no longer") {
    tunnel_rig rig;
    tunnel& t = *rig.under_test;
    t.receive();
    REQUIRE(t.at() == tunnel::stage::open);
    rig.script.reads = secure_channel::progress::needs_output;
    REQUIRE(rig.put(rig.network, granted()));
    t.receive();
    CHECK(t.wants_write());
    CHECK(rig.take(rig.library) == "-");
    rig.script.reads = secure_channel::progress::done;
    t.receive();
    CHECK_FALSE(t.wants_write());
    CHECK(rig.take(rig.library) == granted());
}

TEST_CASE("a tunnel hangs up on a server whose answers are out of step, before the library reads them") {
    tunnel_rig rig;
    tunnel& t = *rig.under_test;
    t.receive();
    const std::string requests = length_of(7) + "session" + numbered(7) + numbered(8) + numbered(9);
    REQUIRE(rig.put(rig.library, requests));
    t.send();
    CHECK(rig.take(rig.network) == requests);
    const std::string first = granted() + numbered(7);
    REQUIRE(rig.put(rig.network, first));
    t.receive();
    CHECK(rig.take(rig.library) == first);
    REQUIRE(rig.put(rig.network, numbered(8) + numbered(8) + numbered(9)));
    t.receive();
    CHECK(rig.take(rig.library) == numbered(8));
    CHECK(rig.take(rig.library) == "");
    CHECK(t.failure() == "its answers are out of step with the requests");
    CHECK_FALSE(t.holds_back());
}

TEST_CASE("a tunnel lets no length through that the library should not believe") {
    tunnel_rig rig;
    tunnel& t = *rig.under_test;
    t.receive();
    REQUIRE(rig.put(rig.network, granted()));
    t.receive();
    CHECK(rig.take(rig.library) == granted());
    const std::uint32_t length = GENERATE(0u, 3u, 15u, (128u << 20) + 1, 0x7fffffffu, 0xffffffffu);
    REQUIRE(rig.put(rig.network, length_of(length)));  // and nothing behind it
    t.receive();
    CHECK(rig.take(rig.library) == "");
    CHECK(t.failure().starts_with("it sends a frame "));
}

TEST_CASE("a tunnel to something that is no ZooKeeper server says so") {
    tunnel_rig rig;
    tunnel& t = *rig.under_test;
    t.receive();
    REQUIRE(rig.put(rig.network, "HTTP/1.1 400 Bad Request"));
    t.receive();
    CHECK(rig.take(rig.library) == "");
    CHECK(t.failure() == "not a ZooKeeper server");
}
