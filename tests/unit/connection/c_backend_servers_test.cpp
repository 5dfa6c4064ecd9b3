// The servers of the C library: the order in which they are tried, their names, and another list of them.

#include "support/jute_writer.hpp"
#include "support/scripted_connection.hpp"
#include "unit/support/connection_steps.hpp"

#include <zkasio/error.hpp>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

TEST_CASE("c_backend: servers are tried in the order of the list, each once in a round") {
    const std::size_t count = GENERATE(1u, 2u, 3u, 4u, 5u), rounds = 3;
    INFO(count);
    std::vector<scripted_server> servers(count);
    open_params p;
    for (const scripted_server& s : servers) p.servers.push_back(s.where());
    connection c(p);
    std::vector<std::string> tried;
    while (tried.size() < rounds * count) {
        drive(*c.b, [&] { return c.b->has_socket(); });
        tried.push_back(c.b->current_server());
        scripted_server& one = *std::find_if(servers.begin(), servers.end(),
                                             [&](const scripted_server& s) { return s.address() == tried.back(); });
        turn_of(*c.b, false, true);
        one.take_handshake();
        one.hang_up();
        drive(*c.b, [&] { return !c.b->has_socket(); });
    }
    std::vector<std::string> in_order;
    for (std::size_t round = 0; round <= rounds; ++round)
        for (const scripted_server& s : servers) in_order.push_back(s.address());
    const auto first = std::find(in_order.begin(), in_order.end(), tried.front());
    const std::vector<std::string> expected(first, first + static_cast<std::ptrdiff_t>(tried.size()));
    CHECK(tried == expected);
}

TEST_CASE("c_backend: after each connection, the servers of the nearest rank are tried first") {
    std::vector<scripted_server> servers(4);
    open_params p;
    for (const scripted_server& s : servers) p.servers.push_back(s.where());
    p.servers[2].rank = p.servers[3].rank = 1;
    connection c(p);
    const auto next = [&]() -> std::size_t {
        drive(*c.b, [&] { return c.b->has_socket(); });
        const std::string tried = c.b->current_server();
        turn_of(*c.b, false, true);
        return static_cast<std::size_t>(std::find_if(servers.begin(), servers.end(),
                                                     [&](const auto& s) { return s.address() == tried; }) -
                                        servers.begin());
    };
    const auto fail = [&](std::size_t i) {
        servers[i].take_handshake();
        servers[i].hang_up();
        drive(*c.b, [&] { return !c.b->has_socket(); });
    };
    const std::size_t first = next();
    REQUIRE(first < 2);
    fail(first);
    CHECK(next() == 1 - first);
    fail(1 - first);
    const std::size_t far = next();
    CHECK(far >= 2);
    servers[far].shake_hands();
    drive(*c.b, [&] { return c.seen.links.size() == 1; });
    CHECK(c.b->current_rank() == 1);
    // A connection that was of no use does not end the round.
    servers[far].hang_up();
    drive(*c.b, [&] { return c.seen.links.back() == link_state::disconnected; });
    CHECK(next() == 5 - far);
    servers[5 - far].shake_hands();
    drive(*c.b, [&] { return c.seen.links.back() == link_state::connected; });
    // After one that has lasted, a round begins: not with the far ones, whose turn it would be.
    servers[5 - far].hang_up();
    drive(*c.b, [&] { return c.seen.links.back() == link_state::disconnected; });
    CHECK(next() == 0);
    fail(0);
    CHECK(next() == 1);
    servers[1].shake_hands();
    drive(*c.b, [&] { return c.seen.links.back() == link_state::connected; });
    c.b->begin_round();
    servers[1].hang_up();
    drive(*c.b, [&] { return c.seen.links.back() == link_state::disconnected; });
    for (const std::size_t expected : {0U, 1U}) {
        CHECK(next() == expected);
        fail(expected);
    }
    CHECK(next() == far);
    servers[far].shake_hands();
    drive(*c.b, [&] { return c.seen.links.back() == link_state::connected; });
    // To a server that is up, or back to the one that was left.
    c.b->move_to(p.servers[1]);
    CHECK(c.b->last_failure() == servers[far].address() + ": left, as " + servers[1].address() + " is nearer, and up");
    CHECK(c.b->current_rank() == 1);
    CHECK(next() == 1);
    fail(1);
    CHECK(next() == far);
    // Other ranks of the same servers begin a round.
    for (server_address& s : p.servers) s.rank = 1 - s.rank;
    c.b->set_servers(p.servers);
    fail(far);
    CHECK(next() == 5 - far);
    servers[5 - far].shake_hands();
    drive(*c.b, [&] { return c.seen.links.back() == link_state::connected; });
    CHECK(c.b->current_rank() == 0);
}

