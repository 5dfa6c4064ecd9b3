#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/execution/blocking.hpp>
#include <asio/execution/context.hpp>
#include <asio/execution/outstanding_work.hpp>
#include <asio/execution_context.hpp>
#include <asio/io_context.hpp>
#include <asio/recycling_allocator.hpp>

#include <concepts>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

namespace zkasio::detail {

/// What strand_type shares between its copies: one function at a time, in the order in which they came.
class strand_state final : public std::enable_shared_from_this<strand_state> {
public:
    /// A function that waits for its turn.
    struct task {
        task* next = nullptr;
        void (*end)(task*, bool run);  ///< frees the task, and runs the function before that or not
    };

    /// While it exists, this thread is in a turn of the strand, whose end brings the next turn.
    class turn_here {
    public:
        explicit turn_here(strand_state& of) noexcept : of_(of), outer_(std::exchange(innermost, this)) {}
        turn_here(const turn_here&) = delete;
        turn_here& operator=(const turn_here&) = delete;
        ~turn_here() {
            innermost = outer_;
            of_.end_turn();
            if (behind_) of_.run_in_loop(behind_);
        }
        /// For whoever began the turn: what he runs behind it; null: nothing.
        task* take_behind() noexcept { return std::exchange(behind_, nullptr); }

    private:
        friend class strand_state;
        strand_state& of_;
        turn_here* const outer_;  // a function of one strand may dispatch to another one
        bool takes_one_ = false;
        task* behind_ = nullptr;
    };

    explicit strand_state(asio::any_io_executor inner);
    strand_state(const strand_state&) = delete;
    strand_state& operator=(const strand_state&) = delete;
    ~strand_state();

    bool runs_in_this_thread() const noexcept;
    /// Whether the caller may begin a turn_here: its thread is one of the context's, and no other turn runs or waits.
    bool begin_here();
    void add(task* t);
    /// The exception leaves the run() of the context's.
    void rethrow_in_loop(std::exception_ptr e);
    void run_in_loop(task* t);
    void let_one_run_behind() const noexcept;
    /// Whether a function that is posted to this executor may run behind this thread's turn instead: run_behind().
    static bool may_run_behind(const asio::any_io_executor& e) noexcept;
    static void run_behind(task* t) noexcept { innermost->behind_ = t; }
    /// Nothing runs any more: what waits is destroyed, and what comes.
    void end() noexcept;

    asio::execution_context& context() const noexcept;
    void work_started();
    void work_finished() noexcept;

private:
    class tasks;
    class turn;
    static thread_local turn_here* innermost;

    void schedule();
    void run();
    void end_turn();

    const asio::any_io_executor inner_;                         // runs functions later, never at once
    const std::optional<asio::io_context::executor_type> loop_;  // that of inner_, most often
    std::mutex mutex_;
    task* ready_ = nullptr;                     // for the turn that is scheduled
    task *first_ = nullptr, **last_ = &first_;  // that came since: for the turn behind that one
    bool is_busy_ = false;                      // a turn runs, or is scheduled
    bool is_dead_ = false;                      // the context is: nothing runs any more
    std::size_t works_ = 0;
    asio::any_io_executor work_;  // while there are some: keeps run() from returning
};

/// The strand that a client's state lives on: one turn at a time, on any of the threads that run the context. As
/// asio::strand<asio::any_io_executor>, of which a request needs many copies and asks much: an io_context is used
/// directly here.
class strand_type {
public:
    // A template, since otherwise a strand_type would be made of a strand_type, by way of any_io_executor.
    template <std::same_as<asio::any_io_executor> Executor>
    explicit strand_type(Executor inner) : state_(std::make_shared<strand_state>(std::move(inner))) {}
    strand_type(const strand_type& other) noexcept
        : state_(other.state_), may_run_now_(other.may_run_now_), is_work_(other.is_work_) {
        if (is_work_) state_->work_started();
    }
    strand_type(strand_type&& other) noexcept
        : state_(std::move(other.state_)),
          may_run_now_(other.may_run_now_),
          is_work_(std::exchange(other.is_work_, false)) {}
    strand_type& operator=(strand_type other) noexcept {
        std::swap(state_, other.state_);
        std::swap(may_run_now_, other.may_run_now_);
        std::swap(is_work_, other.is_work_);
        return *this;
    }
    ~strand_type() {
        if (is_work_) state_->work_finished();
    }

