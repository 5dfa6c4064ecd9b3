#include "support/catch.hpp"
#include "support/test_client.hpp"

#include <zkasio/error.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/receipts.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/post.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace receipts_tests {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

client_options patient() { return client_options("fake").session_timeout(20s).connection_timeout(1h); }

transaction item(const std::string& data) {
    create_options sequential;
    sequential.mode(create_mode::persistent_sequential);
    transaction steps;
    steps.create("/items/i-", bytes(data), sequential);
    return steps;
}

std::size_t count_of(const fake_ensemble& e, const std::string& data) {
    std::size_t n = 0;
    for (const std::string& name : e.children("/items")) n += e.data("/items/" + name) == data;
    return n;
}

struct outcome {
    std::optional<committed> done;
    std::error_code code;
    bool unknown = false;
};

asio::awaitable<outcome> apply(receipts with, transaction steps) {
    outcome o;
    try {
        o.done = co_await with.apply(std::move(steps), "put");
    } catch (const error& e) {
        o.code = e.code();
        o.unknown = e.outcome_unknown();
    }
    co_return o;
}

// Calls `f` once, at the step with the next multi or `later` steps after it.
void at_multi(fake_ensemble& e, std::function<void()> f, int later = 0) {
    e.on_step([&e, f = std::move(f), later, seen = false, done = false](std::string_view step) mutable {
        if (done) return;
        seen = seen || step.find("multi") != std::string_view::npos;
        if (!seen || later-- > 0) return;
        done = true;
        asio::post(e.context(), f);
    });
}

// An ensemble with /items, a client of it, and its receipts.
struct scene {
    explicit scene(std::uint64_t seed = 1) : ensemble(seed), zk(ensemble.client(patient())) {
        ensemble.create("/items");
        ensemble.create("/r");
    }
    template <class Body>
    void run(Body body) {
        auto all = [&]() -> asio::awaitable<void> {
            {
                const session on = co_await zk.current_session();
                const receipts with(on, "/r");
                co_await body(with);
            }
            ensemble.on_step(nullptr);
            if (zk.state() != session_state::closed) co_await zk.idle();
            const close_result how = co_await zk.close();  // after a cut, the session is left to expire
            if (how == close_result::confirmed) CHECK(ensemble.children("/r").empty());
        };
        ensemble.run(all);
    }
    fake_ensemble ensemble;
    const client zk;
};

}  // namespace

TEST_CASE("receipts: a transaction is one request, and tells its place and its time") {
    scene s;
    s.run([&](const receipts& with) -> asio::awaitable<void> {
        co_await apply(with, item("first"));  // makes the receipt
        const std::size_t before = s.ensemble.requests(s.zk);
        const outcome o = co_await apply(with, item("a"));
        CHECK(s.ensemble.requests(s.zk) == before + 1);
        REQUIRE(o.done);
        CHECK_FALSE(o.done->answer_lost);
        REQUIRE(o.done->results.size() == 1);
        const std::optional<node_stat> made = s.ensemble.stat(o.done->results[0].path);
        REQUIRE(made);
        CHECK(o.done->zxid == made->czxid);
        CHECK(o.done->at == std::chrono::system_clock::time_point(std::chrono::milliseconds(made->ctime)));
        CHECK(s.ensemble.children("/r").size() == 1);
    });
}

TEST_CASE("receipts: a transaction whose answer is lost is applied once, and known to be") {
    scene s;
    s.run([&](const receipts& with) -> asio::awaitable<void> {
        for (int i = 0; i < 3; ++i) {
            const std::string data = "item " + std::to_string(i);
            s.ensemble.lose_answer(s.zk, "multi");
            transaction steps = item(data);
            steps.create("/items/" + std::to_string(i));
            const outcome o = co_await apply(with, std::move(steps));
            REQUIRE(o.done);
            CHECK(o.done->answer_lost);
            CHECK(count_of(s.ensemble, data) == 1);
            REQUIRE(o.done->results.size() == 2);
            CHECK(o.done->results[0].path.empty());
            CHECK(o.done->results[1].path == "/items/" + std::to_string(i));
            CHECK(o.done->zxid == s.ensemble.stat("/items/" + std::to_string(i))->czxid);
        }
        CHECK(s.ensemble.children("/r").size() == 1);
    });
}

