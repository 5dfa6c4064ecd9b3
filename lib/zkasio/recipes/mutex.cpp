#include <zkasio/recipes/mutex.hpp>

#include <zkasio/deadline.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipes/detail/contender.hpp>

namespace zkasio {

using recipes::detail::contend;
using recipes::detail::patience;

namespace {

constexpr const char* marker = "lock-";  // Curator's LockInternals

lock_guard to_guard(recipes::detail::grant&& g) {
    return lock_guard(std::move(g.on), std::move(g.hold), std::move(g.path), fencing_token(g.czxid));
}

}  // namespace

mutex::mutex(client zk, std::string path, mutex_options options)
    : zk_(std::move(zk)), path_(std::move(path)), options_(std::move(options)) {
    std::string problem = path_problem(path_);
    if (problem.empty() && path_ == "/") problem = "a lock needs a directory of its own";
    if (!problem.empty()) throw error(errc::invalid_path, "mutex", path_, problem);
}

asio::awaitable<lock_guard> mutex::acquire() const {
    auto granted = co_await contend(zk_, path_, marker, options_.data(), options_.acl(), patience::wait);
    co_return to_guard(std::move(*granted));
}

asio::awaitable<std::optional<lock_guard>> mutex::try_acquire() const {
    auto granted = co_await contend(zk_, path_, marker, options_.data(), options_.acl(), patience::first_or_nothing);
    std::optional<lock_guard> guard;
    if (granted) guard.emplace(to_guard(std::move(*granted)));
    co_return guard;
}

asio::awaitable<std::optional<lock_guard>> mutex::try_acquire_for(std::chrono::nanoseconds limit) const {
    if (limit < std::chrono::nanoseconds::zero())
        throw error(errc::invalid_argument, "try_acquire_for", path_, "a time limit is not negative");
    if (limit == std::chrono::nanoseconds::zero()) return try_acquire();
    const auto now = boot_clock::now();
    return try_acquire_until(limit > boot_clock::time_point::max() - now ? boot_clock::time_point::max() : now + limit);
}

asio::awaitable<std::optional<lock_guard>> mutex::try_acquire_until(boot_clock::time_point limit) const {
    const mutex self = *this;
    std::optional<lock_guard> guard;
    bool had_connection = false;
    std::function<asio::awaitable<void>()> body = [&]() -> asio::awaitable<void> {
        co_await self.zk_.connected();
        had_connection = true;
        guard.emplace(co_await self.acquire());
    };
    co_await run_with_deadline(limit, std::move(body));
    // A very short limit may pass before we have even looked: that says nothing about the connection.
    if (!guard && !had_connection && self.zk_.state() != session_state::connected)
        throw error(errc::not_connected, "try_acquire", path_, "no connection within the time limit");
    co_return guard;
}

asio::awaitable<void> mutex::run_with_lock(std::function<asio::awaitable<void>(lock_guard&)> body) const {
    lock_guard guard = co_await acquire();
    std::function<asio::awaitable<void>()> bound = [&] { return body(guard); };
    co_await guard.run(std::move(bound));  // when it throws, the guard releases in the background
    co_await guard.release();
}

asio::awaitable<std::vector<contender_info>> mutex::contenders() const {
    const client zk = zk_;
    const std::string directory = path_;
    std::vector<contender_info> result;
    node_children found;
    std::error_code failed;
    try {
        found = co_await zk.children(directory);
    } catch (const error& e) {
        if (e.code() != zk_errc::no_node) throw;
        failed = e.code();
    }
    if (failed) co_return result;
    for (const std::string& name : recipes::detail::in_order(std::move(found.names), marker, directory)) {
        node_data node;
        std::error_code gone;
        try {
            node = co_await zk.get(join_path(directory, name));
        } catch (const error& e) {
            if (e.code() != zk_errc::no_node) throw;
            gone = e.code();
        }
        if (gone) continue;  // left since the listing
        contender_info info;
        info.path = join_path(directory, name);
        info.session_id = node.stat.ephemeral_owner;
        info.data = std::move(node.data);
        info.position = result.size();
        info.created_ms = node.stat.ctime;
        result.push_back(std::move(info));
    }
    co_return result;
}

}  // namespace zkasio
