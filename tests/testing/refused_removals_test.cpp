// Removals that an ACL refuses: the caller is told, and the node is removed as soon as the ACL allows it. Each kind of
// lock: lock_features_test.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/cost.hpp"

#include <zkasio/acl.hpp>
#include <zkasio/barriers/double_barrier.hpp>
#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/election/candidate.hpp>
#include <zkasio/error.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/slots.hpp>
#include <zkasio/locks/unfair_mutex.hpp>
#include <zkasio/path.hpp>
#include <zkasio/queues/work_queue.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace refused_removals_tests {

using namespace zkasio;
using namespace zkasio::test;
using namespace std::chrono_literals;
using testing::fake_ensemble;

namespace {

constexpr permission all_but_remove = permission::read | permission::write | permission::create | permission::admin;

/// Servers, a client that changes ACLs, and one that is refused.
struct scene {
    scene() : scene([](client_options rare) { return rare; }) {}
    explicit scene(const std::function<client_options(client_options)>& change)
        : admin(e.client(change(rare_heartbeats(e)))), zk(e.client(change(logged()))) {
        e.run(admin.connected());
        e.run(zk.connected());
    }
    ~scene() {
        e.run(zk.close());
        e.run(admin.close());
    }
    scene(const scene&) = delete;
    scene& operator=(const scene&) = delete;

    client_options logged() {
        return rare_heartbeats(e).log([this](std::string_view line) { lines.emplace_back(line); });
    }
    void refuse_removals(const std::string& directory) {
        e.run(admin.set_acl(directory, acl_of(acl_entry(all_but_remove, anyone()))));
    }
    void allow_removals(const std::string& directory) { e.run(admin.set_acl(directory, open_acl())); }
    std::ptrdiff_t lines_about(const std::string& path) const {
        return std::count_if(lines.begin(), lines.end(),
                             [&](const std::string& line) { return line.find(path) != line.npos; });
    }
    /// Makes `n` ephemeral nodes there, and asks for their removals.
    void make_and_remove(const std::string& directory, std::size_t n) {
        auto body = [&]() -> asio::awaitable<void> {
            const create_options how = create_options().mode(create_mode::ephemeral_sequential);
            std::vector<pending_create> creating;
            for (std::size_t i = 0; i < n; ++i)
                creating.push_back(toolbox(zk).start_create(join_path(directory, "n"), "", how));
            std::vector<std::string> paths;
            for (const pending_create& one : creating) {
                const created node = co_await one.result();
                paths.push_back(node.path);
            }
            for (const std::string& path : paths) toolbox(zk).ensure_removed(path);
            co_await zk.idle();
        };
        e.run(body);
    }

    fake_ensemble e;
    std::vector<std::string> lines;
    client admin, zk;
};

using guard_ptr = std::shared_ptr<std::optional<lock_guard>>;

asio::awaitable<void> take(mutex lock, guard_ptr to) {
    lock_guard guard = co_await lock.acquire();
    to->emplace(std::move(guard));
}

std::error_code code_of_release(fake_ensemble& e, lock_guard& guard) { return e.run(code_of(guard.release())); }

}  // namespace

TEST_CASE("refused removals: release() says so once, and the next one gets the lock when the ACL allows it",
          "[testing][refused]") {
    scene s;
    lock_guard guard = s.e.run(mutex(s.zk, "/lock").acquire());
    const std::string node = guard.path();
    const auto got = std::make_shared<std::optional<lock_guard>>();
    const running waits(s.e.get_executor(), take(mutex(s.admin, "/lock"), got));
    s.e.run_for(1s);
    s.refuse_removals("/lock");
    CHECK(code_of_release(s.e, guard) == zk_errc::no_auth);
    const auto begin = s.e.now();
    s.e.run(s.zk.idle());
    CHECK(s.e.now() - begin < 100ms);
    CHECK(s.e.exists(node));
    SECTION("soon") {
        s.e.run_for(200ms);
        s.allow_removals("/lock");
        s.e.run_for(2s);
    }
    SECTION("after an hour") {
        s.e.run_for(1h);
        CHECK_FALSE(*got);
        s.allow_removals("/lock");
        s.e.run_for(46s);
    }
    SECTION("over a lost connection") {
        s.e.cut(s.zk);
        s.e.run_for(10s);
        s.allow_removals("/lock");
        s.e.run_for(30s);
    }
    SECTION("when the client has got the right itself") {
        s.e.run(s.admin.set_acl("/lock", acl_of(acl_entry(all_but_remove, anyone()),
                                                acl_entry(permission::remove, digest_user("ann", "secret")))));
        s.e.run_for(1h);
        CHECK_FALSE(*got);
        s.e.run(s.zk.add_auth("digest", "ann:secret"));
        s.e.run_for(1s);
    }
    REQUIRE(*got);
    CHECK((*got)->held());
    CHECK_FALSE(s.e.exists(node));
    CHECK(s.lines_about(node) == 1);
    s.allow_removals("/lock");
}