TEST_CASE("receipts: what a repeated transaction is refused for is no failure if the first attempt was applied") {
    scene s;
    s.ensemble.create("/n");
    s.run([&](const receipts& with) -> asio::awaitable<void> {
        s.ensemble.lose_answer(s.zk, "multi");
        const outcome once = co_await apply(with, transaction().set("/n", "x", 0));
        REQUIRE(once.done);  // the repetition has met version 1
        const outcome again = co_await apply(with, transaction().set("/n", "y", 0));
        CHECK(again.code == zk_errc::bad_version);
        CHECK_FALSE(again.unknown);
        CHECK(s.ensemble.data("/n") == "x");
        CHECK(s.ensemble.stat("/n")->version == 1);
    });
}

TEST_CASE("receipts: a refusal names the operation, the node and the step, and keeps the receipt") {
    scene s;
    s.run([&](const receipts& with) -> asio::awaitable<void> {
        std::string said;
        transaction refused;
        refused.check("/items").remove("/missing");
        try {
            co_await with.apply(std::move(refused), "put");
        } catch (const error& e) {
            said = e.what();
        }
        CHECK(said == "put /missing: no such node (step 2, remove)");
        const std::vector<std::string> kept = s.ensemble.children("/r");
        const outcome o = co_await apply(with, item("a"));
        CHECK(o.done);
        CHECK(s.ensemble.children("/r") == kept);
    });
}

TEST_CASE("receipts: a receipt that an operator has removed is replaced, and tells nothing of a lost answer") {
    scene s;
    s.run([&](const receipts& with) -> asio::awaitable<void> {
        const auto take_away = [&] { s.ensemble.remove("/r/" + s.ensemble.children("/r").at(0)); };
        co_await apply(with, item("first"));
        take_away();
        const outcome replaced = co_await apply(with, item("a"));
        CHECK(replaced.done);
        CHECK(count_of(s.ensemble, "a") == 1);

        at_multi(s.ensemble, take_away, 1);
        s.ensemble.lose_answer(s.zk, "multi");
        const outcome lost = co_await apply(with, item("b"));
        CHECK(lost.code == zk_errc::connection_loss);
        CHECK(lost.unknown);
        CHECK(count_of(s.ensemble, "b") == 1);
        const outcome next = co_await apply(with, item("c"));
        CHECK(next.done);
        CHECK(count_of(s.ensemble, "c") == 1);
    });
}

TEST_CASE("receipts: another client that writes a receipt is not taken for this one") {
    scene s;
    s.run([&](const receipts& with) -> asio::awaitable<void> {
        co_await apply(with, item("first"));
        const std::string path = "/r/" + s.ensemble.children("/r").at(0);
        at_multi(s.ensemble, [&] {
            s.ensemble.set(path, "theirs");
            s.ensemble.cut(s.zk);
        });
        const outcome o = co_await apply(with, item("a"));
        CHECK((o.done ? count_of(s.ensemble, "a") == 1 : o.unknown));
        CHECK(count_of(s.ensemble, "a") <= 1);
    });
}

TEST_CASE("receipts: an ACL that lets nobody write the receipt ends the transaction, and is not tried for ever") {
    scene s;
    s.run([&](const receipts&) -> asio::awaitable<void> {
        const session on = co_await s.zk.current_session();
        const receipts unwritable(on, "/r", acl_of(acl_entry(permission::read, anyone())));
        const outcome o = co_await apply(unwritable, item("a"));
        CHECK(o.code == zk_errc::no_auth);
        CHECK_FALSE(o.unknown);
        CHECK(s.ensemble.children("/items").empty());
    });
}

