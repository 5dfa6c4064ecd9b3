#include "interop/library.hpp"
#include "interop/line_up.hpp"
#include "interop/load.hpp"
#include "support/lock_directory.hpp"

#include <zkasio/path.hpp>

using namespace zkasio;
using namespace zkasio::test;

TEST_CASE("hand-offs: whoever waits for whom, all get the lock in the order in which they came") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-hand-off");
        const auto executor = co_await asio::this_coro::executor;
        const test_client second(executor, options());
        all_peers all(executor);
        co_await all.ready();
        const std::vector<library> libraries_ = libraries(all);
        for (const library& theirs : libraries_) {
            // Whoever is first creates the directory.
            line_up peer_first(zk, dir + "/peer-first/" + theirs.process.name());
            co_await peer_first.theirs(theirs);
            co_await peer_first.ours();
            co_await peer_first.theirs(theirs);
            co_await peer_first.ours(second);
            co_await peer_first.drain();
            line_up ours_first(zk, dir + "/ours-first/" + theirs.process.name());
            co_await ours_first.ours();
            co_await ours_first.theirs(theirs);
            co_await ours_first.ours(second);
            co_await ours_first.theirs(theirs);
            co_await ours_first.ours();
            co_await ours_first.ours();  // these two hand over without asking the servers
            co_await ours_first.theirs(theirs);
            co_await ours_first.drain();
        }
        line_up everybody(zk, dir + "/everybody");
        for (const std::size_t i : {0U, 1U, 2U, 1U, 0U, 2U, 0U}) {
            co_await everybody.theirs(libraries_[i]);
            co_await everybody.theirs(libraries_[i]);
            co_await everybody.ours();
            co_await everybody.ours(second);
        }
        co_await everybody.drain();
        co_await all.exit();
        co_await second.close();
    };
    with_client_for(120s, options(), body);
}

TEST_CASE("contenders of other libraries are listed with session and data") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-contenders");
        const session s = co_await zk.current_session();
        all_peers all(co_await asio::this_coro::executor);
        co_await all.ready();
        const std::vector<library> libraries_ = libraries(all);
        for (const library& theirs : libraries_) {
            const std::string path = dir + "/" + theirs.process.name();
            const mutex lock(zk, path);
            theirs.process.send("a acquire " + theirs.kind + " " + path);
            const std::string node = co_await theirs.process.acquired("a");
            co_await zk.sync(path);
            const std::vector<contender_info> list = co_await lock.contenders();
            REQUIRE(list.size() == 1);
            CHECK(list[0].path == node);
            CHECK(list[0].session_id != s.id());
            CHECK(list[0].data.empty() != theirs.has_data);
            const auto refused = co_await lock.try_acquire();
            CHECK_FALSE(refused);
            co_await until_queued(zk, path, 1);
        }
        co_await all.exit();
        for (const library& theirs : libraries_) {
            const mutex lock(zk, dir + "/" + theirs.process.name());
            const auto ours = co_await lock.try_acquire();
            CHECK(ours);  // with its session the peer has left
        }
    };
    with_client(body);
}

TEST_CASE("Curator gives up waiting for us when its time is over") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-try");
        peer curator(co_await asio::this_coro::executor, "curator");
        co_await curator.ready();
        const mutex lock(zk, dir);
        lock_guard guard = co_await lock.acquire();
        curator.send("a try 300 mutex " + dir);
        co_await curator.expect("a", "timeout");
        co_await until_queued(zk, dir, 1);
        CHECK(guard.held());
        co_await guard.release();
        curator.send("a try 20000 mutex " + dir);
        co_await curator.acquired("a");
        co_await curator.exit();
    };
    with_client(body);
}

TEST_CASE("under load nobody is inside with us, or before their turn: Curator and go-zk") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-load");
        const auto executor = co_await asio::this_coro::executor;
        const test_client second(executor, options());
        all_peers all(executor);
        co_await all.ready();
        std::vector<library> theirs = libraries(all);
        theirs.pop_back();
        const int violations = co_await load_all(zk, second, dir, theirs);
        CHECK(violations == 0);
        co_await all.exit();
        co_await second.close();
    };
    with_client_for(180s, options(), body);
}

TEST_CASE("under load nobody is inside with us, or before their turn: kazoo with Curator's names, too") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-load-kazoo");
        const auto executor = co_await asio::this_coro::executor;
        const test_client second(executor, options());
        all_peers all(executor);
        co_await all.ready();
        const std::vector<library> theirs = libraries(all);
        const int violations = co_await load_all(zk, second, dir, theirs);
        CHECK(violations == 0);
        co_await all.exit();
        co_await second.close();
    };
    with_client_for(180s, options(), body);
}

