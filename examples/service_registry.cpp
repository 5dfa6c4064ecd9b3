// Servers that come and go, and a client that balances over those that are there: service_registry 127.0.0.1:2181
#include "expect.hpp"

#include <zkasio/discovery/provider.hpp>
#include <zkasio/discovery/registry.hpp>
#include <zkasio/discovery/service_instance.hpp>

#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <chrono>
#include <iostream>
#include <map>
#include <string>
#include <vector>

using namespace std::chrono_literals;

// [announce]
asio::awaitable<zkasio::announcement> serve(zkasio::client zk, std::string id, std::uint16_t port) {
    zkasio::service_instance me("orders");
    me.id(id).address("127.0.0.1").port(port);
    me.uri_spec(zkasio::uri_spec_of("{scheme}://{address}:{port}/orders"));  // what uri_of() makes an address of
    const zkasio::registry services(zk, "/discovery-example");
    co_return co_await services.announce(me);  // for as long as this object lives, in one session after another
}
// [/announce]

// A request to a server: "b" is broken at first.
asio::awaitable<bool> request(const zkasio::service_instance& to, bool b_works) {
    const auto executor = co_await asio::this_coro::executor;
    co_await asio::post(executor, asio::use_awaitable);
    co_return b_works || to.id() != "b";
}

// [pick]
asio::awaitable<std::map<std::string, int>> use(const zkasio::provider& orders, int requests, bool b_works) {
    std::map<std::string, int> answered;
    for (int i = 0; i < requests; ++i) {
        zkasio::picked server = co_await orders.pick();  // waits while there is none
        const bool good = co_await request(*server, b_works);
        if (good)
            ++answered[server->id()];
        else
            server.report_failure();  // twice, and it is left out for a while
    }
    co_return answered;
}
// [/pick]

// [resolver]
// For a balancer with a policy of its own, as gRPC's: all addresses, at first and after each change.
class resolver {
public:
    explicit resolver(const zkasio::provider& of) : of_(of) {}

    asio::awaitable<std::vector<std::string>> next() {
        known_ = co_await of_.changed(known_);
        std::vector<std::string> addresses;
        for (const zkasio::service_instance& is : known_.instances())
            if (is.enabled()) addresses.push_back(is.address() + ':' + std::to_string(is.port().value_or(0)));
        co_return addresses;
    }

private:
    const zkasio::provider& of_;
    zkasio::service_view known_;
};
// [/resolver]

void print(const char* when, const std::map<std::string, int>& answered) {
    std::cout << when << ":";
    for (const auto& [id, n] : answered) std::cout << ' ' << id << "=" << n;
    std::cout << "\n";
}

asio::awaitable<void> until_known(const zkasio::provider& orders, std::size_t instances) {
    zkasio::service_view known = orders.view();
    while (known.instances().size() != instances) known = co_await orders.changed(known);
}

asio::awaitable<void> example(zkasio::client zk) {
    zkasio::provider_options how;
    how.eject_after(2, 1h);  // 30 s by default
    const zkasio::provider orders(zk, "/discovery-example", "orders", how);
    const zkasio::announcement a = co_await serve(zk, "a", 8001);
    zkasio::announcement b = co_await serve(zk, "b", 8002);
    co_await until_known(orders, 2);
    resolver addresses(orders);
    const std::vector<std::string> first = co_await addresses.next();
    expect(first == std::vector<std::string>{"127.0.0.1:8001", "127.0.0.1:8002"}, "both addresses");
    const zkasio::picked one = co_await orders.pick();
    expect(zkasio::uri_of(*one).starts_with("http://127.0.0.1:800"), "its address");
    auto answered = co_await use(orders, 20, false);
    print("b is broken", answered);
    expect(answered["a"] == 18 && answered["b"] == 0, "b gets two requests");

    co_await b.withdraw();  // it is repaired, and begins anew
    co_await until_known(orders, 1);
    b = co_await serve(zk, "b", 8002);
    co_await until_known(orders, 2);
    answered = co_await use(orders, 20, true);
    print("b is back", answered);
    expect(answered["b"] == 10, "half of them");

    co_await a.withdraw();
    co_await until_known(orders, 1);
    const std::vector<std::string> last = co_await addresses.next();
    expect(last == std::vector<std::string>{"127.0.0.1:8002"}, "the newest addresses");
    answered = co_await use(orders, 10, true);
    print("a has gone", answered);
    expect(answered["b"] == 10, "all of them");
}

void all(std::string servers) {
    asio::io_context io;
    asio::co_spawn(io, example({io, zkasio::client_options(servers).session_timeout(10s)}), rethrow);
    io.run();  // until the client is gone
}

int main(int argc, char** argv) { return run_example(argc, argv, all); }
