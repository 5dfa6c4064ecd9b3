// A scheduler of which several run, and that runs jobs only while it leads: leader 127.0.0.1:2181
#include "expect.hpp"

#include <zkasio/election/leader_election.hpp>
#include <zkasio/locks/unfair_mutex.hpp>

#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <chrono>
#include <iostream>
#include <string>

using namespace std::chrono_literals;

// [leader]
asio::awaitable<void> scheduler(zkasio::client zk, std::string name) {
    zkasio::leader_election_options me;
    me.id(name);
    const zkasio::leader_election election(zk, "/leader-example/schedulers", me);
    // Runs while this process leads. When the leadership is lost, the body is cancelled, and lead() stands again.
    auto work = [&](zkasio::leadership& leader) -> asio::awaitable<void> {
        asio::steady_timer pause(co_await asio::this_coro::executor);
        for (int job = 1; job <= 3; ++job) {
            co_await leader.proclaim(name + ", at job " + std::to_string(job));
            zkasio::transaction done;
            done.set("/leader-example/last-job", name);
            co_await leader.commit(done);  // ZooKeeper refuses this if another candidate leads already
            pause.expires_after(20ms);
            co_await pause.async_wait(asio::use_awaitable);
        }
    };  // resigns
    co_await election.lead(work);
}
// [/leader]

// [observe]
// The leader, as far as is known. The data are absent if this client may not read them.
std::string described(const zkasio::leader_view& view) {
    if (!view.leader) return std::string(to_string(view.state));
    return view.leader->data.value_or("somebody whose data we may not read");
}

asio::awaitable<void> dashboard(zkasio::client zk, int leaders) {
    const zkasio::leader_observer observer = zkasio::leader_election(zk, "/leader-example/schedulers").observe();
    for (zkasio::fencing_token last; leaders > 0;) {
        const zkasio::leader_view view = co_await observer.next();  // the leader, and each change of leader
        std::cout << "leader: " << described(view) << "\n";
        if (!view.leader || view.leader->token == last) continue;
        last = view.leader->token;
        --leaders;
    }
}
// [/observe]

// The simplest election: whoever manages to create one ephemeral node leads, until it goes. No queue, and luck decides
// who is next; every change wakes all. For a flag, or a handful of processes.
asio::awaitable<void> one_node(zkasio::client zk) {
    zkasio::unfair_mutex_options me;
    me.data("host-7");
    const zkasio::unfair_mutex leader(zk, "/leader-example/flag", me);
    zkasio::lock_guard leading = co_await leader.acquire();
    const auto seen = co_await zk.get_and_watch(leader.path());  // what an observer does
    std::cout << "flag: " << seen.value.data << "\n";
    co_await leading.release();
    co_await seen.changes.changed();
    const auto nobody = co_await leader.holder();
    expect(!nobody, "the flag is free");
}

asio::awaitable<void> example(zkasio::client zk) {
    const auto executor = co_await asio::this_coro::executor;
    zkasio::create_options with_parents;
    with_parents.parents(zkasio::missing_parents::create_container);
    co_await zk.create_or_set("/leader-example/last-job", "nobody", with_parents);
    const zkasio::client second(executor, zk.options());  // of another process, in earnest
    asio::co_spawn(executor, scheduler(zk, "alice"), rethrow);
    asio::co_spawn(executor, scheduler(second, "bob"), rethrow);
    co_await dashboard(zk, 2);
    co_await one_node(zk);
}

void all(std::string servers) {
    asio::io_context io;
    asio::co_spawn(io, example({io, zkasio::client_options(servers).session_timeout(10s)}), rethrow);
    io.run();  // until the clients are gone
}

int main(int argc, char** argv) { return run_example(argc, argv, all); }
