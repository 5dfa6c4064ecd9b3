#include "unit/support/requests.hpp"
#include "unit/support/rig.hpp"

#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

// A server sees every path with the chroot in front.
const std::string chroot_path = "/" + std::string(400, 'c');

std::string long_path(int i) { return "/" + std::string(100, 'n') + std::to_string(i); }

}  // namespace

TEST_CASE("limits: without a chroot", "[core][limits]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        transaction steps;
        for (int i = 0; i < 5000; ++i) steps.check(long_path(i));
        co_await zk.multi(steps);
        REQUIRE(r.server.requests.size() == 1);
        CHECK(on_the_wire(r.server.requests[0].what).size() < operations::max_request);
        for (int i = 5000; i < 10'000; ++i) steps.check(long_path(i));
        const std::error_code code = co_await code_of(zk.multi(std::move(steps)));
        CHECK(code == errc::too_large);
        CHECK(r.server.requests.size() == 1);
    };
    r.run(body);
}

TEST_CASE("limits: the chroot counts in a request", "[core][limits]") {
    rig r(client_options("10.0.0.1" + chroot_path));
    auto body = [&](client zk) -> asio::awaitable<void> {
        // 5000 * (117 + 401) bytes: the server would hang up.
        transaction steps;
        for (int i = 0; i < 5000; ++i) steps.check(long_path(i));
        const std::error_code code = co_await code_of(zk.multi(std::move(steps)));
        CHECK(code == errc::too_large);
        CHECK(r.server.requests.empty());
    };
    r.run(body);
}
