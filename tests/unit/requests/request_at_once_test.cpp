// Requests that leave in the turn that asks for them.
#include "support/texts.hpp"
#include "unit/support/error_of.hpp"
#include "unit/support/fake_server.hpp"
#include "unit/support/request_steps.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace zkasio::test::request_steps {

namespace {

// There is a connection, and a server has answered on it.
void connect_and_ask(parts_bench& b) {
    outcome first;
    b.connect();
    const op_id id = b.requests.next_id() + 1000;
    b.requests.submit(id, getting("/first"), first.to());
    b.requests.flush();
    b.requests.answered(id, reply());
    b.backend.submitted.clear();
    b.backend.calls.clear();
    b.waiting_told = 0;
}

bool at_once(parts_bench& b, op_id id, command c, outcome& o) {
    auto to = o.to();
    return b.requests.submit_at_once(id, c, to);
}

}  // namespace

TEST_CASE("requests: one that is alone leaves at once, and its answer finds it", "[requests]") {
    parts_bench b;
    connect_and_ask(b);
    outcome a;
    REQUIRE(at_once(b, 1, getting("/a"), a));
    CHECK(submitted_paths(b) == texts{"/a"});
    CHECK(b.requests.under_way() == 1);
    CHECK(b.waiting_told == 0);  // no turn is needed for it
    b.requests.answered(1, refusal(zk_errc::no_node));
    CHECK(a.code() == zk_errc::no_node);
    CHECK(b.requests.size() == 0);
}

TEST_CASE("requests: what has company, or needs more than one step, waits for its turn", "[requests]") {
    parts_bench b;
    outcome first, a;
    SECTION("without a connection") {}
    SECTION("something is under way") {
        connect_and_ask(b);
        REQUIRE(at_once(b, 1, getting("/first"), first));
    }
    SECTION("something waits to be sent") {
        connect_and_ask(b);
        b.requests.submit(1, getting("/first"), first.to());
    }
    SECTION("nothing was answered on this connection yet: the library may have sent much") { b.connect(); }
    SECTION("nothing is taken any more") {
        connect_and_ask(b);
        b.refused = errc::client_closed;
    }
    SECTION("the backend cannot take it now") {
        connect_and_ask(b);
        b.backend.refuses = std::make_error_code(std::errc::resource_unavailable_try_again);
    }
    const auto before = submitted_paths(b);
    CHECK_FALSE(at_once(b, 2, getting("/a"), a));
    CHECK(submitted_paths(b) == before);
    CHECK(a.replies.empty());
}

TEST_CASE("requests: what sets a watch, presents a credential, or is large does not leave at once", "[requests]") {
    parts_bench b;
    connect_and_ask(b);
    outcome a;
    CHECK_FALSE(at_once(b, 1, getting("/a", std::make_shared<watch_state>()), a));
    command auth;
    auth.what = add_auth_request{"digest", "a:b"};
    CHECK_FALSE(at_once(b, 2, std::move(auth), a));
    command transaction;
    transaction.what = multi_request{};
    CHECK_FALSE(at_once(b, 4, std::move(transaction), a));
    command large;
    large.what = set_request{"/a", std::string(3000, 'x')};
    CHECK_FALSE(at_once(b, 3, std::move(large), a));
    CHECK(b.backend.submitted.empty());
}

TEST_CASE("requests: when the backend has something to tell of one that left at once, it is asked in a turn",
          "[requests]") {
    parts_bench b;
    connect_and_ask(b);
    b.backend.settled = false;
    outcome a;
    REQUIRE(at_once(b, 1, getting("/a"), a));
    CHECK(b.waiting_told == 1);
    CHECK(b.backend.calls.empty());
    b.requests.flush();
    CHECK(b.backend.calls == texts{"end"});
    b.requests.flush();  // once
    CHECK(b.backend.calls == texts{"end"});
}

}  // namespace zkasio::test::request_steps
