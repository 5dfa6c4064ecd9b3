#include "unit/fake_tree.hpp"
#include "unit/rig.hpp"

#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/path.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

/// Plays the directory of a lock in which we are the last: a create makes our node, a listing shows `others` and that
/// one.
class directory {
public:
    directory(fake_server& server, std::string our_number) : number_(std::move(our_number)) {
        server.answer = [this](const request& q) -> std::optional<reply> {
            reply r;
            if (const auto* c = std::get_if<create_request>(&q)) {
                ours = r.path = c->path + number_;
                r.stat.czxid = 7;
                if (hold_create) return std::nullopt;
            } else if (std::holds_alternative<children_request>(q)) {
                r.children = others;
                if (!ours.empty()) r.children.emplace_back(node_name(ours));
            }
            return r;
        };
    }

    std::vector<std::string> others;
    std::string ours;
    bool hold_create = false;

    /// Another is created, behind those that there are.
    void next(std::string our_number) { number_ = std::move(our_number); }

private:
    std::string number_;
};

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

// A first acknowledged write may prove that the session has lived, and yet come too late to promise anything.
TEST_CASE("lock: an acquire waits until the lease covers it", "[queue]") {
    constexpr auto T = 1s;
    rig r;
    r.server.session_timeout = T;
    directory d(r.server, "0000000000");
    d.hold_create = true;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const mutex lock(zk, "/l");
        bool held = false;
        auto acquire = [&]() -> asio::awaitable<void> {
            const lock_guard guard = co_await lock.acquire();
            held = guard.held();
        };
        const running acquiring(r.loop.executor(), acquire());
        co_await r.server.until([&] { return !d.ours.empty(); });
        const auto create = std::find_if(r.server.requests.begin(), r.server.requests.end(), [](const auto& q) {
            return std::holds_alternative<create_request>(q.what);
        });
        const auto late = create->at + T + T / 5;
        co_await r.server.until([&] { return boot_clock::now() > late; });
        reply created;
        created.path = d.ours;
        r.server.reply_to(create->id, created);
        const std::error_code code = co_await acquiring.code();
        CHECK(code == std::error_code());
        CHECK(held);
    };
    r.run(body);
}

// An operator has deleted the directory of a lock, and the owner does not know it yet. In the new directory somebody
// else is the first, and the next of ours gets just the number that would come behind the owner's in the old one. Fails
// without G23, G27 and G28.
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
        auto acquire = [&]() -> asio::awaitable<void> { co_await lock.acquire_shared(); };
        running acquiring(r.loop.executor(), acquire());
        co_await r.server.until([&] { return r.server.watched("/l/_c_x-__WRIT__0000000000") || acquiring.ended(); });
        CHECK_FALSE(acquiring.ended());
        CHECK(first.reason() == loss_reason::node_deleted);
        acquiring.cancel();
        co_await acquiring.end();
    };
    r.run(body);
}

TEST_CASE("lock: readers who come to a reader that has its node need no listing", "[queue]") {
    rig r;
    directory d(r.server, "0000000000");
    auto body = [&](client zk) -> asio::awaitable<void> {
        const shared_mutex lock(zk, "/l");
        const lock_guard first = co_await lock.acquire_shared();
        const auto listings = [&] {
            return std::count_if(r.server.requests.begin(), r.server.requests.end(), [](const auto& q) {
                return std::holds_alternative<children_request>(q.what);
            });
        };
        const auto before = listings();
        d.next("0000000001");
        const lock_guard second = co_await lock.acquire_shared();
        d.next("0000000002");
        const lock_guard third = co_await lock.acquire_shared();
        CHECK((second.held() && third.held()));
        CHECK(listings() == before);
    };
    r.run(body);
}

