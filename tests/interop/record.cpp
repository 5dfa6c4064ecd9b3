#include "interop/record.hpp"

namespace zkasio::test {

asio::awaitable<void> load(client zk, mutex lock, int rounds, std::string record, std::shared_ptr<int> violations) {
    for (int i = 0; i < rounds; ++i) {
        lock_guard guard = co_await lock.acquire();
        const node_data last = co_await zk.get(record);
        const std::size_t space = last.data.find(' ');
        const std::string before = last.data.substr(space + 1), mine = guard.path().substr(guard.path().size() - 10);
        if (before != "-" && mine <= before) ++*violations;
        const std::string next = std::to_string(std::stoi(last.data) + 1) + " " + mine;
        try {
            co_await zk.set(record, next, last.stat.version);
        } catch (const error& e) {
            if (e.code() != zk_errc::bad_version) throw;
            ++*violations;  // two were inside
        }
        co_await guard.release();
    }
}

asio::awaitable<void> start_record(client zk, std::string record) { co_await zk.create(record, "0 -"); }

asio::awaitable<int> recorded(client zk, std::string record) {
    const node_data now = co_await zk.get(record);
    co_return std::stoi(now.data);
}

}  // namespace zkasio::test
