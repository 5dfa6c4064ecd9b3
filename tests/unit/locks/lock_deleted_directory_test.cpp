// What a queue knows, when an operator has deleted the directory of a lock, or the node of its owner.

#include "unit/support/fake_directory.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/path.hpp>

#include <optional>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

/// Plays a directory that numbers our nodes from 0 on, and in which `others` may stand. An operator may delete our
/// first.
struct numbered_nodes {
    std::vector<std::string> created, others;
    bool first_is_gone = false;

    /// Nothing: of what is neither a create nor a listing.
    std::optional<reply> operator()(const request& q) {
        reply a;
        if (const auto* c = std::get_if<create_request>(&q)) {
            a.path = c->path + "000000000" + std::to_string(created.size());
            created.push_back(a.path);
            a.stat.czxid = 7;
            return a;
        }
        if (!std::holds_alternative<children_request>(q)) return std::nullopt;
        a.children = others;
        for (std::size_t i = first_is_gone; i < created.size(); ++i) a.children.emplace_back(node_name(created[i]));
        return a;
    }
};

}  // namespace

// An operator has deleted the directory of a lock, and the owner does not know it yet. In the new directory somebody
// else is the first, and the next of ours gets just the number that would come behind the owner's in the old one. Fails
// without G23, G27 and G27.
TEST_CASE("lock: whoever is handed a lock that its owner did not have any more loses it", "[queue]") {
    rig r;
    int removals = 0, listings = 0;
    numbered_nodes nodes;
    const auto overtaken = GENERATE(true, false);
    const auto readable = GENERATE(true, false);
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        reply a = nodes(q).value_or(reply());
        if (std::holds_alternative<children_request>(q)) {
            ++listings;
            if (!readable && removals > 0) a.code = zk_errc::no_auth;
        } else if (const auto* m = std::get_if<multi_request>(&q);
                   m && std::holds_alternative<remove_request>(m->ops.back())) {
            ++removals;
            nodes.first_is_gone = true;
            if (overtaken) nodes.others = {"_c_x-lock-0000000000"};
            a.code = zk_errc::no_node;
            a.results.resize(m->ops.size());
            for (multi_result& one : a.results) one.code = zk_errc::runtime_inconsistency;
            a.results.front().code = {};
            a.results.back().code = zk_errc::no_node;
        }
        return a;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const mutex lock(zk, "/l");
        std::optional<lock_guard> second;
        lock_guard first = co_await lock.acquire();
        auto acquire = [&]() -> asio::awaitable<void> { second.emplace(co_await lock.acquire()); };
        const running acquiring(r.loop.executor(), acquire());
        co_await r.server.until([&] { return nodes.created.size() == 2; });
        co_await next_turns(r.server);
        co_await first.release();
        co_await acquiring.end();
        co_await r.server.until([&] { return removals == 1 && listings == 2; });
        co_await next_turns(r.server);
        const bool keeps = !overtaken && readable;
        CHECK(second->held() == keeps);
        if (!keeps) CHECK(second->reason() == loss_reason::node_deleted);
        co_await second->release();
    };
    r.run(body);
}

