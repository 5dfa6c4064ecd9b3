// What users may do to an ensemble in memory, and what they then rely on.

#include "support/catch.hpp"
#include "support/texts.hpp"

#include <zkasio/locks/mutex.hpp>
#include <zkasio/operations.hpp>
#include <zkasio/testing/fake_ensemble.hpp>
#include <zkasio/testing/waits.hpp>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

namespace {

using namespace std::chrono_literals;
using zkasio::client_options;
using zkasio::test::failure_of;
using zkasio::test::has;
using zkasio::testing::fake_ensemble;

client_options of_ten_seconds() { return client_options("zk1").session_timeout(10s); }

}  // namespace

TEST_CASE("fake ensemble: a session expires whose client was cut off in the moment it began", "[testing]") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        INFO("seed " << seed);
        fake_ensemble ensemble(seed);
        const zkasio::client zk = ensemble.client(of_ten_seconds());
        ensemble.run_for(100us);
        ensemble.hold_down(zk);
        ensemble.run_for(60s);
        CHECK(ensemble.sessions() == 0);
    }
}

TEST_CASE("fake ensemble: a step that is told may be prevented", "[testing]") {
    for (const char* victim : {"cut", "hold down", "expire", "destroy"}) {
        INFO(victim);
        const std::string_view what = victim;
        fake_ensemble ensemble;
        std::optional<zkasio::client> zk = ensemble.client(of_ten_seconds());
        ensemble.run(zk->connected());
        bool done = false;
        ensemble.on_step([&](std::string_view line) {
            if (done || line.find("apply 0: create /a") == line.npos) return;
            done = true;
            if (what == "cut") ensemble.cut(*zk);
            if (what == "hold down") ensemble.hold_down(*zk);
            if (what == "expire") ensemble.expire(*zk);
            if (what == "destroy") zk.reset();
        });
        const auto task = [&]() -> asio::awaitable<void> {
            try {
                co_await zk->create("/a");
            } catch (const zkasio::error&) {
            }
        };
        ensemble.run(task);
        CHECK(done);
    }
}

TEST_CASE("fake ensemble: a task ends, too, when something else throws", "[testing]") {
    fake_ensemble ensemble;
    const zkasio::client zk = ensemble.client(of_ten_seconds());
    bool unwound = false;
    const auto task = [&]() -> asio::awaitable<void> {
        const std::shared_ptr<void> at_end(nullptr, [&](void*) { unwound = true; });
        co_await zkasio::testing::until_exists(zk, "/never", 1h);
    };
    asio::steady_timer later(ensemble.context(), 1s);
    later.async_wait([](std::error_code) { throw std::runtime_error("of a handler"); });
    CHECK(failure_of([&] { ensemble.run(task); }) == "of a handler");
    CHECK(unwound);
    ensemble.run_for(1s);
    CHECK(ensemble.watches() == 0);
}

TEST_CASE("fake ensemble: a body that does not end when it is cancelled is kept", "[testing]") {
    fake_ensemble ensemble;
    std::weak_ptr<int> kept;
    {
        auto captured = std::make_shared<int>(1);
        kept = captured;
        const std::string text = failure_of([&] {
            ensemble.run([&ensemble, captured = std::move(captured)]() -> asio::awaitable<void> {
                for (int n = 0; n < 2000; ++n) {
                    asio::steady_timer timer(ensemble.context(), 1s);
                    try {
                        co_await timer.async_wait(asio::use_awaitable);
                    } catch (const std::system_error&) {
                    }
                    co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
                    *captured += 1;
                }
            }, 10s);
        });
        CHECK(has(text, "And it did not end when it was cancelled."));
    }
    CHECK_FALSE(kept.expired());
    ensemble.run_for(1h);
    CHECK(kept.expired());
}

TEST_CASE("fake ensemble: a test that hangs names its seed", "[testing]") {
    fake_ensemble ensemble(4711);
    const zkasio::client zk = ensemble.client(of_ten_seconds());
    CHECK(has(failure_of([&] { ensemble.run(zkasio::testing::until_exists(zk, "/a", 2h), 1min); }), "seed 4711"));
}

TEST_CASE("fake ensemble: it belongs to its thread", "[testing]") {
    fake_ensemble ensemble;
    const zkasio::client zk = ensemble.client(of_ten_seconds());
    std::string text;
    std::thread([&] { text = failure_of([&] { ensemble.run_for(1s); }); }).join();
    CHECK(has(text, "another thread"));
    ensemble.run(zk.connected());
    CHECK(ensemble.now() < 1s);
}

TEST_CASE("fake ensemble: several answers may be lost", "[testing]") {
    fake_ensemble ensemble;
    const zkasio::client zk = ensemble.client(of_ten_seconds().retry(zkasio::retry_policy::never()));
    ensemble.lose_answer(zk, "create /a");
    ensemble.lose_answer(zk, "create /b");
    int unknown = 0;
    for (const char* path : {"/a", "/b", "/c"}) {
        try {
            ensemble.run(zk.create(path));
        } catch (const zkasio::error& e) {
            unknown += e.outcome_unknown() ? 1 : 0;
        }
    }
    CHECK(unknown == 2);
    CHECK(ensemble.paths().size() == 3);
}

