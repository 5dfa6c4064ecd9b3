// What an observer of an election asks for, in which order, and when it says that it does not know.

#include "support/lock_checks.hpp"
#include "support/texts.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/election/leader_observer.hpp>
#include <zkasio/locks/directory_note.hpp>

#include <algorithm>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

const std::string latch_prefix = "_c_11111111-2222-4333-8444-555555555555-latch-";

std::string candidate_node(const std::string& number) { return "/e/" + latch_prefix + number; }

/// An election whose candidates a test lists. The data of each node is its number, the czxid is behind it.
class observed : public rig {
public:
    explicit observed(client_options o = quick()) : rig(std::move(o)) {
        server.answer = [this](const request& q) { return answer(q); };
    }
    /// What the observer has asked for since the last call.
    std::vector<std::string> asked() {
        std::vector<std::string> all = server.texts();
        all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::exchange(seen_, all.size())));
        return all;
    }

    std::vector<std::string> candidates;  ///< their numbers
    bool directory = true, readable = true;
    bool stat_needs_permission = false;  ///< as from 3.8.4 on
    std::string note;      ///< the data of the directory
    std::string vanishes;  ///< its node is listed once more, and has gone when it is read

private:
    std::optional<reply> answer(const request& q) {
        reply a;
        if (std::holds_alternative<children_request>(q)) {
            if (!directory) return refusal(zk_errc::no_node);
            for (const std::string& number : candidates) a.children.push_back(latch_prefix + number);
            return a;
        }
        if (const auto* g = std::get_if<get_request>(&q)) {
            if (g->path != "/e") return stat_of(g->path, !readable);
            if (!directory) return refusal(zk_errc::no_node);
            a.data = note;
            return a;
        }
        if (const auto* e = std::get_if<exists_request>(&q); e && e->path != "/") {
            if (e->path == "/e") return directory ? a : refusal(zk_errc::no_node);
            return stat_of(e->path, !readable && stat_needs_permission);
        }
        return a;
    }
    reply stat_of(const std::string& path, bool refused) {
        const std::string number = path.substr(path.size() - 10);
        if (number == vanishes) {
            vanishes.clear();
            std::erase(candidates, number);
        }
        if (std::find(candidates.begin(), candidates.end(), number) == candidates.end())
            return refusal(zk_errc::no_node);
        if (refused) return refusal(zk_errc::no_auth);
        reply a;
        a.data = number;
        a.stat.czxid = 1000 + std::stoll(number);
        a.stat.ephemeral_owner = 77;
        return a;
    }
    std::size_t seen_ = 0;
};

}  // namespace

TEST_CASE("observer: reads behind a sync who came first and watches that node and what it proclaims", "[election]") {
    observed r;
    r.candidates = {"0000000007", "0000000005", "0000000011"};
    auto body = [&](client zk) -> asio::awaitable<void> {
        const leader_observer observer(zk, "/e");
        const leader_view view = co_await observer.next();
        CHECK(r.asked() == texts{"sync /e", "children /e", "get /e", "get " + candidate_node("0000000005")});
        REQUIRE(view.state == leader_state::leader);
        CHECK(view.leader->path == candidate_node("0000000005"));
        CHECK(view.leader->data == "0000000005");
        CHECK(view.leader->session_id == 77);
        CHECK(view.leader->token == fencing_token(1005));
        CHECK(r.core->watches() == 2);

        r.candidates = {"0000000007", "0000000011"};
        r.server.fire(node_event::removed, candidate_node("0000000005"));
        const leader_view next = co_await observer.next();
        CHECK(r.asked() ==
              texts{"remove watch /e", "children /e", "get /e", "get " + candidate_node("0000000007")});
        CHECK(next.leader->path == candidate_node("0000000007"));
    };
    r.run(body);
}

