#include <zkasio/counters/detail/number_node.hpp>

#include <zkasio/error.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/recipe/errors.hpp>
#include <zkasio/recipe/if_exists.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <exception>
#include <optional>
#include <utility>

namespace zkasio::counter_detail {

std::int64_t number_in(const counter_spec& what, const std::string& data, const std::string& operation) {
    try {
        return what.options.format().parse()(data);
    } catch (const std::exception& e) {
        throw error(errc::invalid_argument, operation, what.path, std::string("its data is no counter's: ") + e.what());
    }
}

receipts receipts_of(const session& on, const counter_spec& what) {
    const std::string& elsewhere = what.options.receipts();
    if (elsewhere.empty()) return receipts(on, what.path, what.options.acl(), missing_parents::fail);
    return receipts(on, elsewhere, what.options.acl());
}

namespace {

asio::awaitable<numbered> read_now(session on, spec_ptr what, bool behind_sync, std::string operation) {
    create_options how;
    how.acl(what->options.acl()).parents(missing_parents::create_persistent);
    back_off pauses = toolbox(on).make_back_off();
    for (;; co_await pauses.pause()) {
        if (behind_sync) co_await on.sync(what->path);
        const std::optional<node_data> found = co_await if_exists(on.get(what->path));
        if (found) {
            numbered n;
            n.number = number_in(*what, found->data, operation);
            n.version = found->stat.version;
            co_return n;
        }
        const std::string zero = what->options.format().print()(0);
        bool created_now = false;
        try {
            const std::optional<created> made = co_await on.create_unless_exists(what->path, zero, how);
            created_now = made.has_value();
        } catch (const error& e) {
            if (e.code() != condition::retryable || e.hung_up()) rethrow_as_not_written();
        }
        if (created_now) co_return numbered();
        behind_sync = true;  // another client has created the node, or the answer was lost
    }
}

}  // namespace

asio::awaitable<numbered> read_number(session on, spec_ptr what, bool behind_sync, std::string operation) {
    asio::awaitable<numbered> reading = read_now(on, what, behind_sync, operation);
    return requests_as(std::move(operation), what->path, std::move(reading));
}

asio::awaitable<bool> write_number(receipts with, spec_ptr what, numbered last, std::int64_t next,
                                   std::string operation) {
    if (last.version < 0)
        throw error(std::make_error_code(std::errc::result_out_of_range), operation, what->path,
                    "the node was written 2^31 times, and its version is negative, which no write can name as its "
                    "condition: create the node anew, with the same number");
    transaction steps;
    steps.set(what->path, what->options.format().print()(next), last.version);
    try {
        co_await with.apply(std::move(steps), operation);
        co_return true;
    } catch (const error& e) {
        // no_node: of the node, or of the receipt that is to be created below the node.
        const bool conflict = e.code() == zk_errc::bad_version || e.code() == zk_errc::no_node;
        if (!conflict || e.outcome_unknown()) rethrow_request_as(operation, what->path);
    }
    co_return false;
}

asio::awaitable<lock_guard> take_turn(client zk, spec_ptr what, std::string operation) {
    const mutex queue(std::move(zk), what->options.promote_to());
    try {
        lock_guard guard = co_await requests_as(std::move(operation), what->path, queue.acquire());
        co_return guard;
    } catch (...) {
        rethrow_as_not_written();
    }
}

asio::awaitable<bool> is_queued(session on, spec_ptr what, pending_data earlier) {
    std::string marker = name_scheme::curator().mutex_marker();
    const bool queued =
        co_await has_contenders(operations(on), what->options.promote_to(), std::move(marker), earlier);
    co_return queued;
}

}  // namespace zkasio::counter_detail