TEST_CASE("refused removals: the node of a cancelled acquire goes when the ACL allows it", "[testing][refused]") {
    scene s;
    lock_guard guard = s.e.run(mutex(s.admin, "/lock").acquire());
    const auto got = std::make_shared<std::optional<lock_guard>>();
    running waits(s.e.get_executor(), take(mutex(s.zk, "/lock"), got));
    s.e.run_for(1s);
    s.refuse_removals("/lock");
    waits.cancel();
    s.e.run_for(1min);
    CHECK(s.e.children("/lock").size() == 2);
    s.allow_removals("/lock");
    s.e.run(guard.release());
    s.e.run_for(46s);
    CHECK(s.e.children("/lock").empty());
}

TEST_CASE("refused removals: an item that was given back is delivered again when the ACL allows it",
          "[testing][refused]") {
    scene s;
    const work_queue ours(s.zk, "/q"), theirs(s.admin, "/q");
    s.e.run(ours.put("a"));
    std::optional<delivery> d = s.e.run(ours.receive());
    s.refuse_removals("/q/taken");
    SECTION("again()") { CHECK(s.e.run(code_of(d->again())) == zk_errc::no_auth); }
    SECTION("destroyed") { d.reset(); }
    s.e.run_for(20s);
    CHECK(s.e.children("/q/taken").size() == 1);
    s.allow_removals("/q/taken");
    s.e.run_for(46s);
    const delivery next = s.e.run(theirs.receive(), 1s);
    CHECK(next.item() == "a");
    CHECK(s.lines_about("/q") == 1);
}

TEST_CASE("refused removals: a candidate that has stepped down leaves the next one the lead when the ACL allows it",
          "[testing][refused]") {
    scene s;
    const candidate first(s.zk, "/election");
    s.e.run_for(1s);
    REQUIRE(first.leads());
    const candidate second(s.admin, "/election");
    s.e.run_for(1s);
    s.refuse_removals("/election");
    CHECK(s.e.run(code_of(first.step_down())) == zk_errc::no_auth);
    s.e.run_for(200ms);
    CHECK_FALSE(second.leads());
    s.allow_removals("/election");
    s.e.run_for(2s);
    CHECK(second.leads());
}

TEST_CASE("refused removals: a participant of a double_barrier that may not leave is gone when the ACL allows it",
          "[testing][refused]") {
    scene s;
    barrier_entry entry = s.e.run(double_barrier(s.zk, "/round", 1).enter());
    s.refuse_removals("/round");
    CHECK(s.e.run(code_of(entry.leave())) == zk_errc::no_auth);
    s.e.run_for(200ms);
    CHECK(s.e.exists(entry.path()));
    s.allow_removals("/round");
    s.e.run_for(2s);
    CHECK_FALSE(s.e.exists(entry.path()));
    barrier_entry next = s.e.run(double_barrier(s.admin, "/round", 1).enter(), 1min);
    s.e.run(next.leave());
}

