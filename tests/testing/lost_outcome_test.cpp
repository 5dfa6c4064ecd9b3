// A body that is cancelled while the answer to its write is on its way: the error that reaches the caller says so.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/barriers/double_barrier.hpp>
#include <zkasio/coroutines/task_scope.hpp>
#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/election/candidate.hpp>
#include <zkasio/election/leader_election.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/revocation.hpp>
#include <zkasio/locks/with_lock.hpp>
#include <zkasio/membership/partitioner.hpp>
#include <zkasio/membership/persistent_node.hpp>
#include <zkasio/queues/work_queue.hpp>
#include <zkasio/session_loop.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/this_coro.hpp>

#include <exception>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace lost_outcome_tests {

using namespace std::chrono_literals;
using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

/// A client whose bodies write without a pause: when a test ends them, a write is under way.
struct scene {
    fake_ensemble ensemble;
    client zk;
    client other = ensemble.client(sessions_of_ten_seconds());
    bool unknown_to_body = false;

    explicit scene(client_options how = sessions_of_ten_seconds()) : zk(ensemble.client(std::move(how))) {
        for (const char* path : {"/n", "/l", "/b"}) ensemble.create(path);
    }

    asio::awaitable<void> write(std::string value) {
        try {
            co_await zk.set("/n", std::move(value));
        } catch (const error& e) {
            unknown_to_body = e.outcome_unknown();
            throw;
        }
    }
    /// Begins shortly before the end: each write takes the test some time.
    asio::awaitable<void> write_for_ever() {
        co_await sleep_for(3800ms);
        for (int i = 0;; ++i) {
            std::string value = std::to_string(i);
            co_await write(std::move(value));
        }
    }
    /// The body needs some time to end.
    asio::awaitable<void> write_and_end_slowly() {
        std::exception_ptr failed;
        try {
            co_await write_for_ever();
        } catch (...) {
            failed = std::current_exception();
        }
        co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
        co_await sleep_for(1s);
        std::rethrow_exception(failed);
    }
    std::function<asio::awaitable<void>()> writer() {
        return [this] { return write_for_ever(); };
    }

    void remove_children(const std::string& path) {
        for (const std::string& name : ensemble.children(path))
            if (name != "ready") ensemble.remove(path + "/" + name);
    }
    void close() { asio::co_spawn(ensemble.context(), zk.close(), asio::detached); }
    void end() {
        ensemble.run(zk.close());
        ensemble.run(other.close());
        ensemble.run_dry();
    }

    /// What `task` has thrown after `cause`.
    std::exception_ptr failure(asio::awaitable<void> task, const std::function<void()>& cause) {
        const running work(ensemble.get_executor(), std::move(task));
        ensemble.run_for(5s);
        REQUIRE_FALSE(work.ended());
        cause();
        return ensemble.run(work.end());
    }
};

struct what_was_thrown {
    std::error_code code;
    bool outcome_unknown = false;
    std::string text;
};
what_was_thrown see(const std::exception_ptr& thrown) {
    try {
        if (thrown) std::rethrow_exception(thrown);
    } catch (const error& e) {
        return {e.code(), e.outcome_unknown(), e.what()};
    } catch (const std::system_error& e) {
        return {e.code(), false, e.what()};
    } catch (const std::exception& e) {
        return {std::make_error_code(std::errc::no_message), false, e.what()};
    }
    return {};
}

struct way {
    std::string name;
    std::error_code code;
    std::function<asio::awaitable<void>(scene&)> run;
    std::function<void(scene&)> cause;
};

void remove_lock(scene& s) { s.remove_children("/l"); }
void silence(scene& s) { s.ensemble.silence(s.zk); }
void close_client(scene& s) { s.close(); }
void nothing(scene&) {}
void ask_back(scene& s) {
    for (const std::string& name : s.ensemble.children("/l"))
        asio::co_spawn(s.ensemble.context(), revoke(s.other, "/l/" + name), asio::detached);
}

