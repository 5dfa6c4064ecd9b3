// client_options::create_chroot() over an ensemble in memory: the chroot is there before any request of the user, in
// each session; and what happens where it cannot be created.

#include "support/catch.hpp"
#include "support/client_over.hpp"
#include "support/test_client.hpp"
#include "support/texts.hpp"
#include "testing/cost.hpp"
#include "testing/steps.hpp"

#include <zkasio/error.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/log_record.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace create_chroot_tests {

using namespace std::chrono_literals;
using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

client_options below(std::string chroot) { return client_options("fake" + std::move(chroot)).session_timeout(20s); }

void rethrow(const std::exception_ptr& failed) {
    if (failed) std::rethrow_exception(failed);
}

// Makes backends; a copy that is made later on makes others, or cannot be made.
struct one_factory {
    struct next {
        detail::backend_factory make;  // empty: a copy throws
        bool is_due = false;
    };
    one_factory(detail::backend_factory f, std::shared_ptr<const next> n) : make(std::move(f)), then(std::move(n)) {}
    one_factory(const one_factory& other) : make(other.then->is_due ? other.then->make : other.make), then(other.then) {
        if (!make) throw std::bad_alloc();
    }
    one_factory(one_factory&&) noexcept = default;
    std::unique_ptr<detail::backend> operator()(detail::backend_listener& to) const { return make(to); }

    detail::backend_factory make;
    std::shared_ptr<const next> then;
};

// A client with a chroot that is missing. @param second makes the backends of the client that is to create it.
client over(fake_ensemble& e, const client& first, detail::backend_factory second, client_options options) {
    const auto next = std::make_shared<one_factory::next>();
    next->make = std::move(second);
    options.servers("127.0.0.1:2181/app").create_chroot();
    const client zk = client_over(std::make_shared<detail::core>(
        e.get_executor(), std::move(options), one_factory(detail::access::core_of(first)->backends(), next)));
    next->is_due = true;
    return zk;
}

// How long a create takes until it fails because the chroot is missing.
std::chrono::nanoseconds time_to_fail(fake_ensemble& e, const client& zk) {
    const auto began = e.now();
    std::string failed;
    auto body = [&]() -> asio::awaitable<void> {
        try {
            co_await zk.create("/a", "");
        } catch (const error& caught) {
            failed = caught.what();
        }
    };
    e.run(body);
    CHECK(has(failed, "create /a: no such node"));
    return e.now() - began;
}

// A client whose chroot is missing, and whose second client, which is to create it, cannot connect.
struct held_down_second {
    held_down_second() {
        e.run(second.connected());
        e.run(first.close());  // its place is zk's
        e.hold_down(second);
        const auto note = [this](const log_record& r) {
            if (r.level() == log_level::error) log.push_back(r.text());
        };
        zk = over(e, first, detail::access::core_of(second)->backends(),
                  below("").connection_timeout(10s).log(note));
    }

    fake_ensemble e;
    std::vector<std::string> log;  // errors
    client first = e.client(), second = e.client(), zk = first;
};

create_options as_container() {
    return create_options().mode(create_mode::container).parents(missing_parents::create_container);
}

}  // namespace

TEST_CASE("create_chroot: it is there before the first request, with the nodes above it", "[create_chroot]") {
    fake_ensemble e;
    const client zk = e.client(below("/services/orders").create_chroot());
    auto body = [&]() -> asio::awaitable<void> {
        co_await zk.create("/a", "");
        CHECK(e.exists("/services/orders/a"));
        CHECK(e.sessions() == 1);
    };
    e.run(body);
    e.run(zk.close());
    CHECK(e.connections() == 0);
    CHECK(e.sessions() == 0);
    CHECK(e.exists("/services/orders"));
}

TEST_CASE("create_chroot: connected() and started requests wait for it, in their order", "[create_chroot]") {
    fake_ensemble e;
    const client zk = e.client(below("/app").create_chroot());
    std::vector<std::string> done;
    auto write = [&](std::string path) -> asio::awaitable<void> {
        co_await zk.create(path, "");
        done.push_back(path);
    };
    asio::co_spawn(e.context(), write("/a"), rethrow);
    asio::co_spawn(e.context(), write("/b"), rethrow);
    auto body = [&]() -> asio::awaitable<void> {
        co_await zk.connected();
        CHECK(e.exists("/app"));
        co_await sleep_for(1s);
        REQUIRE(done.size() == 2);
        CHECK(done.front() == "/a");
    };
    e.run(body);
}

TEST_CASE("create_chroot: what is there costs a read, and no second client", "[create_chroot]") {
    fake_ensemble e;
    e.create("/app", "data of others");
    const client zk = e.client(below("/app").create_chroot(as_container()));
    auto body = [&]() -> asio::awaitable<void> {
        const auto there = co_await zk.exists("/");
        CHECK(there);
        CHECK(e.requests(zk) == 2);
        CHECK(e.data("/app") == "data of others");
    };
    e.run(body);
}

TEST_CASE("create_chroot: each session looks, and creates it again", "[create_chroot]") {
    fake_ensemble e;
    e.check_containers_every(1s);
    const client zk = e.client(below("/a/b").create_chroot(as_container()));
    auto body = [&]() -> asio::awaitable<void> {
        co_await zk.create("/x", "");
        co_await zk.remove("/x");
        co_await sleep_for(10s);
        CHECK_FALSE(e.exists("/a"));  // a container, which had become empty
        const session_events events = zk.events();
        e.expire(zk);
        for (session_state now = zk.state(); now != session_state::expired;) {
            const session_event next = co_await events.next();
            now = next.state;
        }
        co_await zk.create("/y", "");  // asked for before the next session has begun
        CHECK(e.exists("/a/b/y"));
    };
    e.run(body);
}

