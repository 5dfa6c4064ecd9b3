#include <zkasio/queues/detail/queue_state.hpp>

#include <zkasio/error.hpp>
#include <zkasio/queues/detail/due_clock.hpp>
#include <zkasio/queues/detail/queue_spec.hpp>
#include <zkasio/recipe/errors.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/recipe/receipts.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/session_local.hpp>

#include <asio/dispatch.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace zkasio::queue_detail {
namespace {

constexpr std::size_t most_puts = 1000;  // in one transaction

// The beginning of the paths of these items: where they wait for a time, or for a consumer.
asio::awaitable<std::string> prefix_for(session on, receipts with, spec_ptr what, put_options how) {
    const item_names& names = what->names;
    if (how.delay() == how.delay().zero() && !names.tell_times()) co_return what->item(names.prefix(how));
    const server_time due = co_await ask_servers_time(on, with, "put") + how.delay();
    co_return names.tell_times() ? what->item(names.prefix(how, due))
                                 : join_path(what->later, names.later_prefix(due, how));
}

// Runs a step that a put needs before its transaction. Errors of the step never say that the items may be there.
template <class T>
asio::awaitable<T> not_yet_put(asio::awaitable<T> preparation, spec_ptr what) {
    try {
        co_return co_await std::move(preparation);
    } catch (const error&) {
        try {
            rethrow_as_not_written();
        } catch (const error&) {
            rethrow_as("put", what->path);
        }
    } catch (const std::system_error& e) {  // of a pause that was cancelled
        throw error(e.code(), "put", what->path);
    }
}

// ----------------------------------------------------------------------------------- puts that travel together

// The items of one put_together(): made by the caller, sent by a put_group.
class load {
public:
    load(std::string prefix, std::vector<bytes> items, const queue_spec& what, one_shot_event done)
        : prefix_(std::move(prefix)), items_(std::move(items)), done_(std::move(done)) {
        for (const bytes& item : items_) size_ += item.size() + what.bytes_around_item() + prefix_.size();
    }

    const std::string& prefix() const noexcept { return prefix_; }
    std::size_t count() const noexcept { return items_.size(); }
    std::size_t size() const noexcept { return size_; }
    const one_shot_event& done() const noexcept { return done_; }
    void add_to(transaction& steps, const queue_spec& what) const {
        for (const bytes& item : items_) add_put(steps, what, prefix_, item);
    }

    /// Exactly one of the two succeeds: the group takes the load into a transaction, or the caller withdraws it.
    bool take() noexcept { return leave_waiting(state::taken); }
    bool withdraw() noexcept { return leave_waiting(state::withdrawn); }

    /// The outcome, told once, by the group. @param why null: the items are put.
    void end(std::exception_ptr why) noexcept {
        failed_ = std::move(why);
        done_.fire();
    }
    /// To be called after done().
    void throw_if_failed(const std::string& path) const {
        if (failed_) rethrow_to_caller(failed_, "put", path);
    }

private:
    enum class state {
        waiting,
        taken,
        withdrawn
    };
    bool leave_waiting(state next) noexcept {
        state now = state::waiting;
        return state_.compare_exchange_strong(now, next);
    }

    const std::string prefix_;
    const std::vector<bytes> items_;
    const one_shot_event done_;
    std::size_t size_ = 0;
    std::atomic<state> state_{state::waiting};
    std::exception_ptr failed_;  // written before `done_` is fired
};
using load_ptr = std::shared_ptr<load>;

// A put that waits until its items have room: made by the caller, told by a put_group.
struct waiting_put {
    waiting_put(std::size_t count, std::size_t most, one_shot_event e)
        : items(count), most_items(most), done(std::move(e)) {}

    const std::size_t items, most_items;
    const one_shot_event done;
    std::atomic<bool> has_left{false};
    std::uint64_t number = 0;   // of the group: in the order in which they came
    std::exception_ptr failed;  // written before `done` is fired
};
using waiting_put_ptr = std::shared_ptr<waiting_put>;

// Puts travel together that create the same kind of nodes: a queue may be used with two ACLs.
std::string key_of(const queue_spec& what) {
    std::string key = "puts " + what.key() + ' ' + what.receipts;
    for (const acl_entry& e : what.options.acl())
        key += ' ' + std::to_string(static_cast<int>(e.granted())) + ' ' + e.who().scheme() + ' ' + e.who().id();
    return key;
}

// The puts of one session to one queue with one ACL. While `most_under_way` transactions are under way, further puts
// wait, and travel together in the next one. Puts for which a full queue has no room wait in order, behind one question
// for the number of items at a time, which is asked at growing intervals: a watch would cost a listing of all items
// after each item that is done. On the strand.
class put_group final : public session_local, public std::enable_shared_from_this<put_group> {
public:
    put_group(const session& on, spec_ptr what)
        : on_(on.patient()),
          what_(std::move(what)),
          receipts_(on_, what_->receipts, what_->options.acl(), missing_parents::create_persistent) {}