asio::awaitable<void> with_lock(scene& s, with_lock_options how) {
    auto body = [&s](lock_guard&) -> asio::awaitable<void> { return s.write_for_ever(); };
    co_await mutex(s.zk, "/l").with_lock(body, how);
}
asio::awaitable<void> with_plain_lock(scene& s) { return with_lock(s, with_lock_options()); }
asio::awaitable<void> with_revocable_lock(scene& s) {
    return with_lock(s, with_lock_options().revocation(revocation_policy::cancel_after(0s)));
}
asio::awaitable<void> run_under_guard(scene& s, std::chrono::nanoseconds margin) {
    const lock_guard guard = co_await mutex(s.zk, "/l").acquire();
    const auto body = s.writer();
    co_await guard.run(body, margin);
}
asio::awaitable<void> in_session(scene& s) {
    auto body = [&s](const session&) { return s.write_for_ever(); };
    co_await s.zk.with_session(body);
}
asio::awaitable<void> in_barrier(scene& s) {
    auto body = [&s](barrier_entry&) { return s.write_for_ever(); };
    co_await double_barrier(s.zk, "/b", 1).run(body);
}
asio::awaitable<void> of_delivery(scene& s) {
    work_queue queue(s.zk, "/q");
    co_await queue.put("x");
    const delivery d = co_await queue.receive();
    const auto body = s.writer();
    co_await d.run(body);
}
asio::awaitable<void> of_loop(scene& s) {
    auto body = [&s](const session&) { return s.write_for_ever(); };
    const session_loop loop = run_in_each_session(s.zk, body);
    co_await loop.stopped();
}
asio::awaitable<void> in_time(scene& s) { co_await timeout(5100ms, with_plain_lock(s)); }

asio::awaitable<void> fail_later(std::exception_ptr why) {
    co_await sleep_for(5100ms);
    std::rethrow_exception(why);
}
asio::awaitable<void> in_scope_with_failure(scene& s) {
    auto body = [&s](task_scope& tasks) -> asio::awaitable<void> {
        tasks.spawn(s.write_for_ever());
        co_await fail_later(std::make_exception_ptr(error(zk_errc::no_node, "get", "/other")));
    };
    co_await with_task_scope(body);
}
asio::awaitable<void> in_scope_with_nested_failure(scene& s) {
    auto body = [&s](task_scope& tasks) -> asio::awaitable<void> {
        tasks.spawn(s.write_for_ever());
        std::exception_ptr why;
        try {
            throw_with_body_failure(error(errc::lock_lost, "run", "/l"),
                                    std::make_exception_ptr(std::runtime_error("of a body")));
        } catch (...) {
            why = std::current_exception();
        }
        co_await fail_later(why);
    };
    co_await with_task_scope(body);
}
asio::awaitable<void> in_cancelled_scope(scene& s) {
    auto body = [&s](task_scope& tasks) -> asio::awaitable<int> {
        tasks.spawn(s.write_for_ever());
        co_await sleep_for(5100ms);
        tasks.cancel();
        co_await sleep_for(1h);
        co_return 1;
    };
    (void)co_await with_task_scope(body);
}

}  // namespace

