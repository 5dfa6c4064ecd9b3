#include "unit/support/rig.hpp"

#include <zkasio/locks/mutex.hpp>
#include <zkasio/path.hpp>

#include <optional>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

// The directory of a lock in which somebody stands before us, and our node is the only one of ours: that of an earlier
// session has gone with it.
class contended : public rig {
public:
    explicit contended(client_options o = quick()) : rig(std::move(o)) {
        server.answer = [this](const request& q) -> std::optional<reply> {
            reply a;
            if (const auto* c = std::get_if<create_request>(&q)) {
                ++creates;
                ours = a.path = c->path + "000000010" + std::to_string(creates);
                a.stat.czxid = 100 + creates;
            } else if (std::holds_alternative<children_request>(q)) {
                if (taken) a.children.emplace_back("_c_11111111-2222-4333-8444-555555555555-lock-0000000001");
                if (!ours.empty()) a.children.emplace_back(node_name(ours));
            }
            return a;
        };
    }
    asio::awaitable<void> queued(int times) {
        return server.until([this, times] { return creates >= times && watches_the_first(); });
    }
    bool watches_the_first() const {
        return server.watched("/lock/_c_11111111-2222-4333-8444-555555555555-lock-0000000001");
    }
    void first_leaves() {
        taken = false;
        server.fire(node_event::removed, "/lock/_c_11111111-2222-4333-8444-555555555555-lock-0000000001");
    }
    int creates = 0;
    bool taken = true;
    std::string ours;
};

acquire_options surviving() { return acquire_options().survive_expiry(); }

asio::awaitable<void> take(mutex lock, acquire_options how, std::optional<lock_guard>& got) {
    got.emplace(co_await lock.acquire(how));
}
asio::awaitable<void> take_within(mutex lock, std::chrono::nanoseconds limit, std::optional<lock_guard>& got,
                                  bool& ended) {
    got = co_await lock.try_acquire_for(limit, surviving());
    ended = true;
}

}  // namespace

TEST_CASE("survive expiry: whoever waits queues again with the next session, and is told its place", "[expiry]") {
    contended r;
    std::vector<queue_position> told;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const mutex lock(zk, "/lock");
        const std::int64_t before = (co_await zk.current_session()).id();
        std::optional<lock_guard> got;
        auto observer = [&](const queue_position& at) { told.push_back(at); };
        const running waiting(r.loop.executor(), take(lock, surviving().on_position(observer), got));
        for (const int session : {1, 2}) {
            co_await r.queued(session);
            r.server.expire();
        }
        co_await r.queued(3);
        while (told.size() < 3) co_await next_turns(r.server);
        CHECK_FALSE(waiting.ended());
        r.first_leaves();
        const std::error_code failed = co_await waiting.code();
        CHECK(failed == std::error_code());
        REQUIRE(got);
        CHECK(got->held());
        CHECK(got->claim()->on().id() != before);
        CHECK(got->token().value() == 103);
        for (std::size_t i = 0; i < 3; ++i) CHECK(told[i].ahead == 1);
        co_await got->release();
    };
    r.run(body);
}

TEST_CASE("survive expiry: without the option an acquire ends with its session", "[expiry]") {
    contended r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        std::optional<lock_guard> got;
        const running waiting(r.loop.executor(), take(mutex(zk, "/lock"), acquire_options(), got));
        co_await r.queued(1);
        r.server.expire();
        const std::error_code failed = co_await waiting.code();
        CHECK(failed == errc::session_expired);
        CHECK(r.creates == 1);
    };
    r.run(body);
}

TEST_CASE("survive expiry: there is one time limit for all sessions", "[expiry]") {
    contended r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        std::optional<lock_guard> got;
        bool ended = false;
        const auto begun = boot_clock::now();
        const running waiting(r.loop.executor(), take_within(mutex(zk, "/lock"), 400ms, got, ended));
        co_await r.queued(1);
        r.server.expire();
        co_await r.queued(2);
        const std::error_code failed = co_await waiting.code();
        CHECK(failed == std::error_code());
        CHECK(ended);
        CHECK_FALSE(got);
        CHECK(boot_clock::now() - begun >= 400ms);
        CHECK(boot_clock::now() - begun < 10s);
    };
    r.run(body);
}

TEST_CASE("survive expiry: a cancellation ends it also with a later session", "[expiry]") {
    contended r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        std::optional<lock_guard> got;
        running waiting(r.loop.executor(), take(mutex(zk, "/lock"), surviving(), got));
        co_await r.queued(1);
        r.server.expire();
        co_await r.queued(2);
        waiting.cancel();
        const std::error_code failed = co_await waiting.code();
        CHECK(failed == condition::cancelled);
        CHECK_FALSE(got);
    };
    r.run(body);
}

