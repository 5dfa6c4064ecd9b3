// What a pick costs in memory: nothing.
#include "unit/support/counting_new.hpp"
#include "unit/support/error_of.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/discovery/provider.hpp>

#include <optional>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;

#ifdef ZKASIO_TEST_COUNTS_NEW

namespace {

// Servers with ten instances of a service.
std::optional<detail::reply> ten_instances(const detail::request& asked) {
    detail::reply r;
    if (std::holds_alternative<detail::children_request>(asked)) {
        for (int i = 0; i < 10; ++i) r.children.push_back(std::to_string(i));
    } else if (std::holds_alternative<detail::get_request>(asked)) {
        r.data = service_instance("orders").payload(R"({"weight":2})").to_json();
    }
    return r;
}

const std::vector<pick_strategy>& strategies() {
    static const std::vector<pick_strategy> all{
        pick_strategy::round_robin(), pick_strategy::random(), pick_strategy::least_outstanding(),
        pick_strategy::sticky(), pick_strategy::weighted([](const service_instance&) { return 2.0; })};
    return all;
}

}  // namespace

TEST_CASE("provider: a pick asks for no memory") {
    for (const pick_strategy& strategy : strategies()) {
        rig r;
        r.server.answer = &ten_instances;
        r.server.nodes_are_ours = false;  // ephemeral ones have no children
        auto body = [&](client zk) -> asio::awaitable<void> {
            const provider orders(zk, "/base", "orders", provider_options().strategy(strategy).eject_after(2, 1h));
            picked broken = co_await orders.pick();
            for (int round = 0; round < 2; ++round) {
                long before = news;
                for (int i = 0; i < 1000; ++i) {
                    const picked p = orders.try_pick();
                    const picked q = orders.try_pick_for("key");
                    if (!p || !q) throw std::runtime_error("there are ten");
                }
                CHECK(news == before);
                // The coroutine's frame is memory that Asio keeps for the thread.
                for (int i = 0; i < 1000; ++i) {
                    if (i == 10) before = news;
                    const picked p = co_await orders.pick();
                }
                CHECK(news == before);
                // And in the second round with one that is ejected.
                broken.report_failure();
                broken = co_await orders.pick();
                broken.report_failure();
            }
            co_await orders.close();
        };
        r.run(body);
    }
}

#endif
