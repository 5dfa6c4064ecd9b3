#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "unit/support/counting_new.hpp"

#include <zkasio/detail/connection/name_resolver.hpp>

#include <memory>
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
    name_resolver resolver(asio::make_strand(loop.executor()));
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

#ifdef ZKASIO_TEST_COUNTS_NEW
TEST_CASE("names: a look-up that could not begin does not stand in the way of the next one", "[names]") {
    const std::vector<host_port> hosts{{"localhost", 1}};
    std::string failed;
    for (long n = 0; failed.empty() && n < 40; ++n) {  // until the resolver itself gets no memory
        test_loop loop;
        const auto alive = std::make_shared<int>();
        name_resolver resolver(asio::make_strand(loop.executor()));
        int done = 0;
        const auto take = [&](const std::vector<server_address>&, const std::string& failure) {
            ++done;
            if (!failure.empty()) failed = failure;
        };
        news_until_refusal = n;
        try {
            resolver.resolve(alive, hosts, take);
        } catch (const std::bad_alloc&) {
        }
        news_until_refusal = -1;
        resolver.resolve(alive, hosts, take);
        loop.run();
        CHECK(done > 0);
    }
    CHECK(failed == "localhost: std::bad_alloc");
}
#endif

// The certificate of the server may be for one of them only.
TEST_CASE("names: all names of one endpoint are kept", "[names]") {
    test_loop loop;
    const auto alive = std::make_shared<int>();
    name_resolver resolver(asio::make_strand(loop.executor()));
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
