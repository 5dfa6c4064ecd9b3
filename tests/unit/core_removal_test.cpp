#include "unit/rig.hpp"

#include "unit/error_of.hpp"

#include <optional>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

using texts = std::vector<std::string>;

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
        const pending_removal removal = zk.ensure_removed("/a");
        co_await removal.result();
        CHECK(r.server.count("remove /a") == 6);
    };
    r.run(body);
}

TEST_CASE("core: that the node is gone already ends a removal well", "[core][removal]") {
    rig r;
    r.server.answer = removals_end_with({lost(), refusal(zk_errc::no_node)});
    auto body = [&](client zk) -> asio::awaitable<void> {
        const pending_removal removal = zk.ensure_removed("/a");
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
        const pending_removal removal = zk.ensure_removed("/a");
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
        zk.ensure_removed("/a");  // nobody waits for it
        const pending_removal removal = zk.ensure_removed("/b");
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
        const pending_removal of_session = first.ensure_removed("/a"), of_client = zk.ensure_removed("/b");
        co_await r.server.until([&] { return r.server.requests.size() == 2; });
        r.server.expire();
        for (const pending_removal* p : {&of_session, &of_client}) {
            const std::error_code code = co_await code_of(p->result());
            CHECK(code == errc::session_expired);
        }
        co_await zk.connected();
        const pending_removal late = first.ensure_removed("/c");
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
        const pending_removal removal = zk.ensure_removed("/a");
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
        const pending_create creating = zk.start_create("/a/n-", "data", sequential);
        const pending_children listing = zk.start_children("/a");
        co_await creating.answered();
        const created node = co_await creating.result();
        CHECK(node.path == "/a/n-0000000003");
        CHECK(node.stat.czxid == 17);
        const node_children found = co_await listing.result();
        CHECK(found.names == texts{"x", "y"});
        CHECK(code_thrown_by([&] { zk.start_create("bad", "", sequential); }) == errc::invalid_path);
        CHECK(code_thrown_by([&] { zk.start_children(""); }) == errc::invalid_path);
        CHECK(code_thrown_by([&] { zk.ensure_removed("/"); }) == errc::invalid_argument);
    };
    r.run(body);
}
