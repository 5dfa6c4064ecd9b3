// Members of a double_barrier over a fake_ensemble: cuts at every step, lost answers, expiries, cancellations,
// operators, members that are killed, late or too many, and members of other libraries.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/barriers/double_barrier.hpp>
#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/error.hpp>
#include <zkasio/path.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/post.hpp>
#include <asio/steady_timer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace double_barrier_tests {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

const std::string path = "/deep/round";

asio::awaitable<void> pause(fake_ensemble& e, std::chrono::nanoseconds time) {
    asio::steady_timer timer(e.get_executor(), time);
    co_await timer.async_wait(asio::use_awaitable);
}

// So many steps of the servers.
asio::awaitable<void> turns(fake_ensemble& e, int n = 50) { return pause(e, n * 100us); }

// An enter() that runs, and its entry.
class entrant {
public:
    entrant(fake_ensemble& e, const double_barrier& into)
        : entry_(std::make_shared<std::optional<barrier_entry>>()), task_(e.get_executor(), enter(into, entry_)) {}

    bool inside() const { return entry_->has_value(); }
    bool ended() const { return task_.ended(); }
    barrier_entry& entry() { return **entry_; }
    void destroy() { entry_->reset(); }
    void cancel(asio::cancellation_type how = asio::cancellation_type::terminal) { task_.cancel(how); }
    asio::awaitable<std::error_code> code() const { return task_.code(); }

private:
    static asio::awaitable<void> enter(double_barrier into, std::shared_ptr<std::optional<barrier_entry>> to) {
        barrier_entry entry = co_await into.enter();
        to->emplace(std::move(entry));
    }
    std::shared_ptr<std::optional<barrier_entry>> entry_;
    running task_;
};

bool nothing_left(const fake_ensemble& e) { return e.children(path).empty() && e.watches() == 0; }

// Members that play some rounds, and check that they begin and end together.
class party {
public:
    party(fake_ensemble& e, std::size_t members) : e_(e), members_(members) {}

    asio::awaitable<void> play(client zk, std::size_t rounds, double_barrier_options options = {}) {
        const std::string failed = co_await message_of(rounds_of(zk, rounds, options));
        CHECK(failed == "");
    }
    asio::awaitable<void> rounds_of(client zk, std::size_t rounds, double_barrier_options options) {
        const double_barrier b(zk, path, members_, options);
        for (std::size_t r = 0; r < rounds; ++r) {
            ++begun_[r];
            barrier_entry entry = co_await b.enter();
            CHECK(begun_[r] == members_);
            CHECK(entry.held());
            co_await turns(e_, 3);
            ++leaving_[r];
            co_await entry.leave();
            CHECK(leaving_[r] == members_);
            CHECK_FALSE(entry.held());
        }
        ++done_;
    }
    std::size_t done() const { return done_; }

private:
    fake_ensemble& e_;
    const std::size_t members_;
    std::map<std::size_t, std::size_t> begun_, leaving_;
    std::size_t done_ = 0;
};

}  // namespace

TEST_CASE("double_barrier: members begin and end together, round after round, and leave nothing", "[barrier]") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        INFO("seed " << seed);
        fake_ensemble e(seed);
        if (seed % 2) e.lag();
        std::vector<client> clients;
        for (int i = 0; i < 4; ++i) clients.push_back(e.client(calm()));
        party all(e, clients.size());
        auto body = [&]() -> asio::awaitable<void> {
            std::vector<running> tasks;
            for (const client& zk : clients) tasks.emplace_back(e.get_executor(), all.play(zk, 4));
            for (running& task : tasks) {
                const std::exception_ptr failed = co_await task.end();
                CHECK_FALSE(failed);
            }
            CHECK(all.done() == clients.size());
            for (const client& zk : clients) co_await zk.idle();
            CHECK(nothing_left(e));
            for (const client& zk : clients) co_await zk.close();
        };
        e.run(body);
    }
}

