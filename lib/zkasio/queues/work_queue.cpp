#include <zkasio/queues/work_queue.hpp>

#include <zkasio/error.hpp>
#include <zkasio/path.hpp>
#include <zkasio/queues/detail/claimer.hpp>
#include <zkasio/queues/detail/queue_spec.hpp>
#include <zkasio/queues/detail/queue_state.hpp>
#include <zkasio/recipe/errors.hpp>
#include <zkasio/recipe/reports.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/dispatch.hpp>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <iterator>
#include <string_view>
#include <utility>

namespace zkasio {
namespace {

std::string checked(std::string lock_path) {
    if (!lock_path.empty()) require_path("queue_layout", lock_path);
    return lock_path;
}

}  // namespace

queue_layout queue_layout::curator(std::string lock_path) {
    return queue_layout(queue_kind::curator, checked(std::move(lock_path)));
}
queue_layout queue_layout::curator_priority(std::string lock_path) {
    return queue_layout(queue_kind::curator_priority, checked(std::move(lock_path)));
}
queue_layout queue_layout::curator_delay(std::string lock_path) {
    return queue_layout(queue_kind::curator_delay, checked(std::move(lock_path)));
}
queue_layout queue_layout::curator_id(std::string lock_path) {
    return queue_layout(queue_kind::curator_id, checked(std::move(lock_path)));
}

namespace {

[[noreturn]] void refuse_option(const char* operation, const char* why) {
    throw error(errc::invalid_argument, operation, {}, why);
}

constexpr std::chrono::milliseconds longest_delay = std::chrono::hours(24 * 366 * 100);

}  // namespace

put_options& put_options::delay(any_duration d) {
    const std::chrono::milliseconds time = d;
    if (time < time.zero() || time > longest_delay) refuse_option("put", "a delay is from 0 to 100 years");
    delay_ = time;
    return *this;
}

work_queue_options& work_queue_options::most_deliveries(int n) {
    if (n < 0) refuse_option("work_queue", "a number of deliveries is not negative");
    most_deliveries_ = n;
    return *this;
}

consume_options& consume_options::parallel(std::size_t n) {
    if (n == 0) refuse_option("consume", "at least one item is worked on at a time");
    parallel_ = n;
    return *this;
}

consume_options& consume_options::pause(any_duration first, any_duration longest) {
    const std::chrono::milliseconds one = first, most = longest;
    if (std::min(one, most) < one.zero()) refuse_option("consume", "a pause is not negative");
    first_pause_ = one;
    longest_pause_ = most;
    return *this;
}

std::chrono::milliseconds consume_options::pause_after(int attempt) const noexcept {
    std::chrono::milliseconds pause = first_pause_;
    for (int i = 1; i < attempt && pause < longest_pause_ && pause.count() > 0; ++i)
        pause = pause > longest_pause_ / 2 ? longest_pause_ : 2 * pause;
    return std::min(pause, longest_pause_);
}

using namespace queue_detail;

namespace queue_detail {

queue_state::~queue_state() {
    if (!kept) return;
    asio::dispatch(zk.get_executor(), [last = std::move(kept)]() mutable { last.reset(); });
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
    co_await errors_as("create", what->path, create_directories(on.patient(), what));
}

asio::awaitable<void> put_in_some_session(state_ptr s, std::vector<bytes> items, put_options how) {
    session_pace pace = toolbox(s->zk).make_session_pace();
    for (;;) {
        const session on = co_await toolbox(s->zk).current_session("put", s->what->path);
        asio::dispatch(on.get_executor(), [s, on] { claimer_of(s, on); });
        try {
            co_return co_await put_together(on.patient(), s->what, items, how);
        } catch (const error& e) {
            if (!is_for_next_session(e)) rethrow_as("put", s->what->path);
        }
        co_await pace.pause("put", s->what->path);
    }
}

// The beginning of the names of new items.
std::string prefix_of_items(const queue_spec& what, const put_options& how, std::string_view operation) {
    try {
        return what.names.prefix(how);
    } catch (const error&) {
        rethrow_as(operation, what.path);
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

// Waits until the lease covers the claim.
asio::awaitable<void> covered(item_claim_ptr claim, std::string operation, std::string path) {
    try {
        co_await claim->hold().confirmed();
    } catch (...) {
        rethrow_as(operation, path);
    }
}

// Gives the consumer to the claimer of the session, and waits until the outcome is there.
// *Cancellation*: an outcome that is there is given up with `mine`; of a consumer that wants an item, it counts.
asio::awaitable<void> served(state_ptr s, session on, awaited_item_ptr mine, std::string operation) {
    asio::dispatch(on.get_executor(), [s, on, mine] { claimer_of(s, on)->enter(mine); });
    std::optional<error> failed;
    try {
        co_await errors_as(operation, s->what->path, mine->done().wait());
    } catch (const error& e) {
        failed.emplace(e);
    }
    if (!failed) co_return;
    const awaited_item::state before = mine->leave();
    if (before == awaited_item::state::done && mine->wants_item()) co_return;
    if (before == awaited_item::state::waiting)
        asio::dispatch(on.get_executor(), [s, on] { claimer::of(on, s->what)->left(); });
    throw error(failed->code(), failed->operation(), failed->path(), failed->hint(),
                before == awaited_item::state::removing);
}

// The newest session of the client, unless the last one lives. A wait that has begun outlasts an outage: while the
// session lives, no connection is asked for. @param last in the frame of a caller.
asio::awaitable<void> renew(state_ptr s, std::string operation, used_session& last) {
    if (last.on && !last.is_over && !last.on->over()) co_return;
    if (last.on) co_await last.pace.pause(operation, s->what->path);
    session next = co_await toolbox(s->zk).current_session(operation, s->what->path);
    last.on.emplace(std::move(next));
    last.is_over = false;
}

// The claim of an item in some session. @param in see renew().
asio::awaitable<item_claim_ptr> next_claim(state_ptr s, std::string operation, used_session& in) {
    const std::string& path = s->what->path;
    for (;;) {
        co_await renew(s, operation, in);
        const auto mine =
            std::make_shared<awaited_item>(when_empty::wait, wanted::claim, toolbox(*in.on).make_one_shot_event());
        try {
            co_await served(s, *in.on, mine, operation);
            item_claim_ptr claim = mine->take_claim(operation, path);
            co_await covered(claim, operation, path);
            co_return claim;
        } catch (const error& e) {
            // An unknown outcome does not matter: a claim ends with its session.
            if (e.code() == errc::session_expired)
                in.is_over = true;
            else if (e.code() != errc::lock_lost)
                rethrow_as(operation, path);
        }
    }
}

// Nothing: no item is free, and the consumer does not wait.
asio::awaitable<std::optional<std::string>> take_item(state_ptr s, when_empty how) {
    const std::string path = queue_of(s, "take")->what->path;
    used_session in(s->zk);
    for (;;) {
        co_await renew(s, "take", in);
        const auto mine = std::make_shared<awaited_item>(how, wanted::item, toolbox(*in.on).make_one_shot_event());
        co_await served(s, *in.on, mine, "take");
        try {
            co_return mine->take_item("take", path);
        } catch (const error& e) {
            // Only the outcome of the removal matters: a claim ends with its session.
            const bool may_be_removed = e.outcome_unknown() && mine->was_removal();
            if (e.code() == errc::session_expired && !may_be_removed)
                in.is_over = true;
            else if (e.code() != errc::lock_lost)
                rethrow_as("take", path);
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
    asio::awaitable<work_queue_info> counting = count_items(on.patient(), what);
    co_return co_await errors_as("info", what->path, std::move(counting));
}

asio::awaitable<std::vector<dead_item>> all_dead(state_ptr s) {
    const spec_ptr what = queue_of(s, "dead")->what;
    const session on = co_await toolbox(s->zk).current_session("dead", what->path);
    asio::awaitable<std::vector<dead_item>> listing = list_dead(on.patient(), what);
    co_return co_await errors_as("dead", what->path, std::move(listing));
}

asio::awaitable<bool> revive_in_some_session(state_ptr s, std::string name) {
    const spec_ptr what = queue_of(s, "revive")->what;
    session_pace pace = toolbox(s->zk).make_session_pace();
    for (;;) {
        const session on = co_await toolbox(s->zk).current_session("revive", what->path);
        asio::dispatch(on.get_executor(), [s, on] { claimer_of(s, on); });
        try {
            co_return co_await revive_item(on.patient(), what, name);
        } catch (const error& e) {
            if (!is_for_next_session(e)) rethrow_as("revive", what->path);
        }
        co_await pace.pause("revive", what->path);
    }
}

}  // namespace

asio::awaitable<delivery> receive_item(state_ptr s, std::string operation, used_session* in) {
    used_session own(queue_of(s, operation.c_str())->zk);
    used_session& used = in ? *in : own;
    item_claim_ptr claim = co_await next_claim(s, operation, used);
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
asio::awaitable<delivery> work_queue::receive() const { return receive_item(state_, "receive"); }
asio::awaitable<work_queue_info> work_queue::info() const { return count(state_); }
asio::awaitable<std::vector<dead_item>> work_queue::dead() const { return all_dead(state_); }
asio::awaitable<bool> work_queue::revive(std::string name) const {
    return revive_in_some_session(state_, std::move(name));
}
const std::string& work_queue::path() const { return queue_of(state_, "path")->what->path; }

}  // namespace zkasio
