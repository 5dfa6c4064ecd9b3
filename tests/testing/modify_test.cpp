#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/error.hpp>
#include <zkasio/modify.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace modify_tests {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

modify_options certain() { return modify_options().receipts("/receipts"); }

std::optional<std::string> one_more(std::optional<node_data> before) {
    return std::to_string(before ? std::stoi(before->data) + 1 : 1);
}

struct outcome {
    std::optional<modified> done;
    std::error_code code;
    bool unknown = false;
    std::string what;
};

template <class Change>
asio::awaitable<outcome> try_modify(operations on, std::string path, Change change, modify_options how) {
    outcome o;
    try {
        o.done = co_await modify(on, path, change, how);
    } catch (const error& e) {
        o.code = e.code();
        o.unknown = e.outcome_unknown();
        o.what = e.what();
    } catch (const std::system_error& e) {  // of a pause
        o.code = e.code();
    }
    co_return o;
}

asio::awaitable<outcome> add_one(operations on, modify_options how = certain()) {
    return try_modify(std::move(on), "/deep/n", &one_more, std::move(how));
}

std::int64_t number(const fake_ensemble& e) { return std::stoll(e.data("/deep/n").value_or("0")); }

}  // namespace

TEST_CASE("modify: creates, changes, and leaves alone") {
    for (const modify_options& how : {modify_options(), certain()}) {
        fake_ensemble e;
        const client zk = e.client(calm());
        auto body = [&]() -> asio::awaitable<void> {
            const auto leave = [](const std::optional<node_data>&) { return std::optional<std::string>(); };
            outcome o = co_await try_modify(zk, "/deep/n", leave, how);
            REQUIRE(o.done);
            CHECK_FALSE(o.done->written);
            CHECK_FALSE(o.done->version);
            CHECK(o.done->zxid == 0);
            CHECK_FALSE(e.exists("/deep"));

            o = co_await add_one(zk, how);
            REQUIRE(o.done);
            CHECK(o.done->written);
            CHECK(o.done->version == 0);
            CHECK(o.done->zxid == e.stat("/deep/n")->czxid);
            CHECK(e.data("/deep/n") == "1");

            o = co_await add_one(zk, how);
            REQUIRE(o.done);
            CHECK(o.done->version == 1);
            CHECK(o.done->zxid == e.stat("/deep/n")->mzxid);
            CHECK(e.data("/deep/n") == "2");

            o = co_await try_modify(zk, "/deep/n", leave, how);
            REQUIRE(o.done);
            CHECK_FALSE(o.done->written);
            CHECK(o.done->version == 1);
            CHECK(o.done->zxid == e.stat("/deep/n")->mzxid);
            co_await zk.close();
        };
        e.run(body);
    }
}

TEST_CASE("modify: how the node is created, and what is refused") {
    for (const bool with_receipts : {false, true}) {
        fake_ensemble e;
        const client zk = e.client(calm());
        auto body = [&]() -> asio::awaitable<void> {
            const auto creating = [&](create_options how) {
                modify_options options;
                if (with_receipts) options = certain();
                return options.create_with(std::move(how));
            };
            create_options ephemeral;
            ephemeral.mode(create_mode::ephemeral).parents(missing_parents::create_container);
            outcome o = co_await add_one(zk, creating(ephemeral));
            CHECK(o.done);
            CHECK(e.owns(zk, "/deep/n"));
            e.remove("/deep/n");
            e.check_containers_every(1s);
            const auto later = [&]() -> asio::awaitable<bool> { co_return !e.exists("/deep"); };
            co_await eventually(later);

            o = co_await add_one(zk, creating(create_options()));
            CHECK(o.code == zk_errc::no_node);
            CHECK_FALSE(o.unknown);
            CHECK(o.what.find("modify /deep/n: no such node") == 0);
            o = co_await add_one(zk, creating(create_options().mode(create_mode::persistent_sequential)));
            CHECK(o.code == errc::invalid_argument);
            o = co_await add_one(zk, creating(create_options().protection()));
            CHECK(o.code == errc::invalid_argument);
            o = co_await try_modify(zk, "no/slash", &one_more, creating(create_options()));
            CHECK(o.code == errc::invalid_path);
            detail::node_change_function none;
            o = co_await try_modify(zk, "/n", none, creating(create_options()));
            CHECK(o.code == errc::invalid_argument);
            e.refuse("/shut", zk_errc::no_auth);
            o = co_await try_modify(zk, "/shut", &one_more, creating(create_options()));
            CHECK(o.code == zk_errc::no_auth);
            CHECK(o.what.find("modify /shut: ") == 0);
            co_await zk.close();
        };
        e.run(body);
    }
    CHECK_THROWS_AS(modify_options().receipts("no/slash"), error);
    CHECK_THROWS_AS(modify_options().tries(0), error);
}

