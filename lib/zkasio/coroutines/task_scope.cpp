#include <zkasio/coroutines/task_scope.hpp>

#include <zkasio/detail/base/run_cancellable.hpp>
#include <zkasio/error.hpp>

#include <asio/associated_cancellation_slot.hpp>
#include <asio/async_result.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/co_spawn.hpp>
#include <asio/error.hpp>
#include <asio/execution/blocking.hpp>
#include <asio/post.hpp>
#include <asio/strand.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <exception>
#include <memory>
#include <system_error>
#include <typeinfo>

namespace zkasio::detail {
namespace {

// An element of a list that can be moved to another place in memory, and is taken out of the list when it is destroyed.
struct list_link {
    list_link() noexcept = default;
    list_link(list_link&& other) noexcept {
        if (!other.linked()) return;
        insert_before(*other.next);
        other.unlink();
    }
    ~list_link() { unlink(); }

    bool linked() const noexcept { return next != this; }
    void insert_before(list_link& there) noexcept {
        next = &there;
        previous = there.previous;
        previous->next = next->previous = this;
    }
    void unlink() noexcept {
        previous->next = next;
        next->previous = previous;
        previous = next = this;
    }

    list_link* previous = this;
    list_link* next = this;
};

enum class task_kind { body, spawned };

// A scope's entry for one task. Owned by the completion handler that co_spawn takes along: Asio 1.30 uses the slot of
// the signal even after the task's own coroutine has ended, if that coroutine has never been suspended.
struct task_node : list_link {
    task_node(std::shared_ptr<scope_state> s, task_kind k) noexcept : scope(std::move(s)), kind(k) {}

    std::shared_ptr<scope_state> scope;
    task_kind kind;
    asio::cancellation_signal signal;
};

// What throw_with_body_failure() throws, if the body has failed.
const std::type_info& type_of_nesting_error() {
    static const std::type_info& type = [&]() -> const std::type_info& {
        try {
            std::throw_with_nested(error(asio::error::operation_aborted, "with_task_scope"));
        } catch (const error& e) {
            return typeid(e);
        }
    }();
    return type;
}

// The exception with outcome_unknown(), if it is a zkasio::error: other exceptions have no place for the news.
std::exception_ptr told_of_unknown_outcome(const std::exception_ptr& thrown) {
    if (leaves_outcome_unknown(thrown)) return thrown;
    try {
        std::rethrow_exception(thrown);
    } catch (const error& e) {
        const auto* const outer = dynamic_cast<const std::nested_exception*>(&e);
        if (typeid(e) != (outer ? type_of_nesting_error() : typeid(error))) return thrown;  // of a class of the user's
        try {
            throw_with_body_failure(with_outcome_unknown(e, "a write of another task was under way"),
                                    outer ? outer->nested_ptr() : nullptr);
        } catch (...) {
            return std::current_exception();
        }
    } catch (...) {
    }
    return thrown;
}

}  // namespace

// Owned by its tasks alone. The scope owns the suspended coroutine that waits for the tasks' end, so nothing that this
// coroutine owns is destroyed before the tasks are, also when the execution context is destroyed with all of them.
class scope_state : public std::enable_shared_from_this<scope_state> {
public:
    explicit scope_state(const asio::any_io_executor& strand) : executor_(strand) {}
    virtual ~scope_state() = default;
    scope_state(const scope_state&) = delete;
    scope_state& operator=(const scope_state&) = delete;

    void start(asio::awaitable<void> task, task_kind kind);
    bool spawn(asio::awaitable<void> task);
    void task_ended(task_node& node, std::exception_ptr failed);
    void cancelled_by_caller(asio::cancellation_type how);
    void cancel_all_once();

    void refuse_other_threads(const char* operation) const;

    bool cancelled() const noexcept { return cancelled_; }
    std::size_t size() const noexcept { return running_ - (body_runs_ ? 1 : 0); }
    const asio::any_io_executor& executor() const noexcept { return executor_; }
    task_scope& handle() noexcept { return handle_; }

private:
    virtual void complete(std::exception_ptr outcome, bool outcome_unknown) = 0;
    void task_threw(std::exception_ptr what);
    void cancel_all(asio::cancellation_type how);
    std::exception_ptr outcome() const;