TEST_CASE("receipts: a cut at any step, or any two, neither loses nor doubles") {
    std::size_t steps = 0;
    const auto play = [&](std::size_t first, std::size_t second, std::uint64_t seed) {
        INFO("cuts after " << first << " and " << second << " steps, seed " << seed);
        scene s(seed);
        std::size_t step = 0;
        s.run([&](const receipts& with) -> asio::awaitable<void> {
            s.ensemble.on_step([&](std::string_view) {
                if (step == first || step == first + 1 + second)
                    asio::post(s.ensemble.context(), [&] { s.ensemble.cut(s.zk); });
                ++step;
            });
            for (const char* data : {"a", "b"}) {
                const outcome o = co_await apply(with, item(data));
                CHECK(o.done);
                CHECK(count_of(s.ensemble, data) == 1);
            }
            s.ensemble.on_step(nullptr);
        });
        return step;
    };
    steps = play(1000, 0, 1);
    REQUIRE(steps >= 6);
    for (std::size_t first = 0; first < steps; ++first)
        for (std::size_t second = 0; second < 8; ++second)
            for (std::uint64_t seed = 1; seed <= 4; ++seed) play(first, second, seed);
}

TEST_CASE("receipts: transactions at the same time have receipts of their own, and all objects share them") {
    scene s;
    s.run([&](const receipts& with) -> asio::awaitable<void> {
        const session on = co_await s.zk.current_session();
        const receipts other(on, "/r");
        std::size_t most = 0, done = 0;
        const auto one = [&](const receipts& of, std::string data) -> asio::awaitable<void> {
            const outcome o = co_await apply(of, item(data));
            done += o.done.has_value();
            most = std::max(most, s.ensemble.children("/r").size());
        };
        for (int round = 0; round < 3; ++round) {
            std::vector<running> all;
            for (int i = 0; i < 4; ++i)
                all.emplace_back(s.ensemble.get_executor(), one(i % 2 ? with : other, std::to_string(i)));
            for (running& r : all) co_await r.end();
        }
        CHECK(done == 12);
        CHECK(most == 4);
    });
}

TEST_CASE("receipts: many transactions at the same time share 64 receipts, in the order of their calls") {
    scene s;
    s.run([&](const receipts& with) -> asio::awaitable<void> {
        constexpr int many = 1000;
        std::size_t most = 0;
        std::vector<int> ended;
        const auto one = [&](int i) -> asio::awaitable<void> {
            const outcome o = co_await apply(with, item(std::to_string(i)));
            if (o.done) ended.push_back(i);
            most = std::max(most, s.ensemble.children("/r").size());
        };
        std::vector<running> all;
        for (int i = 0; i < many; ++i) all.emplace_back(s.ensemble.get_executor(), one(i));
        for (running& r : all) co_await r.end();
        CHECK(most == 64);
        CHECK(ended.size() == many);
        CHECK(std::is_sorted(ended.begin(), ended.end()));
        CHECK(s.ensemble.children("/items").size() == many);
        co_await s.zk.idle();
        CHECK(s.ensemble.children("/r").size() == 64);
        const std::size_t before = s.ensemble.requests(s.zk);
        const outcome again = co_await apply(with, item("again"));
        CHECK(again.done);
        CHECK(s.ensemble.requests(s.zk) == before + 1);
    });
}

