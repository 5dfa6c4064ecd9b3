#include "support/texts.hpp"
#include "unit/support/error_of.hpp"
#include "unit/support/fake_server.hpp"
#include "unit/support/request_steps.hpp"

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace zkasio::test::request_steps {

TEST_CASE("requests: nothing is sent before there is a connection, then all in order, in one batch", "[requests]") {
    parts_bench b;
    outcome a, c;
    b.requests.submit(1, getting("/a"), a.to());
    b.requests.submit(2, getting("/c"), c.to());
    b.requests.flush();
    CHECK(b.backend.submitted.empty());
    b.connect();
    CHECK(b.requests.waiting() == 2);
    b.requests.flush();
    CHECK(submitted_paths(b) == texts{"/a", "/c"});
    CHECK(b.backend.calls == texts{"open", "begin", "end"});
    CHECK(b.requests.under_way() == 2);
    b.requests.answered(2, reply());
    CHECK(c.done());
    CHECK_FALSE(a.done());
    b.requests.answered(1, refusal(zk_errc::no_node));
    CHECK(a.code() == zk_errc::no_node);
    CHECK(b.requests.size() == 0);
    CHECK(b.answers_told == 2);
    b.requests.answered(1, reply());  // nobody is told twice
    CHECK(a.done());
}

TEST_CASE("requests: a single one needs no batch, and yet is followed by end_batch", "[requests]") {
    parts_bench b;
    b.connect();
    outcome a;
    b.requests.submit(1, getting("/a"), a.to());
    b.requests.flush();
    CHECK(b.backend.calls == texts{"open", "end"});
}

TEST_CASE("requests: what is refused is told why, and does not stay", "[requests]") {
    parts_bench b;
    b.refused =
        GENERATE(as<std::error_code>(), errc::forked, errc::client_closed, errc::session_expired, zk_errc::auth_failed);
    outcome a;
    b.requests.submit(1, getting("/a"), a.to());
    CHECK(a.code() == b.refused);
    CHECK(b.requests.size() == 0);
    const auto kept = std::make_shared<kept_reply>();
    b.requests.submit(removing("/a"), kept, request_table::repeat::until_certain);
    CHECK(kept->reply.code == b.refused);
    CHECK(kept->answered.done);
}

TEST_CASE("requests: a thousand are under way at most, and heartbeats do not stand in that line", "[requests]") {
    parts_bench b;
    b.connect();
    std::vector<outcome> all(1002);
    for (outcome& o : all) b.requests.submit(b.requests.next_id(), getting("/n"), o.to());
    b.requests.flush();
    CHECK(b.backend.submitted.size() == 1000);
    bool beat = false;
    b.requests.submit(getting("/beat"), [&](reply&&) { beat = true; }, request_table::urgency::first);
    b.requests.flush();
    CHECK(b.backend.submitted.size() == 1001);
    b.requests.answered(b.backend.submitted.back().first, reply());
    CHECK(beat);
    b.requests.flush();
    CHECK(b.backend.submitted.size() == 1001);
    b.requests.answered(1, reply());
    b.requests.answered(2, reply());
    b.requests.flush();
    CHECK(b.backend.submitted.size() == 1003);
}

TEST_CASE("requests: large ones are under way up to some MiB, and the rest waits for answers", "[requests]") {
    parts_bench b;
    b.connect();
    std::vector<outcome> all(100);
    for (outcome& o : all) {
        command large;
        large.what = set_request{"/n", std::string(500'000, 'x'), any_version};
        b.requests.submit(b.requests.next_id(), std::move(large), o.to());
    }
    b.requests.flush();
    const std::size_t at_once = b.backend.submitted.size();
    CHECK(at_once > 8);
    CHECK(at_once < 20);
    for (std::size_t answered = 0; answered < all.size(); ++answered) {
        REQUIRE(answered < b.backend.submitted.size());
        b.requests.answered(b.backend.submitted[answered].first, reply());
        b.requests.flush();
        CHECK(b.requests.under_way() <= at_once);
    }
    CHECK(b.requests.size() == 0);
}

TEST_CASE("requests: who leaves is told at once, and what was sent stays until its answer, what was not is forgotten",
          "[requests]") {
    parts_bench b;
    b.connect();
    outcome sent, unsent;
    b.requests.submit(1, removing("/sent"), sent.to());
    b.requests.flush();
    b.requests.submit(2, removing("/unsent"), unsent.to());
    b.requests.cancel(1);
    b.requests.cancel(2);
    CHECK(sent.code() == asio::error::operation_aborted);
    CHECK(sent.replies[0].sent);  // it may be applied
    CHECK(unsent.code() == asio::error::operation_aborted);
    CHECK_FALSE(unsent.replies[0].sent);
    CHECK(b.requests.size() == 1);
    b.requests.flush();
    CHECK(submitted_paths(b) == texts{"/sent"});
    b.requests.answered(1, reply());
    CHECK(sent.done());
    CHECK(b.requests.size() == 0);
    b.requests.cancel(1);  // too late
    CHECK(sent.done());
}

TEST_CASE("requests: a watch that nobody waits for any more is removed", "[requests]") {
    parts_bench b;
    b.connect();
    outcome a;
    b.requests.submit(1, getting("/a", std::make_shared<watch_state>()), a.to());
    b.requests.flush();
    b.requests.cancel(1);
    b.requests.answered(1, reply());
    b.requests.flush();
    REQUIRE(b.backend.submitted.size() == 2);
    CHECK(std::get<remove_watch_request>(b.backend.submitted[1].second).path == "/a");
    b.requests.answered(b.backend.submitted[1].first, reply());
    CHECK(b.requests.watches() == 0);
    SECTION("without a connection the backend forgets it") {
        outcome c;
        b.requests.submit(2, getting("/c", std::make_shared<watch_state>()), c.to());
        b.requests.flush();
        b.requests.cancel(2);
        b.link.changed(link_state::disconnected);
        b.requests.answered(2, reply());
        CHECK(b.backend.calls.back() == "forget /c");
        CHECK(b.requests.watches() == 0);
    }
}

TEST_CASE("requests: a removal that has to be certain is sent again, first, until it is", "[requests]") {
    parts_bench b(client_options("10.0.0.1").retry(retry_policy::exponential()));
    b.connect();
    const auto kept = std::make_shared<kept_reply>();
    b.requests.submit(removing("/mine"), kept, request_table::repeat::until_certain);
    b.requests.flush();
    const op_id id = b.backend.submitted.at(0).first;
    outcome later;
    b.requests.submit(99, getting("/later"), later.to());
    SECTION("the connection was lost: it goes before what was asked for later") {
        b.requests.answered(id, lost());
        CHECK_FALSE(kept->answered.done);
        b.disconnect();
        b.connect();
        b.requests.flush();
        CHECK(submitted_paths(b) == texts{"/mine", "/mine", "/later"});
        b.requests.answered(id, refusal(zk_errc::no_node));
        CHECK(kept->answered.done);
        CHECK_FALSE(kept->reply.code);
        CHECK_FALSE(kept->reply.found);
    }
    SECTION("a server has refused it: it pauses, and what came later passes") {
        b.requests.answered(id, refusal(zk_errc::throttled));
        const auto before = boot_clock::now();
        CHECK(b.requests.due(before) > before);
        CHECK(b.requests.due(before) < boot_clock::time_point::max());
        b.requests.flush();
        CHECK(submitted_paths(b) == texts{"/mine", "/later"});
    }
    SECTION("the session is over: that is its end") {
        b.lives = false;
        b.requests.answered(id, lost(zk_errc::session_expired));
        CHECK(kept->answered.done);
        CHECK(kept->reply.code == zk_errc::session_expired);
    }
    SECTION("nobody may take it back once it has been sent") { CHECK_FALSE(b.requests.withdraw(kept)); }
}

TEST_CASE("requests: what the backend cannot take now waits until it can, in its place", "[requests]") {
    parts_bench b;
    b.connect();
    outcome a, c;
    b.requests.submit(1, getting("/a"), a.to());
    b.requests.submit(2, getting("/c"), c.to());
    b.backend.refuses = std::make_error_code(std::errc::resource_unavailable_try_again);
    b.requests.flush();
    CHECK(b.requests.under_way() == 0);
    b.backend.refuses = {};
    b.requests.writable();
    CHECK(submitted_paths(b) == texts{"/a", "/c"});
    b.requests.writable();  // nothing is left to send
    CHECK(b.backend.submitted.size() == 2);
}

TEST_CASE("requests: without a connection they end when their time is over, and those of the library itself wait on",
          "[requests]") {
    parts_bench b(client_options("10.0.0.1").connection_timeout(std::chrono::milliseconds(10)));
    outcome a, connected;
    b.requests.submit(b.requests.next_id(), getting("/a"), a.to());
    b.requests.submit(b.requests.next_id(), command(), connected.to());
    bool internal = false;
    b.requests.submit(getting("/own"), [&](reply&&) { internal = true; });
    const auto due = b.requests.due(boot_clock::now());
    CHECK(due < boot_clock::time_point::max());
    b.requests.on_time(due - std::chrono::milliseconds(1));
    CHECK(a.replies.empty());
    b.requests.on_time(due + std::chrono::milliseconds(10));
    CHECK(a.code() == errc::not_connected);
    CHECK(has(a.replies[0].data, "10.0.0.1"));
    CHECK(connected.code() == errc::not_connected);
    CHECK_FALSE(internal);
    CHECK(b.requests.due(boot_clock::now()) == boot_clock::time_point::max());
}

TEST_CASE("requests: the end of a session ends them, but not those who only wait for a connection", "[requests]") {
    parts_bench b;
    outcome a, connected;
    b.requests.submit(1, getting("/a"), a.to());
    b.requests.submit(2, command(), connected.to());
    const auto over = b.requests.of_this_session(true);
    CHECK(over == std::vector<op_id>{1});
    b.requests.end(over, errc::session_expired);
    CHECK(a.code() == errc::session_expired);
    CHECK(connected.replies.empty());
    b.connect();
    b.requests.flush();
    CHECK(connected.code() == std::error_code());
    CHECK(b.backend.submitted.empty());
}

TEST_CASE("requests: closing ends what was not sent, and waits for what was", "[requests]") {
    parts_bench b;
    b.connect();
    outcome sent, unsent;
    b.requests.submit(1, getting("/sent"), sent.to());
    b.requests.flush();
    b.requests.submit(2, getting("/unsent"), unsent.to());
    b.requests.end_unsent(errc::client_closed);
    CHECK(unsent.code() == errc::client_closed);
    CHECK(sent.replies.empty());
    CHECK(b.requests.under_way() == 1);
    b.requests.end_all(errc::client_closed);
    CHECK(sent.code() == errc::client_closed);
    CHECK(b.requests.size() == 0);
    CHECK(b.requests.under_way() == 0);
}

namespace {

// The watch on "/a" is set, and left by the only one who has it: its removal is on its way. Returns the removal's id.
op_id remove_watch(parts_bench& b) {
    const auto w = std::make_shared<watch_state>();
    outcome a;
    b.requests.submit(b.requests.next_id(), getting("/a", w), a.to());
    b.requests.flush();
    b.requests.answered(b.backend.submitted.back().first, reply());
    b.requests.leave_watch(w);
    b.requests.flush();
    REQUIRE(std::get<remove_watch_request>(b.backend.submitted.back().second).path == "/a");
    return b.backend.submitted.back().first;
}

// How many turns of their own it takes; 10: it does not end.
int turns_until_quiet(parts_bench& b) {
    int turns = 0;
    for (; !b.later_calls.empty() && turns < 10; ++turns) {
        const auto calls = std::exchange(b.later_calls, {});
        for (const auto& call : calls) call();
    }
    return turns;
}

}  // namespace

TEST_CASE("requests: the removal of a watch that a busy server refuses is sent again after a pause", "[requests]") {
    parts_bench b(client_options("10.0.0.1").retry(retry_policy::exponential()));
    b.connect();
    const op_id id = remove_watch(b);
    const std::size_t sent = b.backend.submitted.size();
    const bool is_known = GENERATE(true, false);
    b.requests.answered(id, is_known ? refusal(zk_errc::throttled) : lost());
    const auto now = boot_clock::now();
    CHECK(b.requests.due(now) > now);
    CHECK(b.requests.due(now) < boot_clock::time_point::max());
    b.requests.flush();
    CHECK(b.backend.submitted.size() == sent);
    SECTION("the connection goes: the backend forgets the watch, and nothing is sent on the next one") {
        b.disconnect();
        CHECK(b.backend.calls.back() == "forget /a");
        b.requests.feeds_disconnected();
        CHECK(turns_until_quiet(b) == 0);
        CHECK(b.requests.watches() == 0);
        CHECK_FALSE(b.requests.something_to_send());
    }
    SECTION("the session ends, and with it the repetition") {
        b.requests.end_watches(errc::session_expired);
        b.requests.end(b.requests.of_this_session(true), errc::session_expired);
        CHECK(b.requests.watches() == 0);
        CHECK(b.requests.size() == 0);
        CHECK_FALSE(b.requests.something_to_send());
    }
}

TEST_CASE("requests: a watch whose removal is refused for good stays until it serves somebody, or the connection goes",
          "[requests]") {
    parts_bench b;
    b.connect();
    const op_id id = remove_watch(b);
    const std::size_t sent = b.backend.submitted.size();
    b.requests.answered(id, refusal(zk_errc::unimplemented));
    b.requests.flush();
    CHECK(b.backend.submitted.size() == sent);
    CHECK(b.requests.size() == 0);
    CHECK(b.requests.watches() == 1);
    SECTION("the connection goes") {
        b.disconnect();
        b.requests.feeds_disconnected();
        CHECK(b.backend.calls.back() == "forget /a");
        CHECK(b.requests.watches() == 0);
    }
    SECTION("somebody has it again, and leaves it: the removal is tried once more") {
        const op_id again = remove_watch(b);
        CHECK(again != id);
        b.requests.answered(again, reply());
        CHECK(b.requests.watches() == 0);
    }
}

TEST_CASE("requests: what a server answers as if the connection were lost is sent again after a pause", "[requests]") {
    parts_bench b(client_options("10.0.0.1").retry(retry_policy::exponential()));
    b.connect();
    const auto kept = std::make_shared<kept_reply>();
    b.requests.submit(removing("/mine"), kept, request_table::repeat::until_certain);
    b.requests.flush();
    const bool is_known = GENERATE(true, false);
    b.requests.answered(b.backend.submitted.at(0).first, is_known ? refusal(zk_errc::connection_loss) : lost());
    const auto now = boot_clock::now();
    CHECK(b.requests.due(now) > now);
    b.requests.flush();
    CHECK(submitted_paths(b) == texts{"/mine"});
}

TEST_CASE("requests: while the client closes a watch that is left counts as gone, at once", "[requests]") {
    parts_bench b;
    b.connect();
    SECTION("left") {
        const auto w = std::make_shared<watch_state>();
        outcome a;
        b.requests.submit(1, getting("/a", w), a.to());
        b.requests.flush();
        b.requests.answered(1, reply());
        b.closing = true;
        b.requests.leave_watch(w);
    }
    SECTION("its removal is refused") {
        const op_id id = remove_watch(b);
        b.closing = true;
        b.requests.answered(id, refusal(GENERATE(zk_errc::throttled, zk_errc::unimplemented)));
    }
    SECTION("a feed's read of a missing node is answered") {
        b.requests.read_for(std::make_shared<feed_state>(), node_read::data, "/a");
        b.requests.flush();
        b.closing = true;
        b.requests.answered(b.backend.submitted.back().first, refusal(zk_errc::no_node));
    }
    CHECK(turns_until_quiet(b) <= 1);
    CHECK(b.requests.watches() == 0);
    CHECK(b.requests.size() == 0);
    CHECK_FALSE(b.requests.something_to_send());
}

// ------------------------------------------------------------------------------------ watches and another connection

namespace {

// A waiter of each of `n` nodes, whose reads are answered.
std::vector<watch_ptr> watch_nodes(parts_bench& b, int n) {
    std::vector<watch_ptr> all;
    for (int i = 0; i < n; ++i) {
        outcome a;
        all.push_back(std::make_shared<watch_state>());
        b.requests.submit(b.requests.next_id(), getting("/" + std::to_string(i), all.back()), a.to());
        b.requests.flush();
        b.requests.answered(b.backend.submitted.back().first, reply());
    }
    b.backend.submitted.clear();
    return all;
}

// What is under way has no answer.
void lose_connection(parts_bench& b) {
    for (const auto& [id, what] : b.backend.submitted) b.requests.answered(id, lost());
    b.disconnect();
    b.requests.feeds_disconnected();
}

void connect_again(parts_bench& b) {
    b.connect();
    b.requests.feeds_connected();
    b.requests.ask_questions();
    b.requests.flush();
}

}  // namespace

TEST_CASE("requests: on the next connection each watched node is read once, at most 64 at a time", "[requests]") {
    parts_bench b;
    b.connect();
    const auto all = watch_nodes(b, 200);
    lose_connection(b);
    for (int i = 0; i < 200; ++i) CHECK(b.backend.forgotten.contains({"/" + std::to_string(i), watch_kind::data}));
    b.requests.leave_watch(all[0]);
    connect_again(b);
    CHECK(b.backend.submitted.size() == 64);
    b.requests.leave_watch(all[199]);  // before it is asked for
    for (std::size_t i = 0; i < b.backend.submitted.size(); ++i) {
        CHECK(b.requests.under_way() <= 64);
        CHECK(std::get<exists_request>(b.backend.submitted[i].second).watch);
        b.requests.answered(b.backend.submitted[i].first, reply());
        b.requests.flush();
    }
    CHECK(b.backend.submitted.size() == 198);
    CHECK(b.requests.size() == 0);
    for (int i = 1; i < 199; ++i) CHECK(all[static_cast<std::size_t>(i)]->is_set);
    CHECK(b.requests.watches() == 198);
}

TEST_CASE("requests: clients with very many watches do not all ask at once for them", "[requests]") {
    parts_bench b;
    b.connect();
    const bool are_many = GENERATE(true, false);
    const auto all = watch_nodes(b, are_many ? 1001 : 1000);
    std::set<boot_clock::duration> pauses;
    for (int i = 0; i < (are_many ? 20 : 0); ++i) {
        lose_connection(b);
        const auto before = boot_clock::now();
        connect_again(b);
        CHECK(b.backend.submitted.empty());
        const auto due = b.requests.due(before);
        CHECK(due < before + std::chrono::milliseconds(1500));
        pauses.insert(due - before);
    }
    lose_connection(b);
    connect_again(b);
    CHECK(b.backend.submitted.empty() == are_many);
    const auto patience = boot_clock::now() + std::chrono::seconds(5);
    while (b.backend.submitted.empty() && boot_clock::now() < patience) {  // a second at most
        b.requests.on_time(boot_clock::now());
        b.requests.flush();
    }
    CHECK(b.backend.submitted.size() == 64);
    if (are_many) CHECK(*pauses.rbegin() - *pauses.begin() > std::chrono::milliseconds(200));
}

TEST_CASE("requests: the answers to the questions of another connection", "[requests]") {
    parts_bench b(client_options("10.0.0.1").retry(retry_policy::n_times(1, std::chrono::milliseconds(1))));
    b.connect();
    const auto w = watch_nodes(b, 1).at(0);
    lose_connection(b);
    connect_again(b);
    REQUIRE(b.backend.submitted.size() == 1);
    const op_id id = b.backend.submitted[0].first;
    SECTION("changed: the waiter is told, and the watch that nobody needs is removed") {
        reply r;
        r.stat.mzxid = 7;
        b.requests.answered(id, std::move(r));
        CHECK(w->fired->done);
        CHECK(w->event == node_event::data_changed);
        b.requests.flush();
        CHECK(std::holds_alternative<remove_watch_request>(b.backend.submitted.back().second));
    }
    SECTION("changed, and the waiter asks again at once: the watch stays") {
        const auto next = std::make_shared<watch_state>();
        outcome a;
        w->fired->call([&] { b.requests.submit(b.requests.next_id(), getting("/0", next), a.to()); });
        b.requests.answered(id, refusal(zk_errc::no_node));
        CHECK(w->event == node_event::removed);
        b.requests.flush();
        REQUIRE(b.backend.submitted.size() == 2);
        CHECK(std::holds_alternative<get_request>(b.backend.submitted[1].second));
        b.requests.answered(b.backend.submitted[1].first, reply());
        CHECK(b.requests.watches() == 1);
    }
    SECTION("refused: the waiter is told, so that he looks") {
        b.requests.answered(id, refusal(zk_errc::no_auth));
        CHECK(w->fired->done);
        CHECK_FALSE(w->fired->code);
        CHECK(b.requests.watches() == 0);
    }
    SECTION("by a busy server: asked again") {
        const bool is_known = GENERATE(true, false);
        b.requests.answered(id, is_known ? refusal(zk_errc::throttled) : lost());
        CHECK_FALSE(w->fired->done);
        const auto patience = boot_clock::now() + std::chrono::seconds(5);  // it takes a millisecond
        while (b.backend.submitted.size() == 1 && boot_clock::now() < patience) b.requests.flush();
        REQUIRE(b.backend.submitted.size() == 2);
        CHECK(b.backend.submitted[1].first == id);
        b.requests.answered(id, reply());
        CHECK_FALSE(w->fired->done);
        CHECK(w->is_set);
    }
    SECTION("none: the connection has gone, and the next one is asked once") {
        lose_connection(b);
        CHECK_FALSE(w->fired->done);
        connect_again(b);
        REQUIRE(b.backend.submitted.size() == 2);
        CHECK(b.backend.submitted[1].first != id);
        b.requests.answered(b.backend.submitted[1].first, reply());
        CHECK(w->is_set);
    }
    SECTION("none: the session is over") {
        b.requests.end_watches(errc::session_expired);
        CHECK(w->fired->code == errc::session_expired);
        b.requests.end(b.requests.of_this_session(true), errc::session_expired);
        b.requests.feeds_disconnected();
        CHECK(b.requests.watches() == 0);
    }
    CHECK(b.requests.size() <= 1);  // the removal
}

TEST_CASE("requests: questions that are not sent yet when the connection goes are asked once on the next one",
          "[requests]") {
    parts_bench b;
    b.connect();
    const auto w = watch_nodes(b, 1).at(0);
    lose_connection(b);
    b.backend.refuses = std::make_error_code(std::errc::resource_unavailable_try_again);
    connect_again(b);
    CHECK(b.backend.submitted.empty());
    CHECK_FALSE(w->fired->done);
    lose_connection(b);
    b.backend.refuses = {};
    connect_again(b);
    CHECK(b.backend.submitted.size() == 1);
    b.requests.answered(b.backend.submitted[0].first, reply());
    CHECK(w->is_set);
    CHECK(b.requests.size() == 0);
}

}  // namespace zkasio::test::request_steps