    static std::shared_ptr<put_group> of(const session& on, const spec_ptr& what) {
        const auto make = [&] { return std::make_shared<put_group>(on, what); };
        return std::static_pointer_cast<put_group>(toolbox(on).local(key_of(*what), make));
    }

    void add(load_ptr l) {
        waiting_.push_back(std::move(l));
        if (under_way_ == most_under_way) return;
        ++under_way_;
        toolbox(on_).run_in_background(write_all(shared_from_this()));
    }

    void wait_for_room(waiting_put_ptr p) {
        p->number = ++last_number_;
        no_room_.push_back(std::move(p));
        if (!room_pauses_) ask();
    }

    /// A put does not wait for room any more.
    void left() noexcept {
        while (!no_room_.empty() && no_room_.front()->has_left) no_room_.pop_front();
        if (no_room_.empty()) end_wait();
    }

    void session_over(std::error_code why) noexcept override {
        const std::exception_ptr failed = std::make_exception_ptr(error(why, "put", what_->path));
        for (const load_ptr& l : std::exchange(waiting_, {}))
            if (l->take()) l->end(failed);
        refuse_all(failed);
    }

private:
    static constexpr int most_under_way = 16;
    using loads = std::vector<load_ptr>;

    // Asks for the number of items, once; puts that come meanwhile need a later answer.
    void ask() {
        if (!room_pauses_) room_pauses_.emplace(toolbox(on_).make_back_off());
        if (!std::exchange(is_asking_, true)) toolbox(on_).run_in_background(ask_once(shared_from_this()));
    }

    static asio::awaitable<void> ask_once(std::shared_ptr<put_group> self) {
        const std::uint64_t last_asked = self->last_number_;
        std::optional<node_stat> found;
        std::exception_ptr failed;
        try {
            found = co_await self->on_.exists(self->what_->items);
        } catch (...) {
            failed = std::current_exception();
        }
        self->is_asking_ = false;
        if (failed)
            self->refuse_all(failed);
        else
            self->admit(last_asked, found ? static_cast<std::size_t>(found->num_children) : 0);
    }

    void admit(std::uint64_t last_asked, std::size_t there) {
        bool is_full = false, has_admitted = false;
        while (!no_room_.empty() && no_room_.front()->number <= last_asked) {
            const waiting_put_ptr p = no_room_.front();
            is_full = !p->has_left && there > 0 && there + p->items > p->most_items;
            if (is_full) break;
            no_room_.pop_front();
            if (p->has_left) continue;
            there += p->items;
            has_admitted = true;
            p->done.fire();
        }
        if (no_room_.empty()) return end_wait();
        if (!is_full) return ask();
        if (has_admitted) room_pauses_->reset();
        room_pauses_->then(on_.get_executor(), [self = shared_from_this()] { self->ask(); });
    }

    void refuse_all(const std::exception_ptr& why) noexcept {
        for (const waiting_put_ptr& p : std::exchange(no_room_, {})) {
            p->failed = why;
            p->done.fire();
        }
        end_wait();
    }

    void end_wait() noexcept {
        no_room_.clear();
        room_pauses_.reset();
    }

    loads take_next() {
        loads next;
        std::size_t count = 0, size = 0;
        while (!waiting_.empty()) {
            const load_ptr& first = waiting_.front();
            const bool fits = count + first->count() <= most_puts && size + first->size() <= what_->largest_item();
            if (!next.empty() && !fits) break;
            const load_ptr l = first;
            waiting_.pop_front();
            if (!l->take()) continue;
            count += l->count();
            size += l->size();
            next.push_back(l);
        }
        return next;
    }

    static asio::awaitable<void> write_all(std::shared_ptr<put_group> self) {
        while (!self->waiting_.empty()) {
            const loads next = self->take_next();
            if (!next.empty()) co_await self->write(next);
        }
        --self->under_way_;
    }