// Fails without G33.
TEST_CASE("lock: after a downgrade only a listing lets in the readers behind it", "[queue]") {
    rig r;
    fake_tree tree;
    r.server.answer = [&](const request& q) -> std::optional<reply> { return tree(q); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const shared_mutex lock(zk, "/l");
        lock_guard writing = co_await lock.acquire();
        const auto token = writing.token();
        std::optional<lock_guard> behind;
        auto read = [&]() -> asio::awaitable<void> { behind.emplace(co_await lock.acquire_shared()); };
        const running reading(r.loop.executor(), read());
        co_await r.server.until([&] { return tree.size() == 2; });
        co_await next_turns(r.server);
        const auto listings = r.server.count("children /l");
        const lock_guard reader = co_await lock.downgrade(std::move(writing));
        CHECK(reader.token() == token);
        co_await reading.end();
        CHECK(behind->held());
        CHECK(r.server.count("children /l") == listings + 1);
    };
    r.run(body);
}

// Fails without G26.
TEST_CASE("lock: one hand-over lets in as many readers as a transaction has room for", "[queue]") {
    const std::string directory = '/' + std::string(200, 'l');
    constexpr std::size_t readers = 600;  // 150'000 bytes of paths
    rig r;
    fake_tree tree;
    std::size_t most_checks = 0;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        const auto* m = std::get_if<multi_request>(&q);
        if (m && std::holds_alternative<remove_request>(m->ops.back()))
            most_checks = std::max(most_checks, m->ops.size() - 1);
        return tree(q);
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const shared_mutex lock(zk, directory);
        lock_guard writing = co_await lock.acquire();
        std::vector<lock_guard> guards;
        auto read = [&]() -> asio::awaitable<void> { guards.push_back(co_await lock.acquire_shared()); };
        std::vector<running> all;
        for (std::size_t i = 0; i < readers; ++i) all.emplace_back(r.loop.executor(), read());
        co_await r.server.until([&] { return tree.size() == readers + 1; });
        co_await next_turns(r.server);
        const auto listings = r.server.count("children " + directory);
        co_await writing.release();
        for (const running& one : all) co_await one.end();
        CHECK(guards.size() == readers);
        CHECK(most_checks > 300);
        CHECK(most_checks < 500);
        CHECK(r.server.count("children " + directory) > listings);  // the others
        guards.clear();
        co_await r.server.until([&] { return tree.size() == 0; });
    };
    r.run(body);
}

// Fails without G16.
TEST_CASE("lock: as long as a listing shows a node that is being removed, no other one is asked for", "[queue]") {
    rig r;
    fake_tree tree;
    bool removals_take_long = true;
    std::optional<op_id> removal;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        if (removals_take_long && std::holds_alternative<remove_request>(q)) return std::nullopt;
        return tree(q);
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const shared_mutex lock(zk, "/l");
        lock_guard reading = co_await lock.acquire_shared();
        std::optional<lock_guard> written;
        auto write = [&]() -> asio::awaitable<void> { written.emplace(co_await lock.acquire()); };
        const running writing(r.loop.executor(), write());
        co_await r.server.until([&] { return tree.size() == 2; });
        co_await next_turns(r.server);
        const auto listings = r.server.count("children /l");
        const std::string path = reading.path();
        running releasing(r.loop.executor(), reading.release());
        co_await r.server.until([&] { return r.server.count("children /l") > listings; });
        for (int turns = 0; turns < 10; ++turns) co_await next_turns(r.server);
        CHECK(r.server.count("children /l") == listings + 1);
        CHECK_FALSE(writing.ended());
        for (const auto& q : r.server.requests)
            if (std::holds_alternative<remove_request>(q.what)) removal = q.id;
        removals_take_long = false;
        tree(remove_request{path});
        r.server.reply_to(removal.value(), reply());
        co_await writing.end();
        CHECK(written->held());
        CHECK(r.server.count("children /l") == listings + 2);
        co_await releasing.end();
        co_await written->release();
    };
    r.run(body);
}

// Fails without G6.
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
        auto acquire = [&]() -> asio::awaitable<void> { co_await lock.acquire(); };
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