TEST_CASE("fake ensemble: what is refused about a part goes before what is refused about all", "[testing]") {
    fake_ensemble ensemble;
    const zkasio::client zk = ensemble.client(of_ten_seconds());
    ensemble.create("/a/b");
    ensemble.refuse("/", zkasio::zk_errc::no_auth);
    ensemble.refuse("/a", zkasio::zk_errc::bad_arguments);
    CHECK(has(failure_of([&] { ensemble.run(zk.get("/a/b")); }), zkasio::make_error_code(
        zkasio::zk_errc::bad_arguments).message()));
    CHECK(has(failure_of([&] { ensemble.run(zk.get("/c")); }), zkasio::make_error_code(
        zkasio::zk_errc::no_auth).message()));
}

TEST_CASE("fake ensemble: percentages are from 0 to 100", "[testing]") {
    fake_ensemble ensemble;
    CHECK(has(failure_of([&] { ensemble.throttle(101); }), "fake_ensemble::throttle"));
    CHECK(has(failure_of([&] { ensemble.lose_connections(-1); }), "fake_ensemble::lose_connections"));
    CHECK(has(failure_of([&] { ensemble.step_time(-1s); }), "fake_ensemble::step_time"));
    CHECK(has(failure_of([&] { ensemble.expire(zkasio::client(ensemble.get_executor(), "127.0.0.1:1")); }),
              "not one of this ensemble"));
}

TEST_CASE("fake ensemble: a client whose session was ended has another one soon", "[testing]") {
    fake_ensemble ensemble;
    const zkasio::client zk = ensemble.client(of_ten_seconds());
    ensemble.run(zk.connected());
    const auto before = ensemble.session_id(zk);
    ensemble.expire(zk);
    ensemble.run_for(1s);
    CHECK(ensemble.is_connected(zk));
    CHECK(ensemble.session_id(zk) != before);
    CHECK(ensemble.sessions() == 1);
}

TEST_CASE("fake ensemble: a watch tells what has changed while there was no connection", "[testing]") {
    fake_ensemble ensemble;
    ensemble.create("/a");
    const zkasio::client zk = ensemble.client(of_ten_seconds());
    auto node = ensemble.run(zk.get_and_watch("/a"));
    ensemble.hold_down(zk);
    ensemble.set("/a", "new");
    ensemble.run_for(1s);
    ensemble.let_in(zk);
    CHECK(ensemble.run(node.changes.changed(), 5s).what == zkasio::node_change::data_changed);
}

TEST_CASE("fake ensemble: containers go again and again, and ephemeral nodes have no children", "[testing]") {
    fake_ensemble ensemble;
    const zkasio::client zk = ensemble.client(of_ten_seconds());
    for (int n = 0; n < 3; ++n) {
        ensemble.run(zk.create("/c", "", zkasio::create_options().mode(zkasio::create_mode::container)));
        ensemble.create("/c/x");
        ensemble.remove("/c/x");
        ensemble.run_for(2min);
        CHECK_FALSE(ensemble.exists("/c"));
    }
    ensemble.run(zk.create("/e", "", zkasio::create_options().mode(zkasio::create_mode::ephemeral)));
    CHECK(has(failure_of([&] { ensemble.create("/e/x"); }), "fake_ensemble::create /e/x"));
}

TEST_CASE("waits: of a node that has gone there are no children, whenever it goes", "[testing]") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        INFO("seed " << seed);
        fake_ensemble ensemble(seed);
        const zkasio::client zk = ensemble.client(of_ten_seconds());
        ensemble.create("/a/x");
        const auto none = [](const auto& names) { return names.empty(); };
        bool ended = false;
        const auto wait = [&]() -> asio::awaitable<void> {
            co_await zkasio::testing::until_children(zk, "/a", none, 1min);
            ended = true;
        };
        asio::co_spawn(ensemble.context(), wait(), asio::detached);
        ensemble.run_for(std::chrono::microseconds(100 * seed));
        ensemble.remove("/a/x");
        ensemble.remove("/a");
        ensemble.run_for(1s);
        CHECK(ended);
        CHECK(ensemble.watches() == 0);
    }
}

TEST_CASE("fake ensemble: run() refuses an empty awaitable", "[testing]") {
    fake_ensemble ensemble;
    const auto refused = std::string("fake_ensemble::run: invalid argument (the task is empty)");
    CHECK(failure_of([&] { ensemble.run(asio::awaitable<void>()); }) == refused);
    CHECK(failure_of([&] { ensemble.run(asio::awaitable<int>()); }) == refused);
    CHECK(failure_of([&] { ensemble.run([] { return asio::awaitable<void>(); }); }) == refused);
    const auto named = [] { return asio::awaitable<void>(); };
    CHECK(failure_of([&] { ensemble.run(named); }) == refused);
}