TEST_CASE("lost outcome: the error that replaces a body's error tells of a write under way", "[testing]") {
    const auto under_guard = [](scene& s) { return run_under_guard(s, 0s); };
    const auto with_margin = [](scene& s) { return run_under_guard(s, 2s); };
    const auto claim_goes = [](scene& s) { s.remove_children("/q/taken"); };
    const auto entry_goes = [](scene& s) { s.remove_children("/b"); };
    const std::vector<way> ways{
        {"with_lock(), the node is removed", errc::lock_lost, with_plain_lock, remove_lock},
        {"with_lock(), the client is closed", errc::lock_lost, with_plain_lock, close_client},
        {"with_lock(), asked back", errc::revoked, with_revocable_lock, ask_back},
        {"with_lock(), revocable, the node is removed", errc::lock_lost, with_revocable_lock, remove_lock},
        {"lock_guard::run()", errc::lock_lost, under_guard, remove_lock},
        {"lock_guard::run() with a margin, stopped", errc::lock_lost, with_margin, silence},
        {"lock_guard::run() with a margin, the node is removed", errc::lock_lost, with_margin, remove_lock},
        {"with_session(), closed", errc::client_closed, in_session, close_client},
        {"double_barrier::run()", errc::lock_lost, in_barrier, entry_goes},
        {"delivery::run()", errc::lock_lost, of_delivery, claim_goes},
        {"run_in_each_session(), closed", errc::client_closed, of_loop, close_client},
        {"timeout() around with_lock()", errc::timed_out, in_time, nothing},
        {"a task of a scope fails", zk_errc::no_node, in_scope_with_failure, nothing},
        {"a task of a scope fails with a nested exception", errc::lock_lost, in_scope_with_nested_failure, nothing},
        {"a scope is cancelled, with a result", asio::error::operation_aborted, in_cancelled_scope, nothing},
    };
    for (const way& w : ways) {
        CAPTURE(w.name);
        scene s;
        const std::exception_ptr thrown = s.failure(w.run(s), [&] { w.cause(s); });
        const what_was_thrown seen = see(thrown);
        CAPTURE(seen.text);
        CHECK(s.unknown_to_body);
        CHECK(seen.code == w.code);
        CHECK(seen.outcome_unknown);
        s.ensemble.let_in(s.zk);
        s.end();
    }
}

TEST_CASE("lost outcome: a body without a write under way leaves nothing unknown", "[testing]") {
    scene s;
    auto body = [&s](lock_guard&) -> asio::awaitable<void> {
        co_await s.zk.set("/n", "1");
        co_await sleep_for(1h);
    };
    auto task = [&]() -> asio::awaitable<void> { co_await mutex(s.zk, "/l").with_lock(body); };
    const what_was_thrown seen = see(s.failure(task(), [&] { remove_lock(s); }));
    CHECK(seen.code == errc::lock_lost);
    CHECK_FALSE(seen.outcome_unknown);
    CHECK(seen.text.find("may or may not") == std::string::npos);
    s.end();
}

TEST_CASE("lost outcome: the message says whose write it was", "[testing]") {
    scene s;
    const what_was_thrown seen = see(s.failure(with_plain_lock(s), [&] { remove_lock(s); }));
    CHECK(seen.text.ends_with(
        "lock lost (node deleted; a write of the body was under way); it may or may not have been applied"));
    s.end();
}

TEST_CASE("lost outcome: an exception of the body stays nested", "[testing]") {
    scene s;
    auto body = [&s](lock_guard&) -> asio::awaitable<void> {
        std::exception_ptr failed;
        try {
            co_await s.write_for_ever();
        } catch (...) {
            failed = std::current_exception();
        }
        try {
            std::rethrow_exception(failed);
        } catch (...) {
            std::throw_with_nested(std::runtime_error("my work"));
        }
    };
    auto task = [&]() -> asio::awaitable<void> { co_await mutex(s.zk, "/l").with_lock(body); };
    const std::exception_ptr thrown = s.failure(task(), [&] { remove_lock(s); });
    CHECK(see(thrown).code == errc::lock_lost);
    CHECK(see(thrown).outcome_unknown);
    try {
        std::rethrow_exception(thrown);
    } catch (const error& e) {
        CHECK_THROWS_AS(std::rethrow_if_nested(e), std::runtime_error);
    }
    s.end();
}

