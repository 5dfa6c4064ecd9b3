#pragma once

#include "support/test_client.hpp"
#include "unit/support/rig.hpp"

#include <chrono>
#include <memory>
#include <utility>

namespace zkasio::test {

/// A client with two servers: one of the ensemble, and one that has been cut off from it.
class read_only_rig {
public:
    static client_options reader() { return rig::quick().allow_read_only(); }
    explicit read_only_rig(client_options o = reader())
        : core(std::make_shared<detail::core>(loop.executor(), std::move(o), factory())) {
        alone.reachable = false;
    }

    template <class Body>
    void run(Body& body) {
        run_client(loop, core, body);
        CHECK(core->pending_operations() == 0);
        CHECK(core->watches() == 0);
        CHECK(quorum.backends_alive == 0);
        CHECK(alone.backends_alive == 0);
    }

    // Until the client reads from the server that was cut off.
    asio::awaitable<void> lose_quorum(client zk) {
        co_await zk.connected();
        quorum.reachable = false;
        quorum.drop();
        alone.reachable = true;
        co_await until_state(zk, session_state::read_only);
    }
    asio::awaitable<void> regain_quorum(client zk) {
        quorum.reachable = true;
        co_await zk.connected();
    }
    asio::awaitable<void> until_state(client zk, session_state wanted) {
        const auto reached = [&]() -> asio::awaitable<bool> { co_return zk.state() == wanted; };
        co_await eventually(reached);
    }

    fake_server quorum, alone;
    test_loop loop{std::chrono::seconds(20)};
    std::shared_ptr<detail::core> core;

private:
    // The client's own link is the first that makes a backend.
    detail::backend_factory factory() {
        return [this](detail::backend_listener& l) {
            if (!own_) own_ = &l;
            return (&l == own_ ? quorum : alone).factory()(l);
        };
    }
    detail::backend_listener* own_ = nullptr;
};

}  // namespace zkasio::test