// G23: as long as the node of the first owner stands, it keeps out other clients, as it should; and when it goes, the
// owner of before need not be there any more.
TEST_CASE("refused removals: of a lock that was handed over in the client, and then taken away by an operator",
          "[testing][refused]") {
    scene s([](client_options rare) { return rare.session_timeout(10s); });
    const mutex ours(s.zk, "/lock");
    lock_guard guard = s.e.run(ours.acquire());
    const auto next = std::make_shared<std::optional<lock_guard>>();
    const auto other = std::make_shared<std::optional<lock_guard>>();
    const running next_waits(s.e.get_executor(), take(ours, next));
    s.e.run_for(1s);
    const running other_waits(s.e.get_executor(), take(mutex(s.admin, "/lock"), other));
    s.e.run_for(1s);
    s.refuse_removals("/lock");
    CHECK(code_of_release(s.e, guard) == zk_errc::no_auth);
    s.e.run_for(5s);
    REQUIRE(*next);
    CHECK((*next)->held());
    SECTION("and goes on") {
        s.allow_removals("/lock");
        s.e.run_for(46s);
        CHECK((*next)->held());
        CHECK_FALSE(*other);
        CHECK(s.e.children("/lock").size() == 2);
        s.e.run((*next)->release());
    }
    SECTION("deleted before the ACL allows the removal") {
        s.e.remove((*next)->path());
        s.e.run_for(5s);
        CHECK_FALSE((*next)->held());
        CHECK_FALSE(*other);
        s.allow_removals("/lock");
    }
    SECTION("deleted while the removal is under way") {
        bool held_too_long = false;
        s.e.on_step([&](std::string_view) { held_too_long = held_too_long || (*other && (*next)->held()); });
        s.allow_removals("/lock");
        s.e.remove((*next)->path());
        s.e.run_for(46s);
        s.e.on_step(nullptr);
        CHECK_FALSE(held_too_long);
    }
    s.e.run_for(46s);
    REQUIRE(*other);
    CHECK((*other)->held());
}

TEST_CASE("refused removals: a try of the same client does not wait for a number that cannot be given back",
          "[testing][refused]") {
    scene s;
    const slots one(s.zk, "/ids", 1);
    lock_guard guard = s.e.run(one.acquire());
    s.refuse_removals("/ids");
    running releases(s.e.get_executor(), guard.release());
    std::optional<lock_guard> none = s.e.run(one.try_acquire(), 1s);  // while the removal is under way
    CHECK_FALSE(none);
    CHECK(s.e.run(releases.code()) == zk_errc::no_auth);
    none = s.e.run(one.try_acquire(), 1s);
    CHECK_FALSE(none);
    s.allow_removals("/ids");
    const lock_guard again = s.e.run(one.acquire(), 46s);
    CHECK(again.held());
}

// Otherwise a create whose answer was lost would take the old node for its own.
TEST_CASE("refused removals: the node of an unfair_mutex that cannot be given back is nobody's", "[testing][refused]") {
    scene s;
    const unfair_mutex lock(s.zk, "/d/lock");
    lock_guard guard = s.e.run(lock.acquire());
    const fencing_token first = guard.token();
    s.refuse_removals("/d");
    CHECK(code_of_release(s.e, guard) == zk_errc::no_auth);
    s.e.lose_connections(30);
    CHECK(s.e.run(code_of(timeout(20s, lock.acquire()))) == errc::timed_out);
    s.e.lose_connections(0);
    s.allow_removals("/d");
    const lock_guard again = s.e.run(lock.acquire(), 46s);
    CHECK(first < again.token());
}

TEST_CASE("refused removals: a node counts in the budget as long as it stands", "[testing][refused]") {
    scene s([](client_options rare) { return rare.ephemeral_budget(1000); });
    s.e.create("/d");
    s.refuse_removals("/d");
    s.make_and_remove("/d", 50);  // of 18 bytes each
    CHECK(s.e.children("/d").size() == 50);
    const create_options how = create_options().mode(create_mode::ephemeral);
    const std::string large(300, 'x');
    CHECK(s.e.run(code_of(s.zk.create("/" + large, "", how))) == errc::too_many_ephemerals);
    s.e.run_for(10min);
    CHECK(s.e.run(code_of(s.zk.create("/" + large, "", how))) == errc::too_many_ephemerals);
    s.allow_removals("/d");
    s.e.run_for(46s);
    CHECK(s.e.children("/d").empty());
    CHECK_FALSE(s.e.run(code_of(s.zk.create("/" + large, "", how))));
}

TEST_CASE("refused removals: nothing of them is left for the next session, and close() does not wait",
          "[testing][refused]") {
    scene s;
    s.e.create("/d");
    s.refuse_removals("/d");
    s.make_and_remove("/d", 3);
    s.e.run_for(10s);
    SECTION("expired") {
        s.e.expire(s.zk);
        s.e.run_for(10s);
        CHECK(s.e.children("/d").empty());
        const cost_meter meter(s.e);
        s.e.run_for(10min);
        CHECK(meter.read().requests == 0);
    }
    SECTION("closed") {
        const auto begin = s.e.now();
        s.e.run(s.zk.close());
        CHECK(s.e.now() - begin < 100ms);
        CHECK(s.e.children("/d").empty());
    }
    SECTION("handed over") {
        const auto begin = s.e.now();
        s.e.run(s.zk.hand_over());
        CHECK(s.e.now() - begin < 100ms);
        CHECK(s.e.children("/d").size() == 3);
    }
}

