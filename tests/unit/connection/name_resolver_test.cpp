#include "support/catch.hpp"
#include "support/test_client.hpp"

#include <zkasio/detail/connection/name_resolver.hpp>

#include <dlfcn.h>
#include <netdb.h>

#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

TEST_CASE("names: a look-up that is under way is waited for, unless other names are asked for", "[names]") {
    test_loop loop;
    const auto alive = std::make_shared<int>();
    name_resolver resolver(strand_type(loop.executor()));
    std::vector<std::pair<std::string, std::vector<server_address>>> found;
    const auto look_up = [&](std::string name, std::uint16_t port) {
        const std::vector<host_port> hosts{{"localhost", port}};
        resolver.resolve(alive, hosts, [&, name](std::vector<server_address> servers, const std::string& failure) {
            CHECK(failure.empty());
            found.emplace_back(name, std::move(servers));
        });
    };
    const auto is_from = [](const std::vector<server_address>& servers, std::uint16_t port) {
        return !servers.empty() && servers.front().port == port && servers.front().host == "localhost" &&
               is_numeric(servers.front().address);
    };
    SECTION("the same, again and again: the first one answers") {
        look_up("first", 1);
        look_up("second", 1);
        look_up("third", 1);
        loop.run();
        REQUIRE(found.size() == 1);
        CHECK(found[0].first == "first");
        CHECK(is_from(found[0].second, 1));
        look_up("fourth", 1);  // afterwards, it is looked up anew
        loop.run();
        CHECK(found.size() == 2);
    }
    SECTION("others") {
        look_up("first", 1);
        look_up("second", 2);
        loop.run();
        REQUIRE(found.size() == 1);
        CHECK(found[0].first == "second");
        CHECK(is_from(found[0].second, 2));
    }
    SECTION("cancelled") {
        look_up("first", 1);
        resolver.cancel();
        look_up("second", 1);
        loop.run();
        REQUIRE(found.size() == 1);
        CHECK(found[0].first == "second");
    }
}

namespace {

// The look-up of this name hangs until it is let go.
constexpr const char* hanging_name = "hangs.invalid";
std::mutex hanging_mutex;
std::condition_variable hanging_changed;
bool hangs = false;

void let_go() {
    const std::lock_guard lock(hanging_mutex);
    hangs = false;
    hanging_changed.notify_all();
}

}  // namespace

extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints, addrinfo** result) {
    using function = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
    static const auto real = reinterpret_cast<function>(::dlsym(RTLD_NEXT, "getaddrinfo"));
    if (node && std::strcmp(node, hanging_name) == 0) {
        std::unique_lock lock(hanging_mutex);
        hanging_changed.wait(lock, [] { return !hangs; });
        node = "127.0.0.7";
    }
    return real(node, service, hints, result);
}

TEST_CASE("names: a look-up that hangs keeps no other server unused", "[names]") {
    test_loop loop;
    const auto alive = std::make_shared<int>();
    name_resolver resolver(strand_type(loop.executor()));
    std::vector<std::size_t> servers;
    const bool hangs_first = GENERATE(false, true);
    std::vector<host_port> hosts{{"127.0.0.1", 1}, {hanging_name, 2}};
    if (hangs_first) std::swap(hosts[0], hosts[1]);
    const auto take = [&](const std::vector<server_address>& found, const std::string& failure) {
        CHECK(failure.empty());
        servers.push_back(found.size());
        let_go();
    };
    hangs = true;
    const auto began = std::chrono::steady_clock::now();
    resolver.resolve(alive, hosts, take);
    CHECK(servers.empty());
    loop.run();
    CHECK(servers == std::vector<std::size_t>{1, 2});
    CHECK(std::chrono::steady_clock::now() - began >= name_resolver::patience);
    // The next time, what it had is known.
    hangs = true;
    resolver.resolve(alive, hosts, take);
    loop.run();
    CHECK(servers == std::vector<std::size_t>{1, 2, 2, 2});
    // Nothing is known: nothing is told.
    servers.clear();
    hangs = true;
    name_resolver other(strand_type(loop.executor()));
    asio::steady_timer later(loop.executor(), name_resolver::patience * 3 / 2);
    later.async_wait([](std::error_code) { let_go(); });
    other.resolve(alive, {{hanging_name, 2}}, take);
    loop.run();
    CHECK(servers == std::vector<std::size_t>{1});
    // Cancelled: the time that is over tells nothing.
    hangs = true;
    other.resolve(alive, hosts, take);
    other.cancel();
    let_go();
    loop.run();
    CHECK(servers.size() == 1);
}

// The certificate of the server may be for one of them only.
TEST_CASE("names: all names of one endpoint are kept", "[names]") {
    test_loop loop;
    const auto alive = std::make_shared<int>();
    name_resolver resolver(strand_type(loop.executor()));
    std::vector<std::string> found;
    const std::vector<host_port> hosts{{"127.0.0.1", 1}, {"localhost", 1}, {"localhost", 1}, {"127.0.0.1", 1}};
    resolver.resolve(alive, hosts, [&](const std::vector<server_address>& servers, const std::string& failure) {
        CHECK(failure.empty());
        for (const server_address& s : servers)
            if (s.address == "127.0.0.1") found.push_back(s.host);
    });
    loop.run();
    CHECK(found == std::vector<std::string>{"127.0.0.1", "localhost"});
}