TEST_CASE("double_barrier: a cut at any step changes nothing", "[barrier]") {
    const auto play = [&](std::size_t first, std::size_t second, std::uint64_t seed) {
        INFO("cuts after " << first << " and " << second << " steps, seed " << seed);
        fake_ensemble e(seed);
        const client one = e.client(calm()), two = e.client(calm());
        party both(e, 2);
        std::size_t step = 0;
        auto body = [&]() -> asio::awaitable<void> {
            co_await one.connected();
            co_await two.connected();
            cut_at_steps(e, one, two, first, second, step);
            running a(e.get_executor(), both.play(one, 2)), b(e.get_executor(), both.play(two, 2));
            const std::exception_ptr of_a = co_await a.end(), of_b = co_await b.end();
            CHECK_FALSE(of_a);
            CHECK_FALSE(of_b);
            e.on_step(nullptr);
            CHECK(both.done() == 2);
            co_await one.idle();
            co_await two.idle();
            CHECK(nothing_left(e));
            co_await one.close();
            co_await two.close();
        };
        e.run(body);
        return step;
    };
    const std::size_t steps = play(100'000, 0, 1);
    REQUIRE(steps > 30);
    for (std::size_t first = 0; first < steps; ++first)
        for (std::size_t second = 0; second < 8; second += 2) play(first, second, 1 + first % 3);
}

TEST_CASE("double_barrier: a lost answer of any request changes nothing", "[barrier]") {
    for (const char* request : {"create", "exists", "children", "multi", "remove"}) {
        for (int times = 1; times <= 4; ++times) {
            INFO(request << ", " << times << " times");
            fake_ensemble e;
            const client one = e.client(calm()), two = e.client(calm());
            party both(e, 2);
            auto body = [&]() -> asio::awaitable<void> {
                for (int i = 0; i < times; ++i) e.lose_answer(one, request);
                e.lose_answer(two, request);
                running a(e.get_executor(), both.play(one, 2)), b(e.get_executor(), both.play(two, 2));
                const std::exception_ptr of_a = co_await a.end(), of_b = co_await b.end();
                CHECK_FALSE(of_a);
                CHECK_FALSE(of_b);
                CHECK(nothing_left(e));
                co_await one.close();
                co_await two.close();
            };
            e.run(body);
        }
    }
}

TEST_CASE("double_barrier: an enter() that is cancelled at any step leaves nothing, and nobody passes for its sake",
          "[barrier]") {
    for (const bool both_kinds : {false, true}) {
        std::size_t steps = 1000;
        for (std::size_t at = 0; at < std::min<std::size_t>(steps, 60); ++at) {
            INFO("cancelled after " << at << " steps" << (both_kinds ? ", and cut" : ""));
            fake_ensemble e(1 + at % 5);
            const client one = e.client(calm()), two = e.client(calm());
            auto body = [&]() -> asio::awaitable<void> {
                co_await one.connected();
                co_await two.connected();
                std::size_t step = 0;
                const double_barrier ours(one, path, 1), theirs(two, path, 2);
                std::optional<entrant> first;
                e.on_step([&](std::string_view) {
                    if (step++ != at) return;
                    asio::post(e.context(), [&] {
                        if (both_kinds) e.cut(one);
                        first->cancel();
                    });
                });
                first.emplace(e, ours);
                const std::error_code code = co_await first->code();
                steps = step;
                e.on_step(nullptr);
                if (first->inside()) {
                    first->destroy();
                } else {
                    CHECK(code == asio::error::operation_aborted);
                }
                co_await one.idle();
                CHECK(nothing_left(e));
                entrant alone(e, theirs);
                co_await pause(e, 30s);
                CHECK_FALSE(alone.ended());
                alone.cancel();
                const std::error_code cancelled = co_await alone.code();
                CHECK(cancelled == asio::error::operation_aborted);
                co_await two.idle();
                CHECK(nothing_left(e));
                co_await one.close();
                co_await two.close();
            };
            e.run(body);
        }
    }
}

TEST_CASE("double_barrier: who has waited too long counts no longer", "[barrier]") {
    fake_ensemble e;
    const client one = e.client(calm()), two = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const double_barrier ours(one, path, 2), theirs(two, path, 2);
        const std::string late = co_await message_of(timeout(1s, ours.enter()));
        CHECK(late == "enter " + path + ": timed out");
        co_await one.idle();
        CHECK(nothing_left(e));
        entrant alone(e, theirs);
        co_await pause(e, 1min);
        CHECK_FALSE(alone.ended());
        barrier_entry entry = co_await ours.enter();
        co_await alone.code();
        CHECK(alone.inside());
        co_await one.close();
        co_await two.close();
    };
    e.run(body);
}

