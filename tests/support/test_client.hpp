#pragma once

#include "support/catch.hpp"
#include "support/client_over.hpp"
#include "support/pace.hpp"
#include "support/surroundings.hpp"
#include "support/test_server.hpp"
#include "support/transport.hpp"

#include <zkasio/client.hpp>
#include <zkasio/detail/client/core.hpp>

#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace zkasio::test {

using namespace std::chrono_literals;

/// What a test needs most: session timeout short enough to wait for, long enough for this machine.
inline client_options options(const std::string& servers = shared_servers()) {
    return transport::current()
        .of_clients(client_options(servers))
        .session_timeout(paced(4s))
        .connection_timeout(paced(20s));
}

/// A client whose inside a test can look at.
class test_client : public client {
public:
    test_client(asio::any_io_executor executor, client_options o)
        : client(surroundings::current().make_client(std::move(executor), std::move(o))) {}

    detail::core& inside() const { return *core_; }
};

/// Runs coroutines until all of them, and all that they left in the loop, have ended. A test that does not end within
/// `patience` fails. One whose coroutine has thrown does so soon, as its clients may be left open.
class test_loop {
public:
    explicit test_loop(std::chrono::seconds patience = 60s)
        : loop_(surroundings::current().make_loop()), patience_(paced(patience)) {}

    asio::io_context& context() { return loop_->context(); }
    asio::any_io_executor executor() { return context().get_executor(); }

    /// Starts one; its exception makes run() throw.
    void spawn(asio::awaitable<void> task) {
        asio::co_spawn(context(), std::move(task), [this](std::exception_ptr e) {
            if (!e || failed_) return;
            failed_ = e;
            give_up_ = std::min(give_up_, std::chrono::steady_clock::now() + 5s);
        });
    }

    void run() {
        give_up_ = std::chrono::steady_clock::now() + patience_;
        const bool dry = loop_->run_dry(give_up_);
        if (failed_) std::rethrow_exception(std::exchange(failed_, nullptr));
        if (!dry) FAIL("the event loop did not run dry within " << patience_.count() << " ms");
    }

    void run(asio::awaitable<void> task) {
        spawn(std::move(task));
        run();
    }

private:
    std::unique_ptr<event_loop> loop_;
    std::chrono::milliseconds patience_;
    std::chrono::steady_clock::time_point give_up_;
    std::exception_ptr failed_;
};

/// Runs `body(client)`, closes the client, and checks that nothing is left behind.
template <class Body>
void with_client_for(std::chrono::seconds patience, client_options o, Body body) {
    test_loop loop(patience);
    const test_client zk(loop.executor(), std::move(o));
    std::function<asio::awaitable<void>()> task = [&]() -> asio::awaitable<void> {
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
    CHECK(zk.inside().pending_operations() == 0);
    CHECK(zk.inside().watches() == 0);
}

template <class Body>
void with_client(client_options o, Body body) {
    with_client_for(60s, std::move(o), std::move(body));
}

template <class Body>
void with_client(Body body) {
    with_client(options(), std::move(body));
}

/// The code of the error that `operation` ends with; ok when it does not.
template <class T>
asio::awaitable<std::error_code> code_of(asio::awaitable<T> operation) {
    std::error_code code;
    try {
        static_cast<void>(co_await std::move(operation));
    } catch (const std::system_error& e) {
        code = e.code();
    }
    co_return code;
}

/// The text of that error.
template <class T>
asio::awaitable<std::string> message_of(asio::awaitable<T> operation) {
    std::string text;
    try {
        static_cast<void>(co_await std::move(operation));
    } catch (const std::exception& e) {
        text = e.what();
    }
    co_return text;
}

/// For conditions that only polling can see. Fails the test when it takes too long.
template <class Condition>
asio::awaitable<void> eventually(Condition condition, std::chrono::seconds patience = 20s) {
    const auto give_up = std::chrono::steady_clock::now() + paced(patience);
    asio::steady_timer timer(co_await asio::this_coro::executor);
    for (;;) {
        const bool reached = co_await condition();
        if (reached) co_return;
        if (std::chrono::steady_clock::now() > give_up)
            throw std::runtime_error("the condition was not reached in time");
        timer.expires_after(10ms);
        co_await timer.async_wait(asio::use_awaitable);
    }
}

/// Starts a coroutine that can be cancelled, and whose end can be awaited.
class running {
public:
    running(asio::any_io_executor executor, asio::awaitable<void> task);
    void cancel(asio::cancellation_type how = asio::cancellation_type::terminal);
    /// The exception that it ended with, if any.
    asio::awaitable<std::exception_ptr> end() const;
    asio::awaitable<std::error_code> code() const;
    bool ended() const { return state_->ended; }

private:
    struct state;
    std::shared_ptr<state> state_;

    struct state {
        explicit state(const asio::any_io_executor& e) : ended_timer(e, asio::steady_timer::time_point::max()) {}
        asio::cancellation_signal signal;
        asio::steady_timer ended_timer;
        bool ended = false;
        std::exception_ptr failed;
    };
};

/// A directory of the test's own, removed at the end of the next test that uses the same name.
asio::awaitable<std::string> fresh_directory(client zk, std::string name);

/// Ends the session of `victim` at the servers, as an expiry does; the victim may not have learnt of it yet.
asio::awaitable<void> expire_session(client victim);

}  // namespace zkasio::test
