#include <zkasio/queues/work_queue.hpp>

#include <zkasio/error.hpp>
#include <zkasio/queues/detail/claimer.hpp>
#include <zkasio/queues/detail/dead_items.hpp>
#include <zkasio/queues/detail/delivery_access.hpp>
#include <zkasio/queues/detail/directories.hpp>
#include <zkasio/queues/detail/puts.hpp>
#include <zkasio/queues/detail/queue_state.hpp>
#include <zkasio/recipe/is_for_next_session.hpp>
#include <zkasio/recipe/reports.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/recipe/wait_as.hpp>

#include <asio/dispatch.hpp>

#include <cstddef>
#include <exception>
#include <iterator>
#include <string_view>
#include <utility>

namespace zkasio {

using namespace queue_detail;

namespace queue_detail {

queue_state::~queue_state() {
    if (!kept) return;
    try {
        asio::dispatch(zk.get_executor(), [last = std::move(kept)]() mutable { last.reset(); });
    } catch (...) {
        // Out of memory: the claimer ends here.
    }
}

const state_ptr& queue_of(const state_ptr& state, const char* operation) {
    if (!state) throw error(errc::invalid_argument, operation, {}, "this work_queue was moved from");
    return state;
}

namespace {

// On the strand.
std::shared_ptr<claimer> claimer_of(const state_ptr& s, const session& on) {
    s->kept = claimer::of(on, s->what);
    return s->kept;
}

// ------------------------------------------------------------------------------------------------------------- putting

asio::awaitable<void> create_queue(state_ptr s) {
    const spec_ptr what = queue_of(s, "create")->what;
    const session on = co_await toolbox(s->zk).current_session("create", what->path);
    co_await create_directories(on.patient(), what);
}

asio::awaitable<void> put_in_some_session(state_ptr s, std::vector<bytes> items, put_options how) {
    for (;;) {
        const session on = co_await toolbox(s->zk).current_session("put", s->what->path);
        asio::dispatch(on.get_executor(), [s, on] { claimer_of(s, on); });
        try {
            co_return co_await put_together(on.patient(), s->what, items, how);
        } catch (const error& e) {
            if (!is_for_next_session(e)) throw;
        }
    }
}

// The beginning of the names of new items.
std::string prefix_of_items(const queue_spec& what, const put_options& how, std::string_view operation) {
    try {
        return what.names.prefix(how);
    } catch (const error&) {
        rethrow_step_as(operation, what.path);
    }
}

asio::awaitable<void> put_items(state_ptr s, std::vector<bytes> items, put_options how) {
    const spec_ptr what = queue_of(s, "put")->what;
    const std::string name = prefix_of_items(*what, how, "put");
    for (const bytes& item : items) require_size(*what, item);
    for (std::size_t put = 0; put < items.size();) {
        const std::size_t n = count_for_transaction(items, put, *what, name);
        const auto first = items.begin() + static_cast<std::ptrdiff_t>(put);
        std::vector<bytes> some(first, first + static_cast<std::ptrdiff_t>(n));
        commit_report r = begin_commit(commit_kind::put);
        r.parts = n;
        try {
            co_await reported_commit(put_in_some_session(s, std::move(some), how), s->zk, what->path, r);
        } catch (const error& e) {
            if (put == 0) throw;
            throw error(e.code(), e.operation(), e.path(), "after the first " + std::to_string(put) + " items", true);
        }
        put += n;
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

// ----------------------------------------------------------------------------------------------------------- consuming

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
// @param newest the session that the last call has used. A wait that has begun outlasts an outage: while this session
// lives, no connection is asked for. In the caller's frame.
asio::awaitable<item_claim_ptr> next_claim(state_ptr s, when_empty how, std::string operation,
                                           std::optional<session>& newest) {
    const std::string& path = s->what->path;
    for (;;) {
        if (!newest || newest->over()) {
            session next = co_await toolbox(s->zk).current_session(operation, path);
            newest.emplace(std::move(next));
        }
        const session on = *newest;
        const auto mine = std::make_shared<awaited_item>(how, toolbox(on).make_one_shot_event());
        asio::dispatch(on.get_executor(), [s, on, mine] { claimer_of(s, on)->enter(mine); });
        std::exception_ptr failed;
        bool once_more = false;
        try {
            const item_claim_ptr claim = co_await outcome_of(mine, operation, path);
            if (claim) co_await covered(claim, operation, path);
            co_return claim;
        } catch (const error& e) {
            // An unknown outcome does not matter: a claim ends with its session.
            once_more = e.code() == errc::session_expired || e.code() == errc::lock_lost;
            if (e.code() == errc::session_expired) newest.reset();
            failed = std::current_exception();
        } catch (...) {
            failed = std::current_exception();
        }
        if (mine->withdraw()) asio::dispatch(on.get_executor(), [s, on] { claimer::of(on, s->what)->left(); });
        if (!once_more) std::rethrow_exception(failed);
    }
}

asio::awaitable<std::optional<std::string>> take_item(state_ptr s, when_empty how) {
    queue_of(s, "take");
    std::optional<session> newest;
    for (;;) {
        const item_claim_ptr claim = co_await next_claim(s, how, "take", newest);
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

asio::awaitable<work_queue_info> count(state_ptr s) {
    const spec_ptr what = queue_of(s, "info")->what;
    const session on = co_await toolbox(s->zk).current_session("info", what->path);
    asio::dispatch(on.get_executor(), [s, on] { claimer_of(s, on); });
    co_return co_await count_items(on.patient(), what);
}

asio::awaitable<std::vector<dead_item>> all_dead(state_ptr s) {
    const spec_ptr what = queue_of(s, "dead")->what;
    const session on = co_await toolbox(s->zk).current_session("dead", what->path);
    co_return co_await list_dead(on.patient(), what);
}

asio::awaitable<bool> revive_in_some_session(state_ptr s, std::string name) {
    const spec_ptr what = queue_of(s, "revive")->what;
    for (;;) {
        const session on = co_await toolbox(s->zk).current_session("revive", what->path);
        asio::dispatch(on.get_executor(), [s, on] { claimer_of(s, on); });
        try {
            co_return co_await revive_item(on.patient(), what, name);
        } catch (const error& e) {
            if (!is_for_next_session(e)) throw;
        }
    }
}

}  // namespace

asio::awaitable<delivery> receive_item(state_ptr s) {
    queue_of(s, "receive");
    std::optional<session> newest;
    item_claim_ptr claim = co_await next_claim(s, when_empty::wait, "receive", newest);
    co_return delivery_access::make(std::move(claim), s->zk.keep_open());
}

}  // namespace queue_detail

work_queue::work_queue(client zk, std::string path, work_queue_options options) {
    state_ = std::make_shared<queue_state>(std::move(zk), std::move(path), std::move(options));
}

asio::awaitable<void> work_queue::put(bytes item, put_options how) const {
    return put_item(state_, std::move(item), how);
}
asio::awaitable<void> work_queue::put_all(std::vector<std::string> items, put_options how) const {
    return put_texts(state_, std::move(items), how);
}
void work_queue::put_with(transaction& steps, bytes item, put_options how) const {
    const queue_spec& what = *queue_of(state_, "put_with")->what;
    if (how.delay() != how.delay().zero() || what.names.tell_times())
        throw error(errc::invalid_argument, "put_with", what.path, "only put() knows the servers' time for a delay");
    add_put(steps, what, what.item(prefix_of_items(what, how, "put_with")), std::move(item));
}
asio::awaitable<void> work_queue::create() const { return create_queue(state_); }
asio::awaitable<std::string> work_queue::take() const { return take_certainly(state_); }
asio::awaitable<std::optional<std::string>> work_queue::try_take() const {
    return take_item(state_, when_empty::give_up);
}
asio::awaitable<delivery> work_queue::receive() const { return receive_item(state_); }
asio::awaitable<work_queue_info> work_queue::info() const { return count(state_); }
asio::awaitable<std::vector<dead_item>> work_queue::dead() const { return all_dead(state_); }
asio::awaitable<bool> work_queue::revive(std::string name) const {
    return revive_in_some_session(state_, std::move(name));
}
const std::string& work_queue::path() const { return queue_of(state_, "path")->what->path; }

}  // namespace zkasio