// By then it has long been watching its own node, which for a lock without readers would be proof enough.
// Fails without G21.
TEST_CASE("lock: when the last node ahead of a writer goes, a reader may have come in its place", "[queue]") {
    const std::string writer = "_c_x-__WRIT__0000000001", reader = "_c_y-__READ__0000000001";
    rig r;
    r.server.session_timeout = 400ms;
    directory d(r.server, "0000000002");
    d.others = {writer};
    auto body = [&](client zk) -> asio::awaitable<void> {
        const shared_mutex lock(zk, "/l");
        auto acquire = [&]() -> asio::awaitable<void> { co_await lock.acquire(); };
        running acquiring(r.loop.executor(), acquire());
        co_await r.server.until(
            [&] { return !d.ours.empty() && r.server.watched(d.ours) && r.server.watched("/l/" + writer); });
        d.others = {reader};
        r.server.fire(node_event::removed, "/l/" + writer);
        co_await r.server.until([&] { return r.server.watched("/l/" + reader) || acquiring.ended(); });
        CHECK_FALSE(acquiring.ended());
        acquiring.cancel();
        co_await acquiring.end();
    };
    r.run(body);
}

// Fails without G11, G17 and G31.
TEST_CASE("lock: whoever waits behind a reader that is about to join another leaves its node alone until then",
          "[queue]") {
    rig r;
    fake_tree tree;
    std::string joined;
    std::optional<op_id> look;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        if (const auto* m = std::get_if<multi_request>(&q); m && m->ops.size() == 2)
            if (const auto* c = std::get_if<create_request>(&m->ops.back())) joined = c->path;
        const auto* e = std::get_if<exists_request>(&q);
        if (e && e->path == joined && !look) return std::nullopt;
        return tree(q);
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const shared_mutex lock(zk, "/l"), impatient(zk, "/l", shared_mutex_options().prefer_readers());
        lock_guard reading = co_await lock.acquire_shared();
        std::optional<lock_guard> written, read;
        auto write = [&]() -> asio::awaitable<void> { written.emplace(co_await lock.acquire()); };
        const running writing(r.loop.executor(), write());
        co_await r.server.until([&] { return tree.size() == 2; });
        auto join = [&]() -> asio::awaitable<void> { read.emplace(co_await impatient.acquire_shared()); };
        running joining(r.loop.executor(), join());
        co_await r.server.until([&] { return !joined.empty() && r.server.texts().back() == "exists " + joined; });
        look = r.server.requests.back().id;
        const auto listings = r.server.count("children /l");
        co_await reading.release();
        co_await r.server.until([&] { return r.server.count("children /l") > listings; });
        co_await next_turns(r.server);
        CHECK_FALSE(r.server.watched(joined));
        CHECK_FALSE(writing.ended());
        SECTION("it is there") {
            r.server.reply_to(*look, tree(exists_request{joined, {}}));
            co_await joining.end();
            co_await next_turns(r.server);
            CHECK_FALSE(writing.ended());
            co_await read->release();
            co_await writing.end();
            co_await written->release();
        }
        SECTION("somebody has deleted it") {
            tree(remove_request{joined});
            r.server.reply_to(*look, refusal(zk_errc::no_node));
            co_await writing.end();
            co_await next_turns(r.server);
            CHECK_FALSE(joining.ended());
            co_await written->release();
            co_await joining.end();
            co_await read->release();
        }
        SECTION("somebody has deleted it, and nobody wants it") {
            tree(remove_request{joined});
            joining.cancel();
            co_await joining.end();
            r.server.reply_to(*look, refusal(zk_errc::no_node));
            co_await writing.end();
            co_await written->release();
        }
    };
    r.run(body);
}

