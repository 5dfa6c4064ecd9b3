#pragma once

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "unit/support/fake_server.hpp"

#include <zkasio/client.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace zkasio::test {

/// Runs `body(client)`, closes the client, and runs the loop dry.
template <class Body>
void run_client(test_loop& loop, const std::shared_ptr<detail::core>& core, Body& body) {
    std::function<asio::awaitable<void>()> task = [&]() -> asio::awaitable<void> {
        const client zk = client_over(core);
        std::exception_ptr failed;
        try {
            co_await body(zk);
        } catch (...) {
            failed = std::current_exception();
        }
        co_await zk.close();
        if (failed) std::rethrow_exception(failed);
    };
    loop.run(task());
}

/// A client over a fake server, and the loop that both live on.
class rig {
public:
    explicit rig(client_options o = quick()) : core(make_core(loop.executor(), std::move(o))) {}

    /// Times are short; nothing waits for them unless the test is about them.
    static client_options quick() {
        return client_options("10.0.0.1:2181").close_timeout(std::chrono::milliseconds(200)).log(nullptr);
    }

    /// Runs `body(client)`, closes the client, runs the loop dry, and checks that nothing is left.
    template <class Body>
    void run(Body& body) {
        run_client(loop, core, body);
        nothing_left();
    }

    void nothing_left() const {
        CHECK(core->pending_operations() == 0);
        CHECK(core->watches() == 0);
        CHECK(server.backends_alive == 0);
        CHECK(std::count(server.log.begin(), server.log.end(), "set_watches") == 0);
    }

    std::shared_ptr<detail::core> make_core(asio::any_io_executor executor, client_options o) {
        return std::make_shared<detail::core>(std::move(executor), std::move(o), server.factory());
    }

    fake_server server;
    test_loop loop{std::chrono::seconds(20)};
    std::shared_ptr<detail::core> core;
};

// Operations for `running` and `test_loop::spawn`, where the result does not matter.
inline asio::awaitable<void> get(operations on, std::string path) { co_await on.get(std::move(path)); }
inline asio::awaitable<void> close(client zk, std::vector<close_result>& results) {
    const close_result how = co_await zk.close();
    results.push_back(how);
}
inline asio::awaitable<void> set(operations on, std::string path) { co_await on.set(std::move(path), "x"); }
inline asio::awaitable<void> nothing() { co_return; }
inline asio::awaitable<void> connect(client zk) { co_await zk.connected(); }
inline asio::awaitable<void> change(watch w) { co_await w.changed(); }
/// For conditions that no event of the fake server tells of.
inline asio::awaitable<void> next_turns(fake_server& s) {
    co_await s.until([&s, turn = s.turns] { return s.turns > turn + 2; });
}

}  // namespace zkasio::test