TEST_CASE("lost outcome: an exception of the user's own passes a scope as it is", "[testing]") {
    scene s;
    auto body = [&s](task_scope& tasks) -> asio::awaitable<void> {
        tasks.spawn(s.write_for_ever());
        co_await fail_later(std::make_exception_ptr(std::runtime_error("mine")));
    };
    auto task = [&]() -> asio::awaitable<void> { co_await with_task_scope(body); };
    CHECK(see(s.failure(task(), [] {})).text == "mine");
    s.end();
}

TEST_CASE("lost outcome: an error of a derived class passes a scope as it is, nested or not", "[testing]") {
    struct my_error : error {
        using error::error;
    };
    for (const bool nested : {false, true}) {
        CAPTURE(nested);
        scene s;
        std::exception_ptr mine;
        try {
            const my_error e(zk_errc::no_node, "mine");
            if (!nested) throw e;
            try {
                throw std::runtime_error("inner");
            } catch (...) {
                std::throw_with_nested(e);
            }
        } catch (...) {
            mine = std::current_exception();
        }
        auto body = [&](task_scope& tasks) -> asio::awaitable<void> {
            tasks.spawn(s.write_for_ever());
            co_await fail_later(mine);
        };
        auto task = [&]() -> asio::awaitable<void> { co_await with_task_scope(body); };
        const std::exception_ptr thrown = s.failure(task(), [] {});
        CHECK_THROWS_AS(std::rethrow_exception(thrown), my_error);
        s.end();
    }
}

namespace {

partitioner one_partition(scene& s) {
    return partitioner(s.zk, "/p", std::vector<std::string>{"one"}, partitioner_options().settle(1s));
}

}  // namespace

TEST_CASE("lost outcome: set_data() of a persistent_node that is closed under way tells of it", "[testing]") {
    std::size_t told = 0;
    for (std::chrono::microseconds delay = 0us; delay < 1ms; delay += 50us) {
        CAPTURE(delay.count());
        scene s;
        persistent_node_options how;
        how.mode(create_mode::persistent);
        const persistent_node node(s.zk, "/node", "old", how);
        s.ensemble.run(node.created());
        const running work(s.ensemble.get_executor(), node.set_data("new"));
        s.ensemble.run_for(delay);
        s.close();
        const std::exception_ptr thrown = s.ensemble.run(work.end());
        const what_was_thrown seen = see(thrown);
        CAPTURE(seen.text);
        if (thrown && !seen.outcome_unknown) CHECK(s.ensemble.data("/node") == "old");
        if (seen.outcome_unknown) ++told;
        s.end();
    }
    CHECK(told > 0);
}

// Both at once: the leadership is lost, and the caller cancels before the body has ended.
TEST_CASE("lost outcome: a cancelled leader, candidate or consumer tells of it", "[testing]") {
    enum class who { election, candidate, consumer, partitions };
    for (const who w : {who::election, who::candidate, who::consumer, who::partitions})
        for (const bool loses : {false, true}) {
            CAPTURE(static_cast<int>(w), loses);
            scene s;
            auto as_leader = [&s](const leadership&) { return s.write_and_end_slowly(); };
            auto as_consumer = [&s](delivery&) { return s.write_and_end_slowly(); };
            auto as_owner = [&s](held_partition&) { return s.write_and_end_slowly(); };
            std::optional<candidate> stands;
            if (w == who::candidate) stands.emplace(s.zk, "/l");
            auto task = [&]() -> asio::awaitable<void> {
                if (w == who::election) co_await leader_election(s.zk, "/l").lead(as_leader);
                if (w == who::candidate) co_await stands->run(as_leader);
                if (w == who::partitions) co_await one_partition(s).run(as_owner);
                if (w != who::consumer) co_return;
                work_queue queue(s.zk, "/q");
                co_await queue.put("x");
                co_await queue.consume(as_consumer);
            };
            running work(s.ensemble.get_executor(), task());
            s.ensemble.run_for(5s);
            REQUIRE_FALSE(work.ended());
            if (loses) {
                remove_lock(s);
                s.remove_children("/q/taken");
                s.remove_children("/p/locks/one");
                s.ensemble.run_for(500ms);
            }
            work.cancel();
            const what_was_thrown seen = see(s.ensemble.run(work.end()));
            CAPTURE(seen.text);
            CHECK(s.unknown_to_body);
            CHECK(seen.code == asio::error::operation_aborted);
            CHECK(seen.outcome_unknown);
            stands.reset();
            s.end();
        }
}

