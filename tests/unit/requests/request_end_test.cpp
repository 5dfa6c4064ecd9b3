// What is left of a request that has ended.
#include "support/texts.hpp"
#include "unit/support/error_of.hpp"
#include "unit/support/fake_server.hpp"
#include "unit/support/request_steps.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
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

namespace {

void ask(parts_bench& b, request what, const reply& a) {
    command c(std::move(what));
    outcome ended;
    const op_id id = b.requests.next_id();
    b.requests.submit(id, std::move(c), ended.to());
    b.requests.flush();
    b.requests.answered(id, reply(a));
    REQUIRE(ended.done());
}

// What a connection ends with: requests that were answered, then those that were lost.
class connections {
public:
    explicit connections(parts_bench& b) : b_(b) { b_.connect(); }
    int end_with(const std::vector<request>& answered, const std::vector<request>& lost,
                 std::error_code code = zk_errc::connection_loss) {
        for (const request& r : answered) ask(b_, r, reply());
        reply none;
        none.code = code;
        none.sent = true;
        for (const request& r : lost) ask(b_, r, none);
        b_.disconnect();
        const int row = b_.requests.ended_with_same_request();
        b_.link.changed(link_state::connected);
        b_.requests.connected(boot_clock::now());
        return row;
    }

private:
    parts_bench& b_;
};

request set_of(std::size_t bytes) { return set_request{"/n", std::string(bytes, 'x'), any_version}; }
request create_of(std::size_t bytes) {
    create_request c;
    c.path = "/n";
    c.data = std::string(bytes, 'x');
    return c;
}

}  // namespace

TEST_CASE("requests: connections in a row that end with the same request", "[requests]") {
    parts_bench b;
    connections all(b);
    CHECK(all.end_with({}, {}) == 0);
    for (int i = 1; i <= 3; ++i) CHECK(all.end_with({}, {set_of(1000)}) == i);
    CHECK(b.requests.request_of_end().starts_with("set /n, "));
    SECTION("smaller ones, and others, are answered and lost beside it") {
        CHECK(all.end_with({set_of(10), create_of(2000)}, {set_of(1000)}) == 4);
        CHECK(all.end_with({}, {create_of(10), set_of(1000), set_of(10), create_of(20)}) == 5);
    }
    SECTION("one of its kind that is as large is answered") {
        CHECK(all.end_with({set_of(1000)}, {set_of(1000)}) == 1);
        CHECK(all.end_with({set_of(2000)}, {set_of(1000)}) == 1);
    }
    SECTION("one of its kind is lost by chance, of a size that is answered") {
        CHECK(all.end_with({set_of(20)}, {set_of(1000)}) == 4);
        CHECK(all.end_with({}, {set_of(10)}) == 1);
    }
    SECTION("the session ends") {
        CHECK(all.end_with({}, {set_of(1000)}) == 4);
        b.requests.end({}, errc::session_expired);
        CHECK(b.requests.ended_with_same_request() == 4);
    }
    SECTION("another one is lost") {
        CHECK(all.end_with({}, {create_of(1000)}) == 1);
        CHECK(all.end_with({}, {set_of(1000)}) == 4);
        CHECK(all.end_with({}, {create_of(1000)}) == 2);
    }
    SECTION("nothing is lost") {
        CHECK(all.end_with({create_of(10)}, {}) == 0);
        CHECK(b.requests.request_of_end().empty());
        CHECK(all.end_with({}, {set_of(1000)}) == 4);
    }
    SECTION("containers have a request of their own") {
        create_request container;
        container.path = "/n";
        container.mode = create_mode::container;
        for (int i = 1; i <= 3; ++i) CHECK(all.end_with({create_of(1000)}, {container}) == i);
    }
    SECTION("connections that have timed out say nothing") {
        CHECK(all.end_with({}, {set_of(1000)}, zk_errc::operation_timeout) == 0);
    }
}

TEST_CASE("requests: one at which the servers may hang up is sent while no other is under way", "[requests]") {
    parts_bench b;
    connections all(b);
    CHECK(all.end_with({}, {set_of(1000)}) == 1);
    CHECK(all.end_with({}, {set_of(1000)}) == 2);
    std::vector<outcome> ends(5);
    const std::size_t before = b.backend.submitted.size();
    const request what[] = {create_of(10), set_of(10), set_of(1000), create_of(10), set_of(1000)};
    std::vector<op_id> ids;
    for (std::size_t i = 0; i < 5; ++i) {
        command c(what[i]);
        ids.push_back(b.requests.next_id());
        b.requests.submit(ids.back(), std::move(c), ends[i].to());
    }
    const auto sent = [&] { return b.backend.submitted.size() - before; };
    b.requests.flush();
    CHECK(sent() == 2);
    b.requests.answered(ids[0], reply());
    b.requests.flush();
    CHECK(sent() == 2);
    b.requests.answered(ids[1], reply());
    b.requests.flush();
    CHECK(sent() == 3);
    b.requests.flush();
    CHECK(sent() == 3);
    SECTION("and is one like others once it was answered") {
        b.requests.answered(ids[2], reply());
        b.requests.flush();
        CHECK(sent() == 5);
    }
    SECTION("and with it all goes on if the caller leaves") {
        b.requests.cancel(ids[2]);
        reply lost;
        lost.code = zk_errc::connection_loss;
        lost.sent = true;
        b.requests.answered(ids[2], std::move(lost));
        b.disconnect();
        b.link.changed(link_state::connected);
        b.requests.connected(boot_clock::now());
        b.requests.flush();
        CHECK(sent() == 4);
    }
}

