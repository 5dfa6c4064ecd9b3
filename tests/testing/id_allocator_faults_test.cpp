#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/counters/id_allocator.hpp>
#include <zkasio/error.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/post.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace id_allocator_faults_tests {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

struct outcome {
    std::optional<std::uint64_t> id;
    std::error_code code;
};

asio::awaitable<outcome> next(id_allocator ids) {
    outcome o;
    try {
        const std::uint64_t id = co_await ids.next();
        o.id = id;
    } catch (const error& e) {
        o.code = e.code();
    }
    co_return o;
}

}  // namespace

TEST_CASE("id_allocator: cancelled, expired, cut or closed at any step, no id comes twice and nothing hangs") {
    enum class event {
        cancel,
        expire,
        cut,
        close
    };
    const auto play = [](event what, std::size_t at, std::uint64_t seed) {
        INFO("event " << static_cast<int>(what) << " at step " << at << ", seed " << seed);
        fake_ensemble e(seed);
        const client zk = e.client(calm()), other = e.client(calm());
        std::size_t steps = 0;
        auto body = [&]() -> asio::awaitable<void> {
            co_await zk.connected();
            const id_allocator ours(zk, "/deep/ids", id_options().block(2));
            const id_allocator theirs(other, "/deep/ids", id_options().block(2));
            std::set<std::uint64_t> all;
            std::size_t taken = 0;
            const auto take = [&](const id_allocator& from) -> asio::awaitable<void> {
                for (int i = 0; i < 5; ++i) {
                    const outcome o = co_await next(from);
                    taken += o.id.has_value();
                    if (o.id) all.insert(*o.id);
                    if (!o.id) CHECK((o.code == condition::cancelled || o.code == condition::session_ended));
                }
            };
            running a(e.get_executor(), take(ours)), b(e.get_executor(), take(theirs));
            std::optional<running> closes;
            const auto close = [&]() -> asio::awaitable<void> { co_await zk.close(); };
            e.lose_answer(zk, "set");
            std::size_t step = 0;
            e.on_step([&](std::string_view) {
                if (step++ != at) return;
                asio::post(e.context(), [&] {
                    if (what == event::cancel) a.cancel();
                    if (what == event::expire) e.expire(zk);
                    if (what == event::cut) e.cut(zk);
                    if (what == event::close) closes.emplace(e.get_executor(), close());
                });
            });
            co_await a.end();
            co_await b.end();
            steps = step;
            e.on_step(nullptr);
            CHECK(all.size() == taken);
            if (!closes) {
                const outcome later = co_await next(ours);
                REQUIRE(later.id);
                CHECK(all.insert(*later.id).second);
                co_await zk.close();
            } else {
                co_await closes->end();
                const outcome later = co_await next(ours);
                if (!later.id) CHECK(later.code == errc::client_closed);
            }
            co_await other.close();
        };
        e.run(body);
        return steps;
    };
    for (const event what : {event::cancel, event::expire, event::cut, event::close}) {
        const std::size_t steps = play(what, 1000, 1);
        REQUIRE(steps > 10);
        for (std::size_t at = 0; at <= steps; ++at) play(what, at, 1 + at % 3);
    }
}

TEST_CASE("id_allocator: a re-created node is written once at most, with its blocks of whichever size") {
    fake_ensemble e;
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const id_allocator ids(zk, "/ids", id_options().block(1));
        const outcome first = co_await next(ids);
        CHECK(first.id == 0);
        co_await zk.idle();
        e.remove("/ids");
        const outcome waiting = co_await next(ids);  // fetched before the removal
        CHECK(waiting.id == 1);
        co_await zk.idle();
        const outcome missing = co_await next(ids);
        CHECK(missing.code == zk_errc::no_node);
        e.create("/ids", "blocks of 1 ids");
        const outcome recreated = co_await next(ids);
        CHECK(recreated.code == zk_errc::data_inconsistency);
        e.set("/ids", "blocks of 10 ids");
        const std::int32_t version = e.stat("/ids")->version;
        for (int i = 0; i < 3; ++i) {
            const outcome again = co_await next(ids);
            CHECK(again.code == zk_errc::data_inconsistency);
            CHECK_FALSE(ids.try_next());
        }
        co_await zk.idle();
        CHECK(e.stat("/ids")->version == version);
        CHECK(e.data("/ids") == "blocks of 10 ids");
        const outcome other = co_await next(id_allocator(zk, "/ids", id_options().block(10)));
        CHECK(other.id);
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("id_allocator: the next block is there before the last id was taken") {
    fake_ensemble e;
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const id_allocator ids(zk, "/ids", id_options().block(8));
        co_await ids.next();
        for (std::uint64_t i = 1; i < 40; ++i) {
            if (i % 8 == 7) co_await zk.idle();  // one id of the block is left
            CHECK(ids.try_next() == i);
        }
        co_await zk.idle();
        CHECK(e.stat("/ids")->version == 6);  // of 40 ids, 5 blocks; one ahead
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("next_number: over cuts and lost answers no number comes twice, and numbers rise") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        INFO("seed " << seed);
        fake_ensemble e(seed);
        e.lose_connections(5);
        e.throttle(5);
        const client one = e.client(calm()), two = e.client(calm());
        auto body = [&]() -> asio::awaitable<void> {
            std::set<std::int32_t> all;
            const auto some = [&](client zk) -> asio::awaitable<void> {
                std::int32_t last = 0;
                for (int i = 0; i < 8; ++i) {
                    const std::int32_t n = co_await next_number(zk, "/deep/numbers");
                    CHECK(n > last);
                    last = n;
                    CHECK(all.insert(n).second);
                }
            };
            running a(e.get_executor(), some(one)), b(e.get_executor(), some(two));
            const std::exception_ptr first = co_await a.end(), second = co_await b.end();
            CHECK_FALSE(first);
            CHECK_FALSE(second);
            CHECK(all.size() == 16);
            e.lose_connections(0);
            e.throttle(0);
            co_await one.close();
            co_await two.close();
        };
        e.run(body);
    }
}

TEST_CASE("id_allocator: what was moved from refuses everything", "[moved]") {
    fake_ensemble e;
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        id_allocator ids(zk, "/ids");
        const id_allocator to = std::move(ids);
        const std::error_code refused = co_await code_of(ids.next());
        CHECK(refused == errc::invalid_argument);
        CHECK_THROWS_AS(ids.try_next(), error);
        CHECK_THROWS_AS(ids.path(), error);
        co_await zk.close();
        client gone = zk;
        const client kept = std::move(gone);
        CHECK_THROWS_AS(id_allocator(gone, "/ids").try_next(), error);
        const std::error_code no_client = co_await code_of(id_allocator(gone, "/ids").next());
        CHECK(no_client == errc::invalid_argument);
    };
    e.run(body);
}

}  // namespace id_allocator_faults_tests