TEST_CASE("double_barrier: a session that ends counts no longer, waiting or inside", "[barrier]") {
    fake_ensemble e;
    const client one = e.client(calm()), two = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const double_barrier ours(one, path, 2), theirs(two, path, 2);
        entrant waits(e, ours);
        co_await turns(e);
        e.expire(one);
        const std::error_code expired = co_await waits.code();
        CHECK(expired == errc::session_expired);

        entrant a(e, ours), b(e, theirs);
        co_await a.code();
        co_await b.code();
        REQUIRE(a.inside());
        REQUIRE(b.inside());
        running leaving(e.get_executor(), b.entry().leave());
        co_await turns(e);
        CHECK_FALSE(leaving.ended());
        CHECK(a.entry().held());
        e.expire(one);
        const loss_reason why = co_await a.entry().lost();
        CHECK((why == loss_reason::session_expired || why == loss_reason::node_deleted));  // whichever is told first
        CHECK_FALSE(a.entry().held());
        const std::exception_ptr failed = co_await leaving.end();
        CHECK_FALSE(failed);
        const std::string unknown = co_await message_of(a.entry().leave());
        CHECK(unknown == "leave " + path + ": session expired");
        co_await one.idle();
        co_await two.idle();
        CHECK(nothing_left(e));
        co_await one.close();
        co_await two.close();
    };
    e.run(body);
}

TEST_CASE("double_barrier: run() leaves when the body has ended, however it ends", "[barrier]") {
    fake_ensemble e;
    const client one = e.client(calm()), two = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const double_barrier ours(one, path, 2), theirs(two, path, 2);
        auto work = [&](barrier_entry& entry) -> asio::awaitable<int> {
            CHECK(entry.held());
            CHECK(e.owns(one, entry.path()));
            co_return 7;
        };
        std::optional<entrant> other;
        other.emplace(e, theirs);
        int result = 0;
        const auto ours_runs = [&]() -> asio::awaitable<void> { result = co_await ours.run(work); };
        running runs(e.get_executor(), ours_runs());
        co_await other->code();
        co_await pause(e, 10s);
        CHECK_FALSE(runs.ended());  // the other is inside
        co_await other->entry().leave();
        co_await runs.end();
        CHECK(result == 7);
        CHECK(nothing_left(e));

        other.emplace(e, theirs);
        auto fails = [&](barrier_entry&) -> asio::awaitable<void> {
            throw std::runtime_error("broken");
            co_return;
        };
        const std::string broken = co_await message_of(ours.run(fails));
        CHECK(broken == "broken");
        co_await other->code();
        co_await other->entry().leave();
        co_await one.idle();
        CHECK(nothing_left(e));

        other.emplace(e, theirs);
        auto leaves = [&](barrier_entry& entry) -> asio::awaitable<void> {
            co_await other->code();
            other->destroy();
            co_await entry.leave();
            CHECK(entry.reason() == loss_reason::released);
        };
        const std::string left = co_await message_of(ours.run(leaves));
        CHECK(left.empty());
        const std::string empty = co_await message_of(ours.run(std::function<asio::awaitable<void>(barrier_entry&)>()));
        CHECK(empty == "run " + path + ": invalid argument (the body is empty)");
        co_await one.close();
        co_await two.close();
    };
    e.run(body);
}

TEST_CASE("double_barrier: the body is cancelled when the session is lost, and run() says so", "[barrier]") {
    for (const bool by_operator : {false, true}) {
        fake_ensemble e;
        const client one = e.client(calm()), two = e.client(calm());
        auto body = [&]() -> asio::awaitable<void> {
            const double_barrier ours(one, path, 2), theirs(two, path, 2);
            bool cancelled = false;
            std::string own;
            auto work = [&](barrier_entry& entry) -> asio::awaitable<void> {
                own = entry.path();
                try {
                    co_await pause(e, 24h);
                } catch (const std::system_error& x) {
                    cancelled = x.code() == condition::cancelled;
                    throw;
                }
            };
            entrant other(e, theirs);
            std::string said;
            const auto ours_runs = [&]() -> asio::awaitable<void> { said = co_await message_of(ours.run(work)); };
            running runs(e.get_executor(), ours_runs());
            co_await other.code();
            co_await turns(e);
            if (by_operator)
                e.remove(own);
            else
                e.expire(one);
            co_await runs.end();
            CHECK(cancelled);
            const std::string lost = "run " + path + ": lock lost (";
            CHECK((said == lost + "node deleted)" || (!by_operator && said == lost + "session expired)")));
            co_await other.entry().leave();
            co_await one.idle();
            CHECK(nothing_left(e));
            co_await one.close();
            co_await two.close();
        };
        e.run(body);
    }
}

