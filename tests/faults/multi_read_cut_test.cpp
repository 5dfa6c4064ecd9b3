// Requests that the C library does not know, between its own, on connections that are cut at each byte of what is sent,
// and of what is answered.

#include "support/fault_proxy.hpp"
#include "support/test_client.hpp"
#include "support/transport.hpp"

#include <zkasio/error.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace multi_read_cut_test {

using namespace zkasio;
using namespace zkasio::test;

namespace {

constexpr std::size_t nodes = 4;
constexpr std::size_t clients = 5;  // at once, since each pauses before it connects again
// More than one multi_read, one get and one who_am_i have together, so that the cuts fall on each byte of each of them.
constexpr std::size_t bytes_of_requests = 420, bytes_of_answers = 640;
constexpr std::size_t all_connections = 2 * bytes_of_answers;

// How many bytes pass: enough for some answers (the client pauses after connections that are of no use), and one more
// with each connection that is cut in this direction.
fault_proxy::plan plan_of(std::size_t connection) {
    const std::size_t enough = transport::current().is_secure() ? 8000 : 2000;
    const std::size_t more = connection / 2;
    fault_proxy::plan p;
    if (connection % 2 == 0)
        p.cut_requests_after = enough + more % bytes_of_requests;
    else
        p.cut_replies_after = enough + more;
    p.how = connection % 3 == 0 ? fault_proxy::end::fin : fault_proxy::end::rst;
    return p;
}

struct seen {
    std::size_t answered = 0, lost = 0, wrong = 0;
};

asio::awaitable<void> read_all(client zk, std::string dir, const fault_proxy& network, seen& is) {
    while (network.connections() < all_connections) {
        read_list all;
        for (std::size_t i = 0; i < nodes; ++i) all.get(dir + "/n" + std::to_string(i));
        all.children(dir).get(dir + "/none");
        try {
            const std::vector<read_result> found = co_await zk.multi_read(all);
            ++is.answered;
            bool good = found.size() == nodes + 2 && found[nodes].names.size() == nodes;
            for (std::size_t i = 0; good && i < nodes; ++i) good = found[i].data == "data " + std::to_string(i);
            is.wrong += good && found.back().code == zk_errc::no_node ? 0 : 1;
        } catch (const error& e) {
            ++is.lost;
            is.wrong += e.code() == condition::retryable ? 0 : 1;
        }
    }
}

asio::awaitable<void> read_singly(client zk, std::string dir, const fault_proxy& network, seen& is) {
    for (std::size_t i = 0; network.connections() < all_connections; i = (i + 1) % nodes) {
        try {
            const node_data found = co_await zk.get(dir + "/n" + std::to_string(i));
            ++is.answered;
            is.wrong += found.data == "data " + std::to_string(i) ? 0 : 1;
            const std::vector<acl_id> who = co_await zk.who_am_i();
            is.wrong += who.empty() ? 1 : 0;
        } catch (const error& e) {
            ++is.lost;
            is.wrong += e.code() == condition::retryable ? 0 : 1;
        }
    }
}

}  // namespace

TEST_CASE("multi_read on connections that are cut at each byte, beside other requests") {
    auto body = [](client direct) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(direct, "multi_read-cut");
        for (std::size_t i = 0; i < nodes; ++i)
            co_await direct.create(dir + "/n" + std::to_string(i), "data " + std::to_string(i));
        fault_proxy network(first_server());
        network.plan_connections(&plan_of);
        const auto executor = co_await asio::this_coro::executor;
        std::vector<client> all;
        for (std::size_t i = 0; i < clients; ++i) all.push_back(test_client(executor, options(network.address())));
        seen several, single;
        std::vector<running> readers;
        for (const client& zk : all) {
            readers.emplace_back(executor, read_all(zk, dir, network, several));
            readers.emplace_back(executor, read_singly(zk, dir, network, single));
        }
        for (const running& one : readers) {
            const std::error_code failed = co_await one.code();
            CHECK_FALSE(failed);
        }
        CHECK(several.answered > all_connections);
        CHECK(single.answered > all_connections);
        CHECK(several.wrong == 0);
        CHECK(single.wrong == 0);
        network.plan_connections([](std::size_t) { return fault_proxy::plan(); });
        network.cut_all();
        for (const client& zk : all) co_await zk.close();
    };
    with_client_for(120s, options(), body);
}

}  // namespace multi_read_cut_test
