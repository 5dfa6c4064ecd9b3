#include <zkasio/session.hpp>

#include <zkasio/detail/await.hpp>
#include <zkasio/detail/run_cancellable.hpp>
#include <zkasio/detail/stop_when.hpp>

#include <algorithm>

namespace zkasio {

session_hold& session_hold::operator=(session_hold&& other) noexcept {
    if (this != &other) {
        end();
        core_ = std::move(other.core_);
        hold_ = std::move(other.hold_);
    }
    return *this;
}

bool session_hold::held() const noexcept {
    return hold_ && reason() == loss_reason::none && boot_clock::now() < hold_->epoch->leased_until();
}

boot_clock::time_point session_hold::held_until() const noexcept {
    if (!hold_ || reason() != loss_reason::none) return {};
    return hold_->epoch->leased_until();
}

loss_reason session_hold::reason() const noexcept {
    if (!hold_) return loss_reason::released;
    const loss_reason why = hold_->reason.load(std::memory_order_acquire);
    return why == loss_reason::none && hold_->given_up.load(std::memory_order_acquire) ? loss_reason::released : why;
}

asio::awaitable<void> session_hold::confirmed() const {
    const auto hold = hold_;
    if (!hold || hold->given_up.load(std::memory_order_acquire)) throw error(errc::lock_released, "hold");
    const detail::wait_end failed = co_await detail::wait_for(core_, hold->renewed);
    if (!failed.code) co_return;
    const loss_reason why = hold->reason.load(std::memory_order_acquire);
    std::error_code code = failed.code;
    if (why == loss_reason::session_expired) code = errc::session_expired;
    if (why == loss_reason::closed) code = errc::client_closed;
    throw error(code, "hold", hold->nodes.empty() ? std::string() : hold->nodes.front().path, to_string(why));
}

asio::awaitable<loss_reason> session_hold::lost() const {
    const auto hold = hold_;
    if (!hold) co_return loss_reason::released;
    const detail::wait_end ended = co_await detail::wait_for(core_, hold->lost);
    if (ended.code == condition::cancelled) throw error(ended.code, "lost");
    const loss_reason why = hold->reason.load(std::memory_order_acquire);
    co_return why == loss_reason::none ? loss_reason::closed : why;
}

asio::awaitable<void> session_hold::run(std::function<asio::awaitable<void>()> body) const {
    const auto core = core_;
    const auto hold = hold_;
    if (!hold) throw error(errc::lock_released, "run");
    detail::arm_function arm = [core, hold](const std::shared_ptr<detail::body_run>& run) {
        return detail::stop_when(core, hold->lost, run, [](const detail::reply& r) { return r.code != errc::lock_released; });
    };
    co_await detail::run_cancellable(std::move(body), std::move(arm));
}

void session_hold::on_lost(std::function<void(loss_reason)> f) const {
    hold_->lost->then = [f = std::move(f), raw = hold_.get()] {
        const loss_reason why = raw->reason.load(std::memory_order_acquire);
        if (why != loss_reason::released) f(why);
    };
}

void session_hold::watch_nodes() const { core_->watch_hold(hold_); }

bool session_hold::nodes_watched() const noexcept {
    return std::all_of(hold_->nodes.begin(), hold_->nodes.end(), [](const auto& node) { return node.watched; });
}

void session_hold::end(bool node_goes_away) const noexcept {
    if (!hold_ || hold_->given_up.exchange(true, std::memory_order_acq_rel)) return;
    detail::on_strand(core_, [core = core_, hold = hold_, node_goes_away] {
        hold->removing = node_goes_away;
        core->end_hold(hold, loss_reason::released);
    });
}

void session_hold::lose(loss_reason why) const noexcept {
    if (hold_) detail::on_strand(core_, [core = core_, hold = hold_, why] { core->end_hold(hold, why); });
}

std::int64_t session::id() const noexcept { return epoch_->session_id; }
std::chrono::milliseconds session::timeout() const noexcept { return std::chrono::milliseconds(epoch_->timeout_ms); }
bool session::over() const noexcept { return epoch_->over; }
boot_clock::time_point session::leased_until() const noexcept { return epoch_->leased_until(); }

asio::awaitable<std::error_code> session::ended() const {
    const auto epoch = epoch_;
    const detail::wait_end why = co_await detail::wait_for(core_, epoch->ended);
    if (why.code == condition::cancelled) throw error(why.code, "session");
    co_return why.code;
}

session_hold session::hold(std::string path) const {
    std::vector<std::string> paths;
    if (!path.empty()) paths.push_back(std::move(path));
    return hold(std::move(paths));
}

session_hold session::hold(std::vector<std::string> paths) const {
    auto h = std::make_shared<detail::hold>();
    h->epoch = epoch_;
    for (std::string& path : paths) {
        h->nodes.emplace_back();
        h->nodes.back().path = std::move(path);
    }
    detail::on_strand(core_, [core = core_, h] { core->add_hold(h); });
    return {core_, h};
}

asio::any_io_executor session::get_executor() const { return core_->strand(); }

std::shared_ptr<session_part> session::part(const std::string& key,
                                            const std::function<std::shared_ptr<session_part>()>& make) const {
    auto& parts = epoch_->parts;
    if (const auto it = parts.find(key); it != parts.end())
        if (auto found = it->second.lock()) return found;
    if (parts.size() > 2 * epoch_->parts_swept + 16) {
        std::erase_if(parts, [](const auto& p) { return p.second.expired(); });
        epoch_->parts_swept = parts.size();
    }
    auto made = make();
    parts[key] = made;
    return made;
}

}  // namespace zkasio