    asio::any_io_executor executor_;
    task_scope handle_{*this};
    list_link tasks_;
    std::size_t running_ = 0;
    bool body_runs_ = false, refused_ = false;
    bool cancelled_ = false, cancelled_by_caller_ = false, cancelled_terminally_ = false;
    bool outcome_unknown_ = false;  // of a write of some task, or of the body
    std::exception_ptr failure_;  // the first one
    // A cancellation that a task has ended with: one that has left the outcome of a write unknown, if there is any.
    std::exception_ptr aborted_;
};

namespace {

// co_spawn lets only terminal cancellation through, but the task is to see all types. The reset forgets a cancellation
// that has arrived before: there is none as long as co_spawn on the strand begins at once.
asio::awaitable<void> run_task(task_node* node, asio::awaitable<void> task) {
    std::exception_ptr failed;
    try {
        co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
        if (node->scope->cancelled()) throw std::system_error(asio::error::operation_aborted);
        co_await std::move(task);
    } catch (...) {
        failed = std::current_exception();
    }
    // co_spawn() of Boost 1.81 awaits a post after a coroutine that was never suspended, and throws into the event loop
    // if the coroutine was cancelled.
    co_await asio::this_coro::throw_if_cancelled(false);
    node->scope->task_ended(*node, std::move(failed));
}

// For a completion handler that does nothing, and is not called. Keeping another executor at work would take memory.
struct discarding_executor {
    template <class Function>
    void execute(Function&&) const noexcept {}
    discarding_executor require(asio::execution::blocking_t::never_t) const noexcept { return *this; }
    bool operator==(const discarding_executor&) const noexcept = default;
};

// The completion handler that co_spawn takes along. Does nothing, since run_task() itself tells the scope of its end.
struct task_handler {
    using cancellation_slot_type = asio::cancellation_slot;
    using executor_type = discarding_executor;
    cancellation_slot_type get_cancellation_slot() const noexcept { return slot; }
    executor_type get_executor() const noexcept { return {}; }
    void operator()(const std::exception_ptr&) const noexcept {}

