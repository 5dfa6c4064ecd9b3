#include "support/catch.hpp"
#include "support/test_client.hpp"

#include <zkasio/error.hpp>
#include <zkasio/recipe/receipts.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/post.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace receipts_faults_tests {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

client_options patient() { return client_options("fake").session_timeout(20s).connection_timeout(1h); }

struct outcome {
    bool done = false, unknown = false;
    std::error_code code;
    std::string what;
};

asio::awaitable<outcome> put(receipts with, std::string data) {
    outcome o;
    create_options sequential;
    sequential.mode(create_mode::persistent_sequential);
    transaction steps;
    steps.create("/items/i-", bytes(data), sequential);
    try {
        co_await with.apply(std::move(steps), "put");
        o.done = true;
    } catch (const error& e) {
        o.code = e.code();
        o.unknown = e.outcome_unknown();
        o.what = e.what();
    }
    co_return o;
}

// An ensemble with /items and /r, and a client. Runs bodies; no receipt outlasts the session.
struct scene {
    explicit scene(std::uint64_t seed = 1) : e(seed), zk(e.client(patient())) {
        e.create("/items");
        e.create("/r");
    }
    template <class Body>
    void run(Body body) {
        auto all = [&]() -> asio::awaitable<void> {
            {
                const session on = co_await zk.current_session();
                co_await body(on);
            }
            co_await zk.idle();
            co_await zk.close();
            CHECK(e.children("/r").empty());
        };
        e.run(all);
    }
    std::size_t count(const std::string& data) const {
        std::size_t n = 0;
        for (const std::string& name : e.children("/items")) n += e.data("/items/" + name) == data;
        return n;
    }
    // Calls `f` once, at step `at` from now on. Returns the number of steps so far.
    std::shared_ptr<std::size_t> at_step(std::size_t at, std::function<void()> f) {
        const auto step = std::make_shared<std::size_t>(0);
        e.on_step([this, step, at, f = std::move(f)](std::string_view) {
            if ((*step)++ == at) asio::post(e.context(), f);
        });
        return step;
    }
    fake_ensemble e;
    const client zk;
};

}  // namespace

TEST_CASE("receipts: cancelled at any step, with any answer lost, apply() tells the truth") {
    const auto play = [](const std::string& lost, bool used_before, std::size_t at) {
        INFO("cancelled at step " << at << ", lost answer of \"" << lost << "\", used before: " << used_before);
        scene s;
        std::size_t steps = 0;
        s.run([&](session on) -> asio::awaitable<void> {
            const receipts with(on, "/r");
            if (used_before) co_await put(with, "first");
            if (!lost.empty()) s.e.lose_answer(s.zk, lost);
            std::optional<outcome> told;
            const auto one = [&]() -> asio::awaitable<void> { told = co_await put(with, "a"); };
            running r(s.e.get_executor(), one());
            const auto step = s.at_step(at, [&] { r.cancel(); });
            const std::exception_ptr raw = co_await r.end();
            steps = *step;
            s.e.on_step(nullptr);
            CHECK_FALSE(raw);
            REQUIRE(told);
            INFO(told->what);
            if (!told->done) CHECK(told->code == condition::cancelled);
            co_await s.zk.idle();
            co_await s.zk.get("/items");  // behind all that was sent
            CHECK(s.count("a") == (told->done || told->unknown));
            const outcome next = co_await put(with, "b");
            CHECK(next.done);
            CHECK(s.count("b") == 1);
        });
        return steps;
    };
    for (const char* lost : {"", "multi", "create /r"}) {
        for (const bool used_before : {false, true}) {
            const std::size_t steps = play(lost, used_before, 1000);
            REQUIRE(steps >= 2);
            for (std::size_t at = 0; at <= steps; ++at) play(lost, used_before, at);
        }
    }
}