namespace {

enum class worker { election, candidate, consumer, partitions };

// Runs `body`, of any of the kinds that begin again by themselves.
asio::awaitable<void> work_as(worker w, scene& s, std::function<asio::awaitable<void>()> body) {
    auto as_leader = [&body](const leadership&) { return body(); };
    auto as_consumer = [&body](delivery&) { return body(); };
    auto as_owner = [&body](held_partition&) { return body(); };
    if (w == worker::election) co_await leader_election(s.zk, "/l").lead(as_leader);
    if (w == worker::candidate) {
        candidate stands(s.zk, "/l");
        co_await stands.run(as_leader);
    }
    if (w == worker::partitions) co_await one_partition(s).run(as_owner);
    if (w != worker::consumer) co_return;
    work_queue queue(s.zk, "/q");
    co_await queue.put("x");
    co_await queue.consume(as_consumer);
}

}  // namespace

TEST_CASE("lost outcome: the end of the client or of its session tells of a write of the last body", "[testing]") {
    for (const worker w : {worker::election, worker::candidate, worker::consumer, worker::partitions})
        for (const bool expires : {false, true}) {
            CAPTURE(static_cast<int>(w), expires);
            scene s(sessions_of_ten_seconds().renewal(expires ? session_renewal::none : session_renewal::automatic));
            const what_was_thrown seen = see(s.failure(work_as(w, s, s.writer()), [&] {
                if (expires)
                    s.ensemble.expire(s.zk);
                else
                    s.close();
            }));
            CAPTURE(seen.text);
            CHECK(s.unknown_to_body);
            CHECK(seen.outcome_unknown);
            if (w == worker::candidate && expires) continue;  // the body's own: the connection was lost before
            CHECK(seen.code == (expires ? errc::session_expired : errc::client_closed));
            CHECK(seen.text.ends_with("was under way); it may or may not have been applied"));
            s.end();
        }
}

TEST_CASE("lost outcome: a pause behind a body ends with the news of the body's write", "[testing]") {
    for (const worker w : {worker::election, worker::consumer, worker::partitions})
        for (const bool closes : {false, true}) {
            CAPTURE(static_cast<int>(w), closes);
            scene s;
            auto body = [&s]() -> asio::awaitable<void> {
                co_await sleep_for(4s);
                s.ensemble.lose_answer(s.zk, "set /n");
                co_await s.write("1");
            };
            running work(s.ensemble.get_executor(), work_as(w, s, body));
            s.ensemble.run_for(4s);
            while (!s.unknown_to_body) s.ensemble.run_for(1ms);
            s.ensemble.run_for(1ms);
            REQUIRE_FALSE(work.ended());
            if (closes)
                s.close();
            else
                work.cancel();
            const what_was_thrown seen = see(s.ensemble.run(work.end()));
            CAPTURE(seen.text);
            CHECK(seen.code == (closes ? std::error_code(errc::client_closed) : asio::error::operation_aborted));
            CHECK(seen.outcome_unknown);
            s.end();
        }
}

TEST_CASE("lost outcome: a write that an earlier body has left unknown is no news of the last one", "[testing]") {
    for (const bool closes : {true, false}) {
        CAPTURE(closes);
        scene s;
        int bodies = 0;
        auto body = [&]() -> asio::awaitable<void> {
            if (++bodies > 1) {
                co_await sleep_for(1min);
                (void)co_await s.zk.get("/none");
            }
            s.ensemble.lose_answer(s.zk, "set /n");
            co_await s.write("1");
        };
        const what_was_thrown seen = see(s.failure(work_as(worker::election, s, body), [&] {
            if (closes) s.close();
        }));
        CAPTURE(seen.text);
        CHECK(bodies == 2);
        CHECK(seen.code == (closes ? std::error_code(errc::client_closed) : zk_errc::no_node));
        CHECK_FALSE(seen.outcome_unknown);
        s.end();
    }
}

