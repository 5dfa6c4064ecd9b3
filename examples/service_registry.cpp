// Servers that come and go, and a client that balances over those that are there: service_registry 127.0.0.1:2181
#include "expect.hpp"

#include <zkasio/create_options.hpp>
#include <zkasio/discovery/instance_format.hpp>
#include <zkasio/discovery/provider.hpp>
#include <zkasio/discovery/registry.hpp>
#include <zkasio/discovery/service_instance.hpp>

#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <charconv>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
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
// For a balancer with a policy of its own, as gRPC's: all addresses, at first and after each change. An instance
// without a port has none.
class resolver {
public:
    explicit resolver(const zkasio::provider& of) : of_(of) {}

    asio::awaitable<std::vector<std::string>> next() {
        known_ = co_await of_.changed(known_);
        std::vector<std::string> addresses;
        for (const zkasio::service_instance& is : known_.instances())
            if (is.enabled() && is.port()) addresses.push_back(joined(is.address(), *is.port()));
        co_return addresses;
    }
    static std::string joined(const std::string& address, std::uint16_t port) {
        const bool is_ipv6 = address.find(':') != std::string::npos;
        return (is_ipv6 ? '[' + address + ']' : address) + ':' + std::to_string(port);
    }

private:
    const zkasio::provider& of_;
    zkasio::service_view known_;
};
// [/resolver]

// [dubbo]
// Dubbo's providers: "dubbo://10.0.0.1:20880/com.example.Orders?side=provider", encoded, is the name of a node.
std::string decoded(std::string_view text) {
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
        unsigned code = 0;
        const char* const digits = text.data() + i + 1;
        const bool is_encoded = text[i] == '%' && i + 2 < text.size() &&
                                std::from_chars(digits, digits + 2, code, 16).ptr == digits + 2;
        result += is_encoded ? static_cast<char>(code) : text[i];
        if (is_encoded) i += 2;
    }
    return result;
}

zkasio::service_instance read_dubbo(const zkasio::instance_format::node& of) {
    const std::string url = decoded(of.name);
    const std::size_t scheme = url.find("://");
    if (scheme == url.npos) throw std::runtime_error("this is no URL of Dubbo");
    const std::string_view rest = std::string_view(url).substr(scheme + 3);
    const std::string_view server = rest.substr(0, rest.find_first_of("/?"));
    zkasio::service_instance is = zkasio::instance_format::host_and_port().read({of.service, of.name, server});
    return is.id(std::string(of.name));
}

// The services of this registry are what is below the interface: "providers" (and "consumers", which have no port).
zkasio::registry dubbo(zkasio::client zk, const std::string& of_interface) {
    return {zk, "/dubbo/" + of_interface, zkasio::registry_options().format(zkasio::instance_format(read_dubbo))};
}
// [/dubbo]

void print(const char* when, const std::map<std::string, int>& answered) {
    std::cout << when << ":";
    for (const auto& [id, n] : answered) std::cout << ' ' << id << "=" << n;
    std::cout << "\n";
}

asio::awaitable<void> until_known(const zkasio::provider& orders, std::size_t instances) {
    zkasio::service_view known = orders.view();
    while (known.instances().size() != instances) known = co_await orders.changed(known);
}

asio::awaitable<void> read_providers(zkasio::client zk) {
    const std::string url = "dubbo%3A%2F%2F10.0.0.1%3A20880%2Fcom.example.Orders%3Fside%3Dprovider%26weight%3D3";
    const std::string directory = "/dubbo/com.example.Orders/providers";
    co_await zk.create_unless_exists(directory + '/' + url, "", zkasio::with_parents());
    const zkasio::service_view found = co_await dubbo(zk, "com.example.Orders").instances("providers");
    expect(found.instances().size() == 1, "one provider");
    const zkasio::service_instance one = found.instances().front();
    expect(one.address() == "10.0.0.1" && one.port() == 20880 && one.id() == url, "its address");
    co_await zk.remove_recursive("/dubbo/com.example.Orders");
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

    expect(resolver::joined("::1", 80) == "[::1]:80", "an address in brackets");
    co_await read_providers(zk);
}

void all(std::string servers) {
    asio::io_context io;
    asio::co_spawn(io, example({io, zkasio::client_options(servers).session_timeout(10s)}), rethrow);
    io.run();  // until the client is gone
}

int main(int argc, char** argv) { return run_example(argc, argv, all); }
