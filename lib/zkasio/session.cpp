#include <zkasio/session.hpp>

#include <zkasio/detail/await.hpp>
#include <zkasio/detail/run_cancellable.hpp>

#include <asio/post.hpp>

namespace zkasio {

namespace {

// "Lost" arrives on the client's strand; the body runs on its own.
class stopper final : public detail::receiver {
public:
    explicit stopper(std::shared_ptr<detail::body_run> run) : run_(std::move(run)) {}
    void deliver(detail::reply&& r) noexcept override {
        const bool body_has_ended = r.code == asio::error::operation_aborted, on_purpose = r.code == errc::lock_released;
        if (!body_has_ended && !on_purpose) detail::body_run::cancel(run_);
    }

private:
    std::shared_ptr<detail::body_run> run_;
};

}  // namespace

session_hold& session_hold::operator=(session_hold&& other) noexcept {
    if (this != &other) {
        end();
        core_ = std::move(other.core_);
        hold_ = std::move(other.hold_);
    }
    return *this;
}

bool session_hold::held() const noexcept {
    return hold_ && hold_->reason.load(std::memory_order_acquire) == loss_reason::none &&
           boot_clock::now() < hold_->epoch->leased_until();
}

boot_clock::time_point session_hold::held_until() const noexcept {
    if (!hold_ || reason() != loss_reason::none) return {};
    return hold_->epoch->leased_until();
}

loss_reason session_hold::reason() const noexcept {
    return hold_ ? hold_->reason.load(std::memory_order_acquire) : loss_reason::released;
}

asio::awaitable<void> session_hold::confirmed() const {
    const auto hold = hold_;
    if (!hold) throw error(errc::lock_released, "hold");
    const detail::reply r = co_await detail::wait_for(core_, hold->renewed);
    if (!r.code) co_return;
    const loss_reason why = hold->reason.load(std::memory_order_acquire);
    std::error_code code = r.code;
    if (why == loss_reason::session_expired) code = errc::session_expired;
    if (why == loss_reason::closed) code = errc::client_closed;
    throw error(code, "hold", hold->path, to_string(why));
}

asio::awaitable<loss_reason> session_hold::lost() const {
    const auto hold = hold_;
    if (!hold) co_return loss_reason::released;
    const detail::reply r = co_await detail::wait_for(core_, hold->lost);
    if (r.code == condition::cancelled) throw error(r.code, "lost", hold->path);
    const loss_reason why = hold->reason.load(std::memory_order_acquire);
    co_return why == loss_reason::none ? loss_reason::closed : why;
}

asio::awaitable<void> session_hold::run(std::function<asio::awaitable<void>()> body) const {
    const auto core = core_;
    const auto hold = hold_;
    if (!hold) throw error(errc::lock_released, "run");
    detail::arm_function arm = [core, hold](const std::shared_ptr<detail::body_run>& run) -> detail::disarm_function {
        const detail::op_id id = core->next_id();
        asio::post(core->strand(), [core, hold, run, id] { core->wait(id, hold->lost, std::make_unique<stopper>(run)); });
        return [core, id] { asio::post(core->strand(), [core, id] { core->cancel(id); }); };
    };
    co_await detail::run_cancellable(std::move(body), std::move(arm));
}

void session_hold::end(bool node_goes_away) noexcept {
    if (!hold_) return;
    const detail::core_ptr core = std::move(core_);
    detail::on_strand(core, [core, hold = std::exchange(hold_, nullptr), node_goes_away] {
        hold->removing = node_goes_away;
        core->end_hold(hold, loss_reason::released);
    });
}

std::int64_t session::id() const noexcept { return epoch_->session_id; }
std::chrono::milliseconds session::timeout() const noexcept { return std::chrono::milliseconds(epoch_->timeout_ms); }
bool session::over() const noexcept { return epoch_->over; }
boot_clock::time_point session::leased_until() const noexcept { return epoch_->leased_until(); }

asio::awaitable<std::error_code> session::ended() const {
    const auto epoch = epoch_;
    const detail::reply r = co_await detail::wait_for(core_, epoch->ended);
    if (r.code == condition::cancelled) throw error(r.code, "session");
    co_return r.code;
}

session_hold session::hold(std::string path) const {
    auto h = std::make_shared<detail::hold>();
    h->epoch = epoch_;
    h->path = std::move(path);
    detail::on_strand(core_, [core = core_, h] { core->add_hold(h); });
    return {core_, h};
}

}  // namespace zkasio