TEST_CASE("double_barrier: an entry that is destroyed or assigned to leaves, and a cancelled leave() goes on",
          "[barrier]") {
    fake_ensemble e;
    const client one = e.client(calm()), two = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const double_barrier ours(one, path, 2), theirs(two, path, 2);
        {
            entrant a(e, ours), b(e, theirs);
            co_await a.code();
            co_await b.code();
            a.destroy();
            b.entry() = barrier_entry();
        }
        co_await one.idle();
        co_await two.idle();
        CHECK(nothing_left(e));

        entrant a(e, ours), b(e, theirs);
        co_await a.code();
        co_await b.code();
        running leaving(e.get_executor(), a.entry().leave());
        co_await turns(e);
        CHECK_FALSE(a.entry().held());
        CHECK(a.entry().reason() == loss_reason::released);
        leaving.cancel();
        const std::error_code cancelled = co_await leaving.code();
        CHECK(cancelled == condition::cancelled);
        co_await b.entry().leave();
        co_await a.entry().leave();  // waits for the same end
        CHECK(nothing_left(e));
        co_await barrier_entry().leave();
        co_await one.close();
        co_await two.close();
    };
    e.run(body);
}

TEST_CASE("double_barrier: an operator may delete the node of a member that waits, and the whole directory",
          "[barrier]") {
    for (const bool directory : {false, true}) {
        fake_ensemble e;
        const client one = e.client(calm()), two = e.client(calm());
        auto body = [&]() -> asio::awaitable<void> {
            const double_barrier ours(one, path, 2), theirs(two, path, 2);
            entrant a(e, ours);
            co_await turns(e, 200);
            REQUIRE(e.children(path).size() == 1);
            e.remove(join_path(path, e.children(path).front()));
            if (directory) e.remove(path);
            co_await pause(e, 5s);
            CHECK(e.children(path).size() == 1);
            entrant b(e, theirs);
            co_await a.code();
            co_await b.code();
            CHECK(a.inside());
            CHECK(b.inside());
            a.destroy();
            b.destroy();
            co_await one.idle();
            co_await two.idle();
            CHECK(nothing_left(e));
            co_await one.close();
            co_await two.close();
        };
        e.run(body);
    }
}

TEST_CASE("double_barrier: an operator may delete ready, a member's node or everything while members are inside",
          "[barrier]") {
    enum class what {
        ready,
        lowest,
        highest,
        everything
    };
    for (const what victim : {what::ready, what::lowest, what::highest, what::everything}) {
        for (const bool while_leaving : {false, true}) {
            INFO(static_cast<int>(victim) << (while_leaving ? " while one leaves" : ""));
            fake_ensemble e;
            std::vector<client> clients;
            for (int i = 0; i < 3; ++i) clients.push_back(e.client(calm()));
            auto body = [&]() -> asio::awaitable<void> {
                std::vector<entrant> all;
                for (const client& zk : clients) all.emplace_back(e, double_barrier(zk, path, 3));
                for (entrant& a : all) co_await a.code();
                std::vector<running> leaving;
                if (while_leaving) leaving.emplace_back(e.get_executor(), all[0].entry().leave());
                co_await turns(e, 200);
                const std::vector<std::string> children = e.children(path);  // "ready" is the last
                REQUIRE(children.size() >= 3);
                for (const std::string& name : children) {
                    const bool lowest = name == children.front(), highest = name == children[children.size() - 2];
                    if (victim == what::everything || (victim == what::ready && name == "ready") ||
                        (victim == what::lowest && lowest) || (victim == what::highest && highest))
                        e.remove(join_path(path, name));
                }
                if (victim == what::everything) e.remove(path);
                for (std::size_t i = leaving.size(); i < all.size(); ++i)
                    leaving.emplace_back(e.get_executor(), all[i].entry().leave());
                for (running& r : leaving) {
                    const std::exception_ptr failed = co_await r.end();
                    CHECK_FALSE(failed);
                }
                CHECK(nothing_left(e));
                for (const client& zk : clients) co_await zk.close();
            };
            e.run(body);
        }
    }
}