TEST_CASE("refused removals: what this session has not made is asked for once", "[testing][refused]") {
    scene s;
    s.e.create("/d/a");
    s.refuse_removals("/d");
    s.e.run(s.zk.create("/d/mine", "", create_options().mode(create_mode::ephemeral)));
    CHECK(s.e.run(code_of(toolbox(s.zk).ensure_removed("/d/a").result())) == zk_errc::no_auth);
    CHECK(s.e.run(code_of(s.zk.remove_recursive("/d"))) == zk_errc::no_auth);  // a caller who may ask again
    s.e.run_for(1min);
    s.allow_removals("/d");
    s.e.run_for(1min);
    CHECK(s.e.children("/d") == std::vector<std::string>{"a", "mine"});
}

TEST_CASE("cost of removals that stay refused: of a directory, any number of nodes", "[refused][numbers]") {
    for (const std::size_t n : {1U, 100U, 10'000U}) {
        scene s;
        s.e.create("/d");
        s.refuse_removals("/d");
        s.make_and_remove("/d", n);
        const cost_meter meter(s.e);
        s.e.run_for(1h);
        const cost c = meter.read();
        INFO(n << " nodes: " << c);
        CHECK(c.requests >= 100);
        CHECK(c.requests <= 140);
        CHECK(c.writes == c.requests);
        CHECK(c.watches == 0);
        CHECK(c.ephemerals == 0);
        CHECK(s.e.children("/d").size() == n);
        s.allow_removals("/d");
        const cost_meter end(s.e);
        s.e.run_for(60s);
        CHECK(s.e.children("/d").empty());
        CHECK(end.read().requests <= n + 1);  // the one that was allowed, or the last that was not
        CHECK(end.read().writes == end.read().requests);
    }
}

TEST_CASE("cost of removals that stay refused: of numbers, and of an unfair_mutex, which look at their nodes first",
          "[refused][numbers]") {
    for (const std::uint32_t n : {1U, 50U}) {
        for (const bool numbered : {true, false}) {
            scene s;
            {
                const slots numbers(s.zk, "/ids", n);
                std::vector<lock_guard> held;
                for (std::uint32_t i = 0; i < n; ++i) {
                    const unfair_mutex one(s.zk, "/ids/" + std::to_string(i));
                    held.push_back(numbered ? s.e.run(numbers.acquire()) : s.e.run(one.acquire()));
                }
                s.refuse_removals("/ids");
            }
            s.e.run(s.zk.idle());
            const cost_meter meter(s.e);
            s.e.run_for(1h);
            const cost c = meter.read();
            INFO(n << (numbered ? " numbers: " : " locks: ") << c);
            CHECK(c.requests >= 300);
            CHECK(c.requests <= 3 * 140);
            CHECK(c.writes * 3 >= c.requests - 10);
            CHECK(c.writes * 3 <= c.requests + 10);
            s.allow_removals("/ids");
            s.e.run_for(60s);
            CHECK(s.e.ephemerals() == 0);
            CHECK(s.lines_about("/ids/") == n);
        }
    }
}

TEST_CASE("cost of removals that stay refused: of many directories", "[refused][numbers]") {
    for (const std::size_t n : {100U, 1000U}) {
        scene s;
        for (std::size_t i = 0; i < n; ++i) {
            const std::string directory = "/d" + std::to_string(i);
            s.e.create(directory);
            s.refuse_removals(directory);
            s.make_and_remove(directory, 2);
        }
        const cost_meter meter(s.e);
        s.e.run_for(1h);
        const cost c = meter.read();
        INFO(n << " directories: " << c);
        CHECK(c.requests <= std::min<std::size_t>(140 * n, 36'100));
        CHECK(c.writes == c.requests);
        CHECK(c.watches == 0);
        CHECK(c.ephemerals == 0);
        CHECK(c.requests >= std::min<std::size_t>(100 * n, 30'000));
        for (std::size_t i = 0; i < n; ++i) s.allow_removals("/d" + std::to_string(i));
        s.e.run_for(200s);
        CHECK(s.e.ephemerals() == 0);
    }
}

}  // namespace refused_removals_tests
