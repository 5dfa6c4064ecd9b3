// docs/sessions.md: a store that checks the tokens of the lock that protects the store.
#include "guide.hpp"

#include <zkasio/locks/mutex.hpp>

#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <utility>

using namespace std::chrono_literals;

namespace fencing_page {
namespace {

// [commit]
asio::awaitable<void> next_number(zkasio::client zk, zkasio::mutex lock) {
    auto body = [zk](zkasio::lock_guard& guard) -> asio::awaitable<void> {
        const zkasio::node_data last = co_await zk.get("/guide/number");
        zkasio::transaction step;
        step.set("/guide/number", std::to_string(std::stoi(last.data) + 1), last.stat.version);
        co_await guard.commit(step);  // all of it, and only if the lock is ours when the servers apply it
    };
    co_await lock.with_lock(body);
}
// [/commit]

// [register]
// A store that a lock protects: keeps the largest token that it has seen, and refuses smaller ones.
class fenced_register {
public:
    bool write(zkasio::fencing_token token, std::string value) {
        if (token < seen_) return false;  // another holder has had the lock since
        seen_ = token;
        value_ = std::move(value);
        return true;
    }
    std::optional<std::string> read(zkasio::fencing_token token) {
        if (token < seen_) return std::nullopt;
        seen_ = token;  // from here on, earlier holders cannot change the value that is read
        return value_;
    }

private:
    zkasio::fencing_token seen_;
    std::string value_;
};
// [/register]

asio::awaitable<void> in_coroutines(zkasio::client zk) {
    co_await zk.create_or_set("/guide/number", "1", zkasio::with_parents());
    const zkasio::mutex lock(zk, "/guide/fenced");
    co_await next_number(zk, lock);
    const zkasio::node_data now = co_await zk.get("/guide/number");
    expect(now.data == "2", "the number was committed");

    fenced_register store;
    zkasio::fencing_token old_holder;
    {
        const zkasio::lock_guard guard = co_await lock.acquire();
        old_holder = guard.token();
    }  // suppose that this holder is paused here, and another one gets the lock
    const zkasio::lock_guard guard = co_await lock.acquire();
    expect(old_holder < guard.token(), "tokens rise");
    expect(store.read(guard.token()).has_value(), "the new holder reads");
    expect(!store.write(old_holder, "late"), "what the old one still writes is refused");
    expect(store.write(guard.token(), "in time"), "and what the new one writes is not");
    co_await zk.close();
}

}  // namespace
}  // namespace fencing_page

void guide_fencing(std::string servers) {
    asio::io_context io;
    const zkasio::client zk(io, zkasio::client_options(servers).session_timeout(10s));
    asio::co_spawn(io, fencing_page::in_coroutines(zk), rethrow);
    io.run();
}
