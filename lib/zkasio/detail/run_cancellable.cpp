#include <zkasio/detail/run_cancellable.hpp>

#include <zkasio/deadline.hpp>
#include <zkasio/error.hpp>

#include <asio/associated_cancellation_slot.hpp>
#include <asio/associated_executor.hpp>
#include <asio/bind_cancellation_slot.hpp>
#include <asio/co_spawn.hpp>
#include <asio/error.hpp>
#include <asio/post.hpp>
#include <asio/prefer.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>
#include <system_error>

namespace zkasio::detail {

void body_run::cancel(const std::shared_ptr<body_run>& run, asio::cancellation_type how) {
    asio::post(run->strand, [run, how] {
        if (!run->ended) run->signal.emit(how);
    });
}

asio::awaitable<void> run_cancellable(std::function<asio::awaitable<void>()> body, arm_function arm) {
    const auto executor = co_await asio::this_coro::executor;
    const auto run = std::make_shared<body_run>(asio::make_strand(executor));

    auto initiate = [&](auto handler) {
        if (auto slot = asio::get_associated_cancellation_slot(handler); slot.is_connected())
            slot.assign([run](asio::cancellation_type how) { body_run::cancel(run, how); });

        const auto disarm = std::make_shared<disarm_function>();
        auto resume_on = asio::get_associated_executor(handler);
        auto done = [run, disarm, handler = std::move(handler),
                     work = asio::prefer(resume_on, asio::execution::outstanding_work.tracked)](std::exception_ptr e) mutable {
            run->ended = true;
            if (*disarm) (*disarm)();
            asio::post(work, [handler = std::move(handler), e]() mutable { std::move(handler)(e); });
        };
        asio::post(run->strand,
                   [run, disarm, body = std::move(body), arm = std::move(arm), done = std::move(done)]() mutable {
                       *disarm = arm(run);
                       asio::co_spawn(run->strand, std::move(body),
                                      asio::bind_cancellation_slot(run->signal.slot(), std::move(done)));
                   });
    };
    co_await asio::async_initiate<const asio::use_awaitable_t<>, void(std::exception_ptr)>(initiate, asio::use_awaitable);
}

asio::awaitable<bool> run_until_deadline(boot_clock::time_point deadline, std::function<asio::awaitable<void>()> body) {
    using namespace std::chrono_literals;
    if (!body) throw error(errc::invalid_argument, "run_with_deadline", {}, "the body is empty");
    const auto hit = std::make_shared<bool>(false);
    arm_function arm = [deadline, hit](const std::shared_ptr<body_run>& run) -> disarm_function {
        const auto timer = std::make_shared<asio::steady_timer>(run->strand);
        const auto left = std::clamp<boot_clock::duration>(deadline - boot_clock::now(), 0ns, 24h * 365 * 100);
        timer->expires_after(left);
        timer->async_wait([run, hit, timer](std::error_code cancelled) {
            if (cancelled || run->ended) return;
            *hit = true;
            run->signal.emit(asio::cancellation_type::terminal);
        });
        return [timer] { timer->cancel(); };
    };
    bool aborted = false;
    try {
        co_await run_cancellable(std::move(body), std::move(arm));
    } catch (const std::system_error& e) {
        if (!*hit || e.code() != asio::error::operation_aborted) throw;
        aborted = true;
    }
    co_return !aborted;
}

}  // namespace zkasio::detail
