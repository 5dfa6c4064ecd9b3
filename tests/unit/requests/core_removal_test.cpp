#include "support/texts.hpp"
#include "unit/support/rig.hpp"

#include "unit/support/error_of.hpp"

#include <zkasio/recipe/toolbox.hpp>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

// Answers removals with these, one after another, and with success afterwards.
fake_server::answer_function removals_end_with(std::vector<reply> replies) {
    return [replies, next = std::size_t{0}](const request& q) mutable {
        if (!std::holds_alternative<remove_request>(q) || next == replies.size()) return reply{};
        return replies[next++];
    };
}

}  // namespace

TEST_CASE("core: a removal is sent again until its outcome is certain", "[core][removal]") {
    rig r;
    r.server.answer = removals_end_with({lost(), lost(zk_errc::operation_timeout), lost(zk_errc::runtime_inconsistency),
                                         lost(zk_errc::system_error), refusal(zk_errc::throttled)});
    auto body = [&](client zk) -> asio::awaitable<void> {
        const pending_removal removal = toolbox(zk).ensure_removed("/a");
        co_await removal.result();
        CHECK(r.server.count("remove /a") == 6);
    };
    r.run(body);
}

TEST_CASE("core: that the node is gone already ends a removal well", "[core][removal]") {
    rig r;
    r.server.answer = removals_end_with({lost(), refusal(zk_errc::no_node)});
    auto body = [&](client zk) -> asio::awaitable<void> {
        const pending_removal removal = toolbox(zk).ensure_removed("/a");
        co_await removal.result();
        CHECK(r.server.count("remove /a") == 2);
        // For an ordinary one it is an error.
        r.server.answer = removals_end_with({refusal(zk_errc::no_node)});
        const std::error_code code = co_await code_of(zk.remove("/a"));
        CHECK(code == zk_errc::no_node);
    };
    r.run(body);
}

TEST_CASE("core: a definite answer ends a removal", "[core][removal]") {
    const zk_errc answer =
        GENERATE(zk_errc::not_empty, zk_errc::no_auth, zk_errc::bad_arguments, zk_errc::not_read_only);
    rig r;
    r.server.answer = removals_end_with({refusal(answer)});
    auto body = [&](client zk) -> asio::awaitable<void> {
        const pending_removal removal = toolbox(zk).ensure_removed("/a");
        const std::error_code code = co_await code_of(removal.result());
        CHECK(code == answer);
        CHECK(r.server.count("remove /a") == 1);
    };
    r.run(body);
}

TEST_CASE("core: a removal goes on over reconnects, and waits for them as long as it takes", "[core][removal]") {
    rig r(rig::quick().connection_timeout(10ms));
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        if (std::holds_alternative<remove_request>(q)) {
            r.server.reachable = false;
            r.server.drop();
            return std::nullopt;
        }
        return reply{};
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        toolbox(zk).ensure_removed("/a");  // nobody waits for it
        const pending_removal removal = toolbox(zk).ensure_removed("/b");
        co_await r.server.until([&] { return zk.state() == session_state::suspended; });
        const std::error_code other = co_await code_of(zk.get("/c"));
        CHECK(other == errc::not_connected);
        CHECK(r.core->pending_operations() == 2);
        r.server.answer = [](const request&) { return reply{}; };
        r.server.reachable = true;
        co_await removal.result();
        CHECK(r.server.count("remove /a") == 2);
        CHECK(r.server.count("remove /b") == 2);
    };
    r.run(body);
}

TEST_CASE("core: a removal ends with its session", "[core][removal]") {
    rig r;
    r.server.answer = [](const request&) { return std::nullopt; };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session first = co_await zk.current_session();
        const pending_removal of_session = toolbox(first).ensure_removed("/a"),
                              of_client = toolbox(zk).ensure_removed("/b");
        co_await r.server.until([&] { return r.server.requests.size() == 2; });
        r.server.expire();
        for (const pending_removal* p : {&of_session, &of_client}) {
            const std::error_code code = co_await code_of(p->result());
            CHECK(code == errc::session_expired);
        }
        co_await zk.connected();
        const pending_removal late = toolbox(first).ensure_removed("/c");
        const std::error_code code = co_await code_of(late.result());
        CHECK(code == errc::session_expired);
        CHECK(r.server.requests.size() == 2);
    };
    r.run(body);
}

TEST_CASE("core: a removal under way keeps its place among later requests", "[core][removal]") {
    rig r;
    bool drop = true;
    r.server.answer = [&](const request&) -> std::optional<reply> {
        if (!std::exchange(drop, false)) return reply{};
        r.server.drop();
        return std::nullopt;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const pending_removal removal = toolbox(zk).ensure_removed("/a");
        co_await r.server.until([&] { return zk.state() == session_state::suspended; });
        co_await zk.get("/b");
        CHECK(r.server.texts() == texts{"remove /a", "remove /a", "get /b"});
        co_await removal.result();
    };
    r.run(body);
}

TEST_CASE("core: what was asked of a request that was only started", "[core][removal]") {
    rig r;
    r.server.answer = [](const request& q) {
        reply a;
        a.path = std::string(path_of(q)) + "0000000003";
        a.stat.czxid = 17;
        a.children = {"x", "y"};
        return a;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        create_options sequential;
        sequential.mode(create_mode::ephemeral_sequential);
        const pending_create creating = toolbox(zk).start_create("/a/n-", "data", sequential);
        const pending_children listing = toolbox(zk).start_children("/a");
        co_await creating.answered();
        const created node = co_await creating.result();
        CHECK(node.path == "/a/n-0000000003");
        CHECK(node.stat.czxid == 17);
        const node_children found = co_await listing.result();
        CHECK(found.names == texts{"x", "y"});
        CHECK(code_thrown_by([&] { toolbox(zk).start_create("bad", "", sequential); }) == errc::invalid_path);
        CHECK(code_thrown_by([&] { toolbox(zk).start_children(""); }) == errc::invalid_path);
        CHECK(code_thrown_by([&] { toolbox(zk).ensure_removed("/"); }) == errc::invalid_argument);
    };
    r.run(body);
}

