#include "unit/support/rig.hpp"

#include <zkasio/recipe/toolbox.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

// One scenario that uses everything, run again and again: each time another step of it fails, in each way in which it
// can. Whatever happens, each awaitable completes once, and nothing is left behind.

namespace {

struct tally {
    int started = 0, completed = 0;
    std::vector<std::error_code> failures;
};

template <class T>
asio::awaitable<void> step(asio::awaitable<T> operation, tally& t) {
    ++t.started;
    const std::error_code code = co_await code_of(std::move(operation));
    ++t.completed;
    if (code) t.failures.push_back(code);
}

asio::awaitable<void> read_events(client zk, tally& t) {
    const session_events events = zk.events();
    session_event e;
    while (e.state != session_state::closed) {
        ++t.started;
        e = co_await events.next();
        ++t.completed;
    }
}

asio::awaitable<loss_reason> lost(const session_hold& hold) { return hold.lost(); }

asio::awaitable<void> watch_and_change(client zk, tally& t) {
    std::optional<watched<node_data>> seen;
    auto see = [&]() -> asio::awaitable<void> { seen.emplace(co_await zk.get_and_watch("/a")); };
    co_await step(see(), t);
    const std::size_t failed = t.failures.size();
    co_await step(zk.set("/a", "x"), t);
    if (seen && t.failures.size() == failed) co_await step(seen->changes.changed(), t);
}

asio::awaitable<void> use_session(client zk, tally& t) {
    std::optional<session> s;
    auto get_session = [&]() -> asio::awaitable<void> { s.emplace(co_await zk.current_session()); };
    co_await step(get_session(), t);
    if (!s) co_return;
    const auto executor = co_await asio::this_coro::executor;
    session_hold hold = s->hold("/a");
    const running losing(executor, step(lost(hold), t)), ending(executor, step(s->ended(), t));
    const pending_children listing = toolbox(*s).start_children("/");
    const pending_removal removal = toolbox(*s).ensure_removed("/a");
    co_await step(s->get_acl("/a"), t);
    co_await step(listing.result(), t);
    co_await step(removal.result(), t);
    hold.end(true);
    co_await losing.end();
}

asio::awaitable<void> scenario(client zk, tally& t) {
    co_await step(zk.connected(), t);
    co_await step(zk.add_auth("digest", "a:b"), t);
    co_await step(zk.create("/a", "data"), t);
    co_await watch_and_change(zk, t);
    transaction both;
    both.check("/a").create("/b");
    co_await step(zk.multi(std::move(both)), t);
    co_await step(zk.exists_and_watch("/c"), t);  // left at once
    co_await step(zk.sync(), t);
    co_await use_session(zk, t);
}

// ------------------------------------------------------------------------------------------------- the failures
struct failure {
    std::string name;
    std::function<std::optional<reply>(fake_server&)> answer;  ///< of the step that fails
    bool cancel = false;                                       ///< the caller leaves instead of waiting
};

std::vector<failure> failures() {
    return {
        {"the server refuses", [](fake_server&) { return refusal(zk_errc::no_auth); }},
        {"the server is busy", [](fake_server&) { return refusal(zk_errc::throttled); }},
        {"the answer is lost, the connection stays",
         [](fake_server&) { return zkasio::test::lost(zk_errc::operation_timeout); }},
        {"the connection is lost before the answer",
         [](fake_server& s) {
             s.drop();
             return std::nullopt;
         }},
        {"the connection is lost after the answer",
         [](fake_server& s) {
             s.reply_to(s.requests.back().id);
             s.fire(node_event::data_changed, "/a");
             s.drop();
             return std::nullopt;
         }},
        {"the session expires",
         [](fake_server& s) {
             s.expire();
             return std::nullopt;
         }},
        {"a credential is refused",
         [](fake_server& s) {
             s.refuse_auth();
             return std::nullopt;
         }},
        {"nobody answers, the caller leaves", [](fake_server&) { return std::nullopt; }, true},
    };
}

client_options impatient() {
    return rig::quick().retry(retry_policy::n_times(3, 1ms)).connection_timeout(5s).close_timeout(20ms);
}

// A change of the data is seen by who watches.
void tell_watchers(fake_server& s, const request& q) {
    if (std::holds_alternative<set_request>(q)) s.fire(node_event::data_changed, "/a");
}

// Runs it; returns how many requests it took.
std::size_t run_with(const failure* f, std::size_t failing_step, std::function<void(fake_server&)> prepare = {}) {
    rig r(impatient());
    if (prepare) prepare(r.server);
    tally t;
    std::optional<running> caller;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        if (f && r.server.requests.size() == failing_step + 1) {
            if (f->cancel) asio::post(r.loop.executor(), [&] { caller->cancel(); });
            const std::optional<reply> a = f->answer(r.server);
            return a;
        }
        // Behind the answer, which is not on its way yet.
        asio::post(r.loop.executor(), [&, q] { tell_watchers(r.server, q); });
        return reply{};
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        r.loop.spawn(read_events(zk, t));
        caller.emplace(r.loop.executor(), scenario(zk, t));
        co_await caller->end();
    };
    r.run(body);
    CHECK(t.completed == t.started);
    if (!f && !prepare) CHECK(t.failures.empty());
    if (f && f->cancel)
        for (const std::error_code& code : t.failures) CHECK(code == condition::cancelled);
    return r.server.requests.size();
}

}  // namespace

TEST_CASE("core: each step of a scenario fails in turn", "[core][steps]") {
    const std::size_t steps = run_with(nullptr, 0);
    CHECK(steps >= 11);
    const auto all = failures();
    const std::size_t kind = GENERATE(range(std::size_t{0}, std::size_t{8}));
    REQUIRE(all.size() == 8);
    for (std::size_t k = 0; k < steps; ++k) {
        INFO(all[kind].name << ", step " << k);
        run_with(&all[kind], k);
    }
}

TEST_CASE("core: what is refused by the backend in turn", "[core][steps]") {
    const std::size_t steps = run_with(nullptr, 0);
    for (std::size_t k = 0; k < steps; ++k) {
        INFO("step " << k);
        run_with(nullptr, 0, [&](fake_server& s) {
            s.refuse = [&s, k](const request&) {
                return s.requests.size() == k + 1 ? make_error_code(zk_errc::bad_arguments) : std::error_code();
            };
        });
    }
}

TEST_CASE("core: the steps before and after the requests fail", "[core][steps]") {
    run_with(nullptr, 0, [](fake_server& s) { s.failing_opens = 2; });
    run_with(nullptr, 0, [](fake_server& s) { s.can_send_goodbye = false; });
    run_with(nullptr, 0, [](fake_server& s) { s.says_goodbye = false; });
    run_with(nullptr, 0, [](fake_server& s) { s.one_at_a_time(); });
}