// The same where the old owner had no heir: who is let in while its removal is under way, for the last one between them
// has gone. Fails without G19 and G27.
TEST_CASE("lock: whoever comes to a lock behind an owner that did not have it any more loses it", "[queue]") {
    const std::string between = "_c_x-lock-0000000001";
    rig r;
    directory d(r.server, "0000000000");
    r.server.answer = [plays = r.server.answer](const request& q) -> std::optional<reply> {
        if (!std::holds_alternative<remove_request>(q)) return plays(q);
        return std::nullopt;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const mutex lock(zk, "/l");
        lock_guard first = co_await lock.acquire();
        d.others = {std::string(node_name(first.path())), between};
        d.next("0000000002");
        std::optional<lock_guard> second;
        auto acquire = [&]() -> asio::awaitable<void> { second.emplace(co_await lock.acquire()); };
        const running acquiring(r.loop.executor(), acquire());
        co_await r.server.until([&] { return r.server.watched("/l/" + between); });
        co_await next_turns(r.server);
        running releasing(r.loop.executor(), first.release());
        co_await r.server.until([&] { return std::holds_alternative<remove_request>(r.server.requests.back().what); });
        const op_id removal = r.server.requests.back().id;
        r.server.fire(node_event::removed, "/l/" + between);
        co_await acquiring.end();
        REQUIRE(second->held());
        const bool overtaken = GENERATE(true, false);
        d.others.clear();
        if (overtaken) d.others = {"_c_y-lock-0000000001"};
        const auto listings = r.server.count("children /l");
        r.server.reply_to(removal, refusal(zk_errc::no_node));
        co_await releasing.end();
        co_await r.server.until([&] { return r.server.count("children /l") > listings; });
        co_await next_turns(r.server);
        CHECK(second->held() == !overtaken);
        r.server.answer = [](const request&) { return reply(); };
        r.server.reply_to_all();  // to the removal of what was lost
        co_await second->release();
    };
    r.run(body);
}

// The same with readers, who let each other in without a hand-over.
// Fails without G32.
TEST_CASE("lock: a reader who comes to a reader that has no node any more looks for writers", "[queue]") {
    rig r;
    numbered_nodes nodes;
    bool missing = false;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        reply a = nodes(q).value_or(reply());
        const auto* g = std::get_if<get_request>(&q);
        if (g && missing && g->path == nodes.created.front()) a.code = zk_errc::no_node;
        return a;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const shared_mutex lock(zk, "/l");
        const lock_guard first = co_await lock.acquire_shared();
        SECTION("it is said so when the newcomer asks for that node") { missing = true; }
        SECTION("its watch has told") {
            const lock_guard another = co_await lock.acquire_shared();
            REQUIRE(r.server.watched(nodes.created.front()));
            r.server.fire(node_event::removed, nodes.created.front());
            co_await first.lost();
        }
        nodes.first_is_gone = true;
        nodes.others = {"_c_x-__WRIT__0000000000"};
        auto acquire = [&]() -> asio::awaitable<void> { (void)co_await lock.acquire_shared(); };
        running acquiring(r.loop.executor(), acquire());
        co_await r.server.until([&] { return r.server.watched("/l/_c_x-__WRIT__0000000000") || acquiring.ended(); });
        CHECK_FALSE(acquiring.ended());
        CHECK(first.reason() == loss_reason::node_deleted);
        acquiring.cancel();
        co_await acquiring.end();
    };
    r.run(body);
}

// Fails without G5.
TEST_CASE("lock: whoever finds no directory believes nothing of what was known of it", "[queue]") {
    const std::string theirs = "_c_x-lock-0000000000";
    rig r;
    numbered_nodes nodes;
    bool directory_is_gone = false;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        const auto* c = std::get_if<create_request>(&q);
        if (c && c->path == "/l") {
            directory_is_gone = false;
            return reply();
        }
        if (c && directory_is_gone) return refusal(zk_errc::no_node);
        return nodes(q).value_or(reply());
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const mutex lock(zk, "/l");
        const lock_guard first = co_await lock.acquire();
        directory_is_gone = nodes.first_is_gone = true;
        nodes.others = {
            theirs};  // the first in the new directory: ours will have just the number that follows the old owner's
        auto acquire = [&]() -> asio::awaitable<void> { (void)co_await lock.acquire(); };
        running acquiring(r.loop.executor(), acquire());
        co_await r.server.until([&] { return nodes.created.size() == 2; });
        for (int turns = 0; turns < 10; ++turns) co_await next_turns(r.server);
        CHECK(r.server.watched("/l/" + theirs));
        CHECK_FALSE(first.held());
        acquiring.cancel();
        co_await acquiring.end();
    };
    r.run(body);
}