TEST_CASE("observer: tells what the leader has proclaimed and nothing that another one has", "[election]") {
    observed r;
    r.candidates = {"0000000001", "0000000002"};
    const auto says = [&](const std::string& number, std::string text) {
        directory_note note;
        note.leader = latch_prefix + number;
        note.proclaimed = std::move(text);
        r.note = note.text();
    };
    says("0000000002", "from before");
    auto body = [&](client zk) -> asio::awaitable<void> {
        const leader_observer observer(zk, "/e");
        const leader_view one = co_await observer.next();
        CHECK(one.leader->data == "0000000001");
        says("0000000001", "");
        r.server.fire(node_event::data_changed, "/e");
        const leader_view two = co_await observer.next();
        CHECK(two.leader->data == "");
        CHECK(two.leader->token == one.leader->token);
        CHECK(r.core->watches() == 2);
        r.note = "another's";
        r.server.fire(node_event::data_changed, "/e");
        const leader_view three = co_await observer.next();
        CHECK(three.leader->data == "0000000001");
    };
    r.run(body);
}

// A directory that was written to by an operator, say.
TEST_CASE("observer: a write into the directory that says nothing of the leader is no news", "[election]") {
    observed r;
    r.candidates = {"0000000001"};
    auto body = [&](client zk) -> asio::awaitable<void> {
        const leader_observer observer(zk, "/e");
        co_await observer.next();
        r.asked();
        auto await_next = [&]() -> asio::awaitable<void> { co_await observer.next(); };
        running waiting(r.loop.executor(), await_next());
        co_await next_turns(r.server);
        r.note = "words";
        r.server.fire(node_event::data_changed, "/e");
        co_await r.server.until([&] { return r.server.count("get /e") == 2 && r.server.watched("/e"); });
        co_await next_turns(r.server);
        CHECK_FALSE(waiting.ended());
        waiting.cancel();
        co_await waiting.code();
    };
    r.run(body);
}

TEST_CASE("observer: numbers that wrap around come behind those before", "[election]") {
    observed r;
    r.candidates = {"-2147483648", "2147483647", "-2147483647"};
    auto body = [&](client zk) -> asio::awaitable<void> {
        const leader_observer observer(zk, "/e");
        const leader_view view = co_await observer.next();
        CHECK(view.leader->path == candidate_node("2147483647"));
    };
    r.run(body);
}

TEST_CASE("observer: a node that vanishes between list and read is not told", "[election]") {
    observed r;
    r.candidates = {"0000000001", "0000000002"};
    r.vanishes = "0000000001";
    r.readable = GENERATE(true, false);
    auto body = [&](client zk) -> asio::awaitable<void> {
        const leader_observer observer(zk, "/e");
        const leader_view view = co_await observer.next();
        CHECK(view.leader->path == candidate_node("0000000002"));
        CHECK(view.leader->data.has_value() == r.readable);
        CHECK(r.core->watches() == (r.readable ? 2 : 1));
    };
    r.run(body);
}

TEST_CASE("observer: the last candidate that vanishes between list and read leaves nobody", "[election]") {
    observed r;
    r.candidates = {"0000000001"};
    r.vanishes = "0000000001";
    auto body = [&](client zk) -> asio::awaitable<void> {
        const leader_observer observer(zk, "/e");
        const leader_view view = co_await observer.next();
        CHECK(view.state == leader_state::nobody);
        CHECK(r.server.watched("/e", watch_kind::children));
        r.candidates = {"0000000002"};
        r.server.fire(node_event::children_changed, "/e");
        const leader_view next = co_await observer.next();
        CHECK(next.leader->path == candidate_node("0000000002"));
    };
    r.run(body);
}

TEST_CASE("observer: without a directory there is nobody until it comes", "[election]") {
    observed r;
    r.directory = false;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const leader_observer observer(zk, "/e");
        const leader_view view = co_await observer.next();
        CHECK(view.state == leader_state::nobody);
        CHECK(r.asked().back() == "exists /e");
        auto await_next = [&]() -> asio::awaitable<void> {
            const leader_view next = co_await observer.next();
            CHECK(next.leader->path == candidate_node("0000000001"));
        };
        const running waiting(r.loop.executor(), await_next());
        co_await next_turns(r.server);
        r.directory = true;
        r.server.fire(node_event::created, "/e");
        co_await r.server.until([&] { return r.server.watched("/e", watch_kind::children); });
        CHECK_FALSE(waiting.ended());  // an empty directory is no news
        r.candidates = {"0000000001"};
        r.server.fire(node_event::children_changed, "/e");
        const std::exception_ptr failed = co_await waiting.end();
        if (failed) std::rethrow_exception(failed);
    };
    r.run(body);
}