TEST_CASE("double_barrier: who comes after all members were killed inside does not find an old ready", "[barrier]") {
    for (const bool exactly : {false, true}) {
        fake_ensemble e;
        const client one = e.client(calm()), two = e.client(calm()), third = e.client(calm());
        auto body = [&]() -> asio::awaitable<void> {
            double_barrier_options options;
            options.exactly(exactly);
            entrant a(e, double_barrier(one, path, 2)), b(e, double_barrier(two, path, 2));
            co_await a.code();
            co_await b.code();
            e.expire(one);
            e.expire(two);
            CHECK(e.exists(path + "/ready"));
            entrant c(e, double_barrier(third, path, 2, options));
            co_await pause(e, 1min);
            CHECK_FALSE(c.ended());
            CHECK_FALSE(e.exists(path + "/ready"));
            entrant d(e, double_barrier(one, path, 2, options));
            co_await c.code();
            co_await d.code();
            CHECK(c.inside());
            CHECK(d.inside());
            co_await one.close();
            co_await two.close();
            co_await third.close();
        };
        e.run(body);
    }
}

TEST_CASE("double_barrier: a member that comes late joins the round, and is waited for", "[barrier]") {
    fake_ensemble e;
    const client one = e.client(calm()), two = e.client(calm()), third = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        entrant a(e, double_barrier(one, path, 2)), b(e, double_barrier(two, path, 2));
        co_await a.code();
        co_await b.code();
        entrant late(e, double_barrier(third, path, 2));
        co_await late.code();
        REQUIRE(late.inside());
        running a_leaves(e.get_executor(), a.entry().leave()), b_leaves(e.get_executor(), b.entry().leave());
        co_await pause(e, 10s);
        CHECK_FALSE(a_leaves.ended());
        CHECK_FALSE(b_leaves.ended());
        co_await late.entry().leave();
        co_await a_leaves.end();
        co_await b_leaves.end();
        CHECK(nothing_left(e));
        co_await one.close();
        co_await two.close();
        co_await third.close();
    };
    e.run(body);
}

TEST_CASE("double_barrier: exactly() refuses who is too many, and that leaves nothing", "[barrier]") {
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
        INFO("seed " << seed);
        fake_ensemble e(seed);
        if (seed % 2) e.lag();
        std::vector<client> clients;
        for (int i = 0; i < 5; ++i) clients.push_back(e.client(calm()));
        auto body = [&]() -> asio::awaitable<void> {
            double_barrier_options options;
            options.exactly();
            std::vector<entrant> all;
            for (const client& zk : clients) all.emplace_back(e, double_barrier(zk, path, 3, options));
            std::size_t inside = 0, refused = 0;
            for (entrant& a : all) {
                const std::error_code code = co_await a.code();
                inside += a.inside();
                refused += code == errc::too_many_members;
            }
            CHECK(inside == 3);
            CHECK(refused == 2);
            const std::string said = co_await message_of(double_barrier(clients[0], path, 3, options).enter());
            CHECK(said == "enter " + path + ": there are as many members as may be (3 are there without this one)");
            for (const client& zk : clients) co_await zk.idle();
            CHECK(e.children(path).size() == 4);  // with ready
            for (entrant& a : all)
                if (a.inside()) a.destroy();
            for (const client& zk : clients) co_await zk.idle();
            CHECK(nothing_left(e));
            for (const client& zk : clients) co_await zk.close();
        };
        e.run(body);
    }
}

