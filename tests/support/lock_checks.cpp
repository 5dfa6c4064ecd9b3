#include "support/lock_checks.hpp"

#include "support/surroundings.hpp"

#include <asio/post.hpp>

#include <algorithm>

namespace zkasio::test {
namespace {

asio::awaitable<void> keep(asio::awaitable<lock_guard> acquiring, std::shared_ptr<std::optional<lock_guard>> guard) {
    guard->emplace(co_await std::move(acquiring));
}

}  // namespace

asio::awaitable<std::vector<std::string>> children_of(client zk, std::string path) {
    std::vector<std::string> names;
    try {
        node_children list = co_await zk.children(path);
        names = std::move(list.names);
    } catch (const error& e) {
        if (e.code() != zk_errc::no_node) throw;
    }
    std::sort(names.begin(), names.end());
    co_return names;
}

std::vector<std::string> watched_below(const std::string& directory) {
    std::vector<std::string> found = surroundings::current().watched_paths();
    std::erase_if(found, [&](const std::string& path) {
        return path != directory && !path.starts_with(directory + "/");
    });
    return found;
}

asio::awaitable<void> until_quiet(test_client zk, std::string directory) {
    auto quiet = [&]() -> asio::awaitable<bool> {
        co_return zk.inside().watches() == 0 && zk.inside().pending_operations() == 0 &&
            watched_below(directory).empty();
    };
    co_await eventually(quiet);
}

long requests_of(const session& s) { return surroundings::current().requests_of(s); }

std::int32_t sequence_of(const lock_guard& guard) {
    constexpr std::size_t digits = 10;
    return std::stoi(guard.path().substr(guard.path().size() - digits));
}

asio::awaitable<void> turns(int n) {
    asio::steady_timer turn(co_await asio::this_coro::executor);
    for (int i = 0; i < n; ++i) {
        turn.expires_after(std::chrono::microseconds(20));
        co_await turn.async_wait(asio::use_awaitable);
    }
}

asio::awaitable<int> cancel_everywhere(std::function<asio::awaitable<void>()> attempt, int most) {
    const auto executor = co_await asio::this_coro::executor;
    int ended = 0, cancelled = 0;
    for (int i = 0, steps = 0; i < most && ended < 3; ++i, steps += 1 + steps / 20) {
        running r(executor, attempt());
        // Each post lets the loop look at its sockets once, and run what is ready: far finer than a round trip. Where
        // time is virtual it only passes when nothing is ready.
        for (int step = 0; step < steps && !r.ended(); ++step) {
            if (surroundings::current().has_real_time())
                co_await asio::post(executor, asio::use_awaitable);
            else
                co_await turns(1);
        }
        r.cancel();
        const std::error_code c = co_await r.code();
        CHECK((!c || c == condition::cancelled));
        ++(c ? cancelled : ended);
    }
    co_return cancelled;
}

taker::taker(asio::any_io_executor executor, asio::awaitable<lock_guard> acquiring)
    : guard_(std::make_shared<std::optional<lock_guard>>()), running_(executor, keep(std::move(acquiring), guard_)) {}

asio::awaitable<void> taker::got() const {
    const std::exception_ptr e = co_await running_.end();
    if (e) std::rethrow_exception(e);
}

}  // namespace zkasio::test