    bool running_in_this_thread() const noexcept { return state_->runs_in_this_thread(); }
    /// In a turn that the loop itself has begun, where no coroutine is about to be suspended: the first function that
    /// this turn gives to post_or_run_behind() for the executor of the strand's io_context runs on this thread when the
    /// turn is over. As a post, it would cost the loop another look for events.
    void let_one_run_behind() const noexcept { state_->let_one_run_behind(); }
    /// `e` never runs functions at once, and has outstanding work.
    template <class Function>
    static void post_or_run_behind(const asio::any_io_executor& e, Function&& f) {
        if (!strand_state::may_run_behind(e)) return e.execute(std::forward<Function>(f));
        strand_state::run_behind(task_of<std::decay_t<Function>>::make(std::forward<Function>(f)));
    }
    /// With the context, which is being destroyed. What waits is destroyed, and so is what comes later.
    void end() const noexcept { state_->end(); }

    // ---------------------------------------------------------------------------------------- an executor of Asio's

    template <class Function>
    void execute(Function&& f) const {
        using function = std::decay_t<Function>;
        const bool is_in_turn = may_run_now_ && state_->runs_in_this_thread();
        if (!is_in_turn && !(may_run_now_ && state_->begin_here()))
            return state_->add(task_of<function>::make(std::forward<Function>(f)));
        const auto kept = state_;  // the function may destroy this executor
        strand_state::task* behind = nullptr;
        {
            function now(std::forward<Function>(f));
            if (is_in_turn) return std::move(now)();
            strand_state::turn_here turn(*kept);
            try {
                std::move(now)();
            } catch (...) {
                kept->rethrow_in_loop(std::current_exception());  // not to the caller, who is no part of this turn
            }
            behind = turn.take_behind();
        }
        if (behind) behind->end(behind, true);
    }

    asio::execution_context& query(asio::execution::context_t) const noexcept { return state_->context(); }
    asio::execution::blocking_t query(asio::execution::blocking_t) const noexcept {
        if (may_run_now_) return asio::execution::blocking.possibly;
        return asio::execution::blocking.never;
    }
    asio::execution::outstanding_work_t query(asio::execution::outstanding_work_t) const noexcept {
        if (is_work_) return asio::execution::outstanding_work.tracked;
        return asio::execution::outstanding_work.untracked;
    }
    strand_type require(asio::execution::blocking_t::possibly_t) const noexcept { return {*this, true, is_work_}; }
    strand_type require(asio::execution::blocking_t::never_t) const noexcept { return {*this, false, is_work_}; }
    strand_type require(asio::execution::outstanding_work_t::tracked_t) const noexcept {
        return {*this, may_run_now_, true};
    }
    strand_type require(asio::execution::outstanding_work_t::untracked_t) const noexcept {
        return {*this, may_run_now_, false};
    }

    friend bool operator==(const strand_type& a, const strand_type& b) noexcept { return a.state_ == b.state_; }
    friend bool operator!=(const strand_type& a, const strand_type& b) noexcept { return !(a == b); }

private:
    strand_type(const strand_type& other, bool may_run_now, bool is_work) noexcept
        : state_(other.state_), may_run_now_(may_run_now), is_work_(is_work) {
        if (is_work_) state_->work_started();
    }

    template <class Function>
    struct task_of final : strand_state::task {
        using allocator = asio::recycling_allocator<task_of>;

        template <class F>
        explicit task_of(F&& f) : function(std::forward<F>(f)) {
            end = &task_of::run_or_not;
        }
        template <class F>
        static task_of* make(F&& f) {
            task_of* const place = allocator().allocate(1);
            return ::new (static_cast<void*>(place)) task_of(std::forward<F>(f));
        }
        static void run_or_not(strand_state::task* t, bool run) {
            auto* const self = static_cast<task_of*>(t);
            Function f(std::move(self->function));  // what it asks for may have the memory
            self->~task_of();
            allocator().deallocate(self, 1);
            if (run) std::move(f)();
        }

        Function function;
    };

    std::shared_ptr<strand_state> state_;
    bool may_run_now_ = true, is_work_ = false;
};

}  // namespace zkasio::detail