TEST_CASE("create_chroot: two clients at a time, and lost connections", "[create_chroot]") {
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
        INFO("seed " << seed);
        fake_ensemble e(seed);
        e.lose_connections(10);
        const client one = e.client(below("/a/b").create_chroot().log(nullptr));
        const client other = e.client(below("/a/b").create_chroot().log(nullptr));
        auto make = [](client zk) -> asio::awaitable<void> {
            const mutex lock(zk, "/lock");
            const lock_guard guard = co_await lock.acquire();
            const auto there = co_await zk.exists("/");
            CHECK(there);
        };
        asio::co_spawn(e.context(), make(one), rethrow);
        e.run(make(other));
        e.run_for(10s);
        e.lose_connections(0);
        e.run(one.close());
        e.run(other.close());
    }
}

TEST_CASE("create_chroot: where it may not be created, an error says so once, and requests fail", "[create_chroot]") {
    fake_ensemble e;
    std::vector<std::string> log;
    auto note = [&](const log_record& r) {
        if (r.level() == log_level::error) log.push_back(r.text());
    };
    const client root = e.client();
    e.run(root.set_acl("/", read_only_acl()));
    const client zk = e.client(below("/app").create_chroot().log(note));
    auto body = [&]() -> asio::awaitable<void> {
        std::string failed;
        try {
            co_await zk.create("/a", "");
        } catch (const error& caught) {
            failed = caught.what();
        }
        CHECK(has(failed, "create /a: no such node"));
        co_await sleep_for(1min);
        CHECK(e.connections() == 2);
        REQUIRE(log.size() == 1);
        CHECK(has(log.front(), "create_chroot(): the chroot of 127.0.0.1:2181/app is missing, and was not created"));
        CHECK(has(log.front(), "no permission"));
    };
    e.run(body);
}

TEST_CASE("create_chroot: where nobody can connect to create it, requests wait for the time limit", "[create_chroot]") {
    held_down_second s;
    const auto took = time_to_fail(s.e, s.zk);
    CHECK(took >= 10s);
    CHECK(took < 13s);
    s.e.run_for(1s);
    REQUIRE(s.log.size() == 1);
    INFO(s.log.front());
    CHECK(has(s.log.front(), "is missing, and was not created: "));
}

TEST_CASE("create_chroot: the time limit is one with a connection", "[create_chroot]") {
    held_down_second s;
    s.e.run_for(1s);  // the second client is to create it now
    s.e.hold_down(s.first);
    s.e.run_for(12s);
    s.e.let_in(s.first);
    s.e.let_in(s.second);
    auto body = [&]() -> asio::awaitable<void> { co_await s.zk.create("/a", ""); };
    s.e.run(body);
    CHECK(s.e.exists("/app/a"));
    CHECK(s.log.empty());
}

TEST_CASE("create_chroot: where no second client can be made, requests go on", "[create_chroot]") {
    fake_ensemble e;
    const client first = e.client();
    const client zk = over(e, first, nullptr, below("").log(nullptr));
    CHECK(time_to_fail(e, zk) < 1s);
}

TEST_CASE("create_chroot: a server that lags behind has it as well", "[create_chroot]") {
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        INFO("seed " << seed);
        fake_ensemble e(seed);
        e.lag();
        const client zk = e.client(below("/a/b").create_chroot());
        auto body = [&]() -> asio::awaitable<void> {
            const node_children none = co_await zk.children("/");
            CHECK(none.names.empty());
        };
        e.run(body);
    }
}

TEST_CASE("create_chroot: without a chroot, and of a client that only reads, nothing is created", "[create_chroot]") {
    fake_ensemble e;
    const client zk = e.client(below("").create_chroot());
    auto body = [&]() -> asio::awaitable<void> {
        co_await zk.connected();
        CHECK(e.requests(zk) == 0);
    };
    e.run(body);
}

TEST_CASE("create_chroot: modes that a chroot cannot have", "[create_chroot]") {
    fake_ensemble e;
    for (const create_mode mode : {create_mode::ephemeral, create_mode::persistent_sequential})
        CHECK(has(failure_of([&] { e.client(below("/app").create_chroot(create_options().mode(mode))); }),
                  "client options: invalid argument (create_chroot"));
}

TEST_CASE("create_chroot: a client that is closed before it is there", "[create_chroot]") {
    for (int steps = 0; steps < 30; ++steps) {
        INFO(steps);
        fake_ensemble e;
        const client zk = e.client(below("/a/b").create_chroot().log(nullptr));
        std::size_t count = 0;
        bool closed = false;
        auto close = [&]() -> asio::awaitable<void> {
            co_await zk.close();
            closed = true;
            CHECK(e.connections() == 0);  // nor one of the client that was to create it
        };
        at_step(e, count, static_cast<std::size_t>(steps),
                [&] { asio::co_spawn(e.context(), close(), rethrow); });
        auto body = [&]() -> asio::awaitable<void> {
            try {
                co_await zk.create("/x", "");
            } catch (const error& failed) {
                CHECK(failed.code() == errc::client_closed);
            }
        };
        e.run(body);
        e.run_for(1min);
        if (!closed) e.run(zk.close());
        e.run_dry(1h);
        CHECK(e.sessions() == 0);
        CHECK(e.connections() == 0);
    }
}

}  // namespace create_chroot_tests
