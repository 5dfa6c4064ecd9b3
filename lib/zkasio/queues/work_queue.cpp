#include <zkasio/queues/work_queue.hpp>

#include <zkasio/error.hpp>
#include <zkasio/path.hpp>
#include <zkasio/queues/detail/claimer.hpp>
#include <zkasio/queues/detail/delivery_access.hpp>
#include <zkasio/queues/detail/item_names.hpp>
#include <zkasio/recipe/ensure_created.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/recipe/wait_as.hpp>

#include <asio/dispatch.hpp>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <iterator>
#include <utility>

namespace zkasio {

using namespace queue_detail;

namespace queue_detail {

struct queue_state {
    queue_state(client c, std::string path, work_queue_options options)
        : zk(std::move(c)), what(std::make_shared<const queue_spec>(std::move(path), std::move(options))) {}

    const client zk;
    const spec_ptr what;
    std::shared_ptr<claimer> kept;  // strand: of the newest session, with its receipts and what it knows of the items
};

namespace {

using state_ptr = std::shared_ptr<queue_state>;

const state_ptr& queue_of(const state_ptr& state, const char* operation) {
    if (!state) throw error(errc::invalid_argument, operation, {}, "this work_queue was moved from");
    return state;
}

// Nothing was written, and a later session may do it.
bool is_for_next_session(const error& e) { return e.code() == errc::session_expired && !e.outcome_unknown(); }

// On the strand.
std::shared_ptr<claimer> claimer_of(const state_ptr& s, const session& on) {
    s->kept = claimer::of(on, s->what);
    return s->kept;
}

// ---------------------------------------------------------------------------------------------------------- putting

asio::awaitable<void> create_directories(session on, spec_ptr what) {
    const create_options how = what->of_directory();
    co_await ensure_created(on, what->items, bytes(), how);
    co_await ensure_created(on, what->claims, bytes(), how);
}

asio::awaitable<void> create_queue(state_ptr s) {
    const spec_ptr what = queue_of(s, "create")->what;
    const session on = co_await toolbox(s->zk).current_session("create", what->path);
    co_await create_directories(on.patient(), what);
}

void add_put(transaction& steps, const queue_spec& what, bytes item, const put_options& how) {
    if (item.size() > what.largest_item())
        throw error(errc::too_large, "put", what.path,
                    "an item has at most " + std::to_string(what.largest_item()) + " bytes");
    const std::string name = item_prefix(how.priority());
    steps.create(what.item(name), std::move(item), what.of_mode(create_mode::persistent_sequential));
}

// Applies the puts once, in this session.
asio::awaitable<void> put_on(session on, spec_ptr what, transaction puts) {
    const receipts with(on, what->receipts, what->options.acl(), missing_parents::create_persistent);
    back_off pauses = toolbox(on).make_back_off();
    for (;;) {
        try {
            co_await with.apply(puts, "put");
            co_return;
        } catch (const error& e) {
            const bool no_directory = e.code() == zk_errc::no_node && parent_path(e.path()) == what->items;
            if (!no_directory || e.outcome_unknown()) throw;
        }
        co_await create_directories(on, what);
        co_await pauses.pause();
    }
}

asio::awaitable<void> put_in_some_session(state_ptr s, transaction puts) {
    for (;;) {
        const session on = co_await toolbox(s->zk).current_session("put", s->what->path);
        asio::dispatch(on.get_executor(), [s, on] { claimer_of(s, on); });
        try {
            co_return co_await put_on(on.patient(), s->what, puts);
        } catch (const error& e) {
            if (!is_for_next_session(e)) throw;
        }
    }
}

asio::awaitable<void> put_items(state_ptr s, std::vector<bytes> items, put_options how) {
    const spec_ptr what = queue_of(s, "put")->what;
    constexpr std::size_t most_puts = 1000;  // in one transaction
    std::size_t put = 0;
    while (put < items.size()) {
        transaction puts;
        std::size_t size = 0, next = put;
        for (; next < items.size() && next - put < most_puts; ++next) {
            const std::size_t more = items[next].size() + what->bytes_around_item();
            if (next > put && size + more > what->largest_item()) break;
            size += more;
            add_put(puts, *what, std::move(items[next]), how);
        }
        try {
            co_await put_in_some_session(s, std::move(puts));
        } catch (const error& e) {
            if (put == 0) throw;
            throw error(e.code(), e.operation(), e.path(), "after the first " + std::to_string(put) + " items", true);
        }
        put = next;
    }
}

asio::awaitable<void> put_item(state_ptr s, bytes item, put_options how) {
    std::vector<bytes> items;
    items.push_back(std::move(item));
    return put_items(std::move(s), std::move(items), how);
}

asio::awaitable<void> put_texts(state_ptr s, std::vector<std::string> texts, put_options how) {
    std::vector<bytes> items(std::make_move_iterator(texts.begin()), std::make_move_iterator(texts.end()));
    return put_items(std::move(s), std::move(items), how);
}

// --------------------------------------------------------------------------------------------------------- consuming

// Waits until the consumer, which has been given to a claimer, is served.
asio::awaitable<item_claim_ptr> outcome_of(awaited_item_ptr mine, std::string operation, std::string path) {
    co_await wait_as(mine->done(), operation, path);
    co_return mine->take_claim(operation, path);
}

// Waits until the lease covers the claim.
asio::awaitable<void> covered(item_claim_ptr claim, std::string operation, std::string path) {
    try {
        co_await claim->hold().confirmed();
    } catch (...) {
        rethrow_as(operation, path);
    }
}

// The claim of an item in some session; null: no item is free, and the consumer does not wait.
asio::awaitable<item_claim_ptr> next_claim(state_ptr s, when_empty how, std::string operation) {
    const std::string& path = s->what->path;
    for (;;) {
        const session on = co_await toolbox(s->zk).current_session(operation, path);
        const auto mine = std::make_shared<awaited_item>(how, toolbox(on).make_one_shot_event());
        asio::dispatch(on.get_executor(), [s, on, mine] { claimer_of(s, on)->enter(mine); });
        std::exception_ptr failed;
        bool next_session = false;
        try {
            const item_claim_ptr claim = co_await outcome_of(mine, operation, path);
            if (claim) co_await covered(claim, operation, path);
            co_return claim;
        } catch (const error& e) {
            // An unknown outcome does not matter: a claim ends with its session.
            next_session = e.code() == errc::session_expired || e.code() == errc::lock_lost;
            failed = std::current_exception();
        } catch (...) {
            failed = std::current_exception();
        }
        if (mine->withdraw()) asio::dispatch(on.get_executor(), [s, on] { claimer::of(on, s->what)->left(); });
        if (!next_session) std::rethrow_exception(failed);
    }
}

asio::awaitable<delivery> receive_item(state_ptr s) {
    queue_of(s, "receive");
    item_claim_ptr claim = co_await next_claim(s, when_empty::wait, "receive");
    co_return delivery_access::make(std::move(claim), s->zk.keep_open());
}

asio::awaitable<std::optional<std::string>> take_item(state_ptr s, when_empty how) {
    queue_of(s, "take");
    for (;;) {
        const item_claim_ptr claim = co_await next_claim(s, how, "take");
        if (!claim) co_return std::nullopt;
        try {
            co_await item_claim::finish(claim, transaction(), "take");
            co_return claim->item().data;
        } catch (const error& e) {
            if (e.code() != errc::lock_lost && !is_for_next_session(e)) throw;
        }
    }
}

asio::awaitable<std::string> take_certainly(state_ptr s) {
    std::optional<std::string> taken = co_await take_item(std::move(s), when_empty::wait);
    co_return std::move(*taken);
}

}  // namespace
}  // namespace queue_detail

work_queue::work_queue(client zk, std::string path, work_queue_options options) {
    if (const std::string problem = path_problem(path); !problem.empty())
        throw error(errc::invalid_path, "work_queue", path, problem);
    state_ = std::make_shared<queue_state>(std::move(zk), std::move(path), std::move(options));
}

asio::awaitable<void> work_queue::put(bytes item, put_options how) const {
    return put_item(state_, std::move(item), how);
}
asio::awaitable<void> work_queue::put_all(std::vector<std::string> items, put_options how) const {
    return put_texts(state_, std::move(items), how);
}
void work_queue::put_with(transaction& steps, bytes item, put_options how) const {
    add_put(steps, *queue_of(state_, "put_with")->what, std::move(item), how);
}
asio::awaitable<void> work_queue::create() const { return create_queue(state_); }
asio::awaitable<std::string> work_queue::take() const { return take_certainly(state_); }
asio::awaitable<std::optional<std::string>> work_queue::try_take() const {
    return take_item(state_, when_empty::give_up);
}
asio::awaitable<delivery> work_queue::receive() const { return receive_item(state_); }
const std::string& work_queue::path() const { return queue_of(state_, "path")->what->path; }

}  // namespace zkasio