TEST_CASE("survive expiry: it ends when no other session comes, and when the client is closed", "[expiry]") {
    contended none(rig::quick().renewal(session_renewal::none));
    auto expires = [&](client zk) -> asio::awaitable<void> {
        std::optional<lock_guard> got;
        const running waiting(none.loop.executor(), take(mutex(zk, "/lock"), surviving(), got));
        co_await none.queued(1);
        none.server.expire();
        const std::error_code failed = co_await waiting.code();
        CHECK(failed == errc::session_expired);
    };
    none.run(expires);

    contended closed;
    auto closes = [&](client zk) -> asio::awaitable<void> {
        std::optional<lock_guard> got;
        const running waiting(closed.loop.executor(), take(mutex(zk, "/lock"), surviving(), got));
        co_await closed.queued(1);
        closed.server.expire();
        co_await closed.queued(2);
        co_await zk.close();
        const std::error_code failed = co_await waiting.code();
        CHECK(failed == errc::client_closed);
    };
    closed.run(closes);
}

TEST_CASE("survive expiry: what an owner has got in a later session is its own", "[expiry]") {
    contended r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const mutex lock(zk, "/lock");
        const lock_owner me;
        std::optional<lock_guard> got;
        const running waiting(r.loop.executor(), take(lock, surviving().owner(me), got));
        co_await r.queued(1);
        r.server.expire();
        co_await r.queued(2);
        r.first_leaves();
        const std::error_code failed = co_await waiting.code();
        CHECK(failed == std::error_code());
        REQUIRE(got);
        lock_guard again = co_await lock.acquire(acquire_options().owner(me));
        CHECK(again.token() == got->token());
        CHECK(r.creates == 2);
        co_await again.release();
        CHECK(got->held());
        co_await got->release();
    };
    r.run(body);
}

namespace {

// In each of the ways in which a lock is acquired.
asio::awaitable<void> take_in_some_way(int way, mutex lock, std::optional<lock_guard>& got) {
    switch (way) {
        case 0: got.emplace(co_await lock.acquire(surviving())); break;
        case 1: got = co_await lock.try_acquire(surviving()); break;
        case 2: got = co_await lock.try_acquire_for(10s, surviving()); break;
        case 3: got = co_await lock.try_acquire_until(boot_clock::now() + 10s, surviving()); break;
    }
}

}  // namespace

TEST_CASE("survive expiry: it is heeded in every way in which a lock is acquired", "[expiry]") {
    const int way = GENERATE(0, 1, 2, 3);
    contended r;
    r.taken = false;
    bool expire = true;
    const auto usual = r.server.answer;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        if (!std::holds_alternative<children_request>(q) || !std::exchange(expire, false)) return usual(q);
        r.ours.clear();
        r.server.expire();
        return std::nullopt;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        std::optional<lock_guard> got;
        const running taking(r.loop.executor(), take_in_some_way(way, mutex(zk, "/lock"), got));
        const std::error_code failed = co_await taking.code();
        CHECK(failed == std::error_code());
        CHECK_FALSE(expire);
        CHECK(r.creates == 2);
        REQUIRE(got);
        CHECK(got->held());
        co_await got->release();
    };
    r.run(body);
}

TEST_CASE("survive expiry: an attempt that does not wait does not do so in a later session, either", "[expiry]") {
    contended r;
    bool expire = true;
    const auto usual = r.server.answer;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        if (!std::holds_alternative<create_request>(q) || !std::exchange(expire, false)) return usual(q);
        r.server.expire();
        return std::nullopt;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        std::optional<lock_guard> got;
        const running taking(r.loop.executor(), take_in_some_way(1, mutex(zk, "/lock"), got));
        const std::error_code failed = co_await taking.code();
        CHECK(failed == std::error_code());
        CHECK_FALSE(got);
    };
    r.run(body);
}

TEST_CASE("survive expiry: what is no expiry is told at once", "[expiry]") {
    contended r;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        if (!std::holds_alternative<create_request>(q)) return reply();
        ++r.creates;
        return refusal(zk_errc::no_auth);
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        std::optional<lock_guard> got;
        running taking(r.loop.executor(), take(mutex(zk, "/lock"), surviving(), got));
        co_await r.server.until([&] { return r.creates > 1 || taking.ended(); });
        taking.cancel();
        const std::error_code failed = co_await taking.code();
        CHECK(failed == zk_errc::no_auth);
        CHECK(r.creates == 1);
    };
    r.run(body);
}
