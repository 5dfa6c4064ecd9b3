// In which order servers are tried, and whether a nearer one is up again.
#include "support/catch.hpp"
#include "support/fork_child.hpp"
#include "support/texts.hpp"

#include <zkasio/detail/connection/nearer_server.hpp>

#include <asio/buffer.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>

#include <sys/wait.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace nearer_server_tests {

using namespace zkasio::detail;
using namespace zkasio::test;
using namespace std::chrono_literals;
using servers = std::vector<server_address>;

namespace {

server_address at(std::string address, int rank, std::uint16_t port = 1) { return {address, address, port, rank}; }

asio::ip::tcp::endpoint loopback(std::uint16_t port = 0) { return {asio::ip::address_v4::loopback(), port}; }

// A server, up or down, that counts who connects.
class door {
public:
    explicit door(asio::io_context& io)
        : io_(io), port_(asio::ip::tcp::acceptor(io, loopback()).local_endpoint().port()) {}
    void open() {
        acceptor_.emplace(io_, loopback(port_));
        accept();
    }
    void close() { acceptor_.reset(); }
    server_address where() const { return at("127.0.0.1", 0, port_); }
    int visits = 0;
    std::string answer = "Zookeeper version: 3.8.0\nMode: follower\n";
    bool is_silent = false;

private:
    void accept() {
        acceptor_->async_accept([this](std::error_code failed, asio::ip::tcp::socket visitor) {
            if (failed) return;
            ++visits;
            const auto kept = std::make_shared<asio::ip::tcp::socket>(std::move(visitor));
            const auto question = std::make_shared<std::string>(4, ' ');
            auto asked = [this, kept, question](std::error_code hung_up, std::size_t) {
                if (hung_up) return;
                CHECK(*question == "srvr");
                if (is_silent) return silenced_.push_back(kept);
                asio::write(*kept, asio::buffer(answer));
            };
            asio::async_read(*kept, asio::buffer(*question), std::move(asked));
            accept();
        });
    }
    asio::io_context& io_;
    const std::uint16_t port_;
    std::optional<asio::ip::tcp::acceptor> acceptor_;
    std::vector<std::shared_ptr<asio::ip::tcp::socket>> silenced_;
};

struct bench {
    asio::io_context io;
    const strand_type strand{asio::any_io_executor(io.get_executor())};
    nearer_server nearer{strand, false, [this] { return is_wanted; }};
    bool is_wanted = true;
    static constexpr nearer_server::pace quick{5ms, 1ms, 5000ms};
    std::shared_ptr<int> alive = std::make_shared<int>();

    void until(const std::function<bool()>& condition) {
        const auto limit = std::chrono::steady_clock::now() + 20s;
        while (!condition() && std::chrono::steady_clock::now() < limit) {
            io.restart();
            io.run_one_for(10ms);
        }
        CHECK(condition());
    }
};

}  // namespace

TEST_CASE("next_round: the nearest rank first, and in each behind the server that was tried last") {
    CHECK(next_round({}, "").empty());
    const servers all{at("a", 1), at("b", 0), at("c", 1), at("d", 0), at("e", 1), at("b", 0), at("b", 2)};
    CHECK(next_round(all, "") == texts{"b:1", "d:1", "a:1", "c:1", "e:1"});
    CHECK(next_round(all, "d:1") == texts{"b:1", "d:1", "a:1", "c:1", "e:1"});
    CHECK(next_round(all, "b:1") == texts{"d:1", "b:1", "a:1", "c:1", "e:1"});
    CHECK(next_round(all, "a:1") == texts{"b:1", "d:1", "c:1", "e:1", "a:1"});
    CHECK(next_round({at("a", 0)}, "a:1") == texts{"a:1"});
}

TEST_CASE("nearer_server: one that accepts twice in a row is up") {
    bench b;
    door one(b.io);
    int found = 0;
    b.nearer.look(b.alive, b.quick, {one.where()}, [&](const server_address& up) {
        ++found;
        CHECK(up == one.where());
    });
    CHECK(b.alive.use_count() == 2);
    for (int i = 0; i < 20; ++i) {
        b.io.restart();
        b.io.run_for(1ms);
    }
    CHECK(found == 0);
    one.open();
    b.until([&] { return found == 1; });
    CHECK(one.visits >= 1);
    b.until([&] { return one.visits == 2 && b.alive.use_count() == 1; });  // it looks no longer
    b.io.restart();
    b.io.run_for(50ms);
    CHECK(one.visits == 2);
    CHECK(found == 1);
}

TEST_CASE("nearer_server: whether it serves, it has to say") {
    bench b;
    door one(b.io);
    one.open();
    int found = 0;
    b.nearer.look(b.alive, b.quick, {one.where()}, [&](const server_address&) { ++found; });
    for (const char* const no : {"", "This ZooKeeper instance is not currently serving requests\n",
                                 "Zookeeper version: 3.8.0\nMode: read-only\n"}) {
        INFO(no);
        one.answer = no;
        const int before = one.visits;
        b.until([&] { return one.visits >= before + 3; });
        CHECK(found == 0);
    }
    one.answer = "srvr is not executed because it is not in the whitelist.\n";
    b.until([&] { return found == 1; });

    // A silent one has as long as the patience; and what did not take the client is asked less often.
    nearer_server other(b.strand, false, [] { return true; });
    one.is_silent = true;
    other.look(b.alive, {4ms, 1ms, 5ms}, {one.where()}, [&](const server_address&) { ++found; });
    const int before = one.visits;
    b.until([&] { return one.visits >= before + 3; });
    CHECK(found == 1);
    other.stop();

    // Behind TLS it can only be accepted.
    nearer_server tls(b.strand, true, [] { return true; });
    tls.look(b.alive, b.quick, {one.where()}, [&](const server_address&) { ++found; });
    b.until([&] { return found == 2; });
}

