#include "support/lock_checks.hpp"

#include <asio/post.hpp>

#include <algorithm>
#include <cstdio>

namespace zkasio::test {
namespace {

// The answers of all servers, one after another.
std::string ask_all(const std::string& four_letters) {
    const std::string servers = shared_servers();
    std::string all;
    for (std::size_t at = 0; at < servers.size();) {
        const std::size_t end = std::min(servers.find(',', at), servers.size());
        all += four_letter_command(servers.substr(at, end - at), four_letters) + '\n';
        at = end + 1;
    }
    return all;
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        lines.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return lines;
}

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
    std::vector<std::string> found;
    for (const std::string& line : lines_of(ask_all("wchp")))
        if (line == directory || line.starts_with(directory + "/")) found.push_back(line);
    return found;
}

asio::awaitable<void> until_quiet(test_client zk, std::string directory) {
    auto quiet = [&]() -> asio::awaitable<bool> {
        co_return zk.inside().watches() == 0 && zk.inside().pending_operations() == 0 &&
            watched_below(directory).empty();
    };
    co_await eventually(quiet);
}

long requests_of(const session& s) {
    char id[20];
    std::snprintf(id, sizeof id, "0x%llx", static_cast<unsigned long long>(s.id()));
    for (const std::string& line : lines_of(ask_all("cons")))
        if (line.find(std::string("sid=") + id + ",") != std::string::npos)
            return std::stol(line.substr(line.find("recved=") + 7));
    return -1;
}

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
        // Each post lets the loop look at its sockets once, and run what is ready: far finer than a round trip.
        for (int step = 0; step < steps && !r.ended(); ++step) co_await asio::post(executor, asio::use_awaitable);
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
