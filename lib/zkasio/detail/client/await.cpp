#include <zkasio/detail/client/await.hpp>

#include <asio/associated_cancellation_slot.hpp>
#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/error.hpp>
#include <asio/post.hpp>
#include <asio/prefer.hpp>
#include <asio/require.hpp>
#include <asio/use_awaitable.hpp>

namespace zkasio::detail {
namespace {

// What the awaiting coroutine gets of the end of a wait. There may be very many waiting coroutines, and their frames
// hold it.
template <class Result>
struct as_result {
    using signature = void(Result);
    using receiver_type = receiver;
    Result operator()(wait_end end) const {
        if constexpr (std::is_same_v<Result, wait_end>)
            return end;
        else
            return end.code ? std::make_exception_ptr(error(end.code, "wait")) : nullptr;
    }
};
// Passes no result: the whole reply is put directly into a variable of the coroutine, and is not moved through the
// layers in between.
struct in_place {
    using signature = void();
    using receiver_type = request_receiver;
    void operator()(reply&& r) const { *place = std::move(r); }
    reply* place;  // in the coroutine's frame, which its handler keeps
};

// The executor for a post: once with its properties, for each copy of a strand behind an any_io_executor takes memory.
template <class Executor>
auto posting(Executor executor) {
    return asio::prefer(asio::require(std::move(executor), asio::execution::blocking.never),
                        asio::execution::outstanding_work.tracked);
}

// Holds the suspended coroutine and keeps its executor at work. Only this object crosses to the strand; the
// cancellation slot stays on the coroutine's side, where asio installs and clears it.
template <class Taker, class Handler>
class coroutine_receiver {
public:
    // The executor is looked up before the handler is moved from (evaluation order).
    static typename Taker::receiver_type make(Taker take, Handler&& h) {
        auto executor = asio::get_associated_executor(h);
        return typename Taker::receiver_type(coroutine_receiver(take, std::move(h), std::move(executor)));
    }

    // Never resumes the coroutine here: the strand may be inside the C library, or in the middle of a change.
    void deliver(typename Taker::receiver_type::outcome&& o) noexcept {
        const auto executor = std::move(work_);
        if constexpr (std::is_void_v<decltype(take_(std::move(o)))>) {
            take_(std::move(o));
            strand_type::post_or_run_behind(executor, [h = std::move(handler_)]() mutable { std::move(h)(); });
        } else {
            strand_type::post_or_run_behind(executor,
                                            [h = std::move(handler_), result = take_(std::move(o))]() mutable {
                                                std::move(h)(std::move(result));
                                            });
        }
    }

private:
    using executor_type = asio::associated_executor_t<Handler>;
    using work_type = decltype(posting(std::declval<executor_type>()));

    coroutine_receiver(Taker take, Handler&& h, executor_type executor)
        : take_(take), handler_(std::move(h)), work_(posting(std::move(executor))) {}

    [[no_unique_address]] Taker take_;
    Handler handler_;
    work_type work_;
};

// `begin(core, id, receiver)` runs on the strand. `begin` must be movable: this object lives in the awaiting
// coroutine's frame, which may be gone as soon as the strand has `begin`.
template <class Taker, class Begin>
class initiation {
public:
    initiation(core_ptr c, Taker take, Begin begin) : core_(std::move(c)), take_(take), begin_(std::move(begin)) {}

