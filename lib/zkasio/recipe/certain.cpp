#include <zkasio/recipe/certain.hpp>

#include <zkasio/error.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <system_error>

namespace zkasio {

asio::awaitable<void> detail::run_until_certain(std::function<asio::awaitable<void>()> operation, back_off pauses) {
    if (!operation) throw error(errc::invalid_argument, "retry_until_certain", {}, "the operation is empty");
    for (;;) {
        try {
            co_await operation();
            co_return;
        } catch (const error& e) {
            if (e.code() != condition::retryable || e.hung_up()) throw;
        }
        co_await pauses.pause();
    }
}

namespace {

// Also if it may not be read.
asio::awaitable<bool> is_there(session on, std::string path) {
    try {
        const std::optional<node_stat> found = co_await newest_stat(on, path);
        co_return found.has_value();
    } catch (const error& e) {
        if (e.code() != zk_errc::no_auth) throw;
    }
    co_return true;
}

}  // namespace

asio::awaitable<void> ensure_created(session on, std::string path, bytes data, create_options how,
                                     std::string must_exist) {
    bool maybe_created = false;
    std::optional<error> hung_up;
    auto create_once = [&]() -> asio::awaitable<void> {
        transaction steps;
        if (!must_exist.empty()) steps.check(must_exist).create(path, data, how);
        try {
            if (steps.empty())
                co_await on.create_unless_exists(path, data, how);
            else
                co_await on.multi(std::move(steps));
        } catch (const error& e) {
            if (e.code() == zk_errc::node_exists) co_return;
            maybe_created = maybe_created || e.outcome_unknown();
            throw;
        }
    };
    auto create = [&]() -> asio::awaitable<void> {
        try {
            co_return co_await create_once();
        } catch (const error& e) {
            const bool has_no_containers = e.code() == zk_errc::unimplemented && must_exist.empty() &&
                                           how.mode() == create_mode::container;
            if (!has_no_containers) throw;
            how.mode(create_mode::persistent);
        }
        co_await create_once();
    };
    try {
        try {
            co_await retry_until_certain(toolbox(on).make_back_off(), create);
        } catch (const error& e) {
            if (!e.hung_up()) throw;
            hung_up.emplace(e);
        }
        if (!hung_up) co_return;
        const bool exists = co_await is_there(on, path);
        if (exists) {
            // Others make it beside that node with the same request, so servers do not hang up at it. Otherwise it may
            // have come by any other one.
            if (!must_exist.empty()) toolbox(on).was_applied(path);
            co_return;
        }
        maybe_created = false;
        throw hung_up->not_applied();
    } catch (const error& e) {
        if (e.outcome_unknown() == maybe_created) throw;
        throw error(e.code(), e.operation(), e.path(), e.hint(), maybe_created);
    } catch (const std::system_error& e) {  // thrown by a pause that was cancelled
        throw error(e.code(), "create_unless_exists", path, {}, maybe_created);
    }
}

asio::awaitable<std::optional<node_stat>> newest_stat(session on, std::string path) {
    auto look = [&]() -> asio::awaitable<std::optional<node_stat>> {
        co_await on.sync(path);  // a server that lags behind still shows what is gone, and not yet what is new
        co_return co_await on.exists(path);
    };
    try {
        co_return co_await retry_until_certain(toolbox(on).make_back_off(), look);
    } catch (const error& e) {
        if (e.code() != zk_errc::no_node) throw;
    }
    co_return std::nullopt;
}

asio::awaitable<std::vector<std::string>> children_if_any(operations on, std::string path) {
    std::optional<node_children> found = co_await if_exists(on.children(std::move(path)));
    std::vector<std::string> names;
    if (found) names = std::move(found->names);
    co_return names;
}

namespace {

// None if there is no node, or if the answer is an error.
asio::awaitable<std::int32_t> number_of_children(pending_data exists) {
    try {
        const node_data found = co_await exists.result();
        co_return found.stat.num_children;
    } catch (const error& e) {
        if (e.code() == condition::cancelled) throw;
        co_return 0;
    }
}

asio::awaitable<bool> is_any_named(operations on, std::string path, std::string marker) {
    try {
        const std::vector<std::string> names = co_await children_if_any(on, path);
        co_return std::any_of(names.begin(), names.end(),
                              [&](const std::string& name) { return sequence_behind(name, marker).has_value(); });
    } catch (const error& e) {
        if (e.code() == condition::cancelled) throw;
        co_return false;
    }
}

}  // namespace

asio::awaitable<bool> has_contenders(operations on, std::string path, std::string marker, pending_data earlier) {
    constexpr std::int32_t many = 16;  // of so many children, a listing would cost the servers too much
    const std::int32_t before = co_await number_of_children(earlier);
    if (before == 0) co_return false;
    if (before <= many) {
        const bool named = co_await is_any_named(on, path, std::move(marker));
        co_return named;
    }
    const pending_data now = toolbox(on).start_exists(std::move(path));
    const std::int32_t left = co_await number_of_children(now);
    co_return left > 0;
}

}  // namespace zkasio
