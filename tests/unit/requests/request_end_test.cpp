// What is left of a request that has ended.
#include "support/texts.hpp"
#include "unit/support/error_of.hpp"
#include "unit/support/fake_server.hpp"
#include "unit/support/request_steps.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace zkasio::test::request_steps {

TEST_CASE("requests: a failure comes with what was asked for, and what was expected without", "[requests]") {
    parts_bench b;
    b.connect();
    outcome failed, expected, left;
    command c = getting("/expected");
    c.expected = zk_errc::no_node;
    b.requests.submit(1, getting("/failed"), failed.to());
    b.requests.submit(2, std::move(c), expected.to());
    b.requests.submit(3, getting("/left"), left.to());
    b.requests.flush();
    for (const op_id id : {1U, 2U}) b.requests.answered(id, refusal(zk_errc::no_node));
    b.requests.cancel(3);
    b.requests.answered(3, reply());
    REQUIRE(failed.replies.at(0).asked);
    CHECK(path_of(*failed.replies[0].asked) == "/failed");
    CHECK(expected.code() == zk_errc::no_node);
    CHECK_FALSE(expected.replies[0].asked);
    REQUIRE(left.replies.at(0).asked);
    CHECK(path_of(*left.replies[0].asked) == "/left");
    CHECK_FALSE(left.replies[0].sent);  // of a read that makes no difference
}

TEST_CASE("requests: one that has ended keeps nothing alive", "[requests]") {
    parts_bench b;
    b.connect();
    auto kept = std::make_shared<kept_reply>();
    auto of = std::make_shared<session_record>();
    auto captured = std::make_shared<int>(0);
    auto watched = std::make_shared<watch_state>();
    const std::weak_ptr<void> all[] = {kept, of, captured, watched};
    outcome a;
    command c = removing("/a");
    c.pinned = std::move(of);
    b.requests.submit(std::move(c), std::move(kept), request_table::repeat::until_certain);
    b.requests.submit(getting("/b"), [in = std::move(captured)](reply&&) { ++*in; });
    b.requests.submit(b.requests.next_id(), getting("/c", std::move(watched)), a.to());
    b.requests.flush();
    REQUIRE(b.backend.submitted.size() == 3);
    const bool answers = GENERATE(true, false);
    for (const auto& [id, what] : b.backend.submitted)
        if (answers) b.requests.answered(id, refusal(zk_errc::no_auth));
    if (!answers) b.requests.end_all(errc::client_closed);
    for (const std::weak_ptr<void>& one : all) CHECK(one.expired());
    CHECK(b.background.over()->done);
}

}  // namespace zkasio::test::request_steps
