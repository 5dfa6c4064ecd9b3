#include "interop/load.hpp"

#include "support/lock_directory.hpp"
#include "support/test_client.hpp"

#include <zkasio/locks/cohort_mutex.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>

namespace zkasio::test {
namespace {

constexpr int rounds = 60, tasks = 3;

using acquire_function = std::function<asio::awaitable<lock_guard>()>;

// What all tasks of ours have seen.
struct seen {
    int violations = 0;
    fencing_token last;
};

// What a peer does, done by us.
asio::awaitable<void> load(client zk, acquire_function acquire, std::string record, std::shared_ptr<seen> all) {
    for (int i = 0; i < rounds; ++i) {
        lock_guard guard = co_await acquire();
        all->violations += guard.token() <= all->last;
        all->last = guard.token();
        const bool violated = co_await violates_record(zk, record, guard.path(), guard.token().turn());
        all->violations += violated;
        co_await guard.release();
    }
}

// One client of ours.
struct our_side {
    client zk;
    acquire_function acquire;
};

// @param nodes: so many has each of `ours` in the queue.
asio::awaitable<int> load_both(std::vector<our_side> ours, std::size_t nodes, mutex gate_lock, std::string dir,
                               std::vector<library> theirs) {
    const std::string path = dir + "/lock", record = dir + "/record";
    const client zk = ours.front().zk;
    const auto executor = co_await asio::this_coro::executor;
    co_await zk.create(path);
    co_await zk.create(record, "0 -");
    const auto all = std::make_shared<seen>();

    lock_guard gate = co_await gate_lock.acquire();
    std::vector<running> our_tasks;
    for (int i = 0; i < tasks; ++i) {
        for (const our_side& o : ours) our_tasks.emplace_back(executor, load(o.zk, o.acquire, record, all));
        for (const library& t : theirs)
            t.process.send("load" + std::to_string(i) + " load " + t.kind + " " + path + " " + std::to_string(rounds) +
                           " " + record);
    }
    co_await until_queued(zk, path, ours.size() * nodes + tasks * theirs.size() + 1);
    co_await gate.release();

    for (const running& r : our_tasks) {
        const std::exception_ptr failed = co_await r.end();
        if (failed) std::rethrow_exception(failed);
    }
    for (int i = 0; i < tasks; ++i)
        for (const library& t : theirs) {
            const std::string answer = co_await t.process.expect("load" + std::to_string(i));
            const std::string done = "done " + std::to_string(rounds) + " ";
            if (!answer.starts_with(done)) throw std::runtime_error(t.kind + " " + answer);
            all->violations += std::stoi(answer.substr(done.size()));
        }
    co_await until_queued(zk, path, 0);  // places that nobody wants any more are given back
    const node_data entered = co_await zk.get(record);
    CHECK(std::stoi(entered.data) == rounds * tasks * static_cast<int>(ours.size() + theirs.size()));
    co_return all->violations;
}

}  // namespace

asio::awaitable<bool> violates_record(client zk, std::string record, std::string node, std::uint64_t turn) {
    const node_data last = co_await zk.get(record);
    const std::size_t space = last.data.find(' ');
    const std::string before = last.data.substr(space + 1), mine = node.substr(node.size() - 10);
    const std::string next = std::to_string(std::stoi(last.data) + 1) + " " + mine;
    try {
        co_await zk.set(record, next, last.stat.version);
    } catch (const error& e) {
        if (e.code() != zk_errc::bad_version) throw;
        co_return true;  // two were inside
    }
    if (turn > 0) co_return mine != before;
    co_return before != "-" && mine <= before;
}

asio::awaitable<int> load_all(client zk, client second, std::string dir, std::vector<library> theirs,
                              mutex_options names) {
    const auto side = [&](const client& c) {
        return our_side{c, [lock = mutex(c, dir + "/lock", names)] { return lock.acquire(); }};
    };
    const mutex gate(zk, dir + "/lock", names);
    return load_both({side(zk), side(second)}, tasks, gate, dir, std::move(theirs));
}

asio::awaitable<int> load_cohorts(client zk, client second, std::string dir, std::vector<library> theirs) {
    const auto side = [&](const client& c) {
        const cohort_mutex lock(c, dir + "/lock", cohort_mutex_options().turns(8).linger(std::chrono::seconds(0)));
        return our_side{c, [lock] { return lock.acquire(); }};
    };
    const mutex gate(zk, dir + "/lock");
    return load_both({side(zk), side(second)}, 1, gate, dir, std::move(theirs));
}

}  // namespace zkasio::test
