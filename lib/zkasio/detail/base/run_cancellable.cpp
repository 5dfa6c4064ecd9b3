#include <zkasio/detail/base/run_cancellable.hpp>

#include <zkasio/detail/base/strand.hpp>

#include <asio/associated_cancellation_slot.hpp>
#include <asio/associated_executor.hpp>
#include <asio/bind_cancellation_slot.hpp>
#include <asio/co_spawn.hpp>
#include <asio/error.hpp>
#include <asio/multiple_exceptions.hpp>
#include <asio/post.hpp>
#include <asio/prefer.hpp>
#include <asio/strand.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <system_error>
#include <typeinfo>

namespace zkasio::detail {

bool is_cancellation(const std::exception_ptr& thrown) noexcept {
    try {
        std::rethrow_exception(thrown);
    } catch (const std::system_error& e) {
        return e.code() == asio::error::operation_aborted;
    } catch (...) {
        return false;
    }
}

std::exception_ptr single_cancellation(std::exception_ptr thrown) noexcept {
    try {
        std::rethrow_exception(thrown);
    } catch (const asio::multiple_exceptions& both) {
        std::exception_ptr first = both.first_exception();
        if (first && is_cancellation(first)) return of_unknown_outcome(std::move(first));
    } catch (...) {
    }
    return thrown;
}

void body_run::cancel(const std::shared_ptr<body_run>& run, asio::cancellation_type how) {
    asio::post(run->strand, [run, how] { run->cancel_now(how); });
}

std::function<void(asio::cancellation_type)> body_run::canceller(const std::shared_ptr<body_run>& run) {
    return [weak = std::weak_ptr<body_run>(run)](asio::cancellation_type how) {
        if (const auto running = weak.lock()) cancel(running, how);
    };
}

void body_run::cancel_now(asio::cancellation_type how) {
    if (ended) return;
    cancelled = true;
    signal.emit(how);
}

asio::any_io_executor strand_over(const asio::any_io_executor& caller, body_strand where) {
    const std::type_info& is = caller.target_type();
    const bool is_strand = is == typeid(asio::strand<asio::any_io_executor>) || is == typeid(strand_type);
    if (where == body_strand::callers && is_strand) return caller;
    return asio::make_strand(caller);
}

// co_spawn lets only terminal cancellation through. The caller has already decided which types are accepted; the
// coroutine is to see all of them. The reset discards a cancellation that has arrived before: so `cancelled` is checked
// after it.
asio::awaitable<void> run_body(std::shared_ptr<body_run> run, std::function<asio::awaitable<void>()> body) {
    co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
    if (run->cancelled) throw std::system_error(asio::error::operation_aborted);
    std::exception_ptr failed;
    try {
        co_await body();
    } catch (...) {
        failed = std::current_exception();
    }
    co_await asio::this_coro::throw_if_cancelled(false);  // see run_task() of task_scope.cpp
    if (failed) std::rethrow_exception(run->cancelled ? single_cancellation(std::move(failed)) : failed);
}

asio::awaitable<void> run_cancellable(std::function<asio::awaitable<void>()> body, arm_function arm,
                                      body_strand where) {
    const auto executor = co_await asio::this_coro::executor;
    const auto run = std::make_shared<body_run>(strand_over(executor, where));

    auto initiate = [&](auto handler) {
        if (auto slot = asio::get_associated_cancellation_slot(handler); slot.is_connected())
            slot.assign(body_run::canceller(run));

        const auto disarm = std::make_shared<disarm_function>();
        auto resume_on = asio::get_associated_executor(handler);
        auto done =
            [run, disarm, handler = std::move(handler),
             work = asio::prefer(resume_on, asio::execution::outstanding_work.tracked)](std::exception_ptr e) mutable {
                run->ended = true;
                if (*disarm) (*disarm)();
                asio::post(work, [handler = std::move(handler), e]() mutable { std::move(handler)(e); });
            };
        asio::post(run->strand,
                   [run, disarm, body = std::move(body), arm = std::move(arm), done = std::move(done)]() mutable {
                       *disarm = arm(run);
                       asio::co_spawn(run->strand, run_body(run, std::move(body)),
                                      asio::bind_cancellation_slot(run->signal.slot(), std::move(done)));
                   });
    };
    co_await asio::async_initiate<const asio::use_awaitable_t<>, void(std::exception_ptr)>(initiate,
                                                                                           asio::use_awaitable);
}

}  // namespace zkasio::detail