TEST_CASE("receipts: a transaction that is cancelled while it waits for a receipt loses nothing") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        INFO("seed " << seed);
        scene s(seed);
        s.run([&](const receipts& with) -> asio::awaitable<void> {
            constexpr int many = 300;
            std::vector<std::optional<outcome>> told(many);
            const auto one = [&](int i) -> asio::awaitable<void> {
                told[static_cast<std::size_t>(i)] = co_await apply(with, item(std::to_string(i)));
            };
            std::vector<running> all;
            for (int i = 0; i < many; ++i) all.emplace_back(s.ensemble.get_executor(), one(i));
            std::size_t step = 0, next = seed % 3;
            s.ensemble.on_step([&](std::string_view) {
                if (++step % 2 == 0 && next < many) {  // some wait, some have just got their turn, some are under way
                    asio::post(s.ensemble.context(), [&r = all[next]] { r.cancel(); });
                    next += 3;
                }
            });
            for (running& r : all) co_await r.end();
            s.ensemble.on_step(nullptr);
            co_await s.zk.idle();
            co_await s.zk.get("/items");
            std::size_t done = 0;
            for (int i = 0; i < many; ++i) {
                const outcome& o = *told[static_cast<std::size_t>(i)];
                done += o.done.has_value();
                if (!o.done) CHECK(o.code == condition::cancelled);
                CHECK(count_of(s.ensemble, std::to_string(i)) == (o.done || o.unknown));
            }
            CHECK(done >= 200);
            CHECK(done < many);
            CHECK(s.ensemble.children("/r").size() <= 64);
        });
    }
}

TEST_CASE("receipts: those that wait when the session ends, or the client is closed, are told") {
    for (const bool close : {false, true}) {
        INFO("closed: " << close);
        scene s;
        s.run([&](const receipts& with) -> asio::awaitable<void> {
            constexpr int many = 200;
            std::vector<outcome> told;
            const auto one = [&]() -> asio::awaitable<void> {
                outcome o = co_await apply(with, item("x"));
                told.push_back(std::move(o));
            };
            std::vector<running> all;
            for (int i = 0; i < many; ++i) all.emplace_back(s.ensemble.get_executor(), one());
            co_await asio::post(s.ensemble.get_executor(), asio::use_awaitable);
            if (close)
                co_await s.zk.close();
            else
                s.ensemble.expire(s.zk);
            for (running& r : all) co_await r.end();
            REQUIRE(told.size() == many);
            for (const outcome& o : told) {
                if (o.done) continue;
                CHECK(o.code == (close ? errc::client_closed : errc::session_expired));
                CHECK_FALSE(o.unknown);
            }
        });
    }
}

TEST_CASE("receipts: a session keeps the receipts of the 64 directories that were used last") {
    scene s;
    s.run([&](const receipts&) -> asio::awaitable<void> {
        const session on = co_await s.zk.current_session();
        for (int i = 0; i < 100; ++i) {
            const receipts some(on, "/of/" + std::to_string(i));
            const outcome o = co_await apply(some, item("x"));
            CHECK(o.done);
        }
        co_await s.zk.idle();
        std::size_t left = 0;
        for (const std::string& d : s.ensemble.children("/of")) left += s.ensemble.children("/of/" + d).size();
        CHECK(left == 64);
    });
}

TEST_CASE("receipts: two directories that are used in turn push out no others") {
    scene s;
    s.run([&](const receipts&) -> asio::awaitable<void> {
        const session on = co_await s.zk.current_session();
        const auto use = [&](std::string directory) -> asio::awaitable<void> {
            const receipts some(on, "/of/" + directory);
            const outcome o = co_await apply(some, item("x"));
            CHECK(o.done);
        };
        co_await use("first");
        for (int i = 0; i < 100; ++i) co_await use(i % 2 ? "odd" : "even");
        co_await s.zk.idle();
        for (const std::string& d : s.ensemble.children("/of")) CHECK(s.ensemble.children("/of/" + d).size() == 1);
    });
}

TEST_CASE("receipts: a session that is handed over takes no idle receipts along") {
    scene s;
    auto body = [&]() -> asio::awaitable<void> {
        const session on = co_await s.zk.current_session();
        {
            const receipts with(on, "/r");
            const outcome o = co_await apply(with, item("x"));
            CHECK(o.done);
        }
        CHECK(s.ensemble.children("/r").size() == 1);
        co_await s.zk.hand_over();
        CHECK(s.ensemble.children("/r").empty());
    };
    s.ensemble.run(body);
}