TEST_CASE("core: a removal that a server refuses, for having too much to do, is sent again after a pause",
          "[core][removal]") {
    constexpr auto pause = 60ms;
    rig r(rig::quick().retry(retry_policy::n_times(1, pause)));
    r.server.answer = removals_end_with({refusal(zk_errc::throttled), refusal(zk_errc::throttled)});
    auto body = [&](client zk) -> asio::awaitable<void> {
        const pending_removal removal = toolbox(zk).ensure_removed("/a");
        co_await r.server.until([&] { return r.server.requests.size() == 1; });
        co_await zk.get("/b");  // others do not wait for that
        CHECK(r.server.texts() == texts{"remove /a", "get /b"});
        co_await removal.result();
        REQUIRE(r.server.requests.size() == 4);
        CHECK(r.server.requests[2].at - r.server.requests[0].at >= pause);
        CHECK(r.server.requests[3].at - r.server.requests[2].at >= pause);
    };
    r.run(body);
}

TEST_CASE("core: no more requests are under way than a server takes, also of those that are sent again",
          "[core][removal]") {
    rig r;
    r.server.session_timeout = 800ms;
    r.server.answer = [](const request&) { return std::nullopt; };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        std::vector<pending_removal> removals;
        for (int i = 0; i < 2500; ++i) removals.push_back(toolbox(zk).ensure_removed("/a" + std::to_string(i)));
        co_await r.server.until([&] { return r.server.requests.size() >= 1000; });
        co_await next_turns(r.server);
        CHECK(r.server.requests.size() == 1000);
        // A heartbeat does not stand in that line.
        const session_hold hold = s.hold("/held");
        co_await r.server.until([&] { return r.server.requests.size() > 1000; });
        CHECK(operation_name(r.server.requests.back().what) == "multi");
        CHECK(r.server.requests.size() == 1001);
        r.server.requests.clear();
        r.server.drop();
        co_await r.server.until([&] { return r.server.requests.size() >= 1000; });
        co_await next_turns(r.server);
        CHECK(r.server.requests.size() <= 1001);
        r.server.answer = [](const request&) { return reply{}; };
        r.server.reply_to_all();
        for (const pending_removal& removal : removals) co_await removal.result();
        std::vector<std::string> order;  // the oldest first, whether sent before or not
        for (const auto& q : r.server.requests)
            if (operation_name(q.what) == "remove") order.push_back(q.text);
        REQUIRE(order.size() == 2500);
        for (int i = 0; i < 2500; ++i) REQUIRE(order[static_cast<std::size_t>(i)] == "remove /a" + std::to_string(i));
    };
    r.run(body);
}

TEST_CASE("core: that a node may not be removed is logged, also when nobody asks", "[core][removal]") {
    std::vector<std::string> lines;
    rig r(rig::quick().log([&](std::string_view line) { lines.emplace_back(line); }));
    r.server.answer = removals_end_with({refusal(zk_errc::no_auth)});
    auto body = [&](client zk) -> asio::awaitable<void> {
        toolbox(zk).ensure_removed("/a");
        co_await r.server.until([&] { return r.server.requests.size() == 1; });
        co_await zk.get("/b");
        CHECK(std::count(lines.begin(), lines.end(), "remove /a: no permission") == 1);
    };
    r.run(body);
}

TEST_CASE("core: a create that was only started can be taken back before it is sent", "[core]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        auto on_the_clients_strand = [&]() -> asio::awaitable<void> {
            const pending_create creating = toolbox(zk).start_create("/a", "", create_options());
            CHECK(creating.withdraw());
            CHECK_FALSE(creating.withdraw());
            std::optional<error> failed;
            try {
                co_await creating.result();
            } catch (const error& e) {
                failed = e;
            }
            REQUIRE(failed);
            CHECK(failed->code() == condition::cancelled);
            CHECK_FALSE(failed->outcome_unknown());
            const pending_create sent = toolbox(zk).start_create("/b", "", create_options());
            co_await r.server.until([&] { return r.server.count("create /b") == 1; });
            CHECK_FALSE(sent.withdraw());
            co_await sent.result();
        };
        co_await asio::co_spawn(zk.get_executor(), on_the_clients_strand(), asio::use_awaitable);
        CHECK(r.server.count("create /a") == 0);
    };
    r.run(body);
}

TEST_CASE(
    "operations: the node of a protected create whose answer was lost is found, whatever the server calls its owner",
    "[operations]") {
    // A container, and a node with a time to live of a second: EphemeralType of the servers.
    const std::int64_t owner =
        GENERATE(std::int64_t{0}, std::numeric_limits<std::int64_t>::min(), std::int64_t{-0x00fffffffffffc18});
    rig r;
    r.server.nodes_are_ours = false;
    std::string name;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        reply a;
        if (const auto* c = std::get_if<create_request>(&q)) {
            name = c->path.substr(3);
            return lost();
        }
        if (std::holds_alternative<children_request>(q)) a.children = {"x", name};
        a.stat.ephemeral_owner = owner;
        return a;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        create_options options;
        options.mode(create_mode::container).protection();
        const created node = co_await zk.create("/d/a", "", options);
        CHECK(node.path == "/d/" + name);
        CHECK(std::count_if(r.server.requests.begin(), r.server.requests.end(), [](const auto& q) {
                  return operation_name(q.what) == "remove";
              }) == 0);
    };
    r.run(body);
}
