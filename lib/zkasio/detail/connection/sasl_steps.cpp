#include <zkasio/detail/base/run_cancellable.hpp>
#include <zkasio/detail/base/strand.hpp>
#include <zkasio/detail/connection/sasl_steps.hpp>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/co_spawn.hpp>
#include <asio/post.hpp>

#include <exception>
#include <mutex>
#include <stdexcept>
#include <utility>

namespace zkasio::detail {
namespace {

std::string text_of(const std::exception_ptr& thrown) {
    try {
        std::rethrow_exception(thrown);
    } catch (const std::exception& e) {
        return std::string("SASL: ") + (*e.what() ? e.what() : "failed, without a reason");
    } catch (...) {
        return "SASL: the mechanism has thrown what is no std::exception";
    }
}

}  // namespace

struct sasl_steps::state {
    std::mutex mutex;
    const std::function<void()>* wake;  // null: nobody is to be woken
    bool busy = false;
    talk_ptr asked;  // who waits for the outcome of the step that is under way; changes on the client's strand only
    std::optional<outcome> ended;
};

// Tells the outcome once, also when the mechanism's executor drops the step.
struct sasl_steps::job {
    job(std::shared_ptr<state> s, talk_ptr t) : of(std::move(s)), talking(std::move(t)) {}
    job(const job&) = delete;
    job& operator=(const job&) = delete;
    ~job() {
        if (std::exchange(told, true)) return;
        tell({std::nullopt, "SASL: the mechanism's executor has dropped its step"});
    }
    void ended(const std::exception_ptr& thrown) {
        told = true;
        if (thrown) result = {std::nullopt, text_of(thrown)};
        tell(std::move(result));
    }
    // Wakes under the lock: behind stop() nothing is posted to the client's loop.
    void tell(outcome o) {
        if (made_here.forked()) return;
        const std::lock_guard lock(of->mutex);
        of->busy = false;
        if (of->asked == talking) of->ended = std::move(o);
        if (of->wake) (*of->wake)();
    }

    std::shared_ptr<state> of;
    talk_ptr talking;
    outcome result;
    bool told = false;
    fork_mark made_here;
};

sasl_steps::sasl_steps(std::shared_ptr<const sasl_mechanism> mechanism, asio::any_io_executor clients,
                       std::function<void()> wake)
    : mechanism_(std::move(mechanism)),
      clients_(std::move(clients)),
      wake_(std::move(wake)),
      state_(std::make_shared<state>()) {
    state_->wake = &wake_;
}

sasl_steps::talk_ptr sasl_steps::begin(sasl_server with) const {
    return std::make_shared<talk>(talk{mechanism_, std::move(with), nullptr});
}

bool sasl_steps::start(const talk_ptr& of, std::string challenge) {
    const auto j = std::make_shared<job>(state_, of);
    {
        const std::lock_guard lock(state_->mutex);
        if (state_->busy) {
            j->told = true;  // there is nothing to tell
            return false;
        }
        state_->busy = true;
        state_->asked = of;
        state_->ended.reset();
    }
    try {
        const asio::any_io_executor where = mechanism_->executor();
        const auto run = std::make_shared<body_run>(where ? asio::any_io_executor(strand_type(where)) : clients_);
        run_ = run;
        auto body = [j, challenge = std::move(challenge)] { return make_step(j, challenge); };
        auto done = [j, run](std::exception_ptr e) {
            run->ended = true;
            j->ended(e);
        };
        asio::post(run->strand, [run, body = std::move(body), done = std::move(done)]() mutable {
            asio::co_spawn(run->strand, run_body(run, std::move(body)),
                           asio::bind_cancellation_slot(run->signal.slot(), std::move(done)));
        });
    } catch (...) {
        j->ended(std::current_exception());
    }
    return true;
}

asio::awaitable<void> sasl_steps::make_step(std::shared_ptr<job> j, std::string challenge) {
    talk& t = *j->talking;
    if (!t.conversation) t.conversation = t.mechanism->begin(t.server);
    if (!t.conversation) throw std::runtime_error("the mechanism has made no conversation");
    sasl_step made = co_await t.conversation->step(std::move(challenge));
    j->result.made.emplace(std::move(made));
}

std::optional<sasl_steps::outcome> sasl_steps::take(const talk_ptr& of) {
    const std::lock_guard lock(state_->mutex);
    if (state_->asked != of) return std::nullopt;
    return std::exchange(state_->ended, std::nullopt);
}

// In a child process, a thread of its parent may have had the mutex, or one of the mechanism's context. A step on the
// client's own loop would go on in both processes.
void sasl_steps::abandon(const talk_ptr& of) noexcept {
    if (state_->asked != of) return;
    const auto running = run_.lock();
    if (made_here_.forked()) {
        if (running && running->strand == clients_) body_run::cancel(running);
        return;
    }
    const std::lock_guard lock(state_->mutex);
    state_->asked.reset();
    state_->ended.reset();
    if (running && state_->busy) body_run::cancel(running);
}

void sasl_steps::stop() noexcept {
    if (made_here_.forked()) return;
    const std::lock_guard lock(state_->mutex);
    state_->wake = nullptr;
}

}  // namespace zkasio::detail
