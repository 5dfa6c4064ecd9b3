#include "integration/semaphore_nodes.hpp"
#include "support/lock_checks.hpp"

#include <zkasio/path.hpp>

#include <algorithm>
#include <cctype>

using namespace zkasio;
using namespace zkasio::test;

namespace {

// "_c_<uuid><marker><sequence>", as Curator names them.
bool named_by_curator(const std::string& name, const std::string& marker) {
    if (name.size() != 3 + 36 + marker.size() + 10 || !name.starts_with("_c_") ||
        name.substr(39, marker.size()) != marker)
        return false;
    return std::all_of(name.end() - 10, name.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace

TEST_CASE("semaphore: never more permits are out than there are") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "semaphore-many");
        const auto executor = co_await asio::this_coro::executor;
        std::vector<test_client> clients;
        for (int i = 0; i < 3; ++i) clients.emplace_back(executor, options());
        constexpr int max = 4;
        int inside = 0, served = 0;
        auto task = [&](client c, int n) -> asio::awaitable<void> {
            const semaphore s(c, dir, permits::fixed(max));
            for (int round = 0; round < 3; ++round) {
                lock_guard guard = co_await s.acquire(n);
                inside += n;
                CHECK(inside <= max);
                CHECK(guard.held());
                co_await turns(50);
                inside -= n;
                ++served;
                co_await guard.release();
            }
        };
        std::vector<running> tasks;
        for (int i = 0; i < 24; ++i)
            tasks.emplace_back(executor, task(clients[static_cast<std::size_t>(i % 3)], 1 + i % 2));
        // From outside: those who have theirs, and the one request (of up to 2) that is being served.
        const semaphore seen(zk, dir, permits::fixed(max));
        while (!std::all_of(tasks.begin(), tasks.end(), [](const running& r) { return r.ended(); })) {
            const std::vector<std::string> now = co_await children_of(zk, leases(seen));
            CHECK(now.size() <= max + 2);
            co_await turns(1);
        }
        for (const running& t : tasks) {
            const std::exception_ptr e = co_await t.end();
            CHECK_FALSE(e);
        }
        CHECK(served == 24 * 3);
        co_await until_free(zk, seen);
        for (const test_client& c : clients) co_await c.close();
    };
    with_client(body);
}

TEST_CASE("semaphore: several permits at once are given all or not at all", "[any-server]") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "semaphore-all-or-nothing");
        const auto executor = co_await asio::this_coro::executor;
        const semaphore s(zk, dir, permits::fixed(3));
        lock_guard two = co_await s.acquire(2);
        CHECK(two.paths().size() == 2);
        const auto none = co_await s.try_acquire(2);
        CHECK_FALSE(none);
        co_await until_queued(zk, leases(s), 2);

        taker more(executor, s.acquire(2));
        co_await until_queued(zk, leases(s), 4);
        CHECK_FALSE(more.has_it());
        co_await two.release();
        co_await more.got();
        CHECK(more.guard().paths().size() == 2);
        CHECK(more.guard().token() > two.token());
        auto one = co_await s.try_acquire();
        CHECK(one);
        co_await until_queued(zk, leases(s), 3);
    };
    with_client(body);
}

TEST_CASE("semaphore: a request for many is not overtaken by small ones") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "semaphore-fair");
        const auto executor = co_await asio::this_coro::executor;
        const test_client other(executor, options());
        const semaphore s(zk, dir, permits::fixed(3)), theirs(other, dir, permits::fixed(3));
        lock_guard first = co_await s.acquire(1);
        taker big(executor, s.acquire(3));
        co_await until_queued(zk, leases(s), 4);
        taker small(executor, theirs.acquire(1)), smaller(executor, s.acquire(1));
        co_await until_queued(zk, locks(s), 3);
        const auto at_once = co_await theirs.try_acquire(1);  // there are two left
        CHECK_FALSE(at_once);

        co_await first.release();
        co_await big.got();
        CHECK_FALSE(small.has_it());
        CHECK_FALSE(smaller.has_it());
        co_await big.guard().release();
        co_await small.got();
        co_await smaller.got();
        co_await other.close();
    };
    with_client(body);
}

