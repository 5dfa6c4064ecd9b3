#include <zkasio/detail/base/strand.hpp>

#include <asio/execution.hpp>
#include <asio/post.hpp>
#include <asio/prefer.hpp>
#include <asio/query.hpp>
#include <asio/require.hpp>

#include <typeinfo>

namespace zkasio::detail {

thread_local strand_state::turn_here* strand_state::innermost = nullptr;

// A list that ends its tasks, without running them, where it ends itself.
class strand_state::tasks {
public:
    explicit tasks(task* first) noexcept : first_(first) {}
    tasks(const tasks&) = delete;
    tasks& operator=(const tasks&) = delete;
    ~tasks() {
        while (task* const t = take()) t->end(t, false);
    }

    task* take() noexcept {
        task* const t = first_;
        if (t) first_ = t->next;
        return t;
    }
    task* release() noexcept { return std::exchange(first_, nullptr); }

private:
    task* first_;
};

// Runs the strand once; destroyed without that, the context has ended.
class strand_state::turn {
public:
    explicit turn(std::shared_ptr<strand_state> of) noexcept : of_(std::move(of)) {}
    turn(turn&&) noexcept = default;
    turn(const turn&) = delete;
    turn& operator=(turn&&) = delete;
    turn& operator=(const turn&) = delete;
    ~turn() {
        if (of_) of_->end();
    }
    void operator()() {
        const auto of = std::move(of_);
        of->run();
    }

private:
    std::shared_ptr<strand_state> of_;
};

namespace {

std::optional<asio::io_context::executor_type> loop_of(const asio::any_io_executor& e) {
    // target() of Asio 1.22 does not look at the type.
    if (e.target_type() != typeid(asio::io_context::executor_type)) return {};
    return *e.target<asio::io_context::executor_type>();
}

}  // namespace

strand_state::strand_state(asio::any_io_executor inner)
    : inner_(asio::require(inner, asio::execution::blocking.never)), loop_(loop_of(inner)) {}

strand_state::~strand_state() { end(); }

bool strand_state::runs_in_this_thread() const noexcept {
    for (const turn_here* t = innermost; t; t = t->outer_)
        if (&t->of_ == this) return true;
    return false;
}

bool strand_state::begin_here() {
    const std::lock_guard lock(mutex_);
    if (is_dead_ || is_busy_ || !loop_ || !loop_->running_in_this_thread()) return false;
    return is_busy_ = true;
}

void strand_state::add(task* t) {
    {
        std::unique_lock lock(mutex_);
        if (is_dead_) {
            lock.unlock();
            return t->end(t, false);
        }
        if (is_busy_) {
            *last_ = t;
            last_ = &t->next;
            return;
        }
        is_busy_ = true;
        ready_ = t;
    }
    schedule();
}

void strand_state::end() noexcept {
    std::unique_lock lock(mutex_);
    is_dead_ = true;
    const tasks ready(std::exchange(ready_, nullptr)), later(std::exchange(first_, nullptr));
    last_ = &first_;
    lock.unlock();
}

void strand_state::run_in_loop(task* t) {
    asio::post(*loop_, [one = std::make_shared<tasks>(t)] {
        task* const now = one->take();
        now->end(now, true);
    });
}

void strand_state::rethrow_in_loop(std::exception_ptr e) {
    asio::post(*loop_, [e = std::move(e)] { std::rethrow_exception(e); });
}

void strand_state::schedule() {
    if (!loop_) return inner_.execute(turn(shared_from_this()));
    asio::post(*loop_, turn(shared_from_this()));
}

// What comes before a turn has ended is for the next one, behind what else the context has to do. An exception of a
// function leaves the context's run(), and the others have their turn as well.
void strand_state::run() {
    task* behind = nullptr;
    {
        turn_here here(*this);
        std::unique_lock lock(mutex_);
        tasks now(std::exchange(ready_, nullptr));
        lock.unlock();
        try {
            while (task* const t = now.take()) t->end(t, true);
        } catch (...) {
            lock.lock();
            ready_ = now.release();
            throw;
        }
        behind = here.take_behind();
    }
    if (behind) behind->end(behind, true);
}

void strand_state::let_one_run_behind() const noexcept {
    if (loop_ && innermost && &innermost->of_ == this) innermost->takes_one_ = true;
}

bool strand_state::may_run_behind(const asio::any_io_executor& e) noexcept {
    using loop_type = asio::io_context::executor_type;
    using posting_type = decltype(asio::prefer(
        asio::require(std::declval<loop_type>(), asio::execution::blocking.never),
        asio::execution::outstanding_work.tracked));
    if (!innermost || !innermost->takes_one_ || innermost->behind_) return false;
    const loop_type& loop = *innermost->of_.loop_;
    return e.target_type() == typeid(posting_type) &&
           &asio::query(e, asio::execution::context) == &asio::query(loop, asio::execution::context);
}

void strand_state::end_turn() {
    {
        const std::lock_guard lock(mutex_);
        task** end = &ready_;  // some are left there by an exception
        while (*end) end = &(*end)->next;
        *end = std::exchange(first_, nullptr);
        last_ = &first_;
        is_busy_ = ready_ != nullptr;
        if (!is_busy_) return;
    }
    schedule();
}

asio::execution_context& strand_state::context() const noexcept {
    return asio::query(inner_, asio::execution::context);
}

void strand_state::work_started() {
    const std::lock_guard lock(mutex_);
    if (works_++ == 0) work_ = asio::prefer(inner_, asio::execution::outstanding_work.tracked);
}

void strand_state::work_finished() noexcept {
    asio::any_io_executor last;  // destroyed without the lock
    const std::lock_guard lock(mutex_);
    if (--works_ == 0) last = std::move(work_);
}

}  // namespace zkasio::detail