TEST_CASE("modify: a lost answer is told without receipts, and found out with them") {
    fake_ensemble e;
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const modify_options plain;
        e.create("/deep");
        for (const char* request : {"create", "set"}) {
            const std::int64_t before = number(e);
            e.lose_answer(zk, request);
            const outcome o = co_await add_one(zk, plain);
            CHECK(o.code == zk_errc::connection_loss);
            CHECK(o.unknown);
            CHECK(o.what.find("modify /deep/n: ") == 0);
            CHECK(number(e) == before + 1);
        }
        e.lose_answer(zk, "get");  // a read is repeated
        const outcome o = co_await add_one(zk, plain);
        CHECK(o.done);

        e.remove("/deep/n");
        e.remove("/deep");
        std::int64_t expected = 0;
        for (const char* request : {"multi", "create", "get", "multi", "sync", "multi"}) {
            e.lose_answer(zk, request);
            const outcome sure = co_await add_one(zk);
            REQUIRE(sure.done);
            CHECK(sure.done->written);
            CHECK(sure.done->version == expected);
            CHECK(sure.done->zxid == e.stat("/deep/n")->mzxid);
            CHECK(number(e) == ++expected);
        }
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("modify: with receipts a change is two requests, and one receipt serves all calls of the session") {
    fake_ensemble e;
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        co_await add_one(zk);
        co_await add_one(zk);
        const std::size_t before = e.requests(zk);
        co_await add_one(zk);
        CHECK(e.requests(zk) == before + 2);
        CHECK(e.children("/receipts").size() == 1);
        co_await zk.idle();
        CHECK(e.children("/receipts").size() == 1);
        e.expire(zk);
        co_await add_one(zk);
        CHECK(e.children("/receipts").size() == 1);
        CHECK(number(e) == 4);
        co_await zk.close();
        CHECK(e.children("/receipts").empty());
    };
    e.run(body);
}

TEST_CASE("modify: a cut at any step changes once, with writers that are in each other's way") {
    std::size_t steps = 0;
    const auto play = [&](std::size_t first, std::size_t second, std::uint64_t seed) {
        INFO("cuts after " << first << " and " << second << " steps, seed " << seed);
        fake_ensemble e(seed);
        e.lag(seed % 2 == 0);
        const client one = e.client(calm()), two = e.client(calm());
        std::size_t step = 0;
        auto body = [&]() -> asio::awaitable<void> {
            cut_at_steps(e, one, two, first, second, step);
            std::int64_t done = 0;
            const auto add_some = [&](const client& to) -> asio::awaitable<void> {
                for (int i = 0; i < 3; ++i) {
                    const outcome o = co_await add_one(to);
                    done += o.done.has_value();
                }
            };
            running a(e.get_executor(), add_some(one)), b(e.get_executor(), add_some(two));
            co_await a.end();
            co_await b.end();
            e.on_step(nullptr);
            CHECK(done == 6);
            CHECK(number(e) == 6);
            co_await one.close();
            co_await two.close();
        };
        e.run(body);
        return step;
    };
    steps = play(1000, 0, 1);
    REQUIRE(steps > 10);
    for (std::size_t first = 0; first < steps; ++first)
        for (std::size_t second = 0; second < 6; ++second) play(first, second, 1 + (first + second) % 4);
}

