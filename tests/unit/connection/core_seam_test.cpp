#include "unit/support/mock_backend.hpp"

#include "support/test_client.hpp"

#include <zkasio/recipe/toolbox.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;
using trompeloeil::_;

namespace {

/// A core whose one backend is a mock, with the answers that every test needs.
struct seam {
    explicit seam(client_options o = client_options("10.0.0.1:2181").close_timeout(std::chrono::milliseconds(50)))
        : options(std::move(o)) {
        now_waits_for.timeout = std::chrono::milliseconds(2);
        now_waits_for.connection = 1;
    }

    std::shared_ptr<core> make_core() {
        return std::make_shared<core>(loop.executor(), options,
                                      [this](backend_listener& l) -> std::unique_ptr<backend> {
                                          listener = &l;
                                          return std::move(owned);
                                      });
    }

    // From inside process(), as the C library does it: the mock's side effect.
    drain_result turn() {
        if (next) std::exchange(next, nullptr)();
        return drain_result::drained;
    }
    void connect() {
        next = [this] { listener->on_link(link_state::connected); };
    }
    void answer(op_id id) {
        next = [this, id] { listener->on_reply(id, reply{}); };
    }

    client_options options;
    std::unique_ptr<mock_backend> owned = std::make_unique<mock_backend>();
    mock_backend& mock = *owned;
    backend_listener* listener = nullptr;
    interest now_waits_for;  // no descriptor: only the time counts
    std::function<void()> next;

