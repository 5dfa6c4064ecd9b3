#include <zkasio/locks/detail/reader_node.hpp>

#include <zkasio/recipe/certain.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <utility>

namespace zkasio::lock_detail {
namespace {

transaction steps_of(const lock_spec& as, const std::string& path, const std::string& writer) {
    create_options options = as.node;
    options.mode(create_mode::ephemeral);
    transaction steps;
    steps.create(path, bytes(as.data), options);
    steps.remove(writer);
    return steps;
}

// Looks for the node, after all requests that were sent before.
asio::awaitable<std::optional<node_stat>> find(session on, std::string directory, std::string path, bool sync_first) {
    auto look = [&]() -> asio::awaitable<std::optional<node_stat>> {
        if (sync_first) co_await on.sync(directory);  // a server that lags behind does not show the node yet
        co_return co_await on.exists(path);
    };
    co_return co_await retry_until_certain(toolbox(on).make_back_off(), look);
}

}  // namespace

asio::awaitable<std::optional<created>> replace_by_reader_node(session on, lock_spec_ptr as, std::string path,
                                                               std::string writer) {
    const transaction steps = steps_of(*as, path, writer);
    back_off pauses = toolbox(on).make_back_off();
    for (;;) {
        std::error_code failed;
        std::optional<error> hung_up;
        try {
            co_await on.multi(steps);
        } catch (const error& e) {
            if (e.code() == zk_errc::no_node) co_return std::nullopt;
            // node_exists: an earlier attempt, whose answer was lost, was carried out.
            if (e.code() != zk_errc::node_exists && e.code() != condition::retryable) throw;
            failed = e.code();
            if (e.hung_up()) hung_up.emplace(e);
        }
        const std::optional<node_stat> there = co_await find(on, as->directory, path, bool(failed));
        if (there) {
            if (failed) toolbox(on).was_applied(writer);
            std::optional<created> node(std::in_place);
            node->path = path;
            node->stat = *there;
            co_return node;
        }
        if (!failed) co_return std::nullopt;
        if (hung_up) throw hung_up->not_applied();
        co_await pauses.pause();
    }
}

}  // namespace zkasio::lock_detail