// Servers do not tell of its end.
TEST_CASE("observer: of a leader whose node it may not read the directory tells", "[election]") {
    observed r;
    r.candidates = {"0000000001"};
    r.readable = false;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const leader_observer observer(zk, "/e");
        const leader_view view = co_await observer.next();
        const std::string node = candidate_node("0000000001");
        CHECK(r.asked() == texts{"sync /e", "children /e", "get /e", "get " + node, "remove watch /e", "children /e",
                                 "exists " + node});
        REQUIRE(view.leader);
        CHECK(view.leader->token == fencing_token(1001));
        CHECK(view.leader->session_id == 77);
        CHECK_FALSE(view.leader->data);
        r.candidates = {"0000000002"};
        r.server.fire(node_event::children_changed, "/e");
        const leader_view next = co_await observer.next();
        CHECK(next.leader->token == fencing_token(1002));
        CHECK(r.core->watches() == 1);
    };
    r.run(body);
}

// CVE-2024-23944.
TEST_CASE("observer: a leader of whom servers tell nothing is known by the name of its node", "[election]") {
    observed r;
    r.candidates = {"0000000001"};
    r.readable = false;
    r.stat_needs_permission = true;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const leader_observer observer(zk, "/e");
        const leader_view view = co_await observer.next();
        REQUIRE(view.leader);
        CHECK(view.leader->path == candidate_node("0000000001"));
        CHECK(view.leader->token == fencing_token());
        CHECK(view.leader->session_id == 0);
        CHECK_FALSE(view.leader->data);
        r.candidates = {"0000000002"};
        r.server.fire(node_event::children_changed, "/e");
        const leader_view next = co_await observer.next();
        REQUIRE(next.leader);
        CHECK(next.leader->path == candidate_node("0000000002"));
        CHECK(next.leader->since > view.leader->since);
        CHECK(r.core->watches() == 1);
    };
    r.run(body);
}

TEST_CASE("observer: whichever answer is lost it asks again", "[election]") {
    const auto lost_one = GENERATE(0U, 1U, 2U, 3U, 4U);
    observed r(rig::quick().retry(retry_policy::never()));
    r.candidates = {"0000000001"};
    auto answer = r.server.answer;
    std::size_t asked = 0;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        const bool own = std::holds_alternative<exists_request>(q) && std::get<exists_request>(q).path == "/";
        if (!own && asked++ == lost_one) return lost();
        return answer(q);
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const leader_observer observer(zk, "/e");
        const leader_view view = co_await observer.next();
        CHECK(view.leader->path == candidate_node("0000000001"));
        CHECK(asked >= 3);
    };
    r.run(body);
}

TEST_CASE("observer: the end of its session is no news but the next look is behind a sync", "[election]") {
    observed r;
    r.candidates = {"0000000001"};
    auto body = [&](client zk) -> asio::awaitable<void> {
        const leader_observer observer(zk, "/e");
        co_await observer.next();
        r.asked();
        std::optional<leader_view> told;
        auto await_next = [&]() -> asio::awaitable<void> { told = co_await observer.next(); };
        const running waiting(r.loop.executor(), await_next());
        co_await next_turns(r.server);
        r.server.expire();
        co_await r.server.until(
            [&] { return r.server.opened.size() == 2 && r.server.watched(candidate_node("0000000001")); });
        CHECK(r.asked() == texts{"sync /e", "children /e", "get /e", "get " + candidate_node("0000000001")});
        CHECK_FALSE(waiting.ended());
        r.candidates = {"0000000002"};
        r.server.fire(node_event::removed, candidate_node("0000000001"));
        co_await waiting.end();
        REQUIRE(told);
        CHECK(told->leader->path == candidate_node("0000000002"));
    };
    r.run(body);
}

TEST_CASE("observer: a session that is not renewed ends it", "[election]") {
    observed r(rig::quick().renewal(session_renewal::none));
    r.candidates = {"0000000001"};
    auto body = [&](client zk) -> asio::awaitable<void> {
        const leader_observer observer(zk, "/e");
        co_await observer.next();
        r.server.expire();
        const std::error_code code = co_await code_of(observer.next());
        CHECK(code == errc::session_expired);
    };
    r.run(body);
}