    // What every test allows.
    std::vector<std::unique_ptr<trompeloeil::expectation>> allowed;
    void allow_questions() {
        allowed.push_back(NAMED_ALLOW_CALL(mock, session_id()).RETURN(0x1001));
        allowed.push_back(NAMED_ALLOW_CALL(mock, session_timeout()).RETURN(10'000ms));
        allowed.push_back(NAMED_ALLOW_CALL(mock, current_server()).RETURN("10.0.0.1:2181"));
        allowed.push_back(NAMED_ALLOW_CALL(mock, last_failure()).RETURN("cut"));
        allowed.push_back(NAMED_ALLOW_CALL(mock, has_socket()).RETURN(true));
    }
    void allow_turns() {
        allowed.push_back(NAMED_ALLOW_CALL(mock, next_interest()).LR_RETURN(now_waits_for));
        allowed.push_back(NAMED_ALLOW_CALL(mock, process(_, _)).LR_RETURN(turn()));
    }

    test_loop loop{std::chrono::seconds(20)};
};

// The mock tells of nothing by itself.
template <class Condition>
asio::awaitable<void> until(Condition condition) {
    asio::steady_timer timer(co_await asio::this_coro::executor);
    while (!condition()) {
        timer.expires_after(1ms);
        co_await timer.async_wait(asio::use_awaitable);
    }
}

}  // namespace

TEST_CASE("seam: the order of calls for one request", "[core][seam]") {
    seam s;
    s.allow_questions();
    s.allow_turns();
    trompeloeil::sequence order;
    REQUIRE_CALL(s.mock, open(_))
        .WITH(_1.servers == std::vector<server_address>{server_address{"10.0.0.1", "10.0.0.1", 2181}} &&
              _1.session_timeout == 10s && _1.session_id == 0)
        .IN_SEQUENCE(order)
        .LR_SIDE_EFFECT(s.connect());
    FORBID_CALL(s.mock, begin_batch());  // one is no batch
    REQUIRE_CALL(s.mock, submit(_, _))
        .WITH(std::get<get_request>(_2).path == "/a" && !std::get<get_request>(_2).watch)
        .IN_SEQUENCE(order)
        .LR_SIDE_EFFECT(s.answer(_1))
        .RETURN(std::error_code());
    REQUIRE_CALL(s.mock, end_batch()).IN_SEQUENCE(order);  // but the submit may have lost the connection
    REQUIRE_CALL(s.mock, send_goodbye()).IN_SEQUENCE(order).RETURN(true);
    ALLOW_CALL(s.mock, answer_to_goodbye()).RETURN(goodbye_result::none_yet);

    const auto core = s.make_core();
    auto body = [&]() -> asio::awaitable<void> {
        const client zk = client_over(core);
        co_await zk.get("/a");
        const close_result how = co_await zk.close();
        CHECK(how == close_result::session_left_to_expire);
    };
    s.loop.run(body());
    CHECK(core->pending_operations() == 0);
}

TEST_CASE("seam: nothing is submitted, and no goodbye said, without a connection", "[core][seam]") {
    seam s(client_options("10.0.0.1:2181").connection_timeout(20ms));
    s.allow_questions();
    s.allow_turns();
    REQUIRE_CALL(s.mock, open(_));
    FORBID_CALL(s.mock, begin_batch());
    FORBID_CALL(s.mock, submit(_, _));
    FORBID_CALL(s.mock, send_goodbye());
    const auto core = s.make_core();
    auto body = [&]() -> asio::awaitable<void> {
        const client zk = client_over(core);
        const std::error_code code = co_await code_of(zk.get("/a"));
        CHECK(code == errc::not_connected);
        co_await zk.close();
    };
    s.loop.run(body());
}

TEST_CASE("seam: what has arrived is read before it is asked what has timed out", "[core][seam]") {
    // Fact 7.
    seam s;
    s.allow_questions();
    std::vector<std::string> calls;
    ALLOW_CALL(s.mock, open(_));
    ALLOW_CALL(s.mock, next_interest()).LR_SIDE_EFFECT(calls.push_back("interest")).LR_RETURN(s.now_waits_for);
    ALLOW_CALL(s.mock, process(true, false)).LR_SIDE_EFFECT(calls.push_back("read")).RETURN(drain_result::drained);
    const auto core = s.make_core();
    auto body = [&]() -> asio::awaitable<void> {
        const client zk = client_over(core);
        co_await until([&] { return calls.size() >= 7; });
        co_await zk.close();
    };
    s.loop.run(body());
    calls.resize(7);
    CHECK(calls == std::vector<std::string>{"interest", "read", "interest", "read", "interest", "read", "interest"});
}

TEST_CASE("seam: what has arrived is read also when a request comes before the timer that is due", "[core][seam]") {
    seam s;
    s.allow_questions();
    std::vector<std::string> calls;
    ALLOW_CALL(s.mock, open(_)).LR_SIDE_EFFECT(s.connect());
    ALLOW_CALL(s.mock, next_interest()).LR_SIDE_EFFECT(calls.push_back("interest")).LR_RETURN(s.now_waits_for);
    ALLOW_CALL(s.mock, process(_, _)).LR_SIDE_EFFECT(calls.push_back("read")).LR_RETURN(s.turn());
    ALLOW_CALL(s.mock, submit(_, _))
        .LR_SIDE_EFFECT(calls.push_back("submit"))
        .LR_SIDE_EFFECT(s.answer(_1))
        .RETURN(std::error_code());
    ALLOW_CALL(s.mock, end_batch());
    ALLOW_CALL(s.mock, send_goodbye()).RETURN(true);
    ALLOW_CALL(s.mock, answer_to_goodbye()).RETURN(goodbye_result::none_yet);
    const auto core = s.make_core();
    auto body = [&]() -> asio::awaitable<void> {
        const client zk = client_over(core);
        co_await zk.connected();
        const pending_children listing = toolbox(zk).start_children("/a");
        calls.clear();
        // The program is busy, for longer than the backend waits.
        for (const auto until = boot_clock::now() + 20ms; boot_clock::now() < until;) {
        }
        co_await listing.result();
        co_await zk.close();
    };
    s.loop.run(body());
    calls.resize(3);
    CHECK(calls == std::vector<std::string>{"read", "submit", "interest"});
}

TEST_CASE("seam: a connection attempt that takes too long is aborted", "[core][seam]") {
    seam s(client_options("10.0.0.1:2181").connection_timeout(400ms));
    s.allow_turns();
    s.allowed.push_back(NAMED_ALLOW_CALL(s.mock, session_timeout()).RETURN(300ms));
    s.allowed.push_back(NAMED_ALLOW_CALL(s.mock, current_server()).RETURN("10.0.0.1:2181"));
    s.allowed.push_back(NAMED_ALLOW_CALL(s.mock, last_failure()).RETURN(""));
    bool connecting = true;
    ALLOW_CALL(s.mock, has_socket()).LR_RETURN(connecting);
    ALLOW_CALL(s.mock, open(_));
    REQUIRE_CALL(s.mock, abort_connection()).LR_SIDE_EFFECT(connecting = false);
    const auto core = s.make_core();
    auto body = [&]() -> asio::awaitable<void> {
        const client zk = client_over(core);
        const std::string text = co_await message_of(zk.connected());
        CHECK(text.find("10.0.0.1:2181: no answer") != std::string::npos);
        co_await zk.close();
    };
    s.loop.run(body());
}

TEST_CASE("seam: a batch is ended although a request in it was refused", "[core][seam]") {
    seam s;
    s.allow_questions();
    s.allow_turns();
    trompeloeil::sequence order;
    ALLOW_CALL(s.mock, open(_)).LR_SIDE_EFFECT(s.connect());
    REQUIRE_CALL(s.mock, begin_batch()).IN_SEQUENCE(order);
    REQUIRE_CALL(s.mock, submit(_, _)).TIMES(2).IN_SEQUENCE(order).RETURN(make_error_code(errc::session_expired));
    REQUIRE_CALL(s.mock, end_batch()).IN_SEQUENCE(order);
    ALLOW_CALL(s.mock, send_goodbye()).RETURN(true);
    ALLOW_CALL(s.mock, answer_to_goodbye()).RETURN(goodbye_result::none_yet);
    const auto core = s.make_core();
    auto body = [&]() -> asio::awaitable<void> {
        const client zk = client_over(core);
        co_await zk.connected();
        const pending_children a = toolbox(zk).start_children("/a"), b = toolbox(zk).start_children("/b");
        for (const pending_children* p : {&a, &b}) {
            const std::error_code code = co_await code_of(p->result());
            CHECK(code == errc::session_expired);
        }
        co_await zk.close();
    };
    s.loop.run(body());
}

TEST_CASE("seam: a watch is removed over the connection, or forgotten without one", "[core][seam]") {
    seam s;
    s.allow_questions();
    s.allow_turns();
    const bool is_connected = GENERATE(true, false);
    ALLOW_CALL(s.mock, open(_)).LR_SIDE_EFFECT(s.connect());
    ALLOW_CALL(s.mock, begin_batch());
    ALLOW_CALL(s.mock, end_batch());
    ALLOW_CALL(s.mock, send_goodbye()).RETURN(true);
    ALLOW_CALL(s.mock, answer_to_goodbye()).RETURN(goodbye_result::none_yet);
    REQUIRE_CALL(s.mock, submit(_, _))
        .WITH(std::holds_alternative<children_request>(_2))
        .LR_SIDE_EFFECT(s.answer(_1))
        .RETURN(std::error_code());
    if (is_connected)
        s.allowed.push_back(NAMED_REQUIRE_CALL(s.mock, submit(_, _))
                                .WITH(std::holds_alternative<remove_watch_request>(_2) &&
                                      std::get<remove_watch_request>(_2).path == "/a" &&
                                      std::get<remove_watch_request>(_2).kind == watch_kind::children)
                                .LR_SIDE_EFFECT(s.answer(_1))
                                .RETURN(std::error_code()));
    else
        s.allowed.push_back(NAMED_REQUIRE_CALL(s.mock, forget_watch("/a", watch_kind::children)));

    const auto core = s.make_core();
    auto body = [&]() -> asio::awaitable<void> {
        const client zk = client_over(core);
        {
            const auto seen = co_await zk.children_and_watch("/a");
            if (!is_connected) s.next = [&] { s.listener->on_link(link_state::disconnected); };
            co_await until([&] { return is_connected || zk.state() == session_state::suspended; });
        }
        co_await until([&] { return core->watches() == 0; });
        if (!is_connected) s.connect();
        co_await until([&] { return zk.state() == session_state::connected; });
        co_await zk.close();
    };
    s.loop.run(body());
    CHECK(core->pending_operations() == 0);
}

TEST_CASE("seam: a request that the backend never answers ends with the client, its outcome unknown", "[core][seam]") {
    seam s;
    s.allow_questions();
    s.allow_turns();
    ALLOW_CALL(s.mock, open(_)).LR_SIDE_EFFECT(s.connect());
    ALLOW_CALL(s.mock, begin_batch());
    ALLOW_CALL(s.mock, end_batch());
    bool submitted = false;
    REQUIRE_CALL(s.mock, submit(_, _)).LR_SIDE_EFFECT(submitted = true).RETURN(std::error_code());
    REQUIRE_CALL(s.mock, send_goodbye()).RETURN(true);
    ALLOW_CALL(s.mock, answer_to_goodbye()).RETURN(goodbye_result::none_yet);
    const auto core = s.make_core();
    std::optional<error> failed;
    auto write = [&](client zk) -> asio::awaitable<void> {
        try {
            co_await zk.set("/a", "x");
        } catch (const error& e) {
            failed = e;
        }
    };
    auto body = [&]() -> asio::awaitable<void> {
        const client zk = client_over(core);
        s.loop.spawn(write(zk));
        co_await until([&] { return submitted; });
        co_await zk.close();
    };
    s.loop.run(body());
    REQUIRE(failed);
    CHECK(failed->code() == errc::client_closed);
    CHECK(failed->outcome_unknown());
    CHECK(core->pending_operations() == 0);
}
