#pragma once

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/error.hpp>
#include <zkasio/testing/fake_ensemble.hpp>
#include <zkasio/transact/transact.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <system_error>

/// What the tests of transact() over a fake_ensemble have in common.
namespace transact_tests {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

inline transact_options certain() { return transact_options().receipts("/receipts"); }

using seen = std::optional<node_data>;
using body_function = std::function<asio::awaitable<std::string>(unit&)>;

struct outcome {
    std::optional<std::string> done;
    std::error_code code;
    bool unknown = false;
    std::string what;
};

inline asio::awaitable<outcome> try_transact(client zk, body_function body, transact_options how = certain()) {
    outcome o;
    try {
        o.done = co_await transact(zk, body, how);
    } catch (const error& e) {
        o.code = e.code();
        o.unknown = e.outcome_unknown();
        o.what = e.what();
    } catch (const std::system_error& e) {
        o.code = e.code();
    }
    co_return o;
}

inline asio::awaitable<void> pause(std::chrono::milliseconds time) {
    asio::steady_timer timer(co_await asio::this_coro::executor);
    timer.expires_after(time);
    co_await timer.async_wait(asio::use_awaitable);
}

inline int number_in(const seen& n) { return n ? std::stoi(n->data) : 0; }
inline int number_at(const fake_ensemble& e, const std::string& path) { return std::stoi(e.data(path).value_or("0")); }

/// Moves 1 from /a to /b; each may be missing.
inline asio::awaitable<std::string> move_one(unit& u) {
    const seen a = co_await u.get("/a");
    const seen b = co_await u.get("/b");
    const auto write = [&](const std::string& path, const seen& before, int n) {
        if (before)
            u.set(path, std::to_string(n));
        else
            u.create(path, std::to_string(n));
    };
    write("/a", a, number_in(a) - 1);
    write("/b", b, number_in(b) + 1);
    co_return std::to_string(number_in(a) + number_in(b));
}

/// Runs `body(ensemble, client)`, closes the client, and checks that nothing but the nodes is left.
template <class Body>
void with_ensemble(Body body, std::uint64_t seed = 1) {
    fake_ensemble e(seed);
    const client zk = e.client(calm());
    auto all = [&]() -> asio::awaitable<void> {
        co_await body(e, zk);
        co_await zk.idle();
        CHECK(e.watches() == 0);
        co_await zk.close();
        CHECK(e.children("/receipts").empty());
        CHECK(e.sessions() == 0);
    };
    e.run(all);
}

}  // namespace transact_tests