TEST_CASE("receipts: an operator removes the receipts at any step, with a lost answer or without") {
    const auto play = [](bool lose, std::size_t at, std::uint64_t seed) {
        INFO("removed at step " << at << ", seed " << seed << (lose ? ", answer lost" : ""));
        scene s(seed);
        std::size_t steps = 0;
        s.run([&](session on) -> asio::awaitable<void> {
            const receipts with(on, "/r");
            if (lose) s.e.lose_answer(s.zk, "multi");
            const auto step = s.at_step(at, [&] {
                for (const std::string& name : s.e.children("/r")) s.e.remove("/r/" + name);
            });
            const outcome a = co_await put(with, "a"), b = co_await put(with, "b");
            steps = *step;
            s.e.on_step(nullptr);
            for (const auto& [told, data] : {std::pair(a, "a"), std::pair(b, "b")}) {
                INFO(data << ": " << told.what);
                CHECK((told.done || (told.unknown && told.code == zk_errc::connection_loss)));
                CHECK(s.count(data) <= 1);  // the lost answer may have been a refusal
                if (told.done) CHECK(s.count(data) == 1);
                if (!lose) CHECK(told.done);
            }
        });
        return steps;
    };
    for (const bool lose : {false, true})
        for (std::uint64_t seed = 1; seed <= 3; ++seed) {
            const std::size_t steps = play(lose, 1000, seed);
            for (std::size_t at = 0; at <= steps; ++at) play(lose, at, seed);
        }
}

TEST_CASE("receipts: an operator removes a receipt while its session expires, and outcome_unknown() tells the truth") {
    for (std::size_t at = 0; at < 12; ++at) {
        INFO("at step " << at);
        scene s;
        s.run([&](session on) -> asio::awaitable<void> {
            const receipts with(on, "/r");
            s.e.lose_answer(s.zk, "multi");
            s.at_step(at, [&] {
                for (const std::string& name : s.e.children("/r")) s.e.remove("/r/" + name);
                s.e.expire(s.zk);
            });
            const outcome a = co_await put(with, "a");
            s.e.on_step(nullptr);
            if (a.done) CHECK(s.count("a") == 1);
            if (!a.done && !a.unknown) CHECK(s.count("a") == 0);
        });
    }
}

TEST_CASE("receipts: each ACL has receipts of its own") {
    scene s;
    s.run([&](session on) -> asio::awaitable<void> {
        const acl mine = acl_of(acl_entry(permission::read | permission::write, anyone()));
        const receipts open(on, "/r"), closed(on, "/r", mine);
        for (int i = 0; i < 2; ++i)
            for (const receipts* with : {&open, &closed}) {
                const outcome o = co_await put(*with, "a");
                CHECK(o.done);
            }
        std::size_t mine_found = 0;
        CHECK(s.e.children("/r").size() == 2);
        for (const std::string& name : s.e.children("/r")) {
            const operations::acl_and_stat found = co_await s.zk.get_acl("/r/" + name);
            mine_found += found.acl == mine;
        }
        CHECK(mine_found == 1);
    });
}

TEST_CASE("receipts: with missing_parents::fail, a receipt that is gone is told, and replaced in the next call") {
    scene s;
    s.run([&](session on) -> asio::awaitable<void> {
        const receipts with(on, "/r", open_acl(), missing_parents::fail);
        const outcome first = co_await put(with, "first");
        CHECK(first.done);
        const std::string receipt = "/r/" + s.e.children("/r").at(0);
        s.e.remove(receipt);
        s.e.remove("/r");
        s.e.create("/r");
        const outcome gone = co_await put(with, "a");
        CHECK(gone.code == zk_errc::no_node);
        CHECK(gone.what.find(receipt) != std::string::npos);
        CHECK_FALSE(gone.unknown);
        CHECK(s.count("a") == 0);
        const outcome again = co_await put(with, "a");
        CHECK(again.done);
        const receipts nowhere(on, "/nowhere", open_acl(), missing_parents::fail);
        const outcome missing = co_await put(nowhere, "b");
        CHECK(missing.code == zk_errc::no_node);
        CHECK_FALSE(missing.unknown);
        CHECK_FALSE(s.e.exists("/nowhere"));
    });
}

}  // namespace receipts_faults_tests
