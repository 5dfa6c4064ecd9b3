#include <zkasio/locks/detail/fixed_node.hpp>

#include <zkasio/error.hpp>
#include <zkasio/recipe/certain.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <utility>

namespace zkasio::lock_detail {

asio::awaitable<std::optional<node_stat>> find_fixed_node(session on, std::string path) {
    auto ask = [&]() -> asio::awaitable<std::optional<node_stat>> {
        co_await on.sync(path);  // a server that lags behind still shows what is gone, and not yet what is new
        co_return co_await on.exists(path);
    };
    std::optional<node_stat> there;
    try {
        there = co_await retry_until_certain(toolbox(on).make_back_off(), ask);
    } catch (const error& e) {
        if (e.code() != zk_errc::no_node) throw;
    }
    co_return there;
}

asio::awaitable<void> remove_fixed_node(session on, std::string path, std::int64_t czxid) {
    auto attempt = [&]() -> asio::awaitable<void> {
        const std::optional<node_stat> there = co_await find_fixed_node(on, path);
        if (there && there->czxid == czxid) co_await on.remove(path);
    };
    try {
        co_await retry_until_certain(toolbox(on).make_back_off(), attempt);
    } catch (const error& e) {
        if (e.code() != zk_errc::no_node) throw;
    }
}

fixed_node_attempt::fixed_node_attempt(session on, std::string path, std::shared_ptr<const void> sole_right,
                                       std::function<asio::awaitable<void>(std::int64_t)> remove)
    : on_(std::move(on)), path_(std::move(path)), sole_right_(std::move(sole_right)), remove_(std::move(remove)) {}

fixed_node_attempt::~fixed_node_attempt() {
    if (!uncertain_) return;
    toolbox(on_).run_in_background(clean_up(on_, path_, sole_right_, remove_, orphan_));
}

asio::awaitable<std::optional<std::int64_t>> fixed_node_attempt::created(
    std::function<asio::awaitable<std::int64_t>()> create) {
    back_off pauses = toolbox(on_).make_back_off();
    std::optional<std::int64_t> czxid;
    orphan_ = co_await toolbox(on_).orphan_at(path_);
    for (bool again = true; again;) {
        bool lost = false;
        std::optional<error> hung_up;
        again = false;
        uncertain_ = true;
        try {
            czxid = co_await create();
        } catch (const error& e) {
            lost = e.outcome_unknown() && e.code() == condition::retryable;
            again = !lost && e.code() == condition::retryable;
            const bool taken = e.code() == zk_errc::node_exists;
            if (!e.outcome_unknown()) uncertain_ = false;
            if (!lost && !taken && !again) throw;
            if (e.hung_up()) hung_up.emplace(e);
        }
        if (lost) {
            const std::optional<node_stat> there = co_await find_fixed_node(on_, path_);
            if (there && there->ephemeral_owner == on_.id() && there->czxid != orphan_) {
                czxid = there->czxid;
                toolbox(on_).was_applied(path_);
            }
            again = !there;  // the create was not carried out
            if (again && hung_up) {
                uncertain_ = false;
                throw hung_up->not_applied();
            }
        }
        if (again) co_await pauses.pause();
    }
    uncertain_ = false;
    co_return czxid;
}

asio::awaitable<void> fixed_node_attempt::clean_up(session on, std::string path,
                                                   std::shared_ptr<const void> sole_right,
                                                   std::function<asio::awaitable<void>(std::int64_t)> remove,
                                                   std::optional<std::int64_t> orphan) {
    const std::optional<node_stat> there = co_await find_fixed_node(on, path);
    if (!there || there->ephemeral_owner != on.id() || there->czxid == orphan) co_return;
    try {
        co_await remove(there->czxid);
    } catch (const error& e) {
        if (e.code() == zk_errc::no_auth)
            toolbox(on).remove_when_allowed(path, [=, czxid = there->czxid] {
                [[maybe_unused]] const auto& kept = sole_right;
                return remove(czxid);
            });
        throw;  // so that it is logged
    }
}

}  // namespace zkasio::lock_detail