TEST_CASE("receipts: made on another thread") {
    fake_ensemble e;
    const client zk = e.client(client_options("fake").session_timeout(20s));
    auto body = [&]() -> asio::awaitable<void> {
        const session on = co_await zk.current_session();
        std::optional<receipts> made;
        const auto make = [&] {
            std::thread elsewhere([&] { made.emplace(on, "/receipts"); });
            elsewhere.join();
        };
        asio::post(on.get_executor(), make);
        co_await asio::post(on.get_executor(), asio::use_awaitable);
        co_await made->apply(transaction().create("/a"));
        made.reset();
        co_await zk.idle();
        CHECK(e.children("/receipts").size() == 1);
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("receipts: the end of the session with a lost answer says that the outcome is unknown") {
    scene s;
    s.run([&](const receipts& with) -> asio::awaitable<void> {
        co_await apply(with, item("first"));
        at_multi(
            s.ensemble, [&] { s.ensemble.expire(s.zk); }, 1);
        s.ensemble.lose_answer(s.zk, "multi");
        const outcome o = co_await apply(with, item("a"));
        CHECK(o.code == errc::session_expired);
        CHECK(o.unknown);
        const outcome later = co_await apply(with, item("b"));
        CHECK(later.code == errc::session_expired);
        CHECK_FALSE(later.unknown);
    });
}

TEST_CASE("receipts: a session that ends while the receipt is created leaves nothing uncertain") {
    scene s;
    s.run([&](const receipts& with) -> asio::awaitable<void> {
        bool ended = false;
        s.ensemble.on_step([&](std::string_view step) {
            if (ended || step.find("create /r/_r-") == std::string_view::npos) return;
            ended = true;
            asio::post(s.ensemble.context(), [&] { s.ensemble.expire(s.zk); });
        });
        const outcome o = co_await apply(with, item("a"));
        s.ensemble.on_step(nullptr);
        CHECK(ended);
        CHECK(o.code == errc::session_expired);
        CHECK_FALSE(o.unknown);
        CHECK(count_of(s.ensemble, "a") == 0);
    });
}

TEST_CASE("receipts: a cancelled transaction says whether it was sent, and its receipt is not used again") {
    scene s;
    s.run([&](const receipts& with) -> asio::awaitable<void> {
        co_await apply(with, item("first"));
        const std::vector<std::string> before = s.ensemble.children("/r");
        std::optional<outcome> told;
        const auto one = [&]() -> asio::awaitable<void> { told = co_await apply(with, item("a")); };
        running cancelled(s.ensemble.get_executor(), one());
        at_multi(s.ensemble, [&] { cancelled.cancel(); });
        co_await cancelled.end();
        REQUIRE(told);
        CHECK(told->code == condition::cancelled);
        CHECK(told->unknown);
        co_await s.zk.idle();
        CHECK(count_of(s.ensemble, "a") == 1);
        CHECK(s.ensemble.children("/r") != before);
    });
}

TEST_CASE("receipts: the directory is made when it is missing, and bad arguments are refused") {
    scene s;
    s.run([&](const receipts&) -> asio::awaitable<void> {
        const session on = co_await s.zk.current_session();
        {
            const receipts deep(on, "/made/on/demand");
            const outcome o = co_await apply(deep, item("a"));
            CHECK(o.done);
            CHECK(s.ensemble.children("/made/on/demand").size() == 1);
        }
        CHECK_THROWS_AS(receipts(on, "no/slash"), error);
        CHECK_THROWS_AS(receipts(session(), "/r"), error);
        receipts from(on, "/r");
        const receipts to = std::move(from);
        const outcome moved = co_await apply(from, item("b"));
        CHECK(moved.code == errc::invalid_argument);
        const outcome nothing = co_await apply(to, transaction());
        CHECK(nothing.done);
    });
}

}  // namespace receipts_tests
