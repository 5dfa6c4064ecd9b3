#include <zkasio/cache/cache.hpp>

#include <zkasio/cache/detail/cache_engine.hpp>
#include <zkasio/error.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/errors.hpp>

#include <utility>

namespace zkasio {

using namespace cache_detail;

cache::cache(const client& zk, std::string path, tree_scope scope, common_options options) : path_(std::move(path)) {
    const auto refuse = [this](errc code, std::string_view why) { throw error(code, "cache", path_, why); };
    if (const std::string problem = path_problem(path_); !problem.empty()) refuse(errc::invalid_path, problem);
    if (options.remembered_changes == 0) refuse(errc::invalid_argument, "it has to remember at least one change");
    if (options.reads_at_a_time == 0) refuse(errc::invalid_argument, "at least one read has to be under way");
    const board_limits most{options.remembered_changes, options.remembered_bytes};
    scope.parse = std::move(options.parser);
    try {
        auto board = std::make_shared<cache_board>(zk, path_, most);
        engine_ =
            std::make_shared<cache_engine>(zk, path_, std::move(scope), options.reads_at_a_time, std::move(board));
    } catch (const error&) {
        rethrow_as("cache", path_);
    }
    auto stop = [open = zk.keep_open(), engine = engine_](const void*) { engine->stop(); };
    open_ = std::shared_ptr<const void>(engine_.get(), std::move(stop));
    engine_->begin(zk);
}

// The awaitables that the members return may outlive the cache: so they are coroutines that own all they need.
namespace {

using engine_ptr = std::shared_ptr<cache_engine>;

const engine_ptr& require_valid(const engine_ptr& engine) {
    if (!engine) throw error(errc::invalid_argument, "cache", {}, "this cache was moved from");
    return engine;
}

asio::awaitable<void> until_ready(engine_ptr engine) {
    co_await cache_board::until_ready(require_valid(engine)->board());
}

asio::awaitable<void> closed(engine_ptr engine) {
    require_valid(engine)->stop();
    co_await errors_as("close", engine->board()->path(), engine->stopped().wait());
}

}  // namespace

asio::awaitable<void> cache::ready() const { return until_ready(engine_); }
asio::awaitable<void> cache::close() const { return closed(engine_); }

cache_changes cache::changes() const {
    return make_view::changes(std::make_shared<cache_reader>(require_valid(engine_)->board()));
}

tree_view cache::view() const { return engine_ ? engine_->board()->latest() : tree_view(); }

}  // namespace zkasio