TEST_CASE("semaphore: a shared count that is raised lets those in who wait") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "semaphore-raised");
        const auto executor = co_await asio::this_coro::executor;
        co_await zk.create(dir + "/max", count(1));
        const semaphore s(zk, dir + "/s", permits::counted_by(dir + "/max"));
        lock_guard first = co_await s.acquire();
        taker two(executor, s.acquire(2));
        auto watched = [&]() -> asio::awaitable<bool> { co_return watched_below(dir + "/max").size() == 1; };
        co_await eventually(watched);
        co_await zk.set(dir + "/max", count(2));  // still too few; the next change must be noticed as well
        co_await until_queued(zk, leases(s), 3);
        co_await eventually(watched);
        CHECK_FALSE(two.has_it());
        co_await zk.set(dir + "/max", count(3));
        co_await two.got();
        CHECK(first.held());
        CHECK(two.guard().held());
        auto unwatched = [&]() -> asio::awaitable<bool> { co_return watched_below(dir + "/max").empty(); };
        co_await eventually(unwatched);
    };
    with_client(body);
}

TEST_CASE("semaphore: a shared count that is lowered takes nothing away, but gives no more") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "semaphore-lowered");
        const auto executor = co_await asio::this_coro::executor;
        co_await zk.create(dir + "/max", count(2));
        const semaphore s(zk, dir + "/s", permits::counted_by(dir + "/max"));
        lock_guard a = co_await s.acquire(), b = co_await s.acquire();
        taker third(executor, s.acquire());
        co_await until_queued(zk, leases(s), 3);
        co_await zk.set(dir + "/max", count(1));
        CHECK(a.held());
        CHECK(b.held());
        co_await a.release();  // with two permits this would have been enough
        co_await until_queued(zk, leases(s), 2);
        co_await turns(200);
        CHECK_FALSE(third.has_it());
        co_await b.release();
        co_await third.got();

        // Below what was asked for, and up again.
        taker fourth(executor, s.acquire(2));
        auto watched = [&]() -> asio::awaitable<bool> { co_return watched_below(dir + "/max").size() == 1; };
        co_await eventually(watched);
        co_await zk.set(dir + "/max", count(0));
        co_await zk.set(dir + "/max", count(3));
        co_await fourth.got();
    };
    with_client(body);
}

TEST_CASE("semaphore: permits are given back one by one, or in chunks") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "semaphore-each");
        const auto executor = co_await asio::this_coro::executor;
        const semaphore s(zk, dir, permits::fixed(3));
        std::vector<lock_guard> three = co_await s.acquire_each(3);
        REQUIRE(three.size() == 3);
        CHECK(three[0].path() != three[1].path());
        taker one(executor, s.acquire()), two(executor, s.acquire(2));
        co_await until_queued(zk, locks(s), 2);
        co_await until_queued(zk, leases(s), 4);
        co_await three[1].release();
        co_await one.got();
        CHECK(three[0].held());
        CHECK(three[2].held());
        co_await until_queued(zk, leases(s), 5);
        three.pop_back();
        co_await until_queued(zk, leases(s), 4);
        CHECK_FALSE(two.has_it());
        three.clear();
        co_await two.got();

        taker all(executor, s.acquire(3));
        co_await until_queued(zk, leases(s), 6);
        co_await two.guard().release();  // a chunk
        co_await until_queued(zk, leases(s), 4);
        CHECK_FALSE(all.has_it());
        co_await one.guard().release();
        co_await all.got();
        all.release();
        co_await until_free(zk, s);
    };
    with_client(body);
}

