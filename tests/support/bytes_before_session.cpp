#include "support/bytes_before_session.hpp"

#include "support/test_client.hpp"
#include "support/transport.hpp"

namespace zkasio::test {

std::size_t bytes_before_session(fault_proxy& proxy, bool requests) {
    if (!transport::current().is_secure()) return 0;
    // A server's first handshake takes long: so long, on a machine that is busy, that the client tries again.
    auto once = [](client zk) -> asio::awaitable<void> { co_await zk.connected(); };
    with_client(options(proxy.address()), once);
    std::size_t too_few = 0, enough = 8000;  // for the session's answer
    while (enough - too_few > 4) {
        const std::size_t n = (too_few + enough) / 2, base = proxy.connections();
        proxy.plan_connections([=](std::size_t connection) {
            fault_proxy::plan p;
            if (connection == base) (requests ? p.cut_requests_after : p.cut_replies_after) = n;
            return p;
        });
        bool first = false;
        auto body = [&](client zk) -> asio::awaitable<void> {
            co_await zk.connected();
            first = proxy.connections() == base + 1;
        };
        with_client(options(proxy.address()), body);
        (first ? enough : too_few) = n;
    }
    constexpr std::size_t asking = 49 + 29, answer = 41 + 29;
    return too_few - (requests ? asking : answer);
}

}  // namespace zkasio::test