TEST_CASE("lock: an observer is told where it stands also when the acquire starts over", "[queue]") {
    constexpr auto T = 300ms;
    rig r;
    r.server.session_timeout = T;
    fake_tree tree;
    const std::string other = "/l/_c_00000000-0000-4000-8000-000000000001-lock-0000000001";
    std::string first;
    bool sent = false;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        if (is_heartbeat(q) &&
            !tree.has(other)) {  // it has the lock, without a lease yet, and an operator deletes its node
            tree(remove_request{first});
            tree.create_as(other, 77);
        }
        reply a = tree(q);
        if (!std::holds_alternative<create_request>(q) || std::exchange(sent, true)) return a;
        first = a.path;
        return std::nullopt;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const mutex lock(zk, "/l");
        std::vector<queue_position> told;
        acquire_options how;
        how.on_position([&](const queue_position& p) { told.push_back(p); });
        auto acquire = [&]() -> asio::awaitable<void> { co_await lock.acquire(how); };
        running acquiring(r.loop.executor(), acquire());
        co_await r.server.until([&] { return sent && r.server.count("children /l") > 0; });
        co_await next_turns(r.server);
        const auto create = std::find_if(r.server.requests.begin(), r.server.requests.end(), [](const auto& q) {
            return std::holds_alternative<create_request>(q.what);
        });
        const auto late = create->at + T + T / 5;
        co_await r.server.until([&] { return boot_clock::now() > late; });
        reply created;
        created.path = first;
        r.server.reply_to(create->id, created);  // too late for a lease
        co_await r.server.until([&] { return r.server.watched(other); });
        co_await next_turns(r.server);
        REQUIRE(told.size() == 1);
        CHECK(told.back().ahead == 1);
        CHECK(told.back().predecessor == other);
        acquiring.cancel();
        co_await acquiring.end();
    };
    r.run(body);
}

TEST_CASE("lock: an observer is not told anything after the acquire has ended", "[queue]") {
    rig r;
    fake_tree tree;
    tree.create_as("/l/_c_00000000-0000-4000-8000-000000000001-lock-0000000001", 77);
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        if (std::holds_alternative<children_request>(q)) return std::nullopt;
        return tree(q);
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const mutex lock(zk, "/l");
        int told = 0;
        auto acquire = [&]() -> asio::awaitable<void> {
            co_await lock.acquire(acquire_options().on_position([&](const queue_position&) { ++told; }));
        };
        const running acquiring(r.loop.executor(), acquire());
        co_await r.server.until([&] { return tree.size() == 2 && r.server.count("children /l") > 0; });
        co_await next_turns(r.server);
        const bool in_time = GENERATE(true, false);
        r.server.reply_to(r.server.requests.back().id, tree(children_request{"/l", {}}));
        if (in_time) co_await r.server.until([&] { return told > 0; });
        r.server.expire();
        const std::error_code code = co_await acquiring.code();
        CHECK(code == condition::session_ended);
        co_await next_turns(r.server);
        CHECK(told == in_time);
    };
    r.run(body);
}

TEST_CASE("semaphore: whoever is being served notices that its turn is over, also when the lease has ended in between",
          "[queue]") {
    const std::string theirs = "/s/leases/_c_00000000-0000-4000-8000-000000000001-lease-0000000001";
    rig r;
    r.server.session_timeout = 300ms;
    fake_tree tree;
    tree.create_as(theirs, 77);
    bool stalled = true;
    std::string turn;
    std::size_t looks = 0;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        if (stalled && is_heartbeat(q)) return std::nullopt;
        if (const auto* e = std::get_if<exists_request>(&q); e && e->path == turn) ++looks;
        reply a = tree(q);
        if (const auto* c = std::get_if<create_request>(&q); c && c->path.starts_with("/s/locks/") && turn.empty())
            turn = a.path;
        return a;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const semaphore s(zk, "/s", permits::fixed(1));
        auto acquire = [&]() -> asio::awaitable<void> { co_await s.acquire(); };
        const running acquiring(r.loop.executor(), acquire());
        co_await r.server.until([&] { return looks > 0 && r.server.watched(turn); });
        CHECK(tree.size() == 3);
        stalled = false;
        tree(remove_request{turn});
        r.server.fire(node_event::removed, turn);
        co_await r.server.until(
            [&] { return tree.size() == 3; });  // its lease is given back; in the next turn there is another
        tree(remove_request{theirs});
        r.server.fire(node_event::children_changed, "/s/leases");
        const std::error_code code = co_await acquiring.code();
        CHECK(code == std::error_code());
    };
    r.run(body);
}