    template <class Handler>
    void operator()(Handler handler) && {
        using to_coroutine = coroutine_receiver<Taker, Handler>;
        core_ptr c = std::move(core_);
        if (c->forked()) {  // the strand may never run in this process
            typename Taker::receiver_type::outcome none;
            none.code = errc::forked;
            return to_coroutine::make(take_, std::move(handler)).deliver(std::move(none));
        }
        const op_id id = c->next_id();
        if (auto slot = asio::get_associated_cancellation_slot(handler); slot.is_connected())
            // The caller's signal may live longer than the execution context, which the core must not.
            slot.assign([weak = std::weak_ptr<core>(c), id](asio::cancellation_type how) {
                core_ptr on = weak.lock();
                if (!on) return;
                // A total cancellation alone must not have an effect that is visible from outside: whether a write that
                // was sent is applied can only be told by its answer.
                const bool total_alone =
                    (how & (asio::cancellation_type::terminal | asio::cancellation_type::partial)) ==
                    asio::cancellation_type::none;
                const sent_writes writes = total_alone ? sent_writes::go_on : sent_writes::are_left;
                // Posted, never dispatched: the cancellation must not overtake `begin`. The core moves along: its last
                // owner must not be this handler, whose coroutine the core would destroy.
                const strand_type strand = on->strand();
                asio::post(strand, [on = std::move(on), id, writes] { on->cancel(id, writes); });
            });
        const strand_type& strand = c->strand();
        // Keeps the core: the resumed coroutine may drop the last other handle while begin() is still running.
        auto start = [c = std::move(c), id, begin = std::move(begin_),
                      to = to_coroutine::make(take_, std::move(handler))]() mutable {
            begin(*c, id, std::move(to));
        };
        if (strand.running_in_this_thread())
            start();
        else
            strand.execute(std::move(start));
    }

private:
    core_ptr core_;
    [[no_unique_address]] Taker take_;
    Begin begin_;
};

// Not a coroutine itself: a coroutine would need one more frame for each wait.
template <class Taker, class Begin>
auto bridge(core_ptr c, Taker take, Begin begin) {
    return asio::async_initiate<const asio::use_awaitable_t<>, typename Taker::signature>(
        initiation<Taker, Begin>(std::move(c), take, std::move(begin)), asio::use_awaitable);
}

auto begin_wait(one_shot_ptr w) {
    return [w = std::move(w)](core& on, op_id id, receiver to) { on.waits().wait(id, w, std::move(to)); };
}

}  // namespace

asio::awaitable<void> perform(const core_ptr& c, command& what, reply& answer) {
    return bridge(c, in_place{&answer}, [&what](core& on, op_id id, request_receiver to) {
        on.ask(id, what, std::move(to));
    });
}

asio::awaitable<wait_end> wait_for(core_ptr c, one_shot_ptr w) {
    return bridge(std::move(c), as_result<wait_end>(), begin_wait(std::move(w)));
}

asio::awaitable<void> wait_for_or_throw(core_ptr c, one_shot_ptr w) {
    return bridge(std::move(c), as_result<std::exception_ptr>(), begin_wait(std::move(w)));
}

asio::awaitable<void> wait_connected(const core_ptr& c, reply& answer) {
    return bridge(c, in_place{&answer}, [](core& on, op_id id, request_receiver to) {
        on.requests().submit(id, command(), std::move(to));
    });
}

asio::awaitable<wait_end> wait_closed(core_ptr c) {
    return bridge(std::move(c), as_result<wait_end>(), [](core& on, op_id id, receiver to) {
        on.begin_close();
        on.wait_closed(id, std::move(to));
    });
}

asio::awaitable<wait_end> wait_idle(core_ptr c) {
    return bridge(std::move(c), as_result<wait_end>(),
                  [](core& on, op_id id, receiver to) { on.wait_idle(id, std::move(to)); });
}

asio::awaitable<wait_end> wait_extended(core_ptr c, session_record_ptr s, boot_clock::time_point beyond) {
    return bridge(std::move(c), as_result<wait_end>(), [s = std::move(s), beyond](core& on, op_id id, receiver to) {
        on.wait_extended(id, *s, beyond, std::move(to));
    });
}

asio::awaitable<wait_end> wait_event(core_ptr c, event_subscription_ptr s) {
    return bridge(std::move(c), as_result<wait_end>(), [s = std::move(s)](core& on, op_id id, receiver to) {
        on.events().wait(id, s, std::move(to));
    });
}

namespace {

struct stop_order {
    std::shared_ptr<body_run> run;
    std::function<bool(std::error_code)> really;
};

// deliver() runs on the client's strand; the body runs on its own strand. (A std::function itself may have no room in a
// receiver: that of LLVM's library has to be aligned to 16 bytes.)
class stopper {
public:
    explicit stopper(std::shared_ptr<const stop_order> order) : order_(std::move(order)) {}
    void deliver(wait_end&& end) noexcept {
        const bool body_has_ended = end.code == asio::error::operation_aborted;
        if (!body_has_ended && order_->really(end.code)) body_run::cancel(order_->run);
    }

private:
    std::shared_ptr<const stop_order> order_;
};

}  // namespace

disarm_function stop_when(std::shared_ptr<core> c, one_shot_ptr event, std::shared_ptr<body_run> run,
                          std::function<bool(std::error_code)> really) {
    const op_id id = c->next_id();
    const auto order = std::make_shared<const stop_order>(stop_order{std::move(run), std::move(really)});
    asio::post(c->strand(), [c, event, id, order] { c->waits().wait(id, event, receiver(stopper(order))); });
    return [c, id] { asio::post(c->strand(), [c, id] { c->cancel(id); }); };
}

}  // namespace zkasio::detail