TEST_CASE("semaphore: bad arguments are refused with a clear error") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "semaphore-bad");
        const semaphore s(zk, dir, permits::fixed(2));
        auto ask = [&](int n) -> asio::awaitable<void> { (void)co_await s.acquire(n); };
        const std::string none = co_await message_of(ask(0));
        CHECK(none == "acquire " + dir + ": invalid argument (asked for 0 permits)");
        const std::string many = co_await message_of(ask(3));
        CHECK(many == "acquire " + dir + ": invalid argument (asked for 3 permits of 2)");
        auto each = [&]() -> asio::awaitable<void> { co_await s.acquire_each(-1); };
        const std::error_code negative = co_await code_of(each());
        CHECK(negative == errc::invalid_argument);
        auto attempt = [&]() -> asio::awaitable<void> { co_await s.try_acquire(3); };
        const std::error_code tried = co_await code_of(attempt());
        CHECK(tried == errc::invalid_argument);
        acquire_options as_owner;
        as_owner.owner(lock_owner());
        auto ask_as_owner = [&]() -> asio::awaitable<void> { (void)co_await s.acquire(1, as_owner); };
        const std::string owned = co_await message_of(ask_as_owner());
        CHECK(owned == "acquire " + dir +
                           ": invalid argument (no lock_owner can hold permits: each request has some of its own)");
        const std::vector<std::string> left = co_await children_of(zk, dir);
        CHECK(left.empty());  // nothing was sent

        CHECK_THROWS_AS(semaphore(zk, dir + "/s", permits::fixed(0)), error);
        CHECK_THROWS_AS(permits::counted_by("relative"), error);
        CHECK_THROWS_AS(semaphore(zk, "/", permits::fixed(1)), error);

        co_await zk.create(dir + "/max", "seven");
        const semaphore counted(zk, dir + "/s", permits::counted_by(dir + "/max"));
        auto count_it = [&]() -> asio::awaitable<void> { (void)co_await counted.acquire(); };
        const std::string text = co_await message_of(count_it());
        CHECK(text == "acquire " + dir + "/max: invalid argument (its data is no count of 4 bytes)");
        const semaphore nowhere(zk, dir + "/s", permits::counted_by(dir + "/missing"));
        auto find_it = [&]() -> asio::awaitable<void> { (void)co_await nowhere.acquire(); };
        const std::string missing = co_await message_of(find_it());
        CHECK(missing.starts_with("acquire " + dir + "/s: "));
        CHECK(missing.find(dir + "/missing") != std::string::npos);
        co_await until_free(zk, counted);
    };
    with_client(body);
}

TEST_CASE("semaphore: layout and names are Curator's") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "semaphore-curator");
        const auto executor = co_await asio::this_coro::executor;
        semaphore_options mine;
        mine.data("host-a");
        const semaphore s(zk, dir + "/s", permits::fixed(2), mine);
        lock_guard guard = co_await s.acquire();
        CHECK(guard.path().starts_with(leases(s) + "/"));
        CHECK(named_by_curator(std::string(node_name(guard.path())), "-lease-"));
        const node_data node = co_await zk.get(guard.path());
        const session now = co_await zk.current_session();
        CHECK(node.data == "host-a");
        CHECK(node.stat.ephemeral_owner == now.id());
        CHECK(node.stat.czxid == guard.token().value());
        co_await until_queued(zk, locks(s), 0);  // the mutex is only held while asking

        // A lease of somebody else's is respected: a Java service's, say.
        const std::string uuid = "01234567-89ab-cdef-0123-456789abcdef";
        create_options sequential;
        sequential.mode(create_mode::ephemeral_sequential);
        sequential.parents(missing_parents::create_container);  // servers remove them once they are empty
        const created foreign = co_await zk.create(leases(s) + "/_c_" + uuid + "-lease-", "java", sequential);
        taker waiting(executor, s.acquire());
        co_await until_queued(zk, leases(s), 3);
        const std::vector<std::string> place = co_await children_of(zk, locks(s));
        REQUIRE(place.size() == 1);
        CHECK(named_by_curator(place[0], "-lock-"));
        CHECK_FALSE(waiting.has_it());
        const std::vector<contender_info> out = co_await s.holders();
        REQUIRE(out.size() == 3);
        CHECK(out[0].path == guard.path());
        CHECK(out[0].data == "host-a");
        CHECK(out[1].data == "java");
        CHECK(out[2].position == 2);
        co_await zk.remove(foreign.path);
        co_await waiting.got();

        // And so is its place in the line.
        const created ahead = co_await zk.create(locks(s) + "/_c_" + uuid + "-lock-", "java", sequential);
        co_await guard.release();
        taker behind(executor, s.acquire());
        co_await until_queued(zk, locks(s), 2);
        CHECK_FALSE(behind.has_it());
        co_await zk.remove(ahead.path);
        co_await behind.got();
    };
    with_client(body);
}

TEST_CASE("semaphore: with_permit releases, and is cancelled when the permit is lost") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "semaphore-with");
        const semaphore s(zk, dir, permits::fixed(1));
        bool ran = false;
        auto work = [&](lock_guard& guard) -> asio::awaitable<void> {
            ran = guard.held();
            co_return;
        };
        co_await s.with_permit(work);
        CHECK(ran);
        co_await until_free(zk, s);
        auto endless = [&](lock_guard& guard) -> asio::awaitable<void> {
            co_await zk.remove(guard.path());
            asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
            co_await never.async_wait(asio::use_awaitable);
        };
        const std::error_code c = co_await code_of(s.with_permit(endless));
        CHECK(c == errc::lock_lost);
    };
    with_client(body);
}