TEST_CASE("semaphore: whoever is being served waits on through an outage that its turn outlives", "[queue]") {
    const std::string theirs = "/s/leases/_c_00000000-0000-4000-8000-000000000001-lease-0000000001";
    rig r(rig::quick().connection_timeout(30ms).suspension(suspension_policy::lose));
    r.server.session_timeout = 10s;
    fake_tree tree;
    tree.create_as(theirs, 77);
    r.server.answer = [&](const request& q) -> std::optional<reply> { return tree(q); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const semaphore s(zk, "/s", permits::fixed(1));
        auto acquire = [&]() -> asio::awaitable<void> { co_await s.acquire(); };
        const running acquiring(r.loop.executor(), acquire());
        co_await r.server.until([&] { return r.server.watched("/s/leases", watch_kind::children); });
        co_await next_turns(r.server);
        r.server.reachable = false;
        r.server.drop();
        co_await r.server.until([&] { return zk.state() != session_state::connected; });
        const std::error_code outage = co_await code_of(zk.get("/asked/later/than/the/turn"));
        REQUIRE(outage == errc::not_connected);
        CHECK_FALSE(acquiring.ended());
        r.server.reachable = true;
        co_await r.server.until([&] { return zk.state() == session_state::connected; });
        tree(remove_request{theirs});
        r.server.fire(node_event::children_changed, "/s/leases");
        const std::error_code code = co_await acquiring.code();
        CHECK(code == std::error_code());
    };
    r.run(body);
}

TEST_CASE("lock: after an acquire that could not even be sent the next one takes one round trip", "[queue]") {
    rig r;
    fake_tree tree;
    bool answering = true;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        if (!answering && std::holds_alternative<create_request>(q)) return std::nullopt;
        return tree(q);
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const mutex lock(zk, "/l"), too_long(zk, "/l", mutex_options().data(std::string(2'000'000, 'x')));
        lock_guard keeps_the_queue = co_await lock.acquire();
        const std::error_code code = co_await code_of(too_long.acquire());
        CHECK(code);
        co_await keeps_the_queue.release();
        answering = false;
        const auto listings = r.server.count("children /l");
        auto acquire = [&]() -> asio::awaitable<void> { co_await lock.acquire(); };
        running acquiring(r.loop.executor(), acquire());
        co_await next_turns(r.server);
        CHECK(r.server.count("children /l") == listings + 1);
        acquiring.cancel();
        co_await acquiring.end();
    };
    r.run(body);
}

TEST_CASE("lock: two name_schemes with the same markers keep apart", "[queue]") {
    rig r;
    fake_tree tree;
    r.server.answer = [&](const request& q) -> std::optional<reply> { return tree(q); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const mutex ours(zk, "/l", mutex_options().names(name_scheme::custom("ours-", "lock-")));
        const mutex theirs(zk, "/l", mutex_options().names(name_scheme::custom("theirs-", "lock-")));
        lock_guard first = co_await ours.acquire();
        auto acquire = [&]() -> asio::awaitable<void> {
            const lock_guard second = co_await theirs.acquire();
            CHECK(second.path().starts_with("/l/theirs-"));
        };
        const running acquiring(r.loop.executor(), acquire());
        co_await r.server.until([&] { return r.server.watched(first.path()); });
        CHECK(first.path().starts_with("/l/ours-"));
        co_await first.release();
        r.server.fire(node_event::removed, first.path());
        const std::error_code code = co_await acquiring.code();
        CHECK(code == std::error_code());
    };
    r.run(body);
}