TEST_CASE("double_barrier: who is cut off while ready comes passes, whatever has happened to ready since",
          "[barrier]") {
    // Curator's leaves ready until all are gone; kazoo's members remove it when the first of them leaves.
    for (const bool ready_stays : {true, false}) {
        fake_ensemble e;
        const client zk = e.client(calm());
        auto body = [&]() -> asio::awaitable<void> {
            entrant a(e, double_barrier(zk, path, 2));
            co_await turns(e, 200);
            e.hold_down(zk);
            co_await turns(e, 200);
            e.create(path + "/00000000000000000000000000000000");
            e.create(path + "/ready");
            if (!ready_stays) e.remove(path + "/ready");
            co_await pause(e, 1s);
            CHECK_FALSE(a.ended());
            e.let_in(zk);
            const std::error_code code = co_await a.code();
            CHECK_FALSE(code);
            e.remove(path + "/00000000000000000000000000000000");
            co_await a.entry().leave();
            CHECK(nothing_left(e));
            co_await zk.close();
        };
        e.run(body);
    }
}

TEST_CASE("double_barrier: who was told that ready came passes although everybody else has gone", "[barrier]") {
    fake_ensemble e;
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        entrant a(e, double_barrier(zk, path, 2));
        co_await turns(e, 200);
        e.create(path + "/ready");
        e.remove(path + "/ready");
        const std::error_code code = co_await a.code();
        CHECK_FALSE(code);
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("double_barrier: the removal of an old ready spares the next one, and a round that goes on", "[barrier]") {
    // Right before this request of the member arrives, another client is faster.
    struct meanwhile {
        std::string request;
        std::function<void(fake_ensemble&)> happens;
    };
    const std::string ready = path + "/ready", other = path + "/other";
    const auto replaced = [&](fake_ensemble& e) {
        e.remove(ready);
        e.create(ready);
    };
    const std::vector<meanwhile> all{{"set " + ready, replaced},
                                     {"get " + ready, replaced},
                                     {"multi", [&](fake_ensemble& e) { e.set(other, "has joined"); }}};
    for (const meanwhile& m : all) {
        INFO(m.request);
        fake_ensemble e;
        e.create(ready);
        e.create(other);
        const client zk = e.client(calm());
        auto body = [&]() -> asio::awaitable<void> {
            bool done = false;
            e.on_step([&](std::string_view step) {
                if (done || step.find("apply 0: " + m.request) == step.npos) return;
                done = true;
                m.happens(e);
            });
            barrier_entry entry = co_await double_barrier(zk, path, 5).enter();
            CHECK(done);
            CHECK(e.exists(ready));
            e.on_step(nullptr);
            co_await zk.close();
        };
        e.run(body);
    }
}

TEST_CASE("double_barrier: who comes too late for the last member of a round, or for its ready, waits", "[barrier]") {
    const std::vector<std::string> victims{path + "/other", path + "/ready"};
    for (const std::string& gone : victims) {
        INFO(gone);
        fake_ensemble e;
        e.create(path + "/other");
        e.create(path + "/ready");  // younger: the other is a member of its round
        const client zk = e.client(calm());
        auto body = [&]() -> asio::awaitable<void> {
            bool done = false;
            e.on_step([&](std::string_view step) {
                if (done || step.find("apply 0: multi") == step.npos) return;
                done = true;
                e.remove(gone);
            });
            entrant late(e, double_barrier(zk, path, 5));
            co_await pause(e, 10s);
            CHECK(done);
            CHECK_FALSE(late.ended());
            CHECK_FALSE(e.exists(path + "/ready"));
            e.on_step(nullptr);
            late.cancel();
            co_await late.code();
            co_await zk.close();
        };
        e.run(body);
    }
}

TEST_CASE("double_barrier: who has counted enough members creates ready only as long as its own node is there (B3)",
          "[barrier]") {
    fake_ensemble e;
    const client first = e.client(), last = e.client();
    auto body = [&]() -> asio::awaitable<void> {
        const entrant waits(e, double_barrier(first, path, 2));
        co_await turns(e);
        bool is_late = false;  // the request for ready, of the last to come
        e.on_step([&](std::string_view step) {
            const bool asks = step.find("apply 1: create") != step.npos || step.find("apply 1: multi") != step.npos;
            if (is_late || !asks || step.find("/ready") == step.npos) return;
            is_late = true;
            e.silence(last);
        });
        entrant creates(e, double_barrier(last, path, 2));
        co_await pause(e, 1s);
        REQUIRE(is_late);
        for (const std::string& name : e.children(path)) e.remove(path + '/' + name);  // an operator
        co_await pause(e, 1s);
        CHECK(e.children(path).size() == 1);  // the first one is there again, alone
        creates.cancel();
        co_await creates.code();
        e.let_in(last);
        co_await pause(e, 1min);
        CHECK_FALSE(waits.inside());
        CHECK(e.children(path).size() == 1);
        entrant another(e, double_barrier(last, path, 2));
        co_await pause(e, 1s);
        CHECK(waits.inside());
        CHECK(another.inside());
        co_await first.close();
        co_await last.close();
    };
    e.run(body);
    e.run_dry();
}

TEST_CASE("double_barrier: a client that is closed, or expires, at any step of a round", "[barrier]") {
    for (const bool closed : {false, true})
        for (std::uint64_t seed = 1; seed < 3; ++seed) {
            std::size_t steps = 1;
            for (std::size_t at = 0; at < steps; ++at) {
                INFO("closed " << closed << " after " << at << " steps, seed " << seed);
                fake_ensemble e(seed);
                const client one = e.client(calm()), two = e.client(calm()), three = e.client(calm());
                auto body = [&]() -> asio::awaitable<void> {
                    const auto play = [&](const client& zk) -> asio::awaitable<void> {
                        const double_barrier b(zk, path, 2);
                        barrier_entry entry = co_await b.enter();
                        co_await turns(e, 10);
                        co_await entry.leave();
                    };
                    const auto close = [&]() -> asio::awaitable<void> { co_await one.close(); };
                    std::optional<running> closes;
                    const auto strike = [&] {
                        if (closed)
                            closes.emplace(e.get_executor(), close());
                        else if (e.session_id(one) != 0)
                            e.expire(one);
                    };
                    std::size_t step = 0;
                    e.on_step([&](std::string_view) {
                        if (step++ == at) asio::post(e.context(), strike);
                    });
                    running a(e.get_executor(), play(one)), b(e.get_executor(), play(two));
                    const std::error_code code = co_await a.code();
                    CHECK((!code || code == (closed ? errc::client_closed : errc::session_expired)));
                    e.on_step(nullptr);
                    steps = std::max(steps, at == 0 ? 80 : std::min<std::size_t>(step, 90));
                    running c(e.get_executor(), play(three));  // a partner for who is left
                    const std::error_code partner = co_await b.code();
                    CHECK_FALSE(partner);
                    c.cancel();
                    co_await c.end();
                    if (closes) co_await closes->end();
                    co_await two.idle();
                    co_await three.idle();
                    for (const client& zk : {one, two, three}) co_await zk.close();
                };
                e.run(body);
                CHECK(nothing_left(e));
            }
        }
}

TEST_CASE("double_barrier: names, numbers and moved-from barriers that are refused", "[barrier]") {
    fake_ensemble e;
    const client zk = e.client(calm());
    CHECK_THROWS_AS(double_barrier(zk, "no path", 2), error);
    CHECK_THROWS_AS(double_barrier(zk, "/", 2), error);
    CHECK_THROWS_AS(double_barrier(zk, path, 0), error);
    auto body = [&]() -> asio::awaitable<void> {
        double_barrier b(zk, path, 2);
        const double_barrier gone = std::move(b);
        const std::error_code moved = co_await code_of(b.enter());
        CHECK(moved == errc::invalid_argument);
        entrant waits(e, gone);
        co_await turns(e);
        co_await zk.close();
        const std::error_code closed = co_await waits.code();
        CHECK(closed == errc::client_closed);
    };
    e.run(body);
}

TEST_CASE("double_barrier: the node has the data and the ACL of its options", "[barrier]") {
    fake_ensemble e;
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        double_barrier_options options;
        options.data("host-7").acl(open_acl());
        const double_barrier b(zk, path, 1, options);
        barrier_entry entry = co_await b.enter();
        CHECK(e.data(entry.path()) == "host-7");
        CHECK(e.owns(zk, entry.path()));
        CHECK(b.path() == path);
        co_await entry.leave();
        CHECK(nothing_left(e));
        co_await zk.close();
    };
    e.run(body);
}

}  // namespace double_barrier_tests
