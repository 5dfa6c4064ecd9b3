// How a provider ends: at once, without a word, and with nothing left of it.
#include "support/fork_child.hpp"
#include "unit/support/error_of.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/discovery/detail/provider_state.hpp>
#include <zkasio/discovery/provider.hpp>
#include <zkasio/discovery/service_instance.hpp>

#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>

#include <array>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

using namespace zkasio;
using namespace zkasio::test;

namespace {

// Is freed with the provider's state.
provider_options with_token(std::shared_ptr<int> token) {
    provider_options o;
    o.filter([token = std::move(token)](const service_instance&) { return *token == 1; });
    return o;
}

// No instances.
void serve_no_children(fake_server& server) { server.nodes_are_ours = false; }

bool watches_orders(const fake_server& server) {
    return server.watched("/base/orders", detail::watch_kind::children);
}

// The id of an instance that a child process makes.
std::string id_in_a_child() {
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    const pid_t pid = fork_child([&] {
        const std::string id = service_instance("orders").id();
        const bool written = ::write(ends[1], id.data(), id.size()) == static_cast<ssize_t>(id.size());
        return std::string(written ? "" : "the pipe takes no id");
    });
    ::close(ends[1]);
    std::string id(36, ' ');
    const ssize_t read = ::read(ends[0], id.data(), id.size());
    ::close(ends[0]);
    int status = 0;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    CHECK(status == 0);
    CHECK(read == 36);
    return id;
}

}  // namespace

TEST_CASE("service_instance: processes that were forked have different ids") {
    const std::string before = service_instance("orders").id();
    const std::string first = id_in_a_child();
    const std::string second = id_in_a_child();
    const std::string own = service_instance("orders").id();
    CHECK(first != second);
    CHECK(first != own);
    CHECK(second != own);
    CHECK(before != own);
}

TEST_CASE("provider: nothing is left of it where its context never runs") {
    std::weak_ptr<int> freed;
    {
        asio::io_context io;
        const client zk(io, client_options("127.0.0.1:1"));
        auto token = std::make_shared<int>(1);
        freed = token;
        const provider orders(zk, "/base", "orders", with_token(std::move(token)));
        CHECK_FALSE(freed.expired());
    }
    CHECK(freed.expired());
}

TEST_CASE("provider: nothing is left of it where its context runs no more") {
    fake_server server;
    serve_no_children(server);
    std::weak_ptr<int> freed;
    {
        asio::io_context io;
        const client zk = client_over(
            std::make_shared<detail::core>(io.get_executor(), rig::quick(), server.factory()));
        auto token = std::make_shared<int>(1);
        freed = token;
        const provider orders(zk, "/base", "orders", with_token(std::move(token)));
        bool ready = false;
        asio::co_spawn(io, orders.ready(), [&](const std::exception_ptr&) { ready = true; });
        while (!ready && io.run_one_for(10s) > 0) {
        }
        CHECK(orders.view().current());
    }
    CHECK(freed.expired());
}

TEST_CASE("provider: its watches go with it although something it has returned was not awaited") {
    rig r;
    serve_no_children(r.server);
    auto body = [&](client zk) -> asio::awaitable<void> {
        std::optional<provider> orders(std::in_place, zk, "/base", "orders");
        co_await orders->ready();
        CHECK(watches_orders(r.server));
        const asio::awaitable<picked> pick = orders->pick();
        const asio::awaitable<void> ready = orders->ready();
        const asio::awaitable<service_view> changed = orders->changed(orders->view());
        const asio::awaitable<void> close = orders->close();
        orders.reset();
        co_await zk.idle();
        CHECK_FALSE(watches_orders(r.server));
    };
    r.run(body);
}

TEST_CASE("provider: the log does not tell of its end") {
    std::vector<std::string> lines;
    rig r(rig::quick().log([&](std::string_view line) { lines.emplace_back(line); }));
    serve_no_children(r.server);
    auto body = [&](client zk) -> asio::awaitable<void> {
        const provider closed(zk, "/base", "orders");
        const provider not_ready(zk, "/base", "orders");
        co_await not_ready.close();
        std::optional<provider> destroyed(std::in_place, zk, "/base", "orders");
        co_await closed.ready();
        co_await destroyed->ready();
        co_await closed.close();
        co_await closed.close();
        destroyed.reset();
        co_await zk.idle();
        const provider there_when_the_client_closes(zk, "/base", "orders");
        co_await there_when_the_client_closes.ready();
        co_await zk.close();
        const std::string said = co_await message_of(there_when_the_client_closes.pick());
        CHECK(said == "pick /base/orders: client closed");
    };
    r.run(body);
    for (const std::string& line : lines) {
        INFO(line);
        CHECK_FALSE(has(line, "in the background"));
    }
}

TEST_CASE("provider: errors say whose they are") {
    rig r;
    serve_no_children(r.server);
    auto body = [&](client zk) -> asio::awaitable<void> {
        const provider orders(zk, "/base", "orders");
        const std::string late = co_await message_of(timeout(10ms, orders.pick()));
        CHECK(has(late, "pick /base/orders"));
        co_await orders.close();
        const std::string closed = co_await message_of(orders.pick());
        CHECK(closed == "pick /base/orders: client closed");

        // What has ended it is said as it was.
        using discovery_detail::provider_state;
        const auto failed = std::make_shared<provider_state>(zk, "/base/orders", provider_options());
        failed->end(std::make_exception_ptr(std::runtime_error("no paper")));
        failed->end(nullptr);
        const std::string why = co_await message_of(provider_state::ready(failed));
        CHECK(why == "no paper");
    };
    r.run(body);
}
