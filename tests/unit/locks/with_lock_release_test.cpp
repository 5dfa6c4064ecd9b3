#include "unit/support/fake_tree.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/locks/mutex.hpp>

#include <asio/redirect_error.hpp>

#include <string>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

asio::awaitable<void> note_seven(mutex lock, int& value) {
    auto body = [](lock_guard&) -> asio::awaitable<int> { co_return 7; };
    value = co_await lock.with_lock(body);
}

asio::awaitable<void> note_eight_although_cancelled(mutex lock, int& value, bool& begun) {
    auto body = [&begun](lock_guard&) -> asio::awaitable<int> {
        begun = true;
        std::error_code code;
        asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
        co_await never.async_wait(asio::redirect_error(asio::use_awaitable, code));
        co_return 8;
    };
    value = co_await lock.with_lock(body);
}

}  // namespace

TEST_CASE("with_lock: who is cancelled during the release has what the body has returned", "[guard]") {
    rig r;
    fake_tree tree;
    op_id removal = 0;
    bool answer_removals = false;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        const bool removes = std::holds_alternative<remove_request>(q);
        if (removes && !answer_removals) {
            removal = r.server.requests.back().id;
            return std::nullopt;
        }
        return tree(q);
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const mutex lock(zk, "/lock");
        int value = 0;
        running first(r.loop.executor(), note_seven(lock, value));
        co_await r.server.until([&] { return removal != 0; });
        CHECK(value == 0);
        first.cancel();
        const std::error_code code = co_await first.code();
        CHECK(code == std::error_code());
        CHECK(value == 7);
        answer_removals = true;
        r.server.reply_to(removal);
        co_await next_turns(r.server);
    };
    r.run(body);
}

TEST_CASE("with_lock: a body that completes although it was cancelled has its value returned", "[guard]") {
    rig r;
    fake_tree tree;
    r.server.answer = [&](const request& q) { return tree(q); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const mutex lock(zk, "/lock");
        int value = 0;
        bool begun = false;
        running first(r.loop.executor(), note_eight_although_cancelled(lock, value, begun));
        while (!begun) co_await next_turns(r.server);
        first.cancel();
        const std::error_code code = co_await first.code();
        CHECK(code == std::error_code());
        CHECK(value == 8);
        while (tree.size() > 0) co_await next_turns(r.server);
    };
    r.run(body);
}

TEST_CASE("with_lock: a release that the servers refuse is told", "[guard]") {
    rig r;
    fake_tree tree;
    r.server.answer = [&](const request& q) {
        return std::holds_alternative<remove_request>(q) ? refusal(zk_errc::no_auth) : tree(q);
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        int value = 0;
        const std::error_code code = co_await code_of(note_seven(mutex(zk, "/lock"), value));
        CHECK(code == zk_errc::no_auth);
        CHECK(value == 0);
    };
    r.run(body);
}