// The library chooses by itself whether to leave for an added server, and goes through new and old ones apart.
TEST_CASE("c_backend: with ranks, a longer list is no reason to leave, and its order is that of the ranks") {
    for (int i = 0; i < 10; ++i) {
        std::vector<scripted_server> servers(2);
        open_params p;
        for (const scripted_server& s : servers) p.servers.push_back(s.where());
        p.servers[1].rank = 1;
        connection c(p);
        drive(*c.b, [&] { return c.b->has_socket(); });
        turn_of(*c.b, false, true);
        servers[0].shake_hands();
        drive(*c.b, [&] { return c.seen.links.size() == 1; });
        p.servers.push_back({"127.0.0.2", "127.0.0.2", 1, 0});
        p.servers.push_back({"127.0.0.3", "127.0.0.3", 1, 1});
        c.b->set_servers(p.servers);
        REQUIRE(c.seen.links.size() == 1);
        CHECK(c.b->current_server() == servers[0].address());
        servers[0].hang_up();
        drive(*c.b, [&] { return c.seen.links.back() == link_state::disconnected; });
        std::vector<std::string> tried;
        while (tried.size() < 4) {
            drive(*c.b, [&] { return c.b->has_socket(); });
            tried.push_back(c.b->current_server());
            turn_of(*c.b, false, true);
            for (scripted_server& s : servers) {
                if (s.address() != tried.back()) continue;
                s.take_handshake();
                s.hang_up();
            }
            drive(*c.b, [&] { return !c.b->has_socket(); });
        }
        // Between them, one of each rank that refuses connections.
        const std::string nearest = servers[0].address(), far = servers[1].address();
        CHECK(tried == std::vector<std::string>{nearest, far, nearest, far});
    }
}

TEST_CASE("c_backend: failures name the server as its user does") {
    open_params p;
    scripted_server server;
    p.servers = {{"zk1.example", "127.0.0.1", server.port()}, {"zk1-alias", "127.0.0.1", server.port()}};
    connection c(p);
    drive(*c.b, [&] { return c.b->has_socket(); });
    CHECK(c.b->current_server() == server.address() + " (zk1.example)");
    turn_of(*c.b, false, true);
    server.take_handshake();
    server.hang_up();
    until_failed(c);
    CHECK(c.b->last_failure() == server.address() + " (zk1.example)" + hung_up);
}

TEST_CASE("c_backend: a server whose tunnel does not open is tried with its next name") {
    scripted_server server;
    open_params p;
    p.secured = true;
    for (const char* name : {"zk1", "zk1-alias", "zk1-other"}) p.servers.push_back({name, "127.0.0.1", server.port()});
    connection c(p);
    std::vector<std::string> hosts;
    for (std::size_t attempt = 0; attempt < 5; ++attempt) {
        for (int turn = 0; turn < 2000 && hosts.size() == attempt; ++turn) {
            c.b->next_interest();
            if (c.b->is_to_be_secured())
                c.b->secure([&](int, const server_address& to) -> std::unique_ptr<secure_channel> {
                    hosts.push_back(to.host);
                    throw std::runtime_error("no certificate for " + to.host);
                });
            c.b->process(false, true);
        }
        REQUIRE(hosts.size() == attempt + 1);
        CHECK(c.b->last_failure() == server.address() + " (" + hosts.back() + "): no certificate for " + hosts.back());
        CHECK_FALSE(c.b->has_socket());
    }
    CHECK(hosts == std::vector<std::string>{"zk1", "zk1-alias", "zk1-other", "zk1", "zk1-alias"});
    CHECK(c.seen.links.empty());
}

TEST_CASE("c_backend: another list of servers") {
    connection c;
    scripted_server other;
    SECTION("of which only the names have changed leaves the connection alone") {
        c.b->set_servers({{"another-name", "127.0.0.1", c.server.port()}});
        CHECK(c.connected());
        c.server.hang_up();
        drive(*c.b, [&] { return !c.connected(); });
        CHECK(c.b->last_failure() == c.server.address() + " (another-name): closed by the server");
    }
    SECTION("without the current server: its requests end, and the session goes on at another one") {
        REQUIRE_FALSE(c.b->submit(1, get_request{"/a"}));
        c.b->end_batch();
        c.b->set_servers({other.where()});
        CHECK(c.b->last_failure() == c.server.address() + ": left, for it is not in the new list of servers");
        CHECK(c.seen.replies[1].at(0).code == zk_errc::connection_loss);
        other.peers_turn = c.server.peers_turn;
        for (int attempt = 0; attempt < 4 && !c.connected(); ++attempt) {  // one that was dropped may be the first
            drive(*c.b, [&] { return c.b->has_socket(); });
            turn_of(*c.b, false, true);
            try {
                other.shake_hands();
                drive(*c.b, [&] { return c.connected(); });
            } catch (const std::system_error&) {
            }
        }
        CHECK(c.b->current_server() == other.address());
        CHECK(other.handshake.substr(16, 8) == jute_writer().long_number(7).bytes());
    }
}
