#include "interop/load.hpp"

#include "support/lock_directory.hpp"
#include "support/test_client.hpp"

#include <memory>
#include <stdexcept>

namespace zkasio::test {
namespace {

// What a peer does, done by us.
asio::awaitable<void> load(client zk, const lockable& lock, int rounds, std::string record, int& violations) {
    fencing_token last;
    for (int i = 0; i < rounds; ++i) {
        lock_guard guard = co_await lock.acquire();
        const bool violated = co_await violates_record(zk, record, guard.path());
        violations += violated || (i > 0 && guard.token() <= last);
        last = guard.token();
        co_await guard.release();
    }
}

}  // namespace

our_locks our_mutexes(mutex_options names) {
    const auto make = [names](client zk, std::string path) {
        return std::make_unique<mutex>(std::move(zk), std::move(path), names);
    };
    return {make, tasks_of_client};
}

asio::awaitable<bool> violates_record(client zk, std::string record, std::string node) {
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
    co_return before != "-" && mine < before;
}

asio::awaitable<int> load_all(client zk, client second, std::string dir, std::vector<library> theirs,
                              our_locks ours) {
    constexpr int rounds = 60;
    const std::string path = dir + "/lock", record = dir + "/record";
    const auto executor = co_await asio::this_coro::executor;
    co_await zk.create(path);
    co_await zk.create(record, "0 -");
    int violations = 0;
    const std::unique_ptr<lockable> lock = ours.make(zk, path), again = ours.make(second, path);

    lock_guard gate = co_await our_mutexes().make(zk, path)->acquire();
    std::vector<running> running_;
    for (int i = 0; i < tasks_of_client; ++i) {
        running_.emplace_back(executor, load(zk, *lock, rounds, record, violations));
        running_.emplace_back(executor, load(second, *again, rounds, record, violations));
        for (const library& t : theirs)
            t.process.send("load" + std::to_string(i) + " load " + t.kind + " " + path + " " + std::to_string(rounds) +
                           " " + record);
    }
    const std::size_t clients = 2 + theirs.size();
    co_await until_queued(zk, path, 2 * ours.nodes_of_client + tasks_of_client * theirs.size() + 1);
    co_await gate.release();

    for (const running& r : running_) {
        const std::exception_ptr failed = co_await r.end();
        if (failed) std::rethrow_exception(failed);
    }
    for (int i = 0; i < tasks_of_client; ++i)
        for (const library& t : theirs) {
            const std::string answer = co_await t.process.expect("load" + std::to_string(i));
            const std::string done = "done " + std::to_string(rounds) + " ";
            if (!answer.starts_with(done)) throw std::runtime_error(t.kind + " " + answer);
            violations += std::stoi(answer.substr(done.size()));
        }
    co_await zk.sync(dir);
    const node_data entered = co_await zk.get(record);
    CHECK(std::stoi(entered.data) == rounds * tasks_of_client * static_cast<int>(clients));
    const std::size_t left = co_await count_children(zk, path);
    CHECK(left == 0);
    co_return violations;
}

}  // namespace zkasio::test
