#include "interop/load.hpp"

#include "support/lock_directory.hpp"
#include "support/test_client.hpp"

#include <memory>
#include <stdexcept>

namespace zkasio::test {
namespace {

// What a peer does, done by us.
asio::awaitable<void> load(client zk, mutex lock, int rounds, std::string record, std::shared_ptr<int> violations) {
    for (int i = 0; i < rounds; ++i) {
        lock_guard guard = co_await lock.acquire();
        const bool violated = co_await violates_record(zk, record, guard.path());
        *violations += violated;
        co_await guard.release();
    }
}

}  // namespace

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
    co_return before != "-" && mine <= before;
}

asio::awaitable<int> load_all(client zk, client second, std::string dir, std::vector<library> theirs,
                            mutex_options names) {
    constexpr int rounds = 60, tasks = 3;
    const std::string path = dir + "/lock", record = dir + "/record";
    const auto executor = co_await asio::this_coro::executor;
    co_await zk.create(path);
    co_await zk.create(record, "0 -");
    const auto violations = std::make_shared<int>(0);
    const mutex lock(zk, path, names), again(second, path, names);

    lock_guard gate = co_await lock.acquire();
    std::vector<running> ours;
    for (int i = 0; i < tasks; ++i) {
        ours.emplace_back(executor, load(zk, lock, rounds, record, violations));
        ours.emplace_back(executor, load(second, again, rounds, record, violations));
        for (const library& t : theirs)
            t.process.send("load" + std::to_string(i) + " load " + t.kind + " " + path + " " + std::to_string(rounds) +
                           " " + record);
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
    const node_data entered = co_await zk.get(record);
    CHECK(std::stoi(entered.data) == rounds * static_cast<int>(contenders));
    const std::size_t left = co_await count_children(zk, path);
    CHECK(left == 0);
    co_return *violations;
}

}  // namespace zkasio::test
