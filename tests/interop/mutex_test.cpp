#include "interop/contender.hpp"
#include "interop/record.hpp"
#include "support/lock_directory.hpp"

#include <zkasio/path.hpp>

using namespace zkasio;
using namespace zkasio::test;

namespace {

// The three of them. kazoo takes part with Curator's names (peers/README.md): with its own it shares no directory.
struct all_peers {
    explicit all_peers(const asio::any_io_executor& e) : curator(e, "curator"), gozk(e, "gozk"), kazoo(e, "kazoo") {}
    asio::awaitable<void> ready() {
        co_await curator.ready();
        co_await gozk.ready();
        co_await kazoo.ready();
    }
    asio::awaitable<void> exit() {
        co_await curator.exit();
        co_await gozk.exit();
        co_await kazoo.exit();
    }
    peer curator, gozk, kazoo;
};

struct library {
    library(peer& p, std::string k, bool data) : process(p), kind(std::move(k)), has_data(data) {}
    peer& process;
    std::string kind;
    bool has_data;  // writes something into its nodes
};

std::vector<library> libraries(all_peers& all) {
    return {library(all.curator, "mutex", true), library(all.gozk, "lock", false), library(all.kazoo, "curator-names", true)};
}

// A queue of several contenders, who get the lock in its order, one at a time.
class line_up {
public:
    line_up(client zk, std::string path) : zk_(zk), path_(path), lock_(zk, path) {}

    asio::awaitable<void> join(std::unique_ptr<contender> next) {
        next->join();
        line_.push_back(std::move(next));
        co_await until_queued(zk_, path_, line_.size());
    }
    asio::awaitable<void> ours() { co_await ours(zk_); }
    asio::awaitable<void> ours(client zk) {
        auto next = std::make_unique<our_contender>(co_await asio::this_coro::executor, mutex(zk, path_));
        co_await join(std::move(next));
    }
    asio::awaitable<void> theirs(library who) {
        const std::string id = "n" + std::to_string(line_.size());
        auto next = std::make_unique<peer_contender>(who.process, id, who.kind, path_);
        co_await join(std::move(next));
    }

    asio::awaitable<void> drain() {
        for (std::size_t i = 0; i < line_.size(); ++i) {
            const std::string node = co_await line_[i]->acquired();
            co_await zk_.sync(path_);  // it may talk to another server
            const std::vector<contender_info> list = co_await lock_.contenders();
            REQUIRE(list.size() == line_.size() - i);
            CHECK(list[0].path == node);
            for (std::size_t later = i + 1; later < line_.size(); ++later) CHECK_FALSE(line_[later]->has_it());
            co_await line_[i]->release();
        }
        line_.clear();
        co_await until_queued(zk_, path_, 0);
    }

private:
    client zk_;
    std::string path_;
    mutex lock_;
    std::vector<std::unique_ptr<contender>> line_;
};

// All contend at once; returns how often somebody was inside too early, or not alone.
asio::awaitable<int> load_all(client zk, client second, std::string dir, std::vector<library> theirs) {
    constexpr int rounds = 60, tasks = 3;
    const std::string path = dir + "/lock", record = dir + "/record";
    const auto executor = co_await asio::this_coro::executor;
    co_await zk.create(path);
    co_await start_record(zk, record);
    const auto violations = std::make_shared<int>(0);
    const mutex lock(zk, path), again(second, path);

    lock_guard gate = co_await lock.acquire();
    std::vector<running> ours;
    for (int i = 0; i < tasks; ++i) {
        ours.emplace_back(executor, load(zk, lock, rounds, record, violations));
        ours.emplace_back(executor, load(second, again, rounds, record, violations));
        for (const library& t : theirs)
            t.process.send("load" + std::to_string(i) + " load " + t.kind + " " + path + " " + std::to_string(rounds) + " " + record);
    }
    const std::size_t contenders = tasks * (2 + theirs.size());
    co_await until_queued(zk, path, contenders + 1);
    co_await gate.release();

    for (const running& r : ours) {
        const std::exception_ptr failed = co_await r.end();
        if (failed) std::rethrow_exception(failed);
    }
    for (int i = 0; i < tasks; ++i)
        for (const library& t : theirs) {
            const std::string answer = co_await t.process.expect("load" + std::to_string(i));
            const std::string done = "done " + std::to_string(rounds) + " ";
            if (!answer.starts_with(done)) throw std::runtime_error(t.kind + " " + answer);
            *violations += std::stoi(answer.substr(done.size()));
        }
    co_await zk.sync(dir);
    const int entered = co_await recorded(zk, record);
    CHECK(entered == rounds * static_cast<int>(contenders));
    const std::size_t left = co_await count_children(zk, path);
    CHECK(left == 0);
    co_return *violations;
}

}  // namespace

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
            co_await ours_first.drain();
        }
        line_up everybody(zk, dir + "/everybody");
        for (const std::size_t i : {0, 1, 2, 1, 0, 2, 0}) {
            co_await everybody.theirs(libraries_[i]);
            co_await everybody.theirs(libraries_[i]);
            co_await everybody.ours();
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

TEST_CASE("a killed peer: who waits for it gets the lock when its session has expired, and only if nobody else holds it") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-killed");
        const auto executor = co_await asio::this_coro::executor;
        all_peers victims(executor), others(executor);
        co_await victims.ready();
        co_await others.ready();
        const std::vector<library> killed = libraries(victims), alive = libraries(others);

        struct scene {
            std::unique_ptr<contender> holder, waiting;
        };
        std::vector<scene> holder_dies(3), waiter_dies(3);
        for (std::size_t i = 0; i < 3; ++i) {
            const std::string name = killed[i].process.name();
            const std::string first = dir + "/holder-" + name, second = dir + "/waiter-" + name;
            killed[i].process.send("holder acquire " + killed[i].kind + " " + first);
            co_await killed[i].process.acquired("holder");
            scene& a = holder_dies[i];
            a.waiting = std::make_unique<our_contender>(executor, mutex(zk, first));
            a.waiting->join();
            co_await until_queued(zk, first, 2);

            scene& b = waiter_dies[i];
            b.holder = std::make_unique<peer_contender>(alive[i].process, "holder", alive[i].kind, second);
            b.holder->join();
            co_await b.holder->acquired();
            killed[i].process.send("waiter acquire " + killed[i].kind + " " + second);
            co_await until_queued(zk, second, 2);
            b.waiting = std::make_unique<our_contender>(executor, mutex(zk, second));
            b.waiting->join();
            co_await until_queued(zk, second, 3);
        }
        for (const scene& a : holder_dies) CHECK_FALSE(a.waiting->has_it());
        for (const library& k : killed) k.process.kill();
        for (std::size_t i = 0; i < 3; ++i) {
            co_await holder_dies[i].waiting->acquired();
            co_await holder_dies[i].waiting->release();
            const std::string second = dir + "/waiter-" + killed[i].process.name();
            co_await until_queued(zk, second, 2);
            co_await zk.sync(second);
            CHECK_FALSE(waiter_dies[i].waiting->has_it());
            co_await waiter_dies[i].holder->release();
            co_await waiter_dies[i].waiting->acquired();
            co_await waiter_dies[i].waiting->release();
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
            auto attempt = [&]() -> asio::awaitable<void> { co_await lock.acquire(); };
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