TEST_CASE(
    "a killed peer: who waits for it gets the lock when its session has expired, and only if nobody else holds it") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-killed");
        const auto executor = co_await asio::this_coro::executor;
        all_peers victims(executor), others(executor);
        co_await victims.ready();
        co_await others.ready();
        const std::vector<library> killed = libraries(victims), alive = libraries(others);

        // In each line the second or the first of three dies.
        struct line {
            std::string path;
            std::unique_ptr<contender> first, dying, last;
            asio::awaitable<void> fill(client zk) {
                std::size_t n = 0;
                for (contender* c : {first.get(), dying.get(), last.get()}) {
                    if (!c) continue;
                    c->join();
                    co_await until_queued(zk, path, ++n);
                    if (n == 1) co_await c->acquired();
                }
            }
            asio::awaitable<void> finish(client zk) {
                co_await last->acquired();
                co_await zk.sync(path);
                const std::size_t left = co_await count_children(zk, path);
                CHECK(left == 1);
                co_await last->release();
            }
        };
        const auto ours = [&](const std::string& path) {
            return std::make_unique<our_contender>(executor, mutex(zk, path));
        };
        std::vector<line> held(3), behind_peer(3), behind_ours(3);
        for (std::size_t i = 0; i < 3; ++i) {
            const auto victim = [&](const std::string& id, const std::string& path) {
                return std::make_unique<peer_contender>(killed[i].process, id, killed[i].kind, path);
            };
            const std::string name = killed[i].process.name();
            line& a = held[i];
            a.path = dir + "/held-" + name;
            a.dying = victim("a", a.path);
            a.last = ours(a.path);
            co_await a.fill(zk);
            line& b = behind_peer[i];
            b.path = dir + "/behind-peer-" + name;
            b.first = std::make_unique<peer_contender>(alive[i].process, "b", alive[i].kind, b.path);
            b.dying = victim("b", b.path);
            b.last = ours(b.path);
            co_await b.fill(zk);
            line& c = behind_ours[i];
            c.path = dir + "/behind-ours-" + name;
            c.first = ours(c.path);
            c.dying = victim("c", c.path);
            c.last = ours(c.path);
            co_await c.fill(zk);
        }
        for (const library& k : killed) k.process.kill();
        for (line& c : behind_ours) co_await c.first->release();  // to a dead one, and not past it
        co_await zk.sync(dir);
        for (const auto* lines : {&held, &behind_ours, &behind_peer})
            for (const line& l : *lines) CHECK_FALSE(l.last->has_it());
        for (line& a : held) co_await a.finish(zk);
        for (line& c : behind_ours) co_await c.finish(zk);
        for (line& b : behind_peer) {
            co_await until_queued(zk, b.path, 2);
            co_await zk.sync(b.path);
            CHECK_FALSE(b.last->has_it());
            co_await b.first->release();
            co_await b.finish(zk);
        }
        co_await others.exit();
    };
    with_client_for(120s, options(), body);
}

TEST_CASE("when our session expires, the peers that wait for us get the lock, and our guard knows") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-expiry");
        const auto executor = co_await asio::this_coro::executor;
        all_peers all(executor);
        co_await all.ready();
        const std::vector<library> libraries_ = libraries(all);
        for (const library& theirs : libraries_) {
            const std::string path = dir + "/" + theirs.process.name();
            const test_client victim(executor, options());
            const mutex lock(victim, path);
            const lock_guard guard = co_await lock.acquire();
            theirs.process.send("a acquire " + theirs.kind + " " + path);
            co_await until_queued(zk, path, 2);
            CHECK_FALSE(theirs.process.answered("a"));
            co_await expire_session(victim);
            co_await theirs.process.acquired("a");
            co_await guard.lost();
            CHECK_FALSE(guard.held());
            co_await victim.close();
        }
        co_await all.exit();
    };
    with_client(body);
}

TEST_CASE("directories of a LeaderLatch, and of kazoo's own names, are refused, and left as they are") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-refused");
        const auto executor = co_await asio::this_coro::executor;
        peer curator(executor, "curator"), kazoo(executor, "kazoo");
        co_await curator.ready();
        co_await kazoo.ready();
        const std::vector<library> foreign{library(curator, "latch", true), library(kazoo, "lock", true)};
        for (const library& theirs : foreign) {
            const std::string path = dir + "/" + theirs.kind;
            theirs.process.send("a acquire " + theirs.kind + " " + path);
            const std::string node = co_await theirs.process.acquired("a");
            co_await zk.sync(path);
            const mutex lock(zk, path);
            auto attempt = [&]() -> asio::awaitable<void> { (void)co_await lock.acquire(); };
            const std::string text = co_await message_of(attempt());
            CHECK(text.find("directory has children that are no contenders") != std::string::npos);
            CHECK(text.find(std::string(node_name(node))) != std::string::npos);
            const std::error_code listed = co_await code_of(lock.contenders());
            CHECK(listed == errc::foreign_child);
            co_await until_queued(zk, path, 1);
            theirs.process.send("a release");
            co_await theirs.process.expect("a", "released");
            co_await until_queued(zk, path, 0);  // LeaderLatch.close() does not wait for it
            const auto free = co_await lock.try_acquire();
            CHECK(free);
        }
        co_await curator.exit();
        co_await kazoo.exit();
    };
    with_client(body);
}

TEST_CASE("kazoo with extra_lock_patterns waits for us") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-kazoo-patterns");
        peer kazoo(co_await asio::this_coro::executor, "kazoo");
        co_await kazoo.ready();
        const mutex lock(zk, dir);
        lock_guard guard = co_await lock.acquire();
        kazoo.send("a acquire lock-curator " + dir);
        co_await until_queued(zk, dir, 2);
        kazoo.send("b try 300 lock-curator " + dir);
        co_await kazoo.expect("b", "timeout");
        CHECK_FALSE(kazoo.answered("a"));
        co_await guard.release();
        co_await kazoo.acquired("a");
        co_await kazoo.exit();
    };
    with_client(body);
}
