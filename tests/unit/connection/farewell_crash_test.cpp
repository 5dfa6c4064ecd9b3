// The C library over a scripted server on the loopback.
#include "support/catch.hpp"

#include <zkasio/client.hpp>

#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>

using namespace zkasio;
using namespace std::chrono_literals;

namespace {

std::string be(std::initializer_list<std::int32_t> v) {
    std::string s;
    for (std::int32_t i : v) {
        const std::uint32_t n = htonl(static_cast<std::uint32_t>(i));
        s.append(reinterpret_cast<const char*>(&n), 4);
    }
    return s;
}

struct script {
    int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int port = 0;
    std::atomic<bool> down{false}, goodbye_seen{false}, answer{false}, answered{false}, over{false};
    std::atomic<int> sessions{0};
    std::thread thread;

    script() {
        sockaddr_in a{};
        a.sin_family = AF_INET;
        a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        ::bind(listener, reinterpret_cast<sockaddr*>(&a), sizeof a);
        ::listen(listener, 16);
        socklen_t n = sizeof a;
        ::getsockname(listener, reinterpret_cast<sockaddr*>(&a), &n);
        port = ntohs(a.sin_port);
        thread = std::thread([this] { serve(); });
    }
    ~script() {
        over = true;
        ::shutdown(listener, SHUT_RDWR);
        thread.join();
        ::close(listener);
    }
    void serve() {
        while (!over) {
            const int s = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
            if (s < 0) return;
            if (!down) talk(s);
            ::close(s);
        }
    }
    static bool read(int s, char* to, std::size_t n) { return ::recv(s, to, n, MSG_WAITALL) == static_cast<ssize_t>(n); }
    void talk(int s) {
        char in[4096];
        if (!read(s, in, 4)) return;
        std::uint32_t length = 0;
        std::memcpy(&length, in, 4);
        length = ntohl(length);
        if (length > sizeof in || !read(s, in, length)) return;
        std::int32_t id = 0;  // low half of the session's id: protocol 4, zxid 8, timeout 4, id 8
        std::memcpy(&id, in + 20, 4);
        id = static_cast<std::int32_t>(ntohl(static_cast<std::uint32_t>(id)));
        if (id == 0) id = 100 + ++sessions;
        const std::string up = be({37, 0, 300, 0, id, 16, 1, 2, 3, 4}) + std::string(1, '\0');
        ::send(s, up.data(), up.size(), MSG_NOSIGNAL);
        while (!over) {
            timeval tv{0, 10'000};
            ::setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
            const ssize_t n = ::recv(s, in, sizeof in, 0);
            if (n == 0 || down) return;
            if (n < 0) continue;
            std::int32_t xid = 0;
            std::memcpy(&xid, in + 4, 4);
            xid = static_cast<std::int32_t>(ntohl(static_cast<std::uint32_t>(xid)));
            std::int32_t op = 0;
            std::memcpy(&op, in + 8, 4);
            op = static_cast<std::int32_t>(ntohl(static_cast<std::uint32_t>(op)));
            if (op == -11) {
                const bool first = !goodbye_seen.exchange(true);
                while (first && !answer && !over) std::this_thread::sleep_for(1ms);
            }
            const std::string reply = be({16, xid, 0, 7, 0});
            ::send(s, reply.data(), reply.size(), MSG_NOSIGNAL);
            if (op == -11) {
                answered = true;
                return;
            }
        }
    }
};

}  // namespace

TEST_CASE("attack: the goodbye's answer comes when the deadline has passed, and its timer runs first") {
    script server;
    asio::io_context io(1);
    auto body = [&]() -> asio::awaitable<void> {
        const client zk(io.get_executor(), client_options("127.0.0.1:" + std::to_string(server.port))
                                               .session_timeout(300ms)
                                               .close_timeout(200ms));
        const session first = co_await zk.current_session();
        server.down = true;
        co_await first.ended();
        server.down = false;
        asio::steady_timer t(io);
        while (!server.goodbye_seen) {
            t.expires_after(1ms);
            co_await t.async_wait(asio::use_awaitable);
        }
        // One handler takes long. The next one that it posts runs behind the look at the timers.
        std::this_thread::sleep_for(300ms);
        asio::post(io, [&] {
            server.answer = true;
            while (!server.answered) std::this_thread::sleep_for(1ms);
            std::this_thread::sleep_for(20ms);
        });
        const session second = co_await zk.current_session();
        CHECK(second.id() != first.id());
        co_await zk.close();
    };
    asio::co_spawn(io, body, [](std::exception_ptr e) {
        if (e) std::rethrow_exception(e);
    });
    io.run();
}

TEST_CASE("attack: what is told while the goodbye is unanswered") {
    script server;
    asio::io_context io(1);
    std::string why;
    auto body = [&]() -> asio::awaitable<void> {
        const client zk(io.get_executor(), client_options("127.0.0.1:" + std::to_string(server.port))
                                               .session_timeout(300ms)
                                               .connection_timeout(150ms)
                                               .close_timeout(1s));
        const session first = co_await zk.current_session();
        server.down = true;
        co_await first.ended();
        server.down = false;
        asio::steady_timer t(io);
        while (!server.goodbye_seen) {
            t.expires_after(1ms);
            co_await t.async_wait(asio::use_awaitable);
        }
        try {
            co_await zk.get("/a");
        } catch (const std::exception& e) {
            why = e.what();
        }
        server.answer = true;
        co_await zk.close();
    };
    asio::co_spawn(io, body, [](std::exception_ptr e) {
        if (e) std::rethrow_exception(e);
    });
    io.run();
    INFO(why);
    CHECK(why.find("no answer to the attempt to connect") == why.npos);
}