// A third of the session timeout after the client has noticed.
TEST_CASE("observer: cut off it says so in time and tells the leader again afterwards", "[election]") {
    observed r(rig::quick().session_timeout(1500ms));
    r.server.session_timeout = 1500ms;
    r.candidates = {"0000000001"};
    auto body = [&](client zk) -> asio::awaitable<void> {
        const leader_observer observer(zk, "/e");
        const leader_view one = co_await observer.next();
        CHECK(one.state == leader_state::leader);
        r.server.reachable = false;
        r.server.drop();
        const auto began = boot_clock::now();
        const leader_view cut_off = co_await observer.next();
        const auto took = boot_clock::now() - began;
        CHECK(cut_off.state == leader_state::unknown);
        CHECK_FALSE(cut_off.leader);
        CHECK(took >= 499ms);
        CHECK(took < 1000ms);

        // It does not say so twice, and what was seen before does not count.
        std::optional<leader_view> told;
        auto await_next = [&]() -> asio::awaitable<void> { told = co_await observer.next(); };
        const running waiting(r.loop.executor(), await_next());
        co_await turns(20);
        CHECK_FALSE(waiting.ended());
        r.server.reachable = true;
        co_await waiting.end();
        REQUIRE(told);
        CHECK(*told == one);
        CHECK(told->leader->since == one.leader->since);
    };
    r.run(body);
}

TEST_CASE("observer: a connection that is soon back is no news", "[election]") {
    observed r(rig::quick().session_timeout(1500ms));
    r.server.session_timeout = 1500ms;
    r.candidates = {"0000000001"};
    auto body = [&](client zk) -> asio::awaitable<void> {
        const leader_observer observer(zk, "/e");
        co_await observer.next();
        std::optional<leader_view> told;
        auto await_next = [&]() -> asio::awaitable<void> { told = co_await observer.next(); };
        const running waiting(r.loop.executor(), await_next());
        // The wait for news, when all is well, is no silence: longer than a third of the session timeout.
        const auto long_after = boot_clock::now() + 600ms;
        auto later = [&]() -> asio::awaitable<bool> { co_return boot_clock::now() > long_after; };
        co_await eventually(later);
        for (std::size_t cuts = 2; cuts < 5; ++cuts) {
            co_await next_turns(r.server);
            r.server.drop();
            co_await r.server.until([&] { return r.server.connections == cuts; });
        }
        co_await next_turns(r.server);
        CHECK_FALSE(waiting.ended());
        r.candidates = {"0000000002"};
        r.server.fire(node_event::removed, candidate_node("0000000001"));
        co_await waiting.end();
        REQUIRE(told);
        CHECK(told->leader->path == candidate_node("0000000002"));
    };
    r.run(body);
}

TEST_CASE("observer: whoever asks late for what is long cut off is told so at once", "[election]") {
    observed r(rig::quick().session_timeout(3s));
    r.server.session_timeout = 3s;
    r.candidates = {"0000000001"};
    auto body = [&](client zk) -> asio::awaitable<void> {
        const leader_observer observer(zk, "/e");
        co_await observer.next();
        r.server.reachable = false;
        r.server.drop();
        co_await r.server.until([&] { return zk.state() != session_state::connected; });
        const auto long_after = boot_clock::now() + 1200ms;
        auto later = [&]() -> asio::awaitable<bool> { co_return boot_clock::now() > long_after; };
        co_await eventually(later);
        const auto began = boot_clock::now();
        const leader_view view = co_await observer.next();
        CHECK(view.state == leader_state::unknown);
        CHECK(boot_clock::now() - began < 700ms);
    };
    r.run(body);
}

TEST_CASE("observer: without any server it does not know", "[election]") {
    observed r(rig::quick().session_timeout(600ms));
    r.server.reachable = false;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const leader_observer observer(zk, "/e");
        const leader_view view = co_await observer.next();
        CHECK(view.state == leader_state::unknown);
    };
    r.run(body);
}
