#include "unit/support/fake_tree.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/unfair_mutex.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

// Nothing but the guard is left of what this makes.
asio::awaitable<lock_guard> acquired_by_a_factory(core_ptr inside) {
    const client zk = client_over(std::move(inside));
    const mutex lock(zk, "/lock");
    co_return co_await lock.acquire();
}

asio::awaitable<std::vector<lock_guard>> two_of_a_factory(core_ptr inside) {
    const client zk = client_over(std::move(inside));
    std::vector<lock_guard> both;
    both.push_back(co_await mutex(zk, "/lock").acquire());
    both.push_back(co_await unfair_mutex(zk, "/lock/flag").acquire());
    co_return both;
}

bool goodbye_said(const fake_server& s) { return std::find(s.log.begin(), s.log.end(), "goodbye") != s.log.end(); }

struct bench : rig {
    bench() {
        server.answer = [this](const request& q) { return tree(q); };
    }
    fake_tree tree;
};

asio::awaitable<void> held_until_told(core_ptr inside, bool& held) {
    const lock_guard guard = co_await acquired_by_a_factory(std::move(inside));
    held = guard.held();
    co_await guard.lost();
}

}  // namespace

TEST_CASE("guard: what a function returns that made the client is held until it is released", "[guard]") {
    bench r;
    auto steps = [&]() -> asio::awaitable<void> {
        lock_guard guard = co_await acquired_by_a_factory(r.core);
        co_await next_turns(r.server);
        co_await next_turns(r.server);
        CHECK(guard.held());
        CHECK(guard.reason() == loss_reason::none);
        CHECK(r.core->state() == session_state::connected);
        const std::string path = guard.path();
        CHECK(r.tree.has(path));

        lock_guard moved = std::move(guard);
        guard = lock_guard();
        co_await next_turns(r.server);
        CHECK(moved.held());
        co_await moved.release();
        CHECK_FALSE(r.tree.has(path));  // and not only because the session has ended
        co_await r.server.until([&] { return goodbye_said(r.server); });
        CHECK(moved.reason() == loss_reason::released);
    };
    r.loop.run(steps());
    CHECK(r.core->state() == session_state::closed);
    CHECK(r.core->closed_how() == close_result::confirmed);
    r.nothing_left();
}

TEST_CASE("guard: a client closes when the last of its guards is destroyed", "[guard]") {
    bench r;
    auto steps = [&]() -> asio::awaitable<void> {
        std::vector<lock_guard> both = co_await two_of_a_factory(r.core);
        both.erase(both.begin());
        co_await next_turns(r.server);
        co_await next_turns(r.server);
        CHECK_FALSE(goodbye_said(r.server));
        CHECK(both.front().held());
        both.front() = lock_guard();
        co_await r.server.until([&] { return goodbye_said(r.server); });
    };
    r.loop.run(steps());
    CHECK(r.core->closed_how() == close_result::confirmed);
    r.nothing_left();
}

TEST_CASE("guard: close ends a client that a guard keeps open", "[guard]") {
    bench r;
    auto steps = [&]() -> asio::awaitable<void> {
        const client zk = client_over(r.core);
        lock_guard guard = co_await mutex(zk, "/lock").acquire();
        const close_result how = co_await zk.close();
        CHECK(how == close_result::confirmed);
        CHECK_FALSE(guard.held());
        CHECK(guard.reason() == loss_reason::closed);
        co_await guard.release();
    };
    r.loop.run(steps());
    r.nothing_left();
}

TEST_CASE("guard: one that keeps its client open may be destroyed with the loop", "[guard]") {
    for (const bool waiting : {true, false}) {
        fake_server server;
        fake_tree tree;
        server.answer = [&](const request& q) { return tree(q); };
        auto io = std::make_unique<asio::io_context>();
        bool held = false;
        std::weak_ptr<core> inside;
        {
            auto c = std::make_shared<core>(io->get_executor(), rig::quick(), server.factory());
            inside = c;
            std::optional<lock_guard> kept;
            if (waiting)
                asio::co_spawn(*io, held_until_told(c, held), [](std::exception_ptr) {});
            else
                asio::co_spawn(*io, acquired_by_a_factory(c), [&](std::exception_ptr, lock_guard guard) {
                    held = guard.held();
                    kept = std::move(guard);
                });
            c.reset();
            while (!held) REQUIRE(io->run_one() == 1);
            io->poll();
            kept.reset();
        }
        CHECK(held);
        io.reset();
        CHECK(inside.expired());
        CHECK(server.backends_alive == 0);
    }
}

TEST_CASE("guard: one that was moved from keeps no client open, and the other one does", "[guard]") {
    const bool assigned = GENERATE(false, true);
    bench r;
    auto steps = [&]() -> asio::awaitable<void> {
        lock_guard from = co_await acquired_by_a_factory(r.core);
        std::optional<lock_guard> to;
        if (assigned)
            to.emplace() = std::move(from);
        else
            to.emplace(std::move(from));
        co_await next_turns(r.server);
        CHECK(to->held());
        to.reset();
        co_await r.server.until([&] { return goodbye_said(r.server); });
        CHECK(from.reason() == loss_reason::released);
    };
    r.loop.run(steps());
    r.nothing_left();
}

TEST_CASE("guard: one that is replaced by another client's lets its own client close", "[guard]") {
    bench r;
    fake_server other;
    fake_tree tree;
    other.answer = [&](const request& q) { return tree(q); };
    const auto inside = std::make_shared<core>(r.loop.executor(), rig::quick(), other.factory());
    auto steps = [&]() -> asio::awaitable<void> {
        lock_guard guard = co_await acquired_by_a_factory(r.core);
        {
            lock_guard replacement = co_await acquired_by_a_factory(inside);
            guard = std::move(replacement);
        }
        co_await r.server.until([&] { return goodbye_said(r.server); });
        co_await next_turns(other);
        CHECK_FALSE(goodbye_said(other));
        CHECK(guard.held());
        co_await guard.release();
    };
    r.loop.run(steps());
    r.nothing_left();
    CHECK(other.backends_alive == 0);
}