    asio::awaitable<void> write(loads all) {
        std::exception_ptr failed;
        bool one_by_one = false;
        try {
            co_await write_in_one(all);
        } catch (const error& e) {
            failed = std::current_exception();
            // The reason may be the item of another put.
            one_by_one = all.size() > 1 && !e.outcome_unknown() && e.code() != condition::session_ended &&
                         e.code() != condition::cancelled;
        } catch (...) {
            failed = std::current_exception();
        }
        if (!one_by_one) {
            for (const load_ptr& l : all) l->end(failed);
            co_return;
        }
        for (const load_ptr& l : all) {
            const loads one(1, l);
            co_await write(one);
        }
    }

    asio::awaitable<void> write_in_one(const loads& all) {
        transaction steps;
        for (const load_ptr& l : all) l->add_to(steps, *what_);
        back_off pauses = toolbox(on_).make_back_off();
        for (;;) {
            try {
                co_await receipts_.apply(steps, "put");
                co_return;
            } catch (const error& e) {
                const auto is_named = [&](const load_ptr& l) { return l->prefix() == e.path(); };
                const bool no_directory = e.code() == zk_errc::no_node && std::any_of(all.begin(), all.end(), is_named);
                if (!no_directory || e.outcome_unknown()) throw;
            }
            co_await not_yet_put(create_directories(on_, what_), what_);
            co_await not_yet_put(pauses.pause(), what_);
        }
    }

    const session on_;
    const spec_ptr what_;
    const receipts receipts_;
    std::deque<load_ptr> waiting_;
    int under_way_ = 0;
    std::deque<waiting_put_ptr> no_room_;
    std::uint64_t last_number_ = 0;
    std::optional<back_off> room_pauses_;  // while puts wait for room
    bool is_asking_ = false;
};

// Waits until `more` items have room, or the queue is empty.
asio::awaitable<void> until_room(session on, spec_ptr what, std::size_t more) {
    const std::size_t most = what->options.most_items();
    const auto mine = std::make_shared<waiting_put>(more, most, toolbox(on).make_one_shot_event());
    asio::dispatch(on.get_executor(), [on, what, mine] { put_group::of(on, what)->wait_for_room(mine); });
    try {
        co_await errors_as("put", what->path, mine->done.wait());
    } catch (...) {
        mine->has_left = true;
        asio::dispatch(on.get_executor(), [on, what] { put_group::of(on, what)->left(); });
        throw;
    }
    if (mine->failed) rethrow_to_caller(mine->failed, "put", what->path);
}

}  // namespace

void require_size(const queue_spec& what, const bytes& item) {
    if (item.size() <= what.largest_item()) return;
    throw error(errc::too_large, "put", what.path,
                "an item has at most " + std::to_string(what.largest_item()) + " bytes");
}

void add_put(transaction& steps, const queue_spec& what, std::string prefix, bytes item) {
    require_size(what, item);
    steps.create(std::move(prefix), what.payload.pack(std::move(item).take()),
                 what.of_mode(create_mode::persistent_sequential));
}

std::size_t count_for_transaction(const std::vector<bytes>& items, std::size_t first, const queue_spec& what,
                                  std::string_view prefix) {
    const std::size_t around = what.bytes_around_item() + prefix.size();
    std::size_t n = 1, size = items[first].size() + around;
    for (; first + n < items.size() && n < most_puts; ++n) {
        size += items[first + n].size() + around;
        if (size > what.largest_item()) break;
    }
    return n;
}

asio::awaitable<void> put_together(session on, spec_ptr what, std::vector<bytes> items, put_options how) {
    const receipts with(on, what->receipts, what->options.acl(), missing_parents::create_persistent);
    if (what->options.most_items() > 0) co_await not_yet_put(until_room(on, what, items.size()), what);
    const std::string prefix = co_await not_yet_put(prefix_for(on, with, what, how), what);
    const auto mine =
        std::make_shared<load>(prefix, std::move(items), *what, toolbox(on).make_one_shot_event());
    asio::dispatch(on.get_executor(), [on, what, mine] { put_group::of(on, what)->add(mine); });
    try {
        co_await errors_as("put", what->path, mine->done().wait());
    } catch (const std::system_error& e) {  // no zkasio::error if this coroutine was cancelled before it waited
        const bool may_be_put = !mine->withdraw();
        const auto* const named = dynamic_cast<const error*>(&e);
        throw error(e.code(), "put", what->path, named ? named->hint() : std::string(), may_be_put);
    }
    mine->throw_if_failed(what->path);
}

}  // namespace zkasio::queue_detail