// The term ends with the candidate's resignation, and the body's exception with it; run() goes on, and is cancelled.
TEST_CASE("lost outcome: run() of a candidate that has stepped down tells of the body's write", "[testing]") {
    scene s;
    const candidate stands(s.zk, "/l");
    auto body = [&s](const leadership&) { return s.write_and_end_slowly(); };
    running work(s.ensemble.get_executor(), stands.run(body));
    s.ensemble.run_for(5s);
    const running down(s.ensemble.get_executor(), stands.step_down());
    s.ensemble.run_for(500ms);
    work.cancel();
    const what_was_thrown seen = see(s.ensemble.run(work.end()));
    CAPTURE(seen.text);
    CHECK(s.unknown_to_body);
    CHECK(seen.code == asio::error::operation_aborted);
    CHECK(seen.outcome_unknown);
    (void)s.ensemble.run(down.end());
    s.end();
}

TEST_CASE("lost outcome: a lasting failure beside another task's write ends lead() and run()", "[testing]") {
    for (const worker w : {worker::election, worker::partitions}) {
        CAPTURE(static_cast<int>(w));
        scene s;
        int bodies = 0;
        auto body = [&]() -> asio::awaitable<void> {
            ++bodies;
            co_await in_scope_with_failure(s);
        };
        const running work(s.ensemble.get_executor(), work_as(w, s, body));
        s.ensemble.run_for(60s);
        REQUIRE(work.ended());
        const what_was_thrown seen = see(s.ensemble.run(work.end()));
        CAPTURE(seen.text);
        CHECK(bodies == 1);
        CHECK(seen.code == zk_errc::no_node);
        CHECK(seen.outcome_unknown);
        s.end();
    }
}

// Asio drops the exception of the second operation.
TEST_CASE("lost outcome: a body that awaits a read and a write at once tells of the write", "[testing]") {
    using namespace asio::experimental::awaitable_operators;
    enum class around { lock, session, limit, scope };
    for (const around what : {around::lock, around::session, around::limit, around::scope}) {
        CAPTURE(static_cast<int>(what));
        scene s;
        auto read_and_write = [&s]() -> asio::awaitable<void> {
            auto read = [](client zk) -> asio::awaitable<void> {
                co_await sleep_for(3800ms);
                for (;;) (void)co_await zk.get("/b");
            };
            co_await (read(s.zk) && s.write_for_ever());
        };
        auto task = [&]() -> asio::awaitable<void> {
            auto under_lock = [&](lock_guard&) { return read_and_write(); };
            auto in_session = [&](const session&) { return read_and_write(); };
            auto in_scope = [&](task_scope& tasks) -> asio::awaitable<void> {
                tasks.spawn(read_and_write());
                co_await fail_later(std::make_exception_ptr(error(zk_errc::no_node, "get", "/other")));
            };
            if (what == around::lock) co_await mutex(s.zk, "/l").with_lock(under_lock);
            if (what == around::session) co_await s.zk.with_session(in_session);
            if (what == around::limit) co_await timeout(5100ms, read_and_write());
            if (what == around::scope) co_await with_task_scope(in_scope);
        };
        const what_was_thrown seen = see(s.failure(task(), [&] {
            if (what == around::lock) remove_lock(s);
            if (what == around::session) s.close();
        }));
        CAPTURE(seen.text);
        CHECK(s.unknown_to_body);
        CHECK(seen.outcome_unknown);
        s.end();
    }
}

}  // namespace lost_outcome_tests