TEST_CASE("nearer_server: what did not take the client is asked less and less often") {
    bench b;
    door one(b.io);
    one.open();
    int found = 0;
    const auto look = [&] {
        const int before = found;
        const auto began = std::chrono::steady_clock::now();
        b.nearer.look(b.alive, b.quick, {one.where()}, [&](const server_address&) { ++found; });
        b.until([&] { return found == before + 1; });
        return std::chrono::steady_clock::now() - began;
    };
    for (int i = 0; i < 4; ++i) {
        CHECK(look() >= 6ms * (1 << i));
        b.nearer.tried();
    }
    for (int i = 0; i < 100; ++i) b.nearer.tried();
    CHECK(look() >= 6ms * 64);
    b.nearer.taken();
    auto least = look();
    for (int i = 0; i < 20 && least >= 6ms * 16; ++i) least = look();
    CHECK(least < 6ms * 16);
}

TEST_CASE("nearer_server: both times, the same server is asked") {
    bench b;
    door one(b.io), other(b.io);
    one.open();
    other.open();
    int found = 0;
    for (int i = 0; i < 10; ++i) {
        one.visits = other.visits = 0;
        auto checked = [&](const server_address& up) {
            ++found;
            CHECK((up == one.where() ? one : other).visits == 2);
        };
        b.nearer.look(b.alive, b.quick, {one.where(), other.where()}, checked);
        b.until([&] { return found == i + 1; });
    }
}

TEST_CASE("nearer_server: an address that is none is no server, and others are asked") {
    bench b;
    door one(b.io);
    one.open();
    int found = 0;
    server_address none = one.where();
    none.address = "no address";
    b.nearer.look(b.alive, b.quick, {none, one.where()}, [&](const server_address&) { ++found; });
    b.until([&] { return found == 1; });
}

TEST_CASE("nearer_server: a loop that is destroyed leaves nothing behind") {
    struct owner {
        explicit owner(strand_type strand) : nearer(std::move(strand), false, [] { return true; }) {}
        nearer_server nearer;
    };
    std::weak_ptr<owner> alive;
    const bool asks = GENERATE(false, true);
    {
        bench b;
        door silent(b.io);
        silent.is_silent = true;
        silent.open();
        const auto o = std::make_shared<owner>(b.strand);
        alive = o;
        o->nearer.look(o, b.quick, {silent.where()}, [](const server_address&) { FAIL("found"); });
        if (asks) b.until([&] { return silent.visits == 1; });
    }
    CHECK(alive.expired());
}

TEST_CASE("nearer_server: what is stopped, or looked for instead, is not found") {
    bench b;
    door one(b.io), other(b.io);
    one.open();
    other.open();
    int found = 0;
    b.nearer.look(b.alive, b.quick, {one.where()}, [](const server_address&) { FAIL("found"); });
    b.until([&] { return one.visits == 1; });
    b.nearer.look(b.alive, b.quick, {other.where()}, [&](const server_address&) { ++found; });
    b.until([&] { return found == 1; });
    b.nearer.look(b.alive, b.quick, {one.where()}, [](const server_address&) { FAIL("found"); });
    b.until([&] { return one.visits == 2; });
    b.nearer.stop();
    b.nearer.look(b.alive, b.quick, {}, [](const server_address&) { FAIL("found"); });
    b.is_wanted = false;
    b.nearer.look(b.alive, b.quick, {one.where()}, [](const server_address&) { FAIL("found"); });
    b.io.restart();
    b.io.run_for(30ms);
    CHECK(one.visits == 2);
    CHECK(b.alive.use_count() == 1);
}

TEST_CASE("nearer_server: a child process drops the search, and that of its parent goes on") {
    bench b;
    door one(b.io);
    one.open();
    int found = 0;
    b.nearer.look(b.alive, {5ms, 300ms, 5000ms}, {one.where()}, [&](const server_address&) { ++found; });
    b.until([&] { return one.visits == 1; });  // of two
    b.io.notify_fork(asio::execution_context::fork_prepare);
    const pid_t pid = fork_child([&]() -> std::string {
        b.io.notify_fork(asio::execution_context::fork_child);
        one.close();
        b.nearer.stop();
        b.io.restart();
        b.io.poll();
        if (found != 0) return "a server was found";
        return b.alive.use_count() == 1 ? "" : "the search keeps its owner alive";
    });
    b.io.notify_fork(asio::execution_context::fork_parent);
    REQUIRE(pid > 0);
    int status = -1;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    CHECK(status == 0);
    b.until([&] { return found == 1; });
}

}  // namespace nearer_server_tests