TEST_CASE("modify: a conflict is read behind a sync, and tries() are bounded") {
    for (const modify_options& how : {modify_options(), certain()}) {
        fake_ensemble e;
        const client zk = e.client(calm());
        auto body = [&]() -> asio::awaitable<void> {
            e.create("/deep/n", "0");
            int calls = 0, others = 2;
            const auto beside = [&](std::optional<node_data> before) {
                ++calls;
                if (others-- > 0) e.set("/deep/n", std::to_string(number(e) + 10));
                return one_more(std::move(before));
            };
            outcome o = co_await try_modify(zk, "/deep/n", beside, how);
            CHECK(o.done);
            CHECK(calls == 3);
            CHECK(number(e) == 21);

            others = 100;
            calls = 0;
            modify_options twice = how;
            twice.tries(2);
            o = co_await try_modify(zk, "/deep/n", beside, twice);
            CHECK(o.code == zk_errc::bad_version);
            CHECK_FALSE(o.unknown);
            CHECK(o.what == "modify /deep/n: version does not match (other clients were ahead 2 times)");
            CHECK(calls == 2);

            // Another client removes what was read, and creates what was missing.
            others = 1;
            const auto remove_once = [&](std::optional<node_data> before) {
                if (others-- > 0) e.remove("/deep/n");
                return one_more(std::move(before));
            };
            o = co_await try_modify(zk, "/deep/n", remove_once, how);
            CHECK(o.done);
            CHECK(number(e) == 1);
            e.remove("/deep/n");
            others = 1;
            const auto create_once = [&](std::optional<node_data> before) {
                if (others-- > 0) e.create("/deep/n", "50");
                return one_more(std::move(before));
            };
            o = co_await try_modify(zk, "/deep/n", create_once, how);
            CHECK(o.done);
            CHECK(number(e) == 51);
            co_await zk.close();
        };
        e.run(body);
    }
}

TEST_CASE("modify: behind a conflict it reads what is there, wherever the server lags") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        INFO("seed " << seed);
        fake_ensemble e(seed);
        const client zk = e.client(calm());
        auto body = [&]() -> asio::awaitable<void> {
            e.create("/deep/n", "0");
            co_await zk.sync();
            e.lag();
            int calls = 0;
            const auto beside = [&](std::optional<node_data> before) {
                if (++calls == 1) e.set("/deep/n", "10");
                return one_more(std::move(before));
            };
            const modify_options twice = modify_options().tries(2);
            const std::size_t before = e.requests(zk);
            const outcome o = co_await try_modify(zk, "/deep/n", beside, twice);
            CHECK(o.done);
            CHECK(number(e) == 11);
            CHECK(e.requests(zk) == before + 5);  // with a sync
            co_await zk.close();
        };
        e.run(body);
    }
}

TEST_CASE("modify: with receipts, cancelled while the parent is created, it has not written") {
    fake_ensemble e;
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        outcome o;
        const auto one = [&]() -> asio::awaitable<void> { o = co_await add_one(zk); };
        running adds(e.get_executor(), one());
        int creates = 0;
        e.on_step([&](std::string_view step) {
            if (step.find("create /deep") != step.npos && ++creates == 1)
                asio::post(e.context(), [&] { adds.cancel(); });
        });
        co_await adds.end();
        e.on_step(nullptr);
        CHECK(creates > 0);
        CHECK(o.code == condition::cancelled);
        CHECK_FALSE(o.unknown);
        CHECK(number(e) == 0);
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("modify: what the change throws is the caller's, and writes nothing") {
    for (const modify_options& how : {modify_options(), certain()}) {
        fake_ensemble e;
        const client zk = e.client(calm());
        auto body = [&]() -> asio::awaitable<void> {
            for (const std::error_code code :
                 {make_error_code(errc::session_expired), make_error_code(zk_errc::no_node),
                  make_error_code(zk_errc::connection_loss)}) {
                const auto thrower = [&](std::optional<node_data>) -> std::optional<std::string> {
                    throw error(code, "mine", "/deep/n");
                };
                const outcome o = co_await try_modify(zk, "/deep/n", thrower, how);
                CHECK(o.code == code);
                CHECK(o.what.find("mine /deep/n: ") == 0);
            }
            CHECK_FALSE(e.exists("/deep/n"));
            co_await zk.close();
        };
        e.run(body);
    }
}

TEST_CASE("modify: the end of the session, at any step") {
    int unknown = 0, next_session = 0;
    std::size_t steps = 0;
    for (std::size_t at = 0; at <= steps; ++at) {
        INFO("expires after " << at << " steps");
        fake_ensemble e(1 + at % 3);
        const client zk = e.client(calm());
        auto body = [&]() -> asio::awaitable<void> {
            co_await add_one(zk);
            const std::int64_t session = e.session_id(zk);
            std::size_t step = 0;
            e.on_step([&](std::string_view) {
                if (step++ == at) asio::post(e.context(), [&] { e.expire(zk); });
            });
            const outcome o = co_await add_one(zk);
            e.on_step(nullptr);
            steps = std::max(steps, step);
            if (o.done) {
                CHECK(number(e) == 2);
                next_session += e.session_id(zk) != session;
            } else {
                CHECK(o.code == errc::session_expired);
                CHECK(o.unknown);
                CHECK((number(e) == 1 || number(e) == 2));
                ++unknown;
            }
            co_await zk.close();
        };
        e.run(body);
    }
    CHECK(unknown > 0);
    CHECK(next_session > 0);
}

TEST_CASE("modify: on a session that is over it fails, and begins no other") {
    fake_ensemble e;
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const session on = co_await zk.current_session();
        outcome o = co_await add_one(on);
        CHECK(o.done);
        e.expire(zk);
        co_await on.ended();
        for (const bool with_receipts : {false, true}) {
            modify_options how;
            if (with_receipts) how = certain();
            o = co_await add_one(on, how);
            CHECK(o.code == errc::session_expired);
            CHECK_FALSE(o.unknown);
        }
        o = co_await add_one(zk);
        CHECK(o.done);
        CHECK(number(e) == 2);
        co_await zk.close();
        o = co_await add_one(zk);
        CHECK(o.code == errc::client_closed);
    };
    e.run(body);
}

