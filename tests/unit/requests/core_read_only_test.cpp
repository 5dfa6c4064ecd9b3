// What becomes of requests while only a server without a quorum is connected.

#include "support/texts.hpp"
#include "unit/support/read_only_rig.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

asio::awaitable<void> keep_code(asio::awaitable<void> what, std::optional<std::error_code>& code) {
    code = co_await code_of(std::move(what));
}

}  // namespace

TEST_CASE("core, read-only: reads go to the server without a quorum, and nothing else", "[core]") {
    read_only_rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await r.lose_quorum(zk);
        CHECK(r.alone.opened.back().read_only);
        CHECK(r.alone.opened.back().session_id == 0);
        co_await zk.get("/a");
        co_await zk.exists("/a");
        co_await zk.children("/a");
        co_await zk.get_acl("/a");
        co_await zk.get_config();
        CHECK(r.alone.texts() == texts{"get /a", "exists /a", "children /a", "get_acl /a", "get_config"});

        const std::string refused = co_await message_of(zk.set("/a", "x"));
        CHECK(refused == "set /a: the server is read-only (fake:2181 has no quorum, and only reads: wait for "
                         "client::connected())");
        std::vector<std::error_code> codes;
        codes.push_back(co_await code_of(zk.create("/a")));
        codes.push_back(co_await code_of(zk.remove("/a")));
        codes.push_back(co_await code_of(zk.set_acl("/a", open_acl())));
        codes.push_back(co_await code_of(zk.sync()));
        codes.push_back(co_await code_of(zk.reconfigure("", "3")));
        transaction steps;
        steps.remove("/a");
        codes.push_back(co_await code_of(zk.multi(std::move(steps))));
        CHECK(codes == std::vector<std::error_code>(6, zk_errc::not_read_only));
        CHECK(r.alone.requests.size() == 5);
        CHECK(r.quorum.requests.empty());
    };
    r.run(body);
}

TEST_CASE("core, read-only: requests of a session, and credentials, wait for the quorum", "[core]") {
    read_only_rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session own = co_await zk.current_session();
        co_await r.lose_quorum(zk);
        std::optional<std::error_code> got, set, presented;
        r.loop.spawn(keep_code(get(own, "/a"), got));
        r.loop.spawn(keep_code(test::set(own, "/a"), set));
        r.loop.spawn(keep_code(zk.add_auth("digest", "a:b"), presented));
        co_await zk.get("/b");
        CHECK_FALSE((got || set || presented));
        co_await r.regain_quorum(zk);
        co_await r.quorum.until([&] { return got && set && presented; });
        CHECK(*got == std::error_code());
        CHECK(*set == std::error_code());
        CHECK(*presented == std::error_code());
        CHECK(r.alone.texts() == texts{"get /b"});
    };
    r.run(body);
}

TEST_CASE("core, read-only: what waits for a connection is sent, or refused, when such a server is found", "[core]") {
    read_only_rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session own = co_await zk.current_session();
        r.quorum.reachable = false;
        r.quorum.drop();
        co_await r.until_state(zk, session_state::suspended);
        std::optional<std::error_code> got, set, of_session;
        r.loop.spawn(keep_code(get(zk, "/a"), got));
        r.loop.spawn(keep_code(test::set(zk, "/a"), set));
        r.loop.spawn(keep_code(test::set(own, "/a"), of_session));
        r.alone.reachable = true;
        co_await r.alone.until([&] { return got && set; });
        CHECK(*got == std::error_code());
        CHECK(*set == zk_errc::not_read_only);
        CHECK_FALSE(of_session);
        co_await r.regain_quorum(zk);
        co_await r.quorum.until([&] { return of_session.has_value(); });
        CHECK(*of_session == std::error_code());
    };
    r.run(body);
}

TEST_CASE("core, read-only: reads whose connection is lost are sent again, there or to the quorum", "[core]") {
    read_only_rig r(read_only_rig::reader().retry(retry_policy::n_times(3, std::chrono::milliseconds(1))));
    const bool quorum_is_back = GENERATE(false, true);
    bool loses = true;
    r.alone.answer = [&](const request&) -> std::optional<reply> {
        if (std::exchange(loses, false)) return std::nullopt;
        return reply{};
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await r.lose_quorum(zk);
        std::optional<std::error_code> got;
        r.loop.spawn(keep_code(get(zk, "/a"), got));
        co_await r.alone.until([&] { return r.alone.requests.size() == 1; });
        const std::string how = GENERATE("lost", "expired");
        if (quorum_is_back) r.quorum.reachable = true;
        how == "lost" ? r.alone.drop() : r.alone.expire();
        const auto ended = [&]() -> asio::awaitable<bool> { co_return got.has_value(); };
        co_await eventually(ended);
        CHECK(*got == std::error_code());
        CHECK(r.alone.requests.size() + r.quorum.requests.size() == 2);
    };
    r.run(body);
}

TEST_CASE("core, read-only: as many reads are under way as may be, and the rest follows", "[core]") {
    constexpr std::size_t window = 1000, all = 1100;
    read_only_rig r;
    r.alone.answer = [](const request&) { return std::optional<reply>(); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await r.lose_quorum(zk);
        std::size_t answered = 0;
        const auto read = [&]() -> asio::awaitable<void> {
            co_await zk.get("/a");
            ++answered;
        };
        for (std::size_t i = 0; i < all; ++i) r.loop.spawn(read());
        co_await r.alone.until([&] { return r.alone.requests.size() == window; });
        co_await next_turns(r.alone);
        CHECK(r.alone.requests.size() == window);
        r.alone.reply_to_all();
        co_await r.alone.until([&] { return r.alone.requests.size() == all; });
        r.alone.reply_to_all();
        co_await r.alone.until([&] { return answered == all; });
    };
    r.run(body);
}

TEST_CASE("core, read-only: a read that the backend does not take", "[core][watch]") {
    read_only_rig r(read_only_rig::reader().retry(retry_policy::never()));
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await r.lose_quorum(zk);
        r.alone.refuse = [](const request&) { return make_error_code(zk_errc::bad_arguments); };
        const std::error_code refused = co_await code_of(zk.get_and_watch("/a"));
        CHECK(refused == zk_errc::bad_arguments);
        CHECK(r.core->watches() == 0);
        r.alone.refuse = [](const request&) { return std::make_error_code(std::errc::resource_unavailable_try_again); };
        std::optional<std::error_code> got;
        r.loop.spawn(keep_code(get(zk, "/b"), got));
        co_await r.alone.until([&] { return r.alone.count("get /b") > 0; });
        CHECK_FALSE(got);
        r.alone.refuse = nullptr;
        co_await zk.get("/c");
        co_await r.alone.until([&] { return got.has_value(); });
        CHECK(*got == std::error_code());
    };
    r.run(body);
}

TEST_CASE("core, read-only: closing ends what is under way, and says no goodbye there", "[core]") {
    read_only_rig r;
    r.alone.answer = [](const request&) { return std::optional<reply>(); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await r.lose_quorum(zk);
        std::optional<std::error_code> got;
        r.loop.spawn(keep_code(get(zk, "/a"), got));
        co_await r.alone.until([&] { return r.alone.requests.size() == 1; });
        const close_result how = co_await zk.close();
        CHECK(how == close_result::session_left_to_expire);
        const auto ended = [&]() -> asio::awaitable<bool> { co_return got.has_value(); };
        co_await eventually(ended);
        CHECK(*got == errc::client_closed);
        CHECK(std::count(r.alone.log.begin(), r.alone.log.end(), "goodbye") == 0);
    };
    r.run(body);
}