    std::unique_ptr<task_node> node;
    asio::cancellation_slot slot = node->signal.slot();
};

template <class Handler>
class waited_scope final : public scope_state {
public:
    waited_scope(const asio::any_io_executor& strand, Handler&& handler)
        : scope_state(strand), handler_(std::move(handler)) {}

private:
    void complete(std::exception_ptr outcome, bool outcome_unknown) override {
        asio::post(executor(), [handler = std::move(handler_), outcome, outcome_unknown]() mutable {
            std::move(handler)(outcome, outcome_unknown);
        });
    }
    Handler handler_;
};

asio::awaitable<void> call_body(const scope_body& body, task_scope& tasks) { co_await body(tasks); }

// On the strand. A cancellation of run_all() cancels the scope. Returns whether a write may have been applied whose
// exception was dropped.
asio::awaitable<bool> run_all(const scope_body& body) {
    const asio::any_io_executor strand = co_await asio::this_coro::executor;
    auto initiate = [&](auto handler) {
        auto slot = asio::get_associated_cancellation_slot(handler);
        const auto state = std::make_shared<waited_scope<decltype(handler)>>(strand, std::move(handler));
        // The slot belongs to the waiting coroutine, and the coroutine to the state.
        if (slot.is_connected())
            slot.assign([weak = std::weak_ptr<scope_state>(state)](asio::cancellation_type how) {
                if (const auto scope = weak.lock()) scope->cancelled_by_caller(how);
            });
        state->start(call_body(body, state->handle()), task_kind::body);
    };
    using token = asio::use_awaitable_t<>;
    co_return co_await asio::async_initiate<const token, void(std::exception_ptr, bool)>(initiate, token());
}

}  // namespace

void scope_state::start(asio::awaitable<void> task, task_kind kind) {
    auto node = std::make_unique<task_node>(shared_from_this(), kind);
    node->insert_before(tasks_);
    asio::awaitable<void> run = run_task(node.get(), std::move(task));
    ++running_;
    if (kind == task_kind::body) body_runs_ = true;
    try {
        asio::co_spawn(executor_, std::move(run), task_handler{std::move(node)});
    } catch (...) {  // no memory: the task has not begun
        --running_;
        throw;
    }
}

bool scope_state::spawn(asio::awaitable<void> task) {
    if (!task.valid()) throw error(errc::invalid_argument, "spawn", {}, "the task is empty");
    if (cancelled_) {
        refused_ = true;
        return false;
    }
    start(std::move(task), task_kind::spawned);
    return true;
}

void scope_state::task_ended(task_node& node, std::exception_ptr failed) {
    node.unlink();
    if (node.kind == task_kind::body) body_runs_ = false;
    --running_;
    if (failed) task_threw(std::move(failed));
    if (running_ == 0) complete(outcome(), outcome_unknown_);
}

void scope_state::task_threw(std::exception_ptr what) {
    if (cancelled_) what = detail::single_cancellation(std::move(what));
    const bool unknown = leaves_outcome_unknown(what);
    if (unknown) outcome_unknown_ = true;
    if (cancelled_ && is_cancellation(what)) {
        if (!aborted_ || unknown) aborted_ = std::move(what);
    } else {
        if (!failure_) failure_ = std::move(what);
        cancel_all_once();
    }
}

std::exception_ptr scope_state::outcome() const {
    if (failure_) return outcome_unknown_ ? told_of_unknown_outcome(failure_) : failure_;
    if (!cancelled_by_caller_) return nullptr;
    if (aborted_) return aborted_;
    return refused_ ? std::make_exception_ptr(error(asio::error::operation_aborted, "with_task_scope")) : nullptr;
}

void scope_state::cancelled_by_caller(asio::cancellation_type how) {
    cancelled_by_caller_ = true;
    cancel_all(how);
}

// A second cancellation would interrupt the tasks' clean-up.
void scope_state::cancel_all_once() {
    if (!cancelled_terminally_) cancel_all(asio::cancellation_type::terminal);
}

// A task may end while it is being cancelled, and so take itself, or other tasks, out of the list.
void scope_state::cancel_all(asio::cancellation_type how) {
    const auto alive = shared_from_this();
    cancelled_ = true;
    if ((how & asio::cancellation_type::terminal) != asio::cancellation_type::none) cancelled_terminally_ = true;
    list_link still_to_do(std::move(tasks_));
    while (still_to_do.linked()) {
        auto& node = static_cast<task_node&>(*still_to_do.next);
        node.unlink();
        node.insert_before(tasks_);
        // A task that ends within this loop may fail, and so cancel all tasks terminally: also the remaining ones here.
        node.signal.emit(cancelled_terminally_ ? how | asio::cancellation_type::terminal : how);
    }
}

void scope_state::refuse_other_threads(const char* operation) const {
    if (!executor_.target<asio::strand<asio::any_io_executor>>()->running_in_this_thread())
        throw error(errc::invalid_argument, operation, {}, "a task_scope is for its strand: post to get_executor()");
}

asio::awaitable<bool> run_task_scope(scope_body body) {
    bool outcome_unknown = false;
    std::function<asio::awaitable<void>()> all = [&]() -> asio::awaitable<void> {
        outcome_unknown = co_await run_all(body);
    };
    const arm_function nothing_to_arm = [](const std::shared_ptr<body_run>&) { return disarm_function(); };
    co_await run_cancellable(std::move(all), nothing_to_arm, body_strand::callers);
    co_return outcome_unknown;
}

}  // namespace zkasio::detail

namespace zkasio {

bool task_scope::spawn(asio::awaitable<void> task) {
    state_.refuse_other_threads("spawn");
    return state_.spawn(std::move(task));
}

void task_scope::cancel() {
    state_.refuse_other_threads("cancel");
    state_.cancel_all_once();
}

bool task_scope::cancelled() const {
    state_.refuse_other_threads("cancelled");
    return state_.cancelled();
}

std::size_t task_scope::size() const {
    state_.refuse_other_threads("size");
    return state_.size();
}

asio::any_io_executor task_scope::get_executor() const { return state_.executor(); }

}  // namespace zkasio