TEST_CASE("modify: the end of the session is no attempt, and no other client") {
    fake_ensemble e;
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        e.create("/n", "0");
        int runs = 0;
        const auto change = [&](std::optional<node_data>) -> std::optional<std::string> {
            if (++runs % 2 == 1) e.hold_down(zk);  // while the receipt is made: the write is not sent
            return std::to_string(runs);
        };
        const auto let_in = [&]() -> asio::awaitable<void> {
            asio::steady_timer timer(e.context(), 60s);
            co_await timer.async_wait(asio::use_awaitable);
            e.let_in(zk);
        };
        running first(e.get_executor(), let_in());
        const modify_options how = certain().tries(1);
        outcome o = co_await try_modify(zk, "/n", change, how);
        co_await first.end();
        CHECK(o.done);
        CHECK(runs == 2);
        CHECK(e.data("/n") == "2");
        const session on = co_await zk.current_session();
        running second(e.get_executor(), let_in());
        const modify_options new_receipt = modify_options().receipts("/others").tries(1);
        o = co_await try_modify(on, "/n", change, new_receipt);
        co_await second.end();
        CHECK(o.code == errc::session_expired);
        CHECK_FALSE(o.unknown);
        CHECK(runs == 3);
        CHECK(e.data("/n") == "2");
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("modify: a cancellation at any step writes nothing, or says that it may have written") {
    for (const modify_options& how : {modify_options(), certain()}) {
        int nothing = 0, unknown = 0;
        std::size_t steps = 0;
        for (std::size_t at = 0; at <= steps; ++at) {
            INFO("cancelled after " << at << " steps");
            fake_ensemble e;
            const client zk = e.client(calm());
            auto body = [&]() -> asio::awaitable<void> {
                co_await add_one(zk, how);
                std::size_t step = 0;
                outcome o;
                const auto one = [&]() -> asio::awaitable<void> { o = co_await add_one(zk, how); };
                running cancelled(e.get_executor(), one());
                e.on_step([&](std::string_view) {
                    if (step++ == at) asio::post(e.context(), [&] { cancelled.cancel(); });
                });
                co_await cancelled.end();
                e.on_step(nullptr);
                steps = std::max(steps, step);
                co_await zk.idle();
                co_await zk.sync();
                if (o.done) CHECK(number(e) == 2);
                if (!o.done) CHECK(o.code == condition::cancelled);
                if (!o.done && !o.unknown) CHECK(number(e) == 1);
                nothing += !o.done && !o.unknown;
                unknown += o.unknown;
                co_await zk.close();
            };
            e.run(body);
        }
        CHECK(nothing > 0);
        CHECK(unknown > 0);
    }
}

}  // namespace modify_tests