TEST_CASE("requests: questions about ephemeral nodes are asked in few at a time, and only as long as they matter",
          "[requests]") {
    parts_bench b;
    b.connect();
    ephemeral_budget& nodes = b.requests.ephemerals();
    nodes.connected(0);
    const auto path = [](std::size_t i) { return "/n" + std::to_string(i); };
    const auto create = [&](std::string of, create_mode mode, const reply& a) {
        create_request what;
        what.path = std::move(of);
        what.mode = mode;
        ask(b, std::move(what), a);
    };
    reply lost;
    lost.code = zk_errc::connection_loss;
    lost.sent = true;
    for (std::size_t i = 0; i < 100; ++i) {
        reply made;
        made.path = path(i);
        create(path(i), create_mode::ephemeral, made);
    }
    create("/d/m-", create_mode::ephemeral_sequential, lost);
    nodes.doubt_held();
    const std::size_t before = b.backend.submitted.size();
    const auto asked = [&] { return b.backend.submitted.size() - before; };
    b.requests.ask_questions();
    b.requests.flush();
    REQUIRE(asked() == 64);
    const auto answer = [&](std::size_t i, std::error_code code) {
        reply a;
        a.code = code;
        b.requests.answered(b.backend.submitted.at(before + i).first, std::move(a));
        b.requests.flush();
    };
    answer(0, {});
    CHECK(asked() == 65);
    SECTION("a directory that may not be read") {
        answer(1, zk_errc::no_auth);
        CHECK(asked() == 66);
        // A node that is known to be gone needs no question.
        nodes.heard_gone(path(99));
        for (std::size_t i = 2; i < asked(); ++i) answer(i, {});
        CHECK(asked() == 1 + 1 + 99);
        CHECK(nodes.questions().size() == 2);  // the directory
    }
    SECTION("a server that refuses") {
        answer(2, zk_errc::throttled);
        for (std::size_t i = 3; i < asked(); ++i) answer(i, {});
        CHECK(asked() == 65);
        // Asked again on the next connection.
        b.requests.ask_questions();
        b.requests.flush();
        CHECK(asked() > 65);
    }
}

TEST_CASE("requests: an event that tells of a removal wakes those that wait for room", "[requests]") {
    parts_bench b(client_options("10.0.0.1:2181").ephemeral_budget(100));
    b.connect();
    ephemeral_budget& nodes = b.requests.ephemerals();
    const std::string path = "/l/" + std::string(80, 'n');
    reply made;
    made.path = path;
    create_request what;
    what.path = path;
    what.mode = create_mode::ephemeral;
    command c(std::move(what));
    outcome ended;
    b.requests.submit(1, std::move(c), ended.to());
    b.requests.flush();
    b.requests.answered(1, std::move(made));
    int called = 0;
    nodes.when_changed("/other", 20, [&] { ++called; });
    const auto run_later = [&] {
        for (const auto& f : std::exchange(b.later_calls, {})) f();
    };
    run_later();
    nodes.when_changed("/other", 20, [&] { ++called; });
    const int before = called;
    CHECK(nodes.for_contender("/other", 20) == ephemeral_budget::room::never);
    b.requests.node_event(node_event::removed, path);
    CHECK_FALSE(b.later_calls.empty());
    run_later();
    CHECK(called > before);
}

TEST_CASE("requests: room is searched for at the servers only while there is a connection", "[requests]") {
    const bool connected = GENERATE(false, true);
    parts_bench b(client_options("10.0.0.1:2181").ephemeral_budget(10));
    if (connected) b.connect();
    create_request what;
    what.path = "/" + std::string(80, 'n');
    what.mode = create_mode::ephemeral;
    command c(std::move(what));
    outcome ended;
    b.requests.submit(1, std::move(c), ended.to());
    CHECK(ended.code() == errc::too_many_ephemerals);
    CHECK(b.later_calls.empty() == !connected);
}

TEST_CASE("requests: room that is made while those that wait are told is told, too", "[requests]") {
    parts_bench b(client_options("10.0.0.1:2181").ephemeral_budget(100));
    b.connect();
    ephemeral_budget& nodes = b.requests.ephemerals();
    const std::string path = "/l/" + std::string(80, 'n');
    const auto creating = [](std::string of) {
        create_request what;
        what.path = std::move(of);
        what.mode = create_mode::ephemeral;
        command c(std::move(what));
        return c;
    };
    outcome made, unsent;
    b.requests.submit(1, creating(path), made.to());
    b.requests.flush();
    reply a;
    a.path = path;
    b.requests.answered(1, std::move(a));
    b.requests.submit(2, creating("/q"), unsent.to());
    bool called = false;
    nodes.when_changed("/other", 20, [&] {
        called = true;
        nodes.when_changed("/other", 20, [] {});
        b.requests.cancel(2);
    });
    b.requests.tell_room();
    for (const auto& f : std::exchange(b.later_calls, {})) f();
    REQUIRE(called);
    CHECK_FALSE(b.later_calls.empty());
}

}  // namespace zkasio::test::request_steps
